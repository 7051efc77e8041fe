//! Statistics of free memory: numbers that separate lack of memory from fragmentation, and the
//! exact text of Linux's files.
//!
//! Nothing here looks at a zone. A zone fills in a [`ZoneSnapshot`] or [`FreeCounts`], and
//! everything else follows from that. So the same code can judge and print the numbers of a running
//! kernel, of a replay, or of a file that was read.

mod index;
mod text;

pub use index::{FragmentationText, FreeCounts, UnusableText};
pub use text::{BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, ZoneSnapshot};
