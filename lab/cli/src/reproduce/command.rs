//! Commands as text, to be pasted into a shell: one that runs a cell, and one that runs or goes on
//! with a whole run.

use std::path::Path;

use brickyard_experiments::cell::{Experiment, Scale};
use brickyard_experiments::plan::Scope;

/// Where the traces are, if nobody says.
pub(super) const TRACES: &str = "traces";

/// What all commands of a run have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commands<'a> {
    pub(super) seed: u64,
    pub(super) traces: &'a Path,
}

/// What a run finds in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// No cells.
    New,
    /// Cells that are kept.
    Resumed,
}

impl Commands<'_> {
    /// The command that runs one cell by itself.
    pub(super) fn cell(&self, cell: &str, folder: &Path) -> String {
        format!("brickyard reproduce --cell {cell}{}", self.common(folder))
    }

    /// The command that runs all of `scope`. Where experiments are of two scales it is two, the
    /// second only if the first succeeds.
    pub(super) fn run(&self, scope: &Scope, begins: Begins, folder: &Path) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (scale, option) in [(Scale::Quick, "--quick"), (Scale::Full, "--full")] {
            let names: Vec<&str> = scope.at(scale).map(Experiment::name).collect();
            if names.is_empty() {
                continue;
            }
            let mut part = format!("brickyard reproduce {option}");
            if names.len() < Experiment::ALL.len() {
                part += &format!(" --only {}", names.join(","));
            }
            if begins == Begins::Resumed || !parts.is_empty() {
                part += " --resume";
            }
            parts.push(part + &self.common(folder));
        }
        parts.join(" && ")
    }

    fn common(&self, folder: &Path) -> String {
        let mut options = format!(" --seed {} --output {}", self.seed, quoted(folder));
        if self.traces != Path::new(TRACES) {
            options += &format!(" --traces {}", quoted(self.traces));
        }
        options
    }
}

/// A path as a shell takes it for one word.
pub(super) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
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
        let run = |scope: &Scope, begins| commands("traces").run(scope, begins, Path::new("x"));
        let all = Scope::new(Scale::Quick, &Experiment::ALL);
        assert_eq!(
            run(&all, Begins::New),
            "brickyard reproduce --quick --seed 1 --output x"
        );
        let some = Scope::new(Scale::Full, &[Experiment::Slab, Experiment::Locks]);
        assert_eq!(
            run(&some, Begins::Resumed),
            "brickyard reproduce --full --only locks,slab --resume --seed 1 --output x"
        );
        let both = Scope::new(Scale::Quick, &[Experiment::Pft]).joined(&some);
        assert_eq!(
            run(&both, Begins::New),
            "brickyard reproduce --quick --only pft --seed 1 --output x \
             && brickyard reproduce --full --only locks,slab --resume --seed 1 --output x"
        );
    }
}
