//! Reads a whole trace from an untrusted file: every count, number and name is checked before it is
//! used, and memory grows with what was read, not with what the file declares.

use core::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;

use super::{ReadError, Source};
use crate::{Events as _, Trace};

/// Events for which room is made at once; for more as they come.
const ROOM: usize = 1 << 20;

/// Reads the trace in the file `path`, with all events: 48 bytes of memory each. [`Source`] reads
/// them piece by piece.
///
/// # Errors
///
/// If the file cannot be read, is not a trace, is truncated or damaged, or has an unknown version.
/// The message says which, and what to do.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    all_of(&Source::open(path)?)
}

/// Reads the trace in `bytes`, the contents of a trace file.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, ReadError> {
    all_of(&Source::of_bytes(Bytes::copy_from_slice(bytes))?)
}

fn all_of(source: &Source) -> Result<Trace, ReadError> {
    let mut trace = source.outline().clone();
    let room = usize::try_from(source.count()).map_or(ROOM, |events| events.min(ROOM));
    trace.events.reserve(room);
    source.pass(|events, names| {
        trace.events.extend_from_slice(events);
        let new = names.get(trace.names.len()..).unwrap_or_default();
        trace.names.extend_from_slice(new);
        ControlFlow::Continue(())
    })?;
    Ok(trace)
}
