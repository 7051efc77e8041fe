//! The last operations of a run, printed with a failure.

use core::cell::RefCell;
use core::fmt;
use std::collections::VecDeque;

use brickyard::{Frame, FrameRange, Order};
use brickyard_machine::current;

/// How many entries are kept.
const KEPT: usize = 24;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Nothing in particular.
    Nothing,
    /// A size.
    Order(Order),
    /// A block.
    Block(Frame, Order),
    /// Adjacent frames.
    Range(FrameRange),
    /// A number of single frames.
    Count(usize),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Nothing => Ok(()),
            Self::Order(order) => write!(f, " order {order}"),
            Self::Block(frame, order) => write!(f, " frame {frame}, order {order}"),
            Self::Range(range) => write!(f, " frames {} to {}", range.start, range.end),
            Self::Count(count) => write!(f, " {count} frames"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u64,
    cpu: usize,
    who: Who,
    did: &'static str,
    about: About,
}

/// The actor of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The task with this number.
    Task(u32),
    /// An interrupt.
    Interrupt,
    /// Background reclaim.
    Background,
    /// A hook, called by the allocator on that CPU, or a check.
    Hook,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(number) => write!(f, "task {number}"),
            Self::Interrupt => f.write_str("interrupt"),
            Self::Background => f.write_str("background"),
            Self::Hook => f.write_str("hook"),
        }
    }
}

/// The last operations of a run.
#[derive(Debug, Default)]
pub struct Log {
    entries: RefCell<VecDeque<Entry>>,
}

impl Log {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an operation of `who` at the present time.
    pub fn note(&self, who: Who, did: &'static str, about: About) {
        let mut entries = self.entries.borrow_mut();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(Entry {
            at: current::now(),
            cpu: current::cpu(),
            who,
            did,
            about,
        });
    }

    /// Returns the entries as lines, oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let entries = self.entries.borrow();
        let line = |entry: &Entry| {
            let Entry {
                at,
                cpu,
                who,
                did,
                about,
            } = entry;
            format!(
                "{at:>9}  CPU {cpu:<3} {who:<10}  {did}{about}",
                who = who.to_string()
            )
        };
        entries.iter().map(line).collect()
    }
}
