//! How far a run is: a bar on a terminal, and lines where there is none.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

use brickyard_bench::progress::Progress;

use crate::progress::Steps;
use crate::say::tell;

/// Seconds between two lines of progress where standard error is no terminal.
const LINE_EVERY: u64 = 15;

/// Who tells it, of so many cells.
#[derive(Debug)]
pub(super) struct Teller {
    bar: Steps,
    all: usize,
    begun: Instant,
    /// Cells that are done, and when a line was told last.
    state: Mutex<(usize, u64)>,
}

impl Teller {
    pub(super) fn new(all: usize) -> Self {
        Self {
            bar: Steps::of("{wide_bar} {percent} % {msg}, {eta} left"),
            all,
            begun: Instant::now(),
            state: Mutex::new((0, 0)),
        }
    }
}

impl Progress for Teller {
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
