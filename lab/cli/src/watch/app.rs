//! The state of the live view, and what keys do to it. Independent of terminal and host.

use core::time::Duration;
use std::collections::VecDeque;

use brickyard::Order;
use brickyard_host::counters::Counters;
use brickyard_host::look::Look;

use super::sampler::Frames;
use brickyard_trace::record::fallbacks::Tally;

/// How many samples the curves keep.
const REMEMBERED: usize = 600;
const INTERVALS: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];

/// A sample of one zone, for the curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// Blocks of the order that are free now.
    pub(super) available: u64,
    /// The unusable share of free memory, in thousandths.
    pub(super) unusable: u64,
}

/// Whether the view is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Running,
    Paused,
}

/// The page on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Memory,
    Help,
}

/// What the main loop does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// The fallbacks counted so far.
#[derive(Debug)]
pub(super) enum Fallbacks {
    Seen(Tally),
    /// They cannot be counted, for this reason.
    Unseen(String),
}

/// The state of the live view.
#[derive(Debug)]
pub(super) struct App {
    pub(super) order: Order,
    pub(super) interval: Duration,
    pub(super) pace: Pace,
    pub(super) page: Page,
    /// The index of the zone whose memory is drawn.
    pub(super) selected: usize,
    pub(super) lists: Option<Look>,
    pub(super) frames: Option<Frames>,
    /// Why frames cannot be read.
    pub(super) frames_withheld: Option<String>,
    /// The samples of each zone.
    pub(super) history: Vec<VecDeque<Point>>,
    pub(super) fallbacks: Fallbacks,
    first_counters: Option<Counters>,
    last_counters: Option<Counters>,
}

impl App {
    pub(super) fn new(order: Order, interval: Duration) -> Self {
        Self {
            order,
            interval,
            pace: Pace::Running,
            page: Page::Memory,
            selected: usize::MAX,
            lists: None,
            frames: None,
            frames_withheld: None,
            history: Vec::new(),
            fallbacks: Fallbacks::Unseen("not traced".into()),
            first_counters: None,
            last_counters: None,
        }
    }

    /// Takes a new reading of the free lists.
    pub(super) fn lists(&mut self, look: Look) {
        if self.selected >= look.zones.len() {
            // The largest zone is the most interesting.
            let largest = look.zones.iter().enumerate();
            let largest = largest.max_by_key(|(_, zone)| zone.info.present);
            self.selected = largest.map_or(0, |(place, _)| place);
        }
        self.history.resize_with(look.zones.len(), VecDeque::new);
        for (history, zone) in self.history.iter_mut().zip(&look.zones) {
            if history.len() == REMEMBERED {
                history.pop_front();
            }
            history.push_back(Point {
                available: zone.counts.suitable(self.order) as u64,
                unusable: u64::from(zone.counts.unusable_index(self.order)),
            });
        }
        self.lists = Some(look);
    }

    /// Notes that there will be no second reading, so fallbacks cannot be counted.
    pub(super) fn no_other_look(&mut self) {
        self.fallbacks = Fallbacks::Unseen("counted in the live view only".into());
    }

    /// Takes a new reading of all frames.
    pub(super) fn frames(&mut self, frames: Frames) {
        self.frames_withheld = frames.withheld.clone();
        self.frames = Some(frames).filter(|frames| frames.withheld.is_none());
    }

    /// Takes new counters of `/proc/vmstat`.
    pub(super) fn counters(&mut self, counters: Counters) {
        self.first_counters.get_or_insert_with(|| counters.clone());
        self.last_counters = Some(counters);
    }

    /// Returns how much the counters of `/proc/vmstat` whose names begin with `prefix` have grown
    /// since the start, added up. `None` where the kernel has none of them.
    pub(super) fn grown(&self, prefix: &str) -> Option<u64> {
        let sum = |counters: &Option<Counters>| {
            let named = counters.as_ref()?.0.iter();
            let mut named = named
                .filter(|(name, _)| name.starts_with(prefix))
                .peekable();
            named.peek()?;
            Some(named.fold(0_u64, |sum, (_, value)| sum.saturating_add(*value)))
        };
        Some(sum(&self.last_counters)?.saturating_sub(sum(&self.first_counters)?))
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: char) -> Next {
        match key {
            'q' => return Next::Quit,
            ' ' => {
                self.pace = match self.pace {
                    Pace::Running => Pace::Paused,
                    Pace::Paused => Pace::Running,
                }
            }
            'z' => self.select(1),
            'Z' => self.select(-1),
            '+' | '=' => {
                let longer = INTERVALS
                    .into_iter()
                    .find(|&s| s > self.interval.as_secs_f64());
                self.set_interval(longer);
            }
            '-' => {
                let shorter = INTERVALS
                    .into_iter()
                    .rev()
                    .find(|&s| s < self.interval.as_secs_f64());
                self.set_interval(shorter);
            }
            '?' | 'h' => {
                self.page = match self.page {
                    Page::Memory => Page::Help,
                    Page::Help => Page::Memory,
                }
            }
            _ => self.page = Page::Memory,
        }
        Next::GoOn
    }

    fn select(&mut self, step: isize) {
        let zones = self.lists.as_ref().map_or(0, |look| look.zones.len());
        if zones > 0 {
            let place = self.selected as isize + step;
            self.selected = place.rem_euclid(zones as isize) as usize;
        }
    }

    fn set_interval(&mut self, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            self.interval = Duration::from_secs_f64(seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(stalls: [u64; 2]) -> Counters {
        let [dma, normal] = stalls;
        Counters(vec![
            ("allocstall_dma".into(), dma),
            ("allocstall_normal".into(), normal),
        ])
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut app = App::new(Order::HUGE, Duration::from_secs(2));
        assert_eq!(app.key(' '), Next::GoOn);
        assert_eq!(app.pace, Pace::Paused);
        app.key(' ');
        assert_eq!(app.pace, Pace::Running);
        app.key('?');
        assert_eq!(app.page, Page::Help);
        app.key('x');
        assert_eq!(app.page, Page::Memory);
        app.key('z');
        assert_eq!(app.key('q'), Next::Quit);
    }

    #[test]
    fn intervals_go_up_and_down_and_end_somewhere() {
        let mut app = App::new(Order::HUGE, Duration::from_secs_f64(3.3));
        app.key('+');
        assert_eq!(app.interval, Duration::from_secs(5));
        app.key('-');
        assert_eq!(app.interval, Duration::from_secs(2));
        for _ in 0..20 {
            app.key('-');
        }
        assert_eq!(app.interval, Duration::from_secs_f64(0.5));
        for _ in 0..20 {
            app.key('+');
        }
        assert_eq!(app.interval, Duration::from_secs(3600));
    }

    #[test]
    fn counters_are_counted_from_the_start_over_all_zones() {
        let mut app = App::new(Order::HUGE, Duration::from_secs(2));
        assert_eq!(app.grown("allocstall"), None);
        app.counters(counters([5, 7]));
        app.counters(counters([6, 9]));
        assert_eq!(app.grown("allocstall"), Some(3));
        assert_eq!(app.grown("nonesuch"), None);
        app.counters(counters([0, 0]));
        assert_eq!(app.grown("allocstall"), Some(0), "a counter that was reset");
    }
}
