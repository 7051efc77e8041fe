//! One sentence over all documents: how the default allocator does against those of before, what it
//! does not win included.

use super::{build, mobility, pagealloc, pft, slab};
use crate::data::Key;
use crate::document::{Finding, Piece};

const OURS: &str = "brickyard";
const LISTS: &str = "list-2007";
const UNGROUPED: &str = "vanilla";

/// Nearer to 1 than this nobody wins.
const EVEN: f64 = 0.02;

/// Who wins over all, by how much, and where not. Each word is chosen by its figure. Quick runs
/// have all of these figures; where one is lacking, the sentence falls away.
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
        "Over all, `brickyard` {} in what a page costs ({} times the speed of per-CPU lists on this host), {} in page faults ({} times theirs a second on 32 simulated CPUs), {} in huge pages under load ({} times those of grouping by lists, {} times those of no grouping; replayed), {} in huge pages at rest ({} times those of grouping by lists, {} times those of no grouping), and {} in a socket's objects ({} times the speed of SLQB on this host).",
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
