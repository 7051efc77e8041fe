//! Passes over the events of a trace, one by one, as often as a script needs.

use core::ops::ControlFlow;

use brickyard_trace::{Event, Events, Trace};

use crate::script::ScriptError;

/// The most events of a trace: their indices have 32 bits.
const EVENTS_MOST: u64 = u32::MAX as u64 - 1;

/// The events of a trace, for several passes.
pub(crate) struct Passes<'a, S, G> {
    source: &'a S,
    /// Is told how many events more are done, and says whether to go on.
    goes_on: G,
}

impl<'a, S: Events, G: FnMut(u64) -> ControlFlow<()>> Passes<'a, S, G> {
    pub(crate) fn new(source: &'a S, goes_on: G) -> Result<Self, ScriptError> {
        let events = source.count();
        if events > EVENTS_MOST {
            return Err(ScriptError::TooLong(events));
        }
        Ok(Self { source, goes_on })
    }

    /// Returns the trace without its events.
    pub(crate) fn outline(&self) -> &'a Trace {
        self.source.outline()
    }

    /// Returns the number of events.
    pub(crate) fn count(&self) -> u32 {
        self.source.count() as u32
    }

    /// Calls `each` with the index of every event, the event, and the names so far.
    pub(crate) fn each(
        &mut self,
        mut each: impl FnMut(u32, &Event, &[String]) -> Result<(), ScriptError>,
    ) -> Result<(), ScriptError> {
        let mut place = 0;
        let mut done = Ok(());
        let goes_on = &mut self.goes_on;
        let read = self.source.pass(|events, names| {
            for event in events {
                done = each(place, event, names);
                if done.is_err() {
                    return ControlFlow::Break(());
                }
                place += 1;
            }
            let next = goes_on(events.len() as u64);
            if next.is_break() {
                done = Err(ScriptError::Stopped);
            }
            next
        });
        read.map_err(|why| ScriptError::Unreadable(why.to_string()))?;
        done
    }
}
