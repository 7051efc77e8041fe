//! The real programs: what each needs, what it is given to do, and which executables are checked.
//! None is installed from here.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use super::process::{Runner, installed};
use super::source;

/// What stands in a script for an amount of work, and for the seconds that it idles at its end
/// before it writes to `settled` how many KiB are resident.
const AMOUNT: &str = "@AMOUNT@";
const SETTLE: &str = "@SETTLE@";

/// A real program.
#[derive(Debug)]
pub struct Real {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) what: &'static str,
    /// The commands that it needs.
    needs: &'static [&'static str],
    /// The Debian packages that have them.
    packages: &'static str,
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

/// All real programs, in the order of the table.
pub(crate) const REAL: &[Real] = &[
    Real {
        name: "redis",
        what: "redis-server with redis-benchmark: strings, lists, sorted sets, hashes",
        needs: &["redis-server", "redis-benchmark", "redis-cli", "sh"],
        packages: "redis-server",
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
        packages: "postgresql",
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
        packages: "python3",
        command: &["python3", "objects.py"],
        variables: &[("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")],
        before: &[],
        file: "objects.py",
        content: |amount| script(include_str!("scripts/objects.py"), amount),
        amount: 30_000,
    },
    Real {
        name: "compiler",
        what: "gcc compiles a large generated file with -O2",
        needs: &["gcc"],
        packages: "gcc",
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
        packages: "clang",
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
        packages: "sqlite3",
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
        packages: "nodejs",
        command: &["node", "buffers.js"],
        variables: &[],
        before: &[],
        file: "buffers.js",
        content: |amount| script(include_str!("scripts/buffers.js"), amount),
        amount: 400,
    },
];

fn script(text: &str, amount: u64) -> String {
    text.replace(AMOUNT, &amount.to_string())
}

impl Real {
    /// Returns why it cannot run here, and the fix.
    pub(crate) fn missing(&self) -> Option<String> {
        let missing = self.needs.iter().find(|need| installed(need).is_none())?;
        let Self { name, packages, .. } = self;
        Some(format!(
            "{name} is skipped: {missing} is not installed; Debian has it in {packages}"
        ))
    }

    pub(crate) const fn command(&self) -> &'static [&'static str] {
        self.command
    }

    /// Writes its file, and runs what comes before it.
    pub(crate) fn prepare(&self, runner: &Runner<'_>, scale: f64) -> anyhow::Result<()> {
        let path = runner.folder.join(self.file);
        let amount = ((self.amount as f64 * scale) as u64).max(10);
        let settle = runner.settle.as_secs_f64().to_string();
        let content = (self.content)(amount).replace(SETTLE, &settle);
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
