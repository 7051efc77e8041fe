//! Which events are the recorded command's own: those of its processes, and not of the recorder, of
//! the kernel's threads, or of what else ran on the host.
//!
//! A trace has the number and the name of the task that ran at each event, but not who started it.
//! Yet a process that was just made still has its parent's name, until it becomes another program.
//! So the tree of processes can be told from the events:
//!
//! - *The root* is the first task that is seen under another name before it is seen under that of
//!   the command: the recorder's child.
//! - A later task (its number is above the root's) is a child of whoever had the name that it is
//!   first seen under. Where several have, it is the one that was last seen: making a process takes
//!   pages.
//!
//! Numbers of tasks begin anew after the largest one. A command that runs at that moment loses the
//! processes that come after.

use std::collections::HashMap;

use brickyard_trace::{Event, NameId, Trace};

/// Whose events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// Those of the command that was recorded, and of all processes that come from it. The trace's
    /// header names the command.
    Command,
    /// Those of processes with these names, whoever started them: for traces that were imported, or
    /// recorded for a time.
    Named(&'static [&'static str]),
}

/// Why a trace has no jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobsError {
    /// It does not say what command it is of.
    #[error(
        "the trace names no command: record one with `brickyard record -o FILE -- COMMAND`, or name its processes"
    )]
    NoCommand,
    /// The command has no events.
    #[error(
        "no process of the trace becomes `{0}`: record it with `brickyard record -o FILE -- COMMAND`, or name its processes"
    )]
    NoRoot(String),
    /// None of the processes that were asked for has an event.
    #[error("the trace has no process {0}: `brickyard info FILE` lists those that it has")]
    NoProcess(String),
    /// More pages than numbers.
    #[error(
        "a job of this trace takes more than {} pages: cut it by process, or record a shorter one",
        u32::MAX
    )]
    TooManyPages,
}

/// An event of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kin {
    /// No: of somebody else.
    Stranger,
    /// Of one of its processes.
    Own,
    /// Of one of its processes that has just become this program.
    Becomes,
}

/// A task, as far as it was seen.
#[derive(Debug, Clone, Copy)]
struct Task {
    name: NameId,
    own: bool,
}

/// Tells of one event after the other whose it is.
#[derive(Debug)]
pub(super) struct Family {
    rule: Rule,
    tasks: HashMap<i32, Task>,
    /// Who was last seen under each name.
    last: HashMap<NameId, i32>,
}

#[derive(Debug)]
enum Rule {
    /// The command's name, and its first process once it was seen.
    Tree {
        command: Option<NameId>,
        root: Option<i32>,
    },
    Named {
        names: &'static [&'static str],
        /// By the place of a name in the trace: does it count?
        counts: Vec<bool>,
    },
}

impl Family {
    pub(super) fn new(trace: &Trace, whose: Whose) -> Result<Self, JobsError> {
        let rule = match whose {
            Whose::Command => {
                let name = comm(&trace.header.command).ok_or(JobsError::NoCommand)?;
                let place = trace.names.iter().position(|known| *known == name);
                Rule::Tree {
                    command: place.map(|place| NameId(place as u32)),
                    root: None,
                }
            }
            Whose::Named(names) => {
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

    /// Whose each event is.
    pub(super) fn of_all(&mut self, trace: &Trace) -> Result<Vec<Kin>, JobsError> {
        let kin: Vec<Kin> = trace.events.iter().map(|event| self.kin(event)).collect();
        if kin.iter().any(|&kin| kin != Kin::Stranger) {
            return Ok(kin);
        }
        Err(match self.rule {
            Rule::Tree { .. } => JobsError::NoRoot(comm(&trace.header.command).unwrap_or_default()),
            Rule::Named { names, .. } => JobsError::NoProcess(names.join(", ")),
        })
    }

    /// Whose is the next event?
    fn kin(&mut self, event: &Event) -> Kin {
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
            (false, _) => Kin::Stranger,
            (true, false) => Kin::Own,
            (true, true) => Kin::Becomes,
        }
    }

    /// The command's first process, if it was seen.
    pub(super) const fn root(&self) -> Option<i32> {
        match self.rule {
            Rule::Tree { root, .. } => root,
            Rule::Named { .. } => None,
        }
    }
}

/// What the kernel calls a task that runs this command: the program's name, up to 15 bytes of it.
pub(super) fn comm(command: &str) -> Option<String> {
    let program = command.split_whitespace().next()?;
    let name = program.trim_matches(['\'', '"']).rsplit('/').next()?;
    let end = (0..=name.len().min(15)).rfind(|&end| name.is_char_boundary(end))?;
    (end > 0).then(|| name[..end].to_owned())
}
