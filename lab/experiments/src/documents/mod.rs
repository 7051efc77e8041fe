//! The five source documents as data: their questions, every table as printed, and the measured
//! rows that each figure is compared with.
//!
//! Each experiment has a file; its folder has the printed cells (`printed.rs`) and the report's
//! text about them (`words.rs`). Published texts are as printed; where a figure was worked out from
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

/// Returns all of them, in the order of the report.
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

/// Returns all keys that the documents refer to, in findings, tables and plots: what a full run
/// should measure.
#[must_use]
pub fn keys() -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for document in all() {
        let figures = document.figures();
        keys.extend(figures.flat_map(|figure| figure.keys().cloned()));
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
