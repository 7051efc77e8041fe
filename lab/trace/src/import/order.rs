//! Puts events in order of time, whatever order they come in, with bounded memory.
//!
//! Text is nearly in order: the tools merge the buffers of the CPUs, and a few events are late. So
//! the last events wait in a window, which is sorted, and of which the earlier half goes on when it
//! is full. An event that is later still (text of one recording after another) is refused.
//!
//! Invariant `stable`: events of equal times keep the order in which they came.
//!
//! Invariant `bounded-window`: the window has at most [`WINDOW`] events.

use super::ImportError;
use crate::Event;

/// Events that wait for earlier ones: 24 MiB.
pub(super) const WINDOW: usize = 1 << 19;

/// An event that is late by fewer events gets its place at once.
const NEAR: usize = 64;

/// Events, put in order.
pub(super) struct Order {
    window: Vec<Event>,
    most: usize,
    is_sorted: bool,
    /// The last time that went on.
    reached: u64,
}

impl Order {
    /// Creates an empty window of `most` events.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            window: Vec::new(),
            most,
            is_sorted: true,
            reached: 0,
        }
    }

    /// Takes the next events. Those that may go on go to `take`.
    ///
    /// # Errors
    /// Those of `take`; [`ImportError::Late`] if an event is earlier than one that went on.
    pub(super) fn push(
        &mut self,
        events: &[Event],
        mut take: impl FnMut(&[Event]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        for &event in events {
            if self.window.len() == self.most {
                self.pass_on(self.most.div_ceil(2), &mut take)?;
            }
            self.insert(event);
        }
        Ok(())
    }

    /// Adds an event to the window. One that is late by a few events gets its place at once, so
    /// that a window of which all late ones are so needs no sorting.
    fn insert(&mut self, event: Event) {
        let is_later = |other: &Event| other.time > event.time;
        if !self.window.last().is_some_and(is_later) {
            self.window.push(event);
            return;
        }
        let first = self.window.len().saturating_sub(NEAR);
        let (before, near) = self.window.split_at(first);
        if !self.is_sorted || before.last().is_some_and(is_later) {
            self.is_sorted = false;
            self.window.push(event);
            return;
        }
        // `stable`: behind those of the same time.
        let place = first + near.partition_point(|other| !is_later(other));
        self.window.insert(place, event);
    }

    /// Passes the rest on.
    ///
    /// # Errors
    /// Those of [`Order::push`].
    pub(super) fn finish(
        mut self,
        mut take: impl FnMut(&[Event]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.pass_on(self.window.len(), &mut take)
    }

    /// Passes the earliest `count` events of the window on.
    fn pass_on(
        &mut self,
        count: usize,
        take: &mut impl FnMut(&[Event]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        if !self.is_sorted {
            self.window.sort_by_key(|event| event.time); // stable: keeps the order at equal times
            self.is_sorted = true;
        }
        let events = &self.window[..count];
        let late = events.first().filter(|event| event.time < self.reached);
        if let Some(&Event { time, .. }) = late {
            return Err(ImportError::Late {
                time,
                reached: self.reached,
            });
        }
        take(events)?;
        self.reached = events.last().map_or(self.reached, |last| last.time);
        self.window.drain(..count);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::{NameId, What};

    fn event(time: u64, frame: u64) -> Event {
        Event {
            time,
            frame,
            what: What::Free,
            pid: frame as i32 % 3,
            name: NameId(frame as u32 % 5),
            cpu: frame as u16 % 2,
            order: brickyard::Order::new(frame as u8 % 4),
        }
    }

    /// Puts events in order through windows of `most`.
    fn ordered(events: &[Event], most: usize) -> Result<Vec<Event>, ImportError> {
        let mut all = Vec::new();
        let mut order = Order::new(most);
        let mut take = |events: &[Event]| {
            all.extend_from_slice(events);
            Ok(())
        };
        for part in events.chunks(7) {
            order.push(part, &mut take)?;
            assert!(order.window.len() <= most, "bounded-window");
        }
        order.finish(&mut take)?;
        Ok(all)
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort_or_refused(
            times in vec(0..50u64, 0..200), most in prop_oneof![1..20usize, 100..250usize],
        ) {
            let events: Vec<Event> = times.iter().zip(0..).map(|(&time, frame)| event(time, frame)).collect();
            let mut sorted = events.clone();
            sorted.sort_by_key(|event| event.time);
            match ordered(&events, most) {
                Ok(all) => prop_assert_eq!(all, sorted),
                Err(ImportError::Late { time, reached }) => {
                    prop_assert!(time < reached && events.len() > most);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn only_what_is_late_by_many_events_is_sorted_later() {
        let push = |times: &[u64]| {
            let mut order = Order::new(1000);
            for (place, &time) in times.iter().enumerate() {
                order.insert(event(time, place as u64));
            }
            let times: Vec<u64> = order.window.iter().map(|event| event.time).collect();
            (times.is_sorted(), order.is_sorted)
        };
        let rising: Vec<u64> = (0..200).collect();
        assert_eq!(push(&rising), (true, true));
        // Late by `NEAR` events, and by one more.
        assert_eq!(push(&[&rising[..], &[135]].concat()), (true, true));
        assert_eq!(push(&[&rising[..], &[134]].concat()), (false, false));
        // From then on nothing is, although it may look near.
        assert_eq!(push(&[&rising[..], &[134, 133]].concat()), (false, false));
    }

    #[test]
    fn what_is_late_by_less_than_half_a_window_gets_its_place() {
        let events: Vec<Event> = (0..10_000).map(|place| event(place ^ 7, place)).collect();
        assert!(
            ordered(&events, 16)
                .unwrap()
                .is_sorted_by_key(|event| event.time)
        );
        assert!(ordered(&events, 4).is_err());
    }

    #[test]
    fn one_recording_after_another_is_refused() {
        let once: Vec<Event> = (0..1000).map(|place| event(place, place)).collect();
        let refused = ordered(&[&once[..], &once[..]].concat(), 64).unwrap_err();
        let why = refused.to_string();
        assert!(why.contains("import each by itself"), "{why}");
    }
}
