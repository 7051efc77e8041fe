//! Which cells there are, and which of them are run.

use std::path::Path;

use super::cell::{Cell, Experiment, Scale};
use super::cells;
use crate::misuse::Misuse;

/// Cells, in the order in which they are run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) cells: Vec<Cell>,
}

impl Plan {
    /// Those of `scale` of these experiments.
    pub(super) fn new(scale: Scale, only: &[Experiment]) -> Self {
        let experiments = Experiment::ALL.into_iter().filter(|one| only.contains(one));
        let cells = experiments
            .flat_map(cells::of)
            .filter(|cell| cell.scale <= scale);
        Self {
            cells: cells.collect(),
        }
    }

    /// Those with these names, of whatever scale.
    pub(super) fn named(names: &[String]) -> Result<Self, Misuse> {
        let mut all = Self::new(Scale::Full, &Experiment::ALL).cells;
        let mut cells = Vec::new();
        for name in names {
            let place = all.iter().position(|cell| cell.name == *name);
            let place = place.ok_or_else(|| {
                Misuse::new(format!(
                    "there is no cell `{name}`, or it is named twice; `brickyard reproduce --list-cells --full` lists them"
                ))
            })?;
            cells.push(all.swap_remove(place));
        }
        Ok(Self { cells })
    }

    /// The command that runs one of them by itself.
    pub(super) fn command(cell: &str, seed: u64, folder: &Path) -> String {
        let folder = folder.display().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        let folder = if folder.chars().all(plain) {
            folder
        } else {
            format!("'{}'", folder.replace('\'', r"'\''"))
        };
        format!("brickyard reproduce --cell {cell} --seed {seed} --output {folder}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain_and_begin_with_their_experiment() {
        for experiment in Experiment::ALL {
            let mut names: Vec<String> = Vec::new();
            for cell in cells::of(experiment) {
                let plain =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
                assert!(cell.name.chars().all(plain), "{}", cell.name);
                let first = cell.name.split('.').next();
                assert_eq!(first, Some(experiment.name()), "{}", cell.name);
                assert!(cell.seconds > 0.0, "{}", cell.name);
                names.push(cell.name);
            }
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{} has a name twice", experiment.name());
        }
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let command = Plan::command("locks.a", 1, Path::new("it's here"));
        assert_eq!(
            command,
            r"brickyard reproduce --cell locks.a --seed 1 --output 'it'\''s here'"
        );
    }
}
