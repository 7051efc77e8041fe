//! A trace: in memory as a whole, or gone through event by event.

use core::ops::ControlFlow;

use crate::file::ReadError;
use crate::{Event, Header, NameId, StateRun};

/// A trace, 48 bytes an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Where it comes from.
    pub header: Header,
    /// Process names; events refer to them by index.
    pub names: Vec<String>,
    /// The state of every frame at the start, in rising order of frames; empty where unknown.
    pub start: Vec<StateRun>,
    /// The events, in order of time.
    pub events: Vec<Event>,
    /// The state of every frame at the end.
    pub end: Vec<StateRun>,
}

impl Trace {
    /// Returns the name of a task, `?` if it has none.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        name_in(&self.names, id)
    }
}

/// Returns the name of a task among `names`, `?` if it has none.
#[must_use]
pub fn name_in(names: &[String], id: NameId) -> &str {
    names.get(id.0 as usize).map_or("?", String::as_str)
}

/// A trace whose events are gone through in order of time, as often as needed: in memory, or read
/// from a file each time.
pub trait Events {
    /// Returns all of the trace but its events and their names, which may be missing.
    fn outline(&self) -> &Trace;

    /// Returns how many events there are.
    fn count(&self) -> u64;

    /// Returns the time of the last event; 0 if there is none.
    fn last_time(&self) -> u64;

    /// Calls `take` with some events after others, for as long as it goes on, and with the names so
    /// far. Every pass has the same events, and the same names in the same order.
    ///
    /// # Errors
    /// Those of the file that the events are read from.
    fn pass(
        &self,
        take: impl FnMut(&[Event], &[String]) -> ControlFlow<()>,
    ) -> Result<(), ReadError>;
}

/// Events that a trace in memory hands on at a time.
const BATCH: usize = 1 << 16;

impl Events for Trace {
    fn outline(&self) -> &Trace {
        self
    }

    fn count(&self) -> u64 {
        self.events.len() as u64
    }

    fn last_time(&self) -> u64 {
        self.events.last().map_or(0, |event| event.time)
    }

    fn pass(
        &self,
        mut take: impl FnMut(&[Event], &[String]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        for events in self.events.chunks(BATCH) {
            if take(events, &self.names).is_break() {
                break;
            }
        }
        Ok(())
    }
}
