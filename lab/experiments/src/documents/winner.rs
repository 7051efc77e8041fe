//! One sentence over all documents: how the default allocator does against those of before, what it does not win included.

use super::{build, mobility, pagealloc, pft, slab};
use crate::data::Key;
use crate::document::{Finding, Piece};

const OURS: &str = "brickyard";
const LISTS: &str = "list-2007";
const UNGROUPED: &str = "vanilla";

/// Nearer to 1 than this nobody wins.
const EVEN: f64 = 0.02;

/// Who wins over all, by how much, and where not. Each word is chosen by its figure. Quick runs have all of these figures; where one is lacking, the sentence falls away.
#[must_use]
pub fn winner() -> Finding {
    let text = |words: &str| build::text(words);
    let word = |keys: fn(&str) -> Vec<Key>, against| {
        let words = ["wins", "loses", "is about even"];
        build::word_beyond(EVEN, keys(OURS), keys(against), words)
    };
    let times = |keys: fn(&str) -> Vec<Key>, against, decimals| -> Piece {
        build::gmean(keys(OURS), keys(against), decimals)
    };
    build::summary(vec![
        text("Over all, `brickyard` "),
        word(pagealloc::all_batches, LISTS),
        text(" in what a page costs ("),
        times(pagealloc::all_batches, LISTS, 1),
        text(" times the speed of per-CPU lists on this host), "),
        word(pft::on_32_cpus, LISTS),
        text(" in page faults ("),
        times(pft::on_32_cpus, LISTS, 1),
        text(" times theirs a second on 32 simulated CPUs), "),
        word(mobility::under_load, LISTS),
        text(" in huge pages under load ("),
        times(mobility::under_load, LISTS, 1),
        text(" times those of grouping by lists, "),
        times(mobility::under_load, UNGROUPED, 1),
        text(" times those of no grouping; replayed), "),
        word(mobility::at_rest, LISTS),
        text(" in huge pages at rest ("),
        times(mobility::at_rest, LISTS, 2),
        text(" times those of grouping by lists, "),
        times(mobility::at_rest, UNGROUPED, 1),
        text(" times those of no grouping), and "),
        word(slab::alone, slab::SLQB),
        text(" in a socket's objects ("),
        times(slab::alone, slab::SLQB, 1),
        text(" times the speed of SLQB on this host)."),
    ])
}
