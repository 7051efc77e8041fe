//! Where free frames are kept.
//!
//! A [`Buddy`](buddy::Buddy) store knows which frames are memory, which blocks are free, and what
//! list each is on. It is entered with the zone's lock held. The zone does that, so every method
//! here takes `&self` and locks nothing. What can be read without the lock is said to be a hint.

pub mod buddy;
pub mod frames;
pub mod grouping;

use brickyard::check::Violation;
use brickyard::{Frame, MigrateType, Order};

/// A block that a store has given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its first frame.
    pub frame: Frame,
    /// Set when the request's own list was empty and another type's was broken into.
    pub fallback: Option<Fallback>,
}

/// How a request was served from a list of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// The order of the free block that was broken into.
    pub order: Order,
    /// The list that it was on.
    pub from: MigrateType,
    /// Whether its page block became the requester's.
    pub claimed: Claimed,
}

/// Whether a fallback changed the type of the page block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// The block keeps its type: from now on it is mixed.
    No,
    /// The block is the requester's from now on.
    Yes,
}

/// A free block after everything around it has merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// Its first frame.
    pub frame: Frame,
    /// Its order.
    pub order: Order,
    /// The list it is on.
    pub kind: MigrateType,
}

/// An invariant does not hold at `frame`.
pub(crate) const fn wrong<T>(
    invariant: &'static str,
    found: &'static str,
    frame: Frame,
) -> Result<T, Violation> {
    Err(Violation::at(invariant, found, frame))
}
