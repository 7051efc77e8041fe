//! One sentence over all documents: how the default allocator compares with the earlier ones,
//! including where it loses.

use crate::cells::simulated::OTHER_INSTRUCTIONS;
use crate::data::Key;
use crate::document::{Figure, Finding, Piece};
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

/// A claim of the default: how many times as fast, or as large, it is.
struct Claim {
    figure: Figure,
    // The same under other assumptions.
    swept: Vec<Figure>,
}

impl Claim {
    /// Returns the claim over these keys, which hangs on no assumption.
    fn new(keys: fn(&str) -> Vec<Key>, against: &str, decimals: usize) -> Self {
        Self {
            figure: build::over(keys(OURS), keys(against)).decimals(decimals),
            swept: Vec::new(),
        }
    }

    /// Adds the members of its sweep, by what they assume.
    fn swept(self, assumptions: &[&str], of: fn(&Figure, &str) -> Figure) -> Self {
        let members = assumptions.iter().map(|assumed| of(&self.figure, assumed));
        Self {
            swept: members.collect(),
            ..self
        }
    }

    fn word(&self) -> Piece {
        let words = ["wins", "loses", "is about even"];
        build::word_for(self.figure.clone(), self.swept.clone(), EVEN, words)
    }

    fn times(&self) -> Piece {
        Piece::Figure(self.figure.clone())
    }

    fn range(&self) -> Piece {
        let own = core::iter::once(&self.figure);
        Piece::Range(own.chain(&self.swept).cloned().collect())
    }
}

/// Returns the sentence on where the default allocator wins, by how much, and where it loses. Each
/// word is chosen by its figure, and by the same under all assumptions. Quick runs have all of these
/// figures; if one is missing, the sentence is left out.
#[must_use]
pub fn winner() -> Finding {
    let pages = Claim::new(pagealloc::all_batches, LISTS, 1);
    let faults =
        Claim::new(pft::on_32_cpus, LISTS, 1).swept(&OTHER_INSTRUCTIONS, Figure::under_alone);
    let protocol = |keys, against, decimals| {
        Claim::new(keys, against, decimals).swept(&mobility::assumptions(), Figure::under)
    };
    let load = protocol(mobility::under_load, LISTS, 1);
    let load_ungrouped = protocol(mobility::under_load, UNGROUPED, 1);
    let rest = protocol(mobility::at_rest, LISTS, 2);
    let rest_ungrouped = protocol(mobility::at_rest, UNGROUPED, 1);
    let objects = Claim::new(slab::alone, slab::SLQB, 1);
    build::summary(
        "Overall, `brickyard` {} in the cost of a page ({} times the speed of per-CPU lists on this host), {} in page faults ({} times as many per second as lists on 32 simulated CPUs; {}), {} in huge pages under load ({} times as many as grouping by lists; {}; {} times as many as no grouping; {}; replayed), {} in huge pages at rest ({} times as many as grouping by lists; {}; {} times as many as no grouping; {}), and {} in a socket's objects ({} times the speed of SLQB on this host).",
        [
            pages.word(),
            pages.times(),
            faults.word(),
            faults.times(),
            faults.range(),
            load.word(),
            load.times(),
            load.range(),
            load_ungrouped.times(),
            load_ungrouped.range(),
            rest.word(),
            rest.times(),
            rest.range(),
            rest_ungrouped.times(),
            rest_ungrouped.range(),
            objects.word(),
            objects.times(),
        ],
    )
}
