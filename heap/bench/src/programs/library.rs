//! The malloc libraries that are compared.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::process::{Runner, last_line};

/// The name of the C library's own malloc, which needs no library.
pub const C_LIBRARY: &str = "glibc";

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// Its absolute path; `None` for the C library.
    pub path: Option<PathBuf>,
}

/// A library that the loads' malloc was found to belong to.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) name: String,
    /// What is preloaded for loads.
    pub(crate) path: Option<PathBuf>,
    /// What is preloaded for real programs. Some are linked with a malloc library (redis-server
    /// with jemalloc), so for them the C library is preloaded too.
    pub(crate) for_programs: PathBuf,
}

impl Library {
    /// Fails unless the malloc of a load belongs to this library: the loader goes on without a
    /// library that it cannot load.
    pub(crate) fn bind(&self, runner: &Runner<'_>) -> anyhow::Result<Bound> {
        let Self { name, path } = self;
        let ran = runner.load(path.as_deref(), "sh6bench", 1, 0.001);
        let ran = ran.with_context(|| format!("{name} cannot run a load"))?;
        let value = |of: &str| {
            let found = ran
                .lines()
                .find_map(|(name, value)| (name == of).then_some(value));
            found.with_context(|| format!("a load does not print {of}"))
        };
        let (malloc, c_library) = (value("malloc")?, value("c-library")?);
        let expected = path.as_deref().unwrap_or(Path::new(c_library));
        if !same_file(Path::new(malloc), expected) {
            let expected = expected.display();
            let loader = last_line(&ran.errors);
            let loader = if loader.is_empty() {
                String::new()
            } else {
                format!(" ({loader})")
            };
            bail!(
                "{name}: malloc belongs to {malloc}, not to {expected}{loader}; give a shared library for this machine that has malloc, calloc, realloc, free and posix_memalign"
            );
        }
        Ok(Bound {
            name: name.clone(),
            path: path.clone(),
            for_programs: expected.to_owned(),
        })
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}
