//! A progress bar on standard error, where that is a terminal.

use core::time::Duration;
use std::io::{IsTerminal, stderr};

use crate::progress::Progress;
use crate::side_by_side::{self, Follow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::tell;

/// Returns a bar of so many units with an `indicatif` template. It is hidden where standard error
/// is not a terminal.
pub fn bar(units: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(units);
    if !stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// The bar of a measurement; hidden until the measurement begins.
#[derive(Debug)]
pub struct Steps(ProgressBar);

impl Steps {
    /// A bar that shows how many steps are done.
    #[must_use]
    pub fn new() -> Self {
        Self::of("{wide_bar} {pos}/{len} {msg}, {eta} left")
    }

    /// A bar with this `indicatif` template.
    pub fn of(template: &str) -> Self {
        Self(bar(0, template))
    }

    /// Returns the estimated time left.
    pub fn left(&self) -> Duration {
        self.0.eta()
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Steps {
    fn begin(&self, units: u64) {
        self.0.set_length(units);
        self.0.reset();
    }

    fn more(&self, units: u64) {
        self.0.inc_length(units);
    }

    fn at(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    fn advance(&self, units: u64) {
        self.0.inc(units);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }

    fn say(&self, line: &str) {
        self.0.suspend(|| tell(line));
    }

    fn warn(&self, what: &str) {
        self.say(&format!("brickyard: {what}"));
    }
}

/// Runs `work` in parallel, with one bar of so many units: see [`side_by_side::run`].
pub fn runs<T: Send>(
    runs: usize,
    threads: Option<usize>,
    units: u64,
    work: impl Fn(usize, Follow<'_>) -> T + Sync,
) -> Vec<T> {
    let bar = Steps::of("{wide_bar} {percent} %, {per_sec}, {eta} left");
    bar.begin(units);
    let done = side_by_side::run(&bar, runs, threads, work);
    bar.end();
    done
}
