//! What can be told of free memory: as numbers that separate lack from fragmentation, and as the
//! exact text of Linux's files.
//!
//! Nothing here looks at a zone: a zone fills in a [`ZoneSnapshot`] or [`FreeCounts`], and
//! everything else follows from that. So the numbers of a running kernel, of a replay and of a file
//! that was read can all be judged and printed by the same code.

mod index;
mod text;

pub use index::{FragmentationText, FreeCounts, UnusableText};
pub use text::{BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, ZoneSnapshot};
