//! Commands as text, to be pasted into a shell: one runs a single cell, the other starts or resumes
//! a whole run.

use std::path::Path;

use brickyard_experiments::catalog;
use brickyard_experiments::cell::Scale;
use brickyard_experiments::plan::Scope;

use crate::record::quoted;

/// The default folder of the traces.
pub(super) const TRACES: &str = "traces";

/// What all commands of a run have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commands<'a> {
    pub(super) seed: u64,
    pub(super) traces: &'a Path,
}

/// Whether a command starts a new run or resumes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The folder has no cells.
    New,
    /// The cells of the folder are kept.
    Resume,
}

impl Commands<'_> {
    /// Returns the command that runs one cell.
    pub(super) fn cell(&self, cell: &str, folder: &Path) -> String {
        format!("brickyard reproduce --cell {cell}{}", self.common(folder))
    }

    /// Returns the command that runs all of `scope`. If its experiments have two scales, it is two
    /// commands, and the second runs only if the first succeeds.
    pub(super) fn run(&self, scope: &Scope, start: Start, folder: &Path) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (scale, option) in [(Scale::Quick, "--quick"), (Scale::Full, "--full")] {
            let names: Vec<&str> = scope.at(scale).map(|one| one.name).collect();
            if names.is_empty() {
                continue;
            }
            let mut part = format!("brickyard reproduce {option}");
            if names.len() < catalog::REPRODUCED.len() {
                part += &format!(" --only {}", names.join(","));
            }
            if start == Start::Resume || !parts.is_empty() {
                part += " --resume";
            }
            parts.push(part + &self.common(folder));
        }
        parts.join(" && ")
    }

    fn common(&self, folder: &Path) -> String {
        let mut options = format!(
            " --seed {} --output {}",
            self.seed,
            quoted(folder.as_os_str())
        );
        if self.traces != Path::new(TRACES) {
            options += &format!(" --traces {}", quoted(self.traces.as_os_str()));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(traces: &str) -> Commands<'_> {
        Commands {
            seed: 1,
            traces: Path::new(traces),
        }
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let here = Path::new("it's here");
        assert_eq!(
            commands("traces").cell("locks.a", here),
            r"brickyard reproduce --cell locks.a --seed 1 --output 'it'\''s here'"
        );
        assert_eq!(
            commands("my traces").cell("locks.a", Path::new("here")),
            "brickyard reproduce --cell locks.a --seed 1 --output here --traces 'my traces'"
        );
    }

    #[test]
    fn a_run_of_two_scales_is_two_commands() {
        let of = |name| catalog::by_name(name).unwrap();
        let run = |scope: &Scope, start| commands("traces").run(scope, start, Path::new("x"));
        let all = Scope::new(Scale::Quick, &catalog::REPRODUCED);
        assert_eq!(
            run(&all, Start::New),
            "brickyard reproduce --quick --seed 1 --output x"
        );
        let some = Scope::new(Scale::Full, &["slab", "locks"].map(of));
        assert_eq!(
            run(&some, Start::Resume),
            "brickyard reproduce --full --only locks,slab --resume --seed 1 --output x"
        );
        let both = Scope::new(Scale::Quick, &[of("pft")]).joined(&some);
        assert_eq!(
            run(&both, Start::New),
            "brickyard reproduce --quick --only pft --seed 1 --output x \
             && brickyard reproduce --full --only locks,slab --resume --seed 1 --output x"
        );
    }
}
