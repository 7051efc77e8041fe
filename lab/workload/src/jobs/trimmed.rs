//! A trace with the command's own events alone: small enough to keep, and silent on what else the
//! host did.

use brickyard_trace::{Event, NameIds, Trace};

use super::family::{Family, JobsError, Kin, Whose};
use super::held::{Block, Held};

/// The task that stands for whoever is not one of the command's processes.
const OTHERS: &str = "others";

/// The trace with the events of the command's own processes, and those by which somebody else frees
/// what they took: that somebody gets the number 0 and the name `others`. The states of pages are
/// left out. It is cut into the same jobs as `trace`. O(events).
///
/// # Errors
/// [`JobsError::NoCommand`] and [`JobsError::NoRoot`] where the trace does not tell which processes
/// are the command's.
pub fn own_events(trace: &Trace) -> Result<Trace, JobsError> {
    let mut family = Family::new(trace, Whose::Command)?;
    let kin = family.of_all(trace)?;
    let mut held = Held::default();
    let (mut ids, mut names) = (NameIds::default(), Vec::new());
    let mut events = Vec::new();
    for (event, kin) in trace.events.iter().zip(kin) {
        let own = kin != Kin::Stranger;
        let mut gives_back = false;
        let taker = own.then_some(Block::default());
        held.follow(event, taker, |_| gives_back = true);
        // By what the first process did under the recorder's name it is found again.
        if own || family.root() == Some(event.pid) {
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
