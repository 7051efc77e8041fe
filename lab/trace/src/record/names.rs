//! The name that a task had at each moment: the names in `/proc` at the start, then those of the
//! events of new and renamed tasks.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::decode::comm;
use super::row::Comm;
use crate::NameId;

/// The name of each CPU's idle task.
const IDLE: &[u8] = b"<idle>";

/// The names of tasks by number.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskNames(HashMap<i32, Comm>);

impl TaskNames {
    /// Adds the names of all tasks that exist now.
    pub(super) fn scan(&mut self, proc: &Path) {
        for process in numbered(proc) {
            for (pid, path) in numbered(&process.1.join("task")) {
                if let Ok(name) = fs::read(path.join("comm")) {
                    self.0.insert(pid, comm(name.trim_ascii_end()));
                }
            }
        }
    }

    /// Adds the lines of `saved_cmdlines`, each a number and a name, for tasks without a name so
    /// far.
    pub(super) fn saved(&mut self, cmdlines: &str) {
        for line in cmdlines.lines() {
            if let Some((pid, name)) = line.split_once(' ')
                && let Ok(pid) = pid.parse()
            {
                self.0.entry(pid).or_insert_with(|| comm(name.as_bytes()));
            }
        }
    }
}

/// Returns the entries of a directory whose names are numbers.
fn numbered(folder: &Path) -> Vec<(i32, std::path::PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect()
}

/// The names of tasks at the current point of the trace, and their indices.
#[derive(Debug)]
pub(super) struct NameTable {
    names: Vec<String>,
    ids: HashMap<Comm, NameId>,
    tasks: HashMap<i32, NameId>,
}

impl NameTable {
    pub(super) fn new(tasks: &TaskNames) -> Self {
        let mut table = Self {
            names: Vec::new(),
            ids: HashMap::new(),
            tasks: HashMap::new(),
        };
        // Sorted, so that the same recording always gives the same file.
        let mut known: Vec<_> = tasks.0.iter().collect();
        known.sort_unstable();
        table.rename(0, &comm(IDLE));
        for (&pid, name) in known {
            table.rename(pid, name);
        }
        table
    }

    /// Gives the task this name from now on.
    pub(super) fn rename(&mut self, pid: i32, name: &Comm) {
        let id = self.id(name);
        self.tasks.insert(pid, id);
    }

    /// Returns the current name of the task; `?` if it is unknown.
    pub(super) fn of(&mut self, pid: i32) -> NameId {
        if let Some(&id) = self.tasks.get(&pid) {
            return id;
        }
        let id = self.id(&comm(b"?"));
        self.tasks.insert(pid, id);
        id
    }

    /// Returns all names so far.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    fn id(&mut self, name: &Comm) -> NameId {
        *self.ids.entry(*name).or_insert_with(|| {
            let length = name.iter().position(|&byte| byte == 0);
            let bytes = &name[..length.unwrap_or(name.len())];
            self.names.push(String::from_utf8_lossy(bytes).into_owned());
            NameId(self.names.len() as u32 - 1)
        })
    }
}
