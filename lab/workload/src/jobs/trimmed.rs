//! A trace with only the command's own events: small enough to keep, and without the other activity
//! of the host.

use brickyard_trace::{Event, NameIds, Trace};

use super::owners::{Block, FrameOwners};
use super::processes::{JobsError, Origin, ProcessTree, Processes};

/// The task name that replaces those of all other processes.
const OTHERS: &str = "others";

/// Returns the trace with only the events of the command's processes, and the frees by others of
/// pages that they took; those others get the pid 0 and the name `others`. The states of pages are
/// left out. It is cut into the same jobs as `trace`. O(events).
///
/// # Errors
/// [`JobsError::NoCommand`] and [`JobsError::NoRoot`] where the command's processes cannot be
/// identified.
pub fn own_events(trace: &Trace) -> Result<Trace, JobsError> {
    let mut tree = ProcessTree::new(trace, Processes::Command)?;
    let origins = tree.origins_of(trace)?;
    let mut owners = FrameOwners::default();
    let (mut ids, mut names) = (NameIds::default(), Vec::new());
    let mut events = Vec::new();
    for (event, origin) in trace.events.iter().zip(origins) {
        let own = origin != Origin::Other;
        let mut gives_back = false;
        let taker = own.then_some(Block::default());
        owners.follow(event, taker, |_| gives_back = true);
        // Keep what the root did under the recorder's name: by that it is found again.
        if own || tree.root() == Some(event.pid) {
            let name = ids.id(&mut names, trace.name(event.name));
            events.push(Event { name, ..*event });
        } else if gives_back {
            let name = ids.id(&mut names, OTHERS);
            let pid = 0;
            events.push(Event {
                pid,
                name,
                ..*event
            });
        }
    }
    Ok(Trace {
        header: trace.header.clone(),
        names,
        events,
        ..Trace::default()
    })
}
