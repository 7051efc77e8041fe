//! States of a host in which whole blocks are few: made by filling memory with single pages, and
//! giving most of them back.

use std::os::fd::OwnedFd;

use brickyard_run::named;

use crate::trial::TrialError;
use crate::trial::memory::{MOST_BUFFERS, Mapping};

named! {
    /// A state of a host's memory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum State {
        /// The memory that is found, unchanged.
        Found => "as-found",
        /// Every other page is in use; all can be moved.
        EveryOther => "every-other",
        /// One page in each huge page is in use, and pinned by an io_uring.
        Pinned => "pinned",
        /// One page in each huge page is in use, and can be moved.
        Single => "single",
    }
}

/// The least memory of a state: one huge page.
pub const LEAST: usize = HUGE;

/// A state that lasts until this is dropped.
#[derive(Debug)]
pub struct HeldMemory {
    _memory: Option<Mapping>,
    _rings: Vec<OwnedFd>,
}

/// A page, a huge page, and which page of one stays.
const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
const STAYS: usize = 100 * PAGE;

/// Makes a state with `bytes` of memory. `advance` is called with how much is done, in bytes, of
/// twice as many; the state is given up when it returns false.
///
/// # Errors
/// If the memory cannot be had, or io_uring is not allowed.
pub fn make(
    state: State,
    bytes: usize,
    mut advance: impl FnMut(usize) -> bool,
) -> Result<Option<HeldMemory>, TrialError> {
    if state == State::Found {
        return Ok(Some(HeldMemory {
            _memory: None,
            _rings: Vec::new(),
        }));
    }
    let bytes = bytes / HUGE * HUGE;
    let mut memory = Mapping::new(bytes)?;
    memory
        .huge(false)
        .map_err(TrialError::failed("keep huge pages out"))?;
    for start in (0..bytes).step_by(HUGE) {
        if !advance(start) {
            return Ok(None);
        }
        for page in (start..start + HUGE).step_by(PAGE) {
            memory.touch(page);
        }
    }
    let mut rings = Vec::new();
    if state == State::Pinned {
        let offsets: Vec<_> = (0..bytes)
            .step_by(HUGE)
            .map(|start| start + STAYS)
            .collect();
        for some in offsets.chunks(MOST_BUFFERS) {
            let ring = memory.pin(some, PAGE);
            rings.push(ring.map_err(TrialError::failed("pin pages with io_uring"))?);
        }
    }
    let given = TrialError::failed("give pages back");
    if !thin_out(&mut memory, state, bytes, &mut advance).map_err(given)? {
        return Ok(None);
    }
    Ok(Some(HeldMemory {
        _memory: Some(memory),
        _rings: rings,
    }))
}

/// Gives back what the state does not use; returns false if that was given up.
fn thin_out(
    memory: &mut Mapping,
    state: State,
    bytes: usize,
    advance: &mut impl FnMut(usize) -> bool,
) -> std::io::Result<bool> {
    for start in (0..bytes).step_by(HUGE) {
        if !advance(bytes + start) {
            return Ok(false);
        }
        if state == State::EveryOther {
            for page in (start..start + HUGE).step_by(2 * PAGE) {
                memory.give_back(page, PAGE)?;
            }
        } else {
            memory.give_back(start, STAYS)?;
            memory.give_back(start + STAYS + PAGE, HUGE - STAYS - PAGE)?;
        }
    }
    Ok(true)
}
