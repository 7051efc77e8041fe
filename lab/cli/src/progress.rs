//! A progress bar on standard error, where that is a terminal.

use std::io::{IsTerminal, stderr};

use brickyard_bench::progress::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of so many units, drawn by an `indicatif` template; where standard error is no terminal, one that is never drawn.
pub(crate) fn bar(units: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(units);
    if !stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// A bar of a measurement's steps: nothing is drawn before it begins.
#[derive(Debug)]
pub(crate) struct Steps(ProgressBar);

impl Steps {
    /// Not begun yet.
    pub(crate) fn new() -> Self {
        Self(bar(0, "{wide_bar} {pos}/{len} {msg}, {eta} left"))
    }
}

impl Progress for Steps {
    fn begin(&self, steps: usize) {
        self.0.set_length(steps as u64);
        self.0.reset();
    }

    fn at(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    fn step(&self) {
        self.0.inc(1);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }

    fn interrupted(&self, complete: usize, asked: usize) {
        eprintln!("interrupted: {complete} of {asked} rounds are complete");
    }

    fn note(&self, text: &str) {
        eprintln!("brickyard: {text}");
    }
}
