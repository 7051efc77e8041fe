//! Which events are the recorded command's own: those of its processes, and not of the recorder,
//! kernel threads, or other programs on the host.
//!
//! A trace has the pid and the name of the task that ran at each event, but not the task's parent.
//! A new process has its parent's name until it executes another program, so the process tree can
//! be reconstructed from the events:
//!
//! - *The root* is the first task that appears under another name first and then under the
//!   command's name: the recorder's child.
//! - A later task (its pid is above the root's) is a child of the task that had the name under
//!   which it first appears. If several had it, the parent is the one with the latest event:
//!   creating a process allocates pages.
//!
//! Pids wrap around. If they do while the command runs, its later processes are missed.

use std::collections::HashMap;

use brickyard_trace::{Event, NameId, Trace};

/// The processes whose events are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Processes {
    /// The recorded command, named in the trace's header, and all its descendants.
    Command,
    /// All processes with these names: for traces that were imported, or recorded for a time.
    Named(&'static [&'static str]),
}

/// Why a trace cannot be cut into jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobsError {
    /// The trace names no command.
    #[error(
        "the trace names no command: record one with `brickyard record -o FILE -- COMMAND`, or name its processes"
    )]
    NoCommand,
    /// The command has no events.
    #[error(
        "no process of the trace executes `{0}`: record it with `brickyard record -o FILE -- COMMAND`, or name its processes"
    )]
    NoRoot(String),
    /// None of the named processes has an event.
    #[error("the trace has no process {0}: `brickyard info FILE` lists its processes")]
    NoProcess(String),
    /// A job has more pages than can be numbered.
    #[error(
        "a job of this trace takes more than {} pages: cut it by process, or record a shorter trace",
        u32::MAX
    )]
    TooManyPages,
}

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Another process.
    Other,
    /// One of the selected processes.
    Own,
    /// One of the selected processes, in its first event under this name.
    Exec,
}

/// A task, as of its last event.
#[derive(Debug, Clone, Copy)]
struct Task {
    name: NameId,
    own: bool,
}

/// Determines the origins of events, in order of time.
#[derive(Debug)]
pub(super) struct ProcessTree {
    rule: Rule,
    tasks: HashMap<i32, Task>,
    /// The last pid with each name.
    last: HashMap<NameId, i32>,
}

#[derive(Debug)]
enum Rule {
    /// The command's name, and its first process once that has been found.
    Tree {
        command: Option<NameId>,
        root: Option<i32>,
    },
    Named {
        names: &'static [&'static str],
        /// For each name of the trace, whether it is one of `names`.
        counts: Vec<bool>,
    },
}

impl ProcessTree {
    pub(super) fn new(trace: &Trace, processes: Processes) -> Result<Self, JobsError> {
        let rule = match processes {
            Processes::Command => {
                let name = comm(&trace.header.command).ok_or(JobsError::NoCommand)?;
                let place = trace.names.iter().position(|known| *known == name);
                Rule::Tree {
                    command: place.map(|place| NameId(place as u32)),
                    root: None,
                }
            }
            Processes::Named(names) => {
                let counts = |name: &String| names.contains(&name.as_str());
                let counts = trace.names.iter().map(counts).collect();
                Rule::Named { names, counts }
            }
        };
        Ok(Self {
            rule,
            tasks: HashMap::new(),
            last: HashMap::new(),
        })
    }

    /// Returns the origin of each event.
    pub(super) fn origins_of(&mut self, trace: &Trace) -> Result<Vec<Origin>, JobsError> {
        let origins: Vec<Origin> = trace
            .events
            .iter()
            .map(|event| self.origin(event))
            .collect();
        if origins.iter().any(|&origin| origin != Origin::Other) {
            return Ok(origins);
        }
        Err(match self.rule {
            Rule::Tree { .. } => JobsError::NoRoot(comm(&trace.header.command).unwrap_or_default()),
            Rule::Named { names, .. } => JobsError::NoProcess(names.join(", ")),
        })
    }

    /// Returns the origin of the next event.
    fn origin(&mut self, event: &Event) -> Origin {
        let Event { pid, name, .. } = *event;
        let before = self.tasks.get(&pid).copied();
        let parent = self.last.insert(name, pid);
        let own = match &mut self.rule {
            Rule::Named { counts, .. } => counts.get(name.0 as usize) == Some(&true),
            Rule::Tree { command, root } => match (*root, before) {
                (None, Some(task)) if Some(name) == *command && task.name != name => {
                    *root = Some(pid);
                    true
                }
                (None, _) => false,
                (Some(_), Some(task)) => task.own,
                (Some(root), None) => {
                    let parent = parent.and_then(|parent| self.tasks.get(&parent));
                    pid > root && parent.is_some_and(|parent| parent.own)
                }
            },
        };
        self.tasks.insert(pid, Task { name, own });
        let becomes = match before {
            Some(task) => task.name != name,
            None => parent.is_none(),
        };
        match (own, becomes) {
            (false, _) => Origin::Other,
            (true, false) => Origin::Own,
            (true, true) => Origin::Exec,
        }
    }

    /// The command's first process, if it was found.
    pub(super) const fn root(&self) -> Option<i32> {
        match self.rule {
            Rule::Tree { root, .. } => root,
            Rule::Named { .. } => None,
        }
    }
}

/// Returns the kernel's name of a task that runs this command: the program's name, at most 15 bytes
/// of it.
pub(super) fn comm(command: &str) -> Option<String> {
    let program = command.split_whitespace().next()?;
    let name = program.trim_matches(['\'', '"']).rsplit('/').next()?;
    let end = (0..=name.len().min(15)).rfind(|&end| name.is_char_boundary(end))?;
    (end > 0).then(|| name[..end].to_owned())
}
