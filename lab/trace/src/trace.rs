//! A whole trace in memory: 48 bytes an event.

use crate::{Event, Header, NameId, StateRun};

/// A trace.
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
        self.names.get(id.0 as usize).map_or("?", String::as_str)
    }
}
