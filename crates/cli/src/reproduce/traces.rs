//! The recorded traces that cells work by: each read and cut once, by whoever needs it first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use brickyard_trace::file;
use brickyard_workload::Script;
use brickyard_workload::jobs::{Job, Workload, cut};

/// The folder of traces.
#[derive(Debug)]
pub(crate) struct Traces {
    folder: PathBuf,
    jobs: Mutex<HashMap<String, Arc<Vec<Job>>>>,
    scripts: Mutex<HashMap<String, Arc<Recorded>>>,
}

/// A trace of a whole host, as a load.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) script: Script,
    /// CPUs of the host.
    pub(crate) cpus: usize,
}

impl Traces {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            jobs: Mutex::default(),
            scripts: Mutex::default(),
        }
    }

    /// The jobs of a recorded command, such as `pmake`.
    pub(crate) fn jobs(&self, name: &str) -> anyhow::Result<Arc<Vec<Job>>> {
        // Held while it is cut, so that two cells do not cut the same. What is in the map is whole, whoever panicked.
        let mut known = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = known.get(name) {
            return Ok(Arc::clone(jobs));
        }
        let workload = Workload::by_name(name)?;
        let path = self.path(workload.trace);
        let trace = file::read(&path).with_context(|| cannot(&path))?;
        let jobs = Arc::new(cut(&trace, &workload.how()).with_context(|| cannot(&path))?);
        known.insert(name.to_owned(), Arc::clone(&jobs));
        Ok(jobs)
    }

    /// The trace of a whole host, such as `compile`.
    pub(crate) fn script(&self, name: &str) -> anyhow::Result<Arc<Recorded>> {
        let mut known = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorded) = known.get(name) {
            return Ok(Arc::clone(recorded));
        }
        let path = self.path(&format!("{name}.parquet"));
        let trace = file::read(&path).with_context(|| cannot(&path))?;
        let script = Script::new(&trace).with_context(|| cannot(&path))?;
        let recorded = Arc::new(Recorded {
            script,
            cpus: usize::from(trace.header.cpus),
        });
        known.insert(name.to_owned(), Arc::clone(&recorded));
        Ok(recorded)
    }

    fn path(&self, trace: &str) -> PathBuf {
        self.folder
            .join(Path::new(trace).file_name().unwrap_or_default())
    }
}

fn cannot(path: &Path) -> String {
    let path = path.display();
    format!("cannot work by {path}; --traces DIR says where the traces are")
}
