//! The five source documents as data: what they asked, every table as they printed it, and which
//! rows stand beside each figure.
//!
//! A file tells of one experiment; beside it lie its printed cells (`printed.rs`) and what is said
//! about them (`words.rs`). Published texts are as printed; where a figure was worked out from
//! others, the table says so. Sentences are our own.

mod build;
mod kernbench;
mod locks;
mod magazines;
mod mobility;
mod pagealloc;
mod pft;
mod slab;
mod two_kinds;
mod winner;

use std::collections::BTreeSet;

use crate::data::Key;
use crate::document::{Document, Points};

pub use winner::winner;

/// All of them, in the order of the report.
#[must_use]
pub fn all() -> Vec<Document> {
    vec![
        locks::document(),
        pagealloc::document(),
        pft::document(),
        kernbench::document(),
        two_kinds::document(),
        slab::document(),
        mobility::document(),
    ]
}

/// All keys that the documents refer to, in findings, tables and plots: what a full run should
/// give.
#[must_use]
pub fn keys() -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for document in all() {
        let figures = document.figures();
        keys.extend(figures.flat_map(|figure| figure.of.iter().chain(&figure.against).cloned()));
        for curve in document.plots.iter().flat_map(|plot| &plot.curves) {
            match &curve.points {
                Points::Samples(points) => keys.extend(points.iter().map(|(_, key)| key.clone())),
                Points::Series(key) => {
                    keys.insert(key.clone());
                }
            }
        }
    }
    keys
}
