//! The five source documents as data: their questions, every table as printed, and the measured
//! rows that each figure is compared with.
//!
//! Each is in the folder of its experiment, with the printed cells and the report's text about them;
//! here is what they share. Published texts are as printed; where a figure was worked out from
//! others, the table says so. Sentences are our own.

pub(crate) mod build;
pub(crate) mod magazines;

use std::collections::BTreeSet;

use crate::catalog;
use crate::data::Key;
use crate::document::{Document, Points};

/// Returns all of them, in the order of the report.
#[must_use]
pub fn all() -> Vec<Document> {
    let all = catalog::REPRODUCED.into_iter();
    let documents = all.filter_map(|experiment| experiment.document);
    documents.map(|document| document()).collect()
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
