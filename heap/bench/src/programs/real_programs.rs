//! The real programs: what each needs, what it is given to do, and which executables are checked.
//! None is installed from here.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::process::{Runner, installed};
use super::source;

/// What stands in a script for an amount of work, and for the seconds that it idles at its end
/// before it writes to `settled` how many KiB are resident.
const AMOUNT: &str = "@AMOUNT@";
const SETTLE: &str = "@SETTLE@";

/// What stands in a script for the Python that pyperformance is installed for.
const PYTHON: &str = "@PYTHON@";

/// A real program.
#[derive(Debug)]
pub struct Real {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) what: &'static str,
    /// The commands that it needs.
    needs: &'static [&'static str],
    /// The package that has them.
    comes_with: &'static str,
    /// A folder of files that are not installed with it, if it needs one.
    sources: Option<Sources>,
    /// Its command line.
    command: &'static [&'static str],
    /// Its environment.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// What is run before it, once, and not measured; nothing if it is empty.
    before: &'static [&'static str],
    /// The name of the file that it works on.
    file: &'static str,
    /// The content of the file, for an amount of work.
    content: fn(u64) -> String,
    /// The amount of a whole run, of some seconds.
    amount: u64,
}

/// A folder that an environment variable names.
#[derive(Debug)]
struct Sources {
    variable: &'static str,
    /// A file that it has.
    file: &'static str,
    /// What it is, and where it is from.
    what: &'static str,
}

/// All real programs, in the order of the table.
pub(crate) const REAL: &[Real] = &[
    Real {
        name: "redis",
        what: "redis-server with redis-benchmark: strings, lists, sorted sets, hashes",
        needs: &["redis-server", "redis-benchmark", "redis-cli", "sh"],
        comes_with: "Debian's redis-server",
        sources: None,
        command: &["sh", "redis.sh"],
        variables: &[],
        before: &[],
        file: "redis.sh",
        content: |amount| script(include_str!("scripts/redis.sh"), amount),
        amount: 100_000,
    },
    Real {
        name: "postgres",
        what: "PostgreSQL with pgbench: reads, writes, sorts",
        needs: &["postgres", "initdb", "sh"],
        comes_with: "Debian's postgresql",
        sources: None,
        command: &["sh", "postgres.sh", "run"],
        variables: &[],
        before: &["sh", "postgres.sh", "prepare"],
        file: "postgres.sh",
        content: |amount| script(include_str!("scripts/postgres.sh"), amount),
        amount: 20_000,
    },
    Real {
        name: "python",
        what: "Python with every object from malloc: dictionaries, texts, JSON",
        needs: &["python3"],
        comes_with: "Debian's python3",
        sources: None,
        command: &["python3", "objects.py"],
        variables: &[("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")],
        before: &[],
        file: "objects.py",
        content: |amount| script(include_str!("scripts/objects.py"), amount),
        amount: 30_000,
    },
    Real {
        name: "python-suite",
        what: "21 of Python's own benchmarks (pyperformance), with every object from malloc",
        needs: &["pyperformance", "sh"],
        comes_with: "pyperformance of PyPI (pip install pyperformance)",
        sources: None,
        command: &["sh", "pyperformance.sh"],
        variables: &[("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")],
        before: &[],
        file: "pyperformance.sh",
        content: |amount| script(include_str!("scripts/pyperformance.sh"), amount),
        amount: 100,
    },
    Real {
        name: "compiler",
        what: "gcc compiles a large generated file with -O2",
        needs: &["gcc"],
        comes_with: "Debian's gcc",
        sources: None,
        command: &["gcc", "-O2", "-g", "-S", "-o", "large.s", "large.c"],
        variables: &[],
        before: &[],
        file: "large.c",
        content: source::large,
        amount: 700,
    },
    Real {
        name: "clang",
        what: "clang compiles the same file",
        needs: &["clang"],
        comes_with: "Debian's clang",
        sources: None,
        command: &["clang", "-O2", "-g", "-S", "-o", "large.s", "large.c"],
        variables: &[],
        before: &[],
        file: "large.c",
        content: source::large,
        amount: 700,
    },
    Real {
        name: "sqlite",
        what: "SQLite in memory: tables, indexes, joins, groups",
        needs: &["sqlite3"],
        comes_with: "Debian's sqlite3",
        sources: None,
        command: &["sqlite3", "-batch", ":memory:", ".read tables.sql"],
        variables: &[],
        before: &[],
        file: "tables.sql",
        content: |amount| script(include_str!("scripts/tables.sql"), amount),
        amount: 250_000,
    },
    Real {
        name: "node",
        what: "Node: buffers outside its own heap, JSON, compression in four threads",
        needs: &["node"],
        comes_with: "Debian's nodejs",
        sources: None,
        command: &["node", "buffers.js"],
        variables: &[],
        before: &[],
        file: "buffers.js",
        content: |amount| script(include_str!("scripts/buffers.js"), amount),
        amount: 400,
    },
    Real {
        name: "node-suite",
        what: "11 of Node's own benchmarks: buffers, streams, compression, texts, HTTP",
        needs: &["node", "sh"],
        comes_with: "Debian's nodejs",
        sources: Some(Sources {
            variable: "NODE_BENCHMARKS",
            file: "common.js",
            what: "the folder `benchmark` of Node's sources (Debian: apt-get source nodejs)",
        }),
        command: &["sh", "node-suite.sh"],
        variables: &[],
        before: &[],
        file: "node-suite.sh",
        content: |amount| script(include_str!("scripts/node-suite.sh"), amount),
        amount: 100,
    },
];

fn script(text: &str, amount: u64) -> String {
    text.replace(AMOUNT, &amount.to_string())
}

impl Real {
    /// Returns why it cannot run here, and the fix.
    pub(crate) fn missing(&self) -> Option<String> {
        let Self {
            name, comes_with, ..
        } = self;
        if let Some(need) = self.needs.iter().find(|need| installed(need).is_none()) {
            return Some(format!(
                "{name} is skipped: {need} is not installed; it comes with {comes_with}"
            ));
        }
        if self.is_pyperformance() && self.python().is_none() {
            return Some(format!(
                "{name} is skipped: the first line of pyperformance names no Python; install it by \
                 `python3 -m venv DIR` and `DIR/bin/pip install pyperformance`, and add DIR/bin to \
                 PATH"
            ));
        }
        let Sources {
            variable,
            file,
            what,
        } = self.sources.as_ref()?;
        let folder = env::var_os(variable).map(PathBuf::from);
        if folder.is_some_and(|folder| folder.is_absolute() && folder.join(file).is_file()) {
            return None;
        }
        Some(format!(
            "{name} is skipped: {variable} is not the whole path of {what}"
        ))
    }

    fn is_pyperformance(&self) -> bool {
        self.name == "python-suite"
    }

    /// Returns the Python that pyperformance is installed for, if this is what is run.
    fn python(&self) -> Option<PathBuf> {
        if !self.is_pyperformance() {
            return None;
        }
        let script = fs::read(installed(self.needs.first()?)?).ok()?;
        interpreter(&String::from_utf8_lossy(&script)).filter(|python| python.is_file())
    }

    pub(crate) const fn command(&self) -> &'static [&'static str] {
        self.command
    }

    /// Writes its file, and runs what comes before it.
    pub(crate) fn prepare(&self, runner: &Runner<'_>, scale: f64) -> anyhow::Result<()> {
        let path = runner.folder.join(self.file);
        let amount = ((self.amount as f64 * scale) as u64).max(10);
        let settle = runner.settle.as_secs_f64().to_string();
        let mut content = (self.content)(amount).replace(SETTLE, &settle);
        if let Some(python) = self.python() {
            content = content.replace(PYTHON, &python.to_string_lossy());
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        if self.before.is_empty() {
            return Ok(());
        }
        let done = runner.prepare(self.before);
        done.with_context(|| format!("{} cannot be prepared", self.name))
    }

    /// Returns the executables whose malloc must be the library's.
    pub(crate) fn executables(&self) -> anyhow::Result<Vec<PathBuf>> {
        let installed =
            |name: &&str| installed(name).with_context(|| format!("{name} is not installed"));
        let mut all: Vec<PathBuf> = match self.name {
            "redis" => self.needs[..2]
                .iter()
                .map(installed)
                .collect::<anyhow::Result<_>>()?,
            _ if self.is_pyperformance() => {
                vec![self.python().context("pyperformance names no Python")?]
            }
            _ => vec![installed(&self.needs[0])?],
        };
        if self.name == "compiler" {
            // What compiles is a program that gcc starts.
            let told = Command::new(&all[0]).arg("-print-prog-name=cc1").output()?;
            all.push(OsStr::from_bytes(told.stdout.trim_ascii()).into());
        }
        Ok(all)
    }
}

/// Returns the Python that the first line of a script names by its path, without options.
fn interpreter(script: &str) -> Option<PathBuf> {
    let path = Path::new(script.lines().next()?.strip_prefix("#!")?.trim());
    let name = path.file_name()?.to_str()?;
    let is_python = name.starts_with("python") && !name.contains(' ');
    (is_python && path.is_absolute()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_python() {
        let python = |script| interpreter(script).map(|path| path.display().to_string());
        let known = python("#!/opt/one/bin/python3.11\nimport sys\n");
        assert_eq!(known.as_deref(), Some("/opt/one/bin/python3.11"));
        for other in [
            "#!/usr/bin/env python3\n",
            "#!/usr/bin/python3 -I\n",
            "#!/bin/sh\n'''exec' '/a b/python3' \"$0\" \"$@\"\n",
            "\u{7f}ELF",
            "",
        ] {
            assert_eq!(python(other), None, "{other}");
        }
    }
}
