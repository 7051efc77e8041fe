//! A progress bar on standard error, where that is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of so many units, drawn by an `indicatif` template; where standard error is no terminal, one that is never drawn.
pub(crate) fn bar(units: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(units);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
