//! The progress of a recording: on a terminal one line that changes, otherwise a line every ten
//! seconds.

use core::time::Duration;
use std::io::IsTerminal;
use std::time::Instant;

use brickyard_trace::record::Progress;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

/// The update interval on a terminal.
const TERMINAL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval between lines in a log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The progress line.
#[derive(Debug)]
pub(super) struct ProgressLine {
    bar: Option<ProgressBar>,
    shown: Instant,
    events: u64,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            shown: Instant::now(),
            events: 0,
        }
    }

    /// Shows the current step, while there are no events to count.
    pub(super) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.tick();
        }
    }

    /// Shows `progress`, if an update is due.
    pub(super) fn show(&mut self, time: Duration, progress: Progress) {
        let pause = if self.bar.is_some() {
            TERMINAL_INTERVAL
        } else {
            LOG_INTERVAL
        };
        let passed = self.shown.elapsed();
        if passed < pause {
            return;
        }
        let rate = (progress.events - self.events) as f64 / passed.as_secs_f64();
        self.shown = Instant::now();
        self.events = progress.events;
        let text = format!(
            "{:.0} s, {} events, {}/s, {} on disk, {} lost",
            time.as_secs_f64(),
            HumanCount(progress.events),
            HumanCount(rate as u64),
            HumanBytes(progress.spooled),
            HumanCount(progress.lost),
        );
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.tick();
            }
            None => eprintln!("recording: {text}"),
        }
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
