//! The recorded traces that cells use: each is read and cut once, when a cell first needs it.
//!
//! Invariant `traces-declared`: a cell that does not declare that it uses traces is given none.

use core::hash::Hasher as _;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::hash::DefaultHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, anyhow};
use brickyard_trace::file;
use brickyard_workload::Script;
use brickyard_workload::jobs::{Job, Workload, cut};

use crate::antifrag::load_of;
use crate::refusal::Refusal;

/// The folder of traces.
#[derive(Debug)]
pub struct Traces {
    /// None for a cell that uses no traces.
    folder: Option<PathBuf>,
    checksum: OnceLock<Result<String, String>>,
    jobs: Mutex<HashMap<String, Arc<Vec<Job>>>>,
    scripts: Mutex<HashMap<String, Arc<Script>>>,
}

impl Traces {
    /// Returns the traces of this folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_owned()),
            ..Self::none()
        }
    }

    /// Returns an empty set, for cells that use none.
    pub(crate) fn none() -> Self {
        Self {
            folder: None,
            checksum: OnceLock::new(),
            jobs: Mutex::default(),
            scripts: Mutex::default(),
        }
    }

    /// Refuses to start if the folder does not exist.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match &self.folder {
            Some(folder) if !folder.is_dir() => Err(Refusal::NoTraces(folder.clone())),
            _ => Ok(()),
        }
    }

    /// Returns a short checksum of the names and bytes of all traces, computed once.
    pub(crate) fn checksum(&self) -> anyhow::Result<&str> {
        let made = self.checksum.get_or_init(|| {
            let folder = self.folder.as_deref().ok_or(NONE)?;
            checksum(folder).map_err(|error| format!("{}: {error}", cannot(folder)))
        });
        made.as_deref().map_err(|error| anyhow!(error.clone()))
    }

    /// Returns the jobs of a recorded command, such as `pmake`.
    pub(crate) fn jobs(&self, name: &str) -> anyhow::Result<Arc<Vec<Job>>> {
        // Held while the trace is cut, so that two cells do not cut the same one. An entry is
        // complete once it is in the map, so a poisoned lock can be used.
        let mut known = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = known.get(name) {
            return Ok(Arc::clone(jobs));
        }
        let workload = Workload::by_name(name)?;
        let path = self.path(workload.trace)?;
        let trace = file::read(&path).with_context(|| cannot(&path))?;
        let jobs = Arc::new(cut(&trace, &workload.how()).with_context(|| cannot(&path))?);
        known.insert(name.to_owned(), Arc::clone(&jobs));
        Ok(jobs)
    }

    /// Returns a trace, such as `kernel`, as a load: see [`load_of`].
    pub(crate) fn script(&self, name: &str) -> anyhow::Result<Arc<Script>> {
        let mut known = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = known.get(name) {
            return Ok(Arc::clone(script));
        }
        let path = self.path(&format!("{name}.parquet"))?;
        let trace = file::read(&path).with_context(|| cannot(&path))?;
        let script = Arc::new(load_of(&trace).with_context(|| cannot(&path))?);
        known.insert(name.to_owned(), Arc::clone(&script));
        Ok(script)
    }

    fn path(&self, trace: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.as_deref().context(NONE)?;
        Ok(folder.join(Path::new(trace).file_name().unwrap_or_default()))
    }
}

/// The error for a cell that is not served.
const NONE: &str = "this cell is not one of those that use traces (`catalog::uses_traces`)";

fn cannot(path: &Path) -> String {
    let path = path.display();
    format!("cannot use {path}; give the folder of the traces with --traces DIR")
}

fn checksum(folder: &Path) -> io::Result<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension() == Some(OsStr::new("parquet")));
    paths.sort();
    // Without a key, so that the same traces have the same checksum everywhere.
    let mut sum = DefaultHasher::new();
    for path in paths {
        let bytes = fs::read(&path)?;
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // With their lengths, so that no byte can be counted to the neighbouring part.
        for part in [name, &bytes] {
            sum.write(&(part.len() as u64).to_le_bytes());
            sum.write(part);
        }
    }
    Ok(format!("{:016x}", sum.finish()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_of_names_and_bytes() {
        let of = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            for (name, bytes) in files {
                fs::write(folder.path().join(name), bytes).unwrap();
            }
            Traces::new(folder.path()).checksum().unwrap().to_owned()
        };
        let first = of(&[("a.parquet", "1"), ("b.parquet", "2")]);
        assert_eq!(of(&[("b.parquet", "2"), ("a.parquet", "1")]), first);
        assert_eq!(
            of(&[("a.parquet", "1"), ("b.parquet", "2"), ("README.md", "3")]),
            first
        );
        assert_ne!(of(&[("a.parquet", "1"), ("b.parquet", "3")]), first);
        assert_ne!(of(&[("a.parquet", "1"), ("c.parquet", "2")]), first);
        assert_ne!(of(&[("a.parquet", "1")]), first);
        let none = Traces::new(Path::new("/nowhere")).checksum().unwrap_err();
        assert!(none.to_string().contains("with --traces DIR"));
    }
}
