//! The list of cells, and which of them are run.

use std::collections::HashSet;

use crate::raw::{Method, experiment_of};

use super::catalog::{REPRODUCED, uses_traces};
use super::cell::{Cell, Scale};
use super::experiment::Experiment;
use super::traces::Traces;
use crate::refusal::Refusal;

/// Returns all cells, in the order in which they are run.
#[must_use]
pub fn all_cells() -> Vec<Cell> {
    Scope::new(Scale::Full, &REPRODUCED).cells()
}

/// Returns the cells with these names, of any scale.
///
/// # Errors
/// [`Refusal::NoCell`].
pub fn named_cells(names: &[String]) -> Result<Vec<Cell>, Refusal> {
    let mut all = all_cells();
    let named = names.iter().map(|name| {
        let place = all.iter().position(|cell| cell.name == *name);
        let place = place.ok_or_else(|| Refusal::NoCell(name.clone()))?;
        Ok(all.swap_remove(place))
    });
    named.collect()
}

/// Refuses to start if one of these cells needs traces and their folder does not exist.
///
/// # Errors
/// [`Refusal::NoTraces`].
pub fn check_traces(cells: &[Cell], traces: &Traces) -> Result<(), Refusal> {
    match cells.iter().any(uses_traces) {
        true => traces.check(),
        false => Ok(()),
    }
}

/// Which experiments, and how much of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// In the order of the report, each once.
    scales: Vec<(Experiment, Scale)>,
}

impl Scope {
    /// Returns these experiments, all at one scale.
    pub fn new(scale: Scale, only: &[Experiment]) -> Self {
        let experiments = REPRODUCED.into_iter().filter(|one| only.contains(one));
        Self {
            scales: experiments.map(|one| (one, scale)).collect(),
        }
    }

    /// Returns its cells, in the order in which they are run.
    pub fn cells(&self) -> Vec<Cell> {
        let of = |&(experiment, scale): &(Experiment, Scale)| {
            let cells = (experiment.reproduced)().into_iter();
            cells.filter(move |cell| cell.scale <= scale)
        };
        let mut cells: Vec<Cell> = self.scales.iter().flat_map(of).collect();
        by_rounds(&mut cells);
        cells
    }

    /// Returns the scope that cells with these names belong to: an experiment is at full scale if
    /// one of its cells is not part of the quick run.
    pub fn holding<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let names: HashSet<&str> = names.collect();
        let begun: HashSet<&str> = names.iter().map(|name| experiment_of(name)).collect();
        Self::each(|experiment| {
            let mut full = (experiment.reproduced)().into_iter().filter(is_full);
            let is_held = full.any(|cell| names.contains(cell.name.as_str()));
            let scale = if is_held { Scale::Full } else { Scale::Quick };
            begun.contains(experiment.name).then_some(scale)
        })
    }

    /// Returns the union of this and `other`: each experiment at the larger of both scales.
    pub fn joined(&self, other: &Self) -> Self {
        Self::each(|experiment| self.scale(experiment).max(other.scale(experiment)))
    }

    /// Returns the experiments for which `of` returns a scale.
    fn each(of: impl Fn(Experiment) -> Option<Scale>) -> Self {
        let scales = REPRODUCED.map(|one| Some((one, of(one)?)));
        let mut scales: Vec<(Experiment, Scale)> = scales.into_iter().flatten().collect();
        // An experiment with the same cells at both scales takes the scale of the others, so that
        // one command runs all.
        let has_two = |experiment: Experiment| (experiment.reproduced)().iter().any(is_full);
        let of_others = scales.iter().filter(|(one, _)| has_two(*one));
        if let Some(scale) = of_others.map(|&(_, scale)| scale).max() {
            let others = scales.iter_mut().filter(|(one, _)| !has_two(*one));
            others.for_each(|(_, of)| *of = scale);
        }
        Self { scales }
    }

    fn scale(&self, experiment: Experiment) -> Option<Scale> {
        let found = self.scales.iter().find(|(one, _)| *one == experiment);
        found.map(|&(_, scale)| scale)
    }

    /// Returns all its experiments.
    pub fn experiments(&self) -> impl Iterator<Item = Experiment> {
        self.scales.iter().map(|&(experiment, _)| experiment)
    }

    /// Returns its experiments at this scale.
    pub fn at(&self, scale: Scale) -> impl Iterator<Item = Experiment> {
        let of_scale = self.scales.iter().filter(move |(_, of)| *of == scale);
        of_scale.map(|&(experiment, _)| experiment)
    }
}

/// Sorts cells into the order in which they are run: timed cells first, round by round, so that a
/// change of the host within minutes affects all experiments and not the rounds of one alone.
fn by_rounds(cells: &mut [Cell]) {
    cells.sort_by_key(|cell| match cell.kind {
        Method::Timed => (0, cell.run()),
        _ => (1, None),
    });
}

/// Returns true for a cell that only full runs have.
fn is_full(cell: &Cell) -> bool {
    cell.scale == Scale::Full
}

/// Returns a number of cells in words.
#[must_use]
pub fn counted(count: usize) -> String {
    brickyard_results::counted(count, "cell", "cells")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain_and_begin_with_their_experiment() {
        for experiment in REPRODUCED {
            let mut names: Vec<String> = Vec::new();
            for cell in (experiment.reproduced)() {
                let plain =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
                assert!(cell.name.chars().all(plain), "{}", cell.name);
                let first = cell.name.split('.').next();
                assert_eq!(first, Some(experiment.name), "{}", cell.name);
                assert!(cell.seconds > 0.0, "{}", cell.name);
                names.push(cell.name);
            }
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{} has a name twice", experiment.name);
        }
    }

    #[test]
    fn a_scope_is_recovered_from_its_cells() {
        let of = |name| crate::catalog::by_name(name).unwrap();
        let names = |scope: &Scope| -> Vec<String> {
            let cells = scope.cells().into_iter();
            cells.map(|cell| cell.name).collect()
        };
        let holding = |names: &[String]| Scope::holding(names.iter().map(String::as_str));
        for scope in [
            Scope::new(Scale::Quick, &REPRODUCED),
            Scope::new(Scale::Full, &REPRODUCED),
            Scope::new(Scale::Full, &["locks", "kernbench"].map(of)),
            Scope::new(Scale::Quick, &[of("pft")]).joined(&Scope::new(Scale::Full, &[of("slab")])),
        ] {
            assert_eq!(holding(&names(&scope)), scope);
            // A part of a run belongs to the run.
            assert_eq!(scope.joined(&holding(&names(&scope)[..1])), scope);
        }
        assert_eq!(holding(&[]).experiments().count(), 0);
        assert_eq!(holding(&["none.at.all".to_owned()]), holding(&[]));
    }

    #[test]
    fn rounds_of_different_experiments_take_turns() {
        let mut cells: Vec<Cell> = REPRODUCED
            .into_iter()
            .flat_map(|one| (one.reproduced)())
            .collect();
        let before: Vec<String> = exact(&cells);
        by_rounds(&mut cells);
        assert_eq!(exact(&cells), before, "the others stay as they are");
        let timed: Vec<&str> = cells
            .iter()
            .take_while(|cell| cell.kind == Method::Timed)
            .map(|cell| &*cell.name)
            .collect();
        let of_a_round = timed.iter().filter(|name| name.ends_with(".1")).count();
        assert!(of_a_round > 4, "{timed:?}");
        for (number, round) in (1..).zip(timed.chunks(of_a_round)) {
            let end = format!(".{number}");
            assert!(round.iter().all(|name| name.ends_with(&end)), "{round:?}");
        }
    }

    fn exact(cells: &[Cell]) -> Vec<String> {
        let exact = cells.iter().filter(|cell| cell.kind != Method::Timed);
        exact.map(|cell| cell.name.clone()).collect()
    }
}
