//! The report of a mistake with guarded memory, made in memory of its own: the stack may be that of
//! a signal handler, which is small. One thread reports; the process ends anyway.

use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use brickyard_arena::messages::write_all;

use crate::maps::Module;
use crate::stack::Stack;
use crate::walk::Walk;

/// The memory of the one report.
struct ReportMemory {
    line: [u8; 512],
    length: usize,
    module: Module,
    stack: Stack,
    walk: MaybeUninit<Walk>,
}

/// Invariant `one-report`: who has set `IS_TAKEN` uses the memory; it is never given back.
struct Shared(UnsafeCell<ReportMemory>);

// SAFETY: by `one-report`.
unsafe impl Sync for Shared {}

static MEMORY: Shared = Shared(UnsafeCell::new(ReportMemory {
    line: [0; 512],
    length: 0,
    module: Module::new(),
    stack: Stack::EMPTY,
    walk: MaybeUninit::uninit(),
}));

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// See the [module](self).
pub(crate) struct Report {
    memory: &'static mut ReportMemory,
}

impl Report {
    /// Begins the report; `None` if there is one already.
    pub(crate) fn begin() -> Option<Self> {
        // Relaxed: the memory is as it was at the start of the program.
        if IS_TAKEN.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: `one-report`.
        let memory = unsafe { &mut *MEMORY.0.get() };
        Some(Self { memory })
    }

    /// Says a line.
    pub(crate) fn say(&mut self, what: fmt::Arguments<'_>) {
        self.memory.say(what);
    }

    /// Says a stack, a line for each address. Who fills it has memory for a walk.
    pub(crate) fn say_stack(
        &mut self,
        name: &str,
        task: u64,
        fill: impl FnOnce(&mut Stack, &mut MaybeUninit<Walk>),
    ) {
        self.say(format_args!("  {name}, by thread {task}:"));
        fill(&mut self.memory.stack, &mut self.memory.walk);
        for index in 0..self.memory.stack.frames().len() {
            self.memory.say_frame(index);
        }
    }
}

impl ReportMemory {
    fn say(&mut self, what: fmt::Arguments<'_>) {
        let _ = write!(self.line(), "brickyard: {what}");
        self.end_line();
    }

    fn say_frame(&mut self, index: usize) {
        let frame = self.stack.frames()[index];
        let _ = write!(self.line(), "brickyard:     {frame:#x}");
        // A return address may be the first of what follows the call.
        if self.module.find(frame.wrapping_sub(1)) {
            let offset = frame.wrapping_sub(self.module.start);
            let Self {
                line,
                length,
                module,
                ..
            } = self;
            let mut rest = ReportLine { line, length };
            let _ = write!(rest, " {}+{offset:#x}", module.name().escape_ascii());
        }
        self.end_line();
    }

    /// Begins a line.
    fn line(&mut self) -> ReportLine<'_> {
        let Self { line, length, .. } = self;
        *length = 0;
        ReportLine { line, length }
    }

    fn end_line(&mut self) {
        let end = self.length.min(self.line.len() - 1);
        self.line[end] = b'\n';
        let _ = write_all(2, &self.line[..=end]);
    }
}

/// A line that is being made. What it has no room for is left out.
struct ReportLine<'m> {
    line: &'m mut [u8; 512],
    length: &'m mut usize,
}

impl Write for ReportLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.line[*self.length..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        *self.length += fits;
        Ok(())
    }
}

/// An address by the object that it is beside or in.
pub(crate) struct GuardedAddress {
    pub(crate) address: usize,
    /// 0 if there was never one.
    pub(crate) object: usize,
    pub(crate) bytes: usize,
}

impl fmt::Display for GuardedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self {
            address,
            object,
            bytes,
        } = self;
        write!(f, "{address:#x}")?;
        if object == 0 {
            return Ok(());
        }
        let end = object + bytes;
        if address < object {
            write!(f, ", {} bytes before", object - address)?;
        } else if address >= end {
            write!(f, ", {} bytes behind the end of", address - end)?;
        } else {
            write!(f, ", offset {} of", address - object)?;
        }
        write!(f, " an object of {bytes} bytes")
    }
}
