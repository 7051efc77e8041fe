//! Where the cells were run, and by which build: stored with the rows of all cells, so that cells
//! timed on different hosts can be distinguished.
//!
//! It is a list of groups as JSON:
//! `[{"host": …, "program": …}, {"host": …, "program": …, "cells": ["…"]}]`. The largest group
//! names no cells: it has all that no other one names.

use std::collections::HashMap;

use brickyard_results::Host;
use serde::{Deserialize, Serialize};

use crate::raw::CellRows;

/// Cells that one build ran on one host.
#[derive(Debug, Serialize, Deserialize)]
struct Group {
    host: Host,
    program: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<Vec<String>>,
}

/// Returns the groups of some cells as JSON.
pub(super) fn to_json(cells: &[CellRows]) -> serde_json::Result<String> {
    let mut groups: Vec<(&Host, &str, Vec<String>)> = Vec::new();
    for cell in cells {
        let known = groups
            .iter_mut()
            .find(|(host, program, _)| (*host, *program) == (&cell.host, &cell.program));
        match known {
            Some((.., names)) => names.push(cell.cell.clone()),
            None => groups.push((&cell.host, &cell.program, vec![cell.cell.clone()])),
        }
    }
    let largest = groups.iter().map(|(.., names)| names.len()).max();
    let unnamed = groups
        .iter()
        .position(|(.., names)| Some(names.len()) == largest);
    let groups = groups.into_iter().enumerate();
    let groups = groups.map(|(place, (host, program, names))| Group {
        host: host.clone(),
        program: program.to_owned(),
        cells: (Some(place) != unnamed).then_some(names),
    });
    serde_json::to_string(&groups.collect::<Vec<_>>())
}

/// The host and the build of each cell.
pub(super) struct Provenance {
    of: HashMap<String, (Host, String)>,
    others: (Host, String),
}

impl Provenance {
    /// Returns the same build and host for all cells.
    pub(super) fn all(host: Host, program: String) -> Self {
        Self {
            of: HashMap::new(),
            others: (host, program),
        }
    }

    /// Parses what [`to_json`] wrote.
    pub(super) fn from_json(json: &str) -> serde_json::Result<Self> {
        let mut ran = Self::all(Host::unknown(), String::new());
        for group in serde_json::from_str::<Vec<Group>>(json)? {
            let about = (group.host, group.program);
            match group.cells {
                None => ran.others = about,
                Some(cells) => {
                    let cells = cells.into_iter().map(|cell| (cell, about.clone()));
                    ran.of.extend(cells);
                }
            }
        }
        Ok(ran)
    }

    /// Returns the host and the build of a cell.
    pub(super) fn of(&self, cell: &str) -> (Host, String) {
        self.of.get(cell).unwrap_or(&self.others).clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn cells_not_listed_are_unknown_and_other_json_is_refused() {
        let unknown = (Host::unknown(), String::new());
        assert_eq!(Provenance::from_json("[]").unwrap().of("e.a"), unknown);
        let one = r#"[{"host": {"cpus": 2}, "program": "x", "cells": ["e.a"]}]"#;
        let ran = Provenance::from_json(one).unwrap();
        assert_eq!(ran.of("e.a").0.cpus, Some(2));
        assert_eq!(ran.of("e.a").1, "x");
        assert_eq!(ran.of("e.b"), unknown);
        for json in ["", "{}", "[1]", r#"[{"host": "here", "program": "x"}]"#] {
            assert!(Provenance::from_json(json).is_err(), "{json}");
        }
        assert_eq!(to_json(&[]).unwrap(), "[]");
    }
}
