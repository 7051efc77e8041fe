//! The store of free frames.
//!
//! A [`Buddy`](buddy::Buddy) store records which frames are memory, which blocks are free, and what
//! list each is on. It is used with the zone's lock held. The zone takes the lock, so every method
//! here takes `&self` and locks nothing. A value that may be read without the lock is documented as
//! a hint.

pub mod buddy;
pub mod frames;
pub mod grouping;

use brickyard::check::Violation;
use brickyard::{Frame, MigrateType, Order};

/// A block taken from a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its first frame.
    pub frame: Frame,
    /// Set when the request's own list was empty and a block of another type was split.
    pub fallback: Option<Fallback>,
}

/// How a request was served from a list of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// The order of the free block that was split.
    pub order: Order,
    /// The list that it was on.
    pub from: MigrateType,
    /// Whether its page block took the request's type.
    pub claimed: Claimed,
}

/// Whether a fallback changed the type of the page block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// The block keeps its type, and is mixed from now on.
    No,
    /// The block has the request's type from now on.
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

/// Returns the violation of an invariant at `frame`.
pub(crate) const fn wrong<T>(
    invariant: &'static str,
    found: &'static str,
    frame: Frame,
) -> Result<T, Violation> {
    Err(Violation::at(invariant, found, frame))
}
