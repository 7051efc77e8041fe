//! The progress of a run: a bar on a terminal, else lines.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

use brickyard_run::progress::Progress;

use brickyard_run::bar::Steps;
use brickyard_run::terminal::tell;

/// Seconds between two lines of progress if standard error is not a terminal.
const LINE_EVERY: u64 = 15;

/// The progress of a run of `all` cells.
#[derive(Debug)]
pub(super) struct RunProgress {
    bar: Steps,
    all: usize,
    begun: Instant,
    /// The number of cells done, and the second of the last line.
    state: Mutex<(usize, u64)>,
}

impl RunProgress {
    pub(super) fn new(all: usize) -> Self {
        Self {
            bar: Steps::of("{wide_bar} {percent} % {msg}, {eta} left"),
            all,
            begun: Instant::now(),
            state: Mutex::new((0, 0)),
        }
    }
}

impl Progress for RunProgress {
    fn begin(&self, units: u64) {
        self.bar.begin(units);
    }

    fn at(&self, name: &str) {
        self.bar.at(name);
    }

    fn advance(&self, units: u64) {
        self.bar.advance(units);
    }

    fn done(&self) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        state.0 += 1;
        let seconds = self.begun.elapsed().as_secs();
        if !std::io::stderr().is_terminal() && seconds >= state.1 + LINE_EVERY {
            state.1 = seconds;
            let left = self.bar.left().as_secs();
            tell(format_args!(
                "{} of {} cells, {seconds} s, about {left} s left",
                state.0, self.all
            ));
        }
    }

    fn end(&self) {
        self.bar.end();
    }

    fn say(&self, line: &str) {
        self.bar.say(line);
    }

    fn warn(&self, what: &str) {
        self.bar.warn(what);
    }
}
