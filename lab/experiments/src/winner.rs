//! One sentence over all documents: how the default allocator compares with the earlier ones,
//! including where it loses.

use crate::data::Key;
use crate::document::{Finding, Piece};
use crate::documents::build;
use crate::mobility::document as mobility;
use crate::pagealloc::document as pagealloc;
use crate::pft::document as pft;
use crate::slab::document as slab;

const OURS: &str = "brickyard";
const LISTS: &str = "list-2007";
const UNGROUPED: &str = "vanilla";

/// A speedup no further from 1 than this counts as even.
const EVEN: f64 = 0.02;

/// Returns the sentence on where the default allocator wins, by how much, and where it loses. Each
/// word is chosen by its figure. Quick runs have all of these figures; if one is missing, the
/// sentence is left out.
#[must_use]
pub fn winner() -> Finding {
    let word = |keys: fn(&str) -> Vec<Key>, against| {
        let words = ["wins", "loses", "is about even"];
        build::word_beyond(EVEN, keys(OURS), keys(against), words)
    };
    let times = |keys: fn(&str) -> Vec<Key>, against, decimals| -> Piece {
        build::gmean(keys(OURS), keys(against), decimals)
    };
    build::summary(
        "Overall, `brickyard` {} in the cost of a page ({} times the speed of per-CPU lists on this host), {} in page faults ({} times as many per second as lists on 32 simulated CPUs), {} in huge pages under load ({} times as many as grouping by lists, {} times as many as no grouping; replayed), {} in huge pages at rest ({} times as many as grouping by lists, {} times as many as no grouping), and {} in a socket's objects ({} times the speed of SLQB on this host).",
        [
            word(pagealloc::all_batches, LISTS),
            times(pagealloc::all_batches, LISTS, 1),
            word(pft::on_32_cpus, LISTS),
            times(pft::on_32_cpus, LISTS, 1),
            word(mobility::under_load, LISTS),
            times(mobility::under_load, LISTS, 1),
            times(mobility::under_load, UNGROUPED, 1),
            word(mobility::at_rest, LISTS),
            times(mobility::at_rest, LISTS, 2),
            times(mobility::at_rest, UNGROUPED, 1),
            word(slab::alone, slab::SLQB),
            times(slab::alone, slab::SLQB, 1),
        ],
    )
}
