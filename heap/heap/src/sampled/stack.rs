//! Who called: return addresses, by the unwinder of the compiler's run-time library. It finds its
//! way by the tables that exceptions use, which programs have even without symbols.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::{from_mut, from_ref};
use core::sync::atomic::{AtomicBool, Ordering};

/// So many return addresses are kept of a stack.
pub(super) const DEPTH: usize = 48;

/// Return addresses, the innermost first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack {
    frames: [usize; DEPTH],
    depth: usize,
}

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

const GO_ON: c_int = 0;
const END_OF_STACK: c_int = 5;

/// Set from when the unwinder can be used. In a static program the C library asks for memory before
/// it has made ready what the unwinder needs of it.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// Notes that the program's constructors run, or that it was begun by a loader.
pub(crate) fn is_ready() {
    // Relaxed, here and below: a program begins with one thread.
    IS_READY.store(true, Ordering::Relaxed);
}

/// What is left out of a stack, from its inner end.
enum Leaves {
    /// Frames of functions that were called after one whose stack includes this address, that one,
    /// and those of the library itself.
    CallsBelow(usize, Range<usize>),
    /// Frames that are not at this instruction: a signal came there.
    Before(usize),
}

struct Walk {
    stack: Stack,
    leaves: Leaves,
    has_begun: bool,
}

extern "C" fn visit(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `of` passes its own value, which nobody else refers to meanwhile; the unwinder's
    // context is good during this call.
    let (walk, at, frame) = unsafe {
        let walk = &mut *walk.cast::<Walk>();
        (walk, _Unwind_GetIP(context), _Unwind_GetCFA(context))
    };
    if at == 0 {
        return END_OF_STACK;
    }
    if !walk.has_begun {
        walk.has_begun = match &walk.leaves {
            Leaves::CallsBelow(address, own) => frame > *address && !own.contains(&at),
            Leaves::Before(instruction) => at == *instruction,
        };
    }
    if walk.has_begun {
        walk.stack.frames[walk.stack.depth] = at;
        walk.stack.depth += 1;
    }
    if walk.stack.depth == DEPTH {
        END_OF_STACK
    } else {
        GO_ON
    }
}

impl Stack {
    /// Returns an empty one.
    pub(super) const EMPTY: Self = Self {
        frames: [0; DEPTH],
        depth: 0,
    };

    fn of(leaves: Leaves) -> Self {
        let mut walk = Walk {
            stack: Self::EMPTY,
            leaves,
            has_begun: false,
        };
        if !IS_READY.load(Ordering::Relaxed) {
            return walk.stack;
        }
        // SAFETY: `visit` takes such a value, and does not unwind. What it returns ends or goes on.
        let _ = unsafe { _Unwind_Backtrace(visit, from_mut(&mut walk).cast()) };
        walk.stack
    }

    /// Returns who called the function in whose frame `mark` lies: without the frames of `own` that
    /// come first, where the heap is a library.
    pub(super) fn of_caller<T>(mark: &T, own: Range<usize>) -> Self {
        Self::of(Leaves::CallsBelow(from_ref(mark).addr(), own))
    }

    /// Returns the stack at an instruction that a signal has interrupted.
    pub(super) fn at(instruction: usize) -> Self {
        Self::of(Leaves::Before(instruction))
    }

    /// Returns the addresses, the innermost first.
    pub(super) fn frames(&self) -> &[usize] {
        &self.frames[..self.depth]
    }

    /// Makes it one of these addresses.
    pub(super) fn set(&mut self, frames: impl Iterator<Item = usize>) {
        self.depth = 0;
        for frame in frames.take(DEPTH) {
            self.frames[self.depth] = frame;
            self.depth += 1;
        }
    }
}

/// Returns the addresses of the code of the unwinder; none if it is in the program itself, or in
/// this library: then no other code waits for its locks.
pub(super) fn unwinder() -> Range<usize> {
    let it =
        library_of(_Unwind_GetIP as unsafe extern "C-unwind" fn(*mut c_void) -> usize as usize);
    let own = visit as extern "C" fn(*mut c_void, *mut c_void) -> c_int as usize;
    if it.contains(&own) { 0..0 } else { it }
}

/// Returns the addresses of the segment of a library that an address is in; none if it is in the
/// program itself, where they would tell nothing apart.
pub(super) fn library_of(address: usize) -> Range<usize> {
    struct Search {
        address: usize,
        found: Range<usize>,
        is_program: bool,
    }
    unsafe extern "C" fn look(
        module: *mut libc::dl_phdr_info,
        _bytes: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a module, and what `library_of` gave it.
        let (module, search) = unsafe { (&*module, &mut *search.cast::<Search>()) };
        let is_program = core::mem::replace(&mut search.is_program, false);
        for index in 0..usize::from(module.dlpi_phnum) {
            // SAFETY: a module has so many headers.
            let header = unsafe { &*module.dlpi_phdr.add(index) };
            let start = (module.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            let part = start..start.wrapping_add(header.p_memsz as usize);
            if header.p_type == libc::PT_LOAD && part.contains(&search.address) {
                if !is_program {
                    search.found = part;
                }
                return 1;
            }
        }
        0
    }
    let mut search = Search {
        address,
        found: 0..0,
        // The program itself comes first.
        is_program: true,
    };
    // SAFETY: `look` takes what is passed, and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(look), from_mut(&mut search).cast()) };
    search.found
}
