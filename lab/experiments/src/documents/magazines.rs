//! What the three experiments of 2013 share: one mail, one table head.

use super::build::heads;
use crate::document::Head;

pub(super) const SOURCE: &str =
    "Mel Gorman, \"[RFC PATCH 00/22] Per-cpu page allocator replacement prototype\", 8 May 2013";

/// The head of its tables: the baseline, and the proposal with its gain.
pub(super) fn head() -> Vec<Vec<Head>> {
    vec![
        heads(&[("3.9.0", 1), ("3.9.0", 2)]),
        heads(&[("vanilla", 1), ("magazine", 1), ("gain", 1)]),
    ]
}
