//! What the live view shows, and what keys do to it. It knows neither terminal nor host.

use core::time::Duration;
use std::collections::VecDeque;

use brickyard::Order;
use brickyard_host::counters::Counters;
use brickyard_host::look::Look;

use super::sampler::Frames;
use brickyard_trace::record::fallbacks::Tally;

/// So many looks are remembered for the curves.
const REMEMBERED: usize = 600;
const INTERVALS: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];

/// What a curve remembers of one zone at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// Blocks of the order that are free now.
    pub(super) available: u64,
    /// The unusable part of free memory, in thousandths.
    pub(super) unusable: u64,
}

/// Whether time goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Running,
    Paused,
}

/// What is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Memory,
    Help,
}

/// What the loop does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// What can be read of fallbacks.
#[derive(Debug)]
pub(super) enum Fallbacks {
    Seen(Tally),
    /// Nothing, and why.
    Unseen(String),
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct App {
    pub(super) order: Order,
    pub(super) interval: Duration,
    pub(super) pace: Pace,
    pub(super) page: Page,
    /// The place of the zone whose memory is drawn.
    pub(super) selected: usize,
    pub(super) lists: Option<Look>,
    pub(super) frames: Option<Frames>,
    /// Why frames cannot be looked at.
    pub(super) frames_withheld: Option<String>,
    /// By zone.
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

    /// A new look at the lists.
    pub(super) fn lists(&mut self, look: Look) {
        if self.selected >= look.zones.len() {
            // The largest says most.
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

    /// There will be no other look, so nothing can be counted.
    pub(super) fn no_other_look(&mut self) {
        self.fallbacks = Fallbacks::Unseen("counted in the live view only".into());
    }

    /// A new look at all frames.
    pub(super) fn frames(&mut self, frames: Frames) {
        self.frames_withheld = frames.withheld.clone();
        self.frames = Some(frames).filter(|frames| frames.withheld.is_none());
    }

    /// New numbers of `/proc/vmstat`.
    pub(super) fn counters(&mut self, counters: Counters) {
        self.first_counters.get_or_insert_with(|| counters.clone());
        self.last_counters = Some(counters);
    }

    /// How much a number of `/proc/vmstat` has grown since the start; several names are added up.
    /// `None` where the kernel has none of them.
    pub(super) fn grown(&self, start_of_name: &str) -> Option<u64> {
        let sum = |counters: &Option<Counters>| {
            let named = counters.as_ref()?.0.iter();
            let mut named = named
                .filter(|(name, _)| name.starts_with(start_of_name))
                .peekable();
            named.peek()?;
            Some(named.fold(0_u64, |sum, (_, value)| sum.saturating_add(*value)))
        };
        Some(sum(&self.last_counters)?.saturating_sub(sum(&self.first_counters)?))
    }

    /// A key was pressed.
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
