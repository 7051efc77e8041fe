//! Runs and large blocks of the hardened heap.
//!
//! A run holds, in this order: bytes up to the alignment of what is asked for (64 at least), which
//! are zero but for the last two words: these say how many they are, and hold the mark of a
//! beginning; what is asked for; its end (`canaries.rs`). While a freed run waits, its pages cannot
//! be accessed.
//!
//! A large block has its end at the end of its last page but one; the last one cannot be accessed.

use core::alloc::Layout;
use core::ptr::NonNull;

use brickyard::Platform;
use brickyard_arena::page_bytes;

use crate::closed_gate;
use crate::complaints::complain;
use crate::instance::{Freed, Heap, INSTANCE, enter};
use crate::maintenance;
use crate::span::{Contents, RUN_BYTES_MAX};

use super::Hardened;
use super::canaries::END;
use super::granules::RUN;
use super::guard_pages::{allow, deny};
use super::quarantine::RUNS;

/// Runs of so many bytes have no memory while they wait. Shorter ones are quicker to clear.
const EMPTIED: usize = 256 << 10;

/// The least bytes before what begins in a run: so many are checked.
const LEAD: usize = 64;

/// A run's beginning is looked for in so many pages.
const NEAR: usize = 32;

/// A run in use, by what begins in it.
struct RunInUse {
    start: NonNull<u8>,
    bytes: usize,
    /// The bytes before what begins in it.
    lead: usize,
}

impl Hardened {
    /// Allocates zeros for `layout` from a run, or as a large block.
    #[cold]
    pub(super) fn allocate_pages(
        &self,
        heap: &'static Heap,
        layout: Layout,
    ) -> Option<NonNull<u8>> {
        let lead = layout.align().max(LEAD);
        let bytes = layout.size().checked_next_multiple_of(END)?;
        let bytes = bytes.checked_add(lead)?.checked_add(END)?;
        if bytes > RUN_BYTES_MAX {
            return self.allocate_large(heap, layout);
        }
        let page = heap.span.page_bytes();
        // Aligned to the power of two that holds it, which is a multiple of the alignment.
        let pages = bytes.div_ceil(page);
        let inside = enter(heap);
        let taken = match inside {
            Some(_) => heap.span.take_aligned_run(pages),
            None => heap.span.take_run_without_locks(pages),
        };
        if inside.is_some() {
            drop(inside);
            closed_gate::free_what_waits(heap);
            maintenance::has_grown(heap);
        }
        let Some((start, contents)) = taken else {
            return self.allocate_large(heap, layout);
        };
        let bytes = pages * page;
        if contents == Contents::Anything {
            // SAFETY: the run is this caller's.
            unsafe { start.write_bytes(0, bytes) };
        }
        self.states.forget(start, bytes);
        // SAFETY: the run has so many bytes, and is this caller's.
        let memory = unsafe {
            let memory = start.add(lead);
            memory.sub(2 * END).cast::<usize>().write(lead);
            self.ends.mark(memory.sub(END), 0, END);
            self.ends.mark(memory, layout.size(), bytes - lead);
            memory
        };
        let _ = self.states.begin(memory, RUN);
        Some(memory)
    }

    /// Returns what begins in the run in use in which an address of the span lies, if that begins
    /// with one of the [`NEAR`] pages before it, and is not aligned to more than usual.
    pub(super) fn run_around(&self, heap: &Heap, memory: NonNull<u8>) -> Option<NonNull<u8>> {
        let (address, page) = (memory.addr().get(), heap.span.page_bytes());
        let first = address / page * page;
        let starts = (0..=NEAR).map(|back| first - back * page);
        let mut starts = starts.filter_map(|start| NonNull::new(memory.as_ptr().with_addr(start)));
        let start = starts.find(|&start| heap.span.run_at(start).is_some())?;
        let begin = start.addr().get() + LEAD;
        let inner = NonNull::new(start.as_ptr().with_addr(begin))?;
        (begin <= address && self.states.at(inner) == RUN).then_some(inner)
    }

    /// Returns the run in which memory begins that is in use, or was when the caller freed it.
    ///
    /// # Safety
    /// Memory of a run begins there, and nobody else frees it.
    unsafe fn inner(&self, heap: &Heap, memory: NonNull<u8>) -> RunInUse {
        // SAFETY: two words lie before it in its run.
        let lead = unsafe {
            if !self.ends.is_whole(memory.sub(END), END) {
                complain("written before the beginning", memory);
            }
            memory.sub(2 * END).cast::<usize>().read()
        };
        let start = NonNull::new(memory.as_ptr().wrapping_sub(lead));
        let run = start.and_then(|start| Some((start, heap.span.run_at(start)?)));
        let Some((start, pages)) = run else {
            complain("written before the beginning", memory);
        };
        // SAFETY: these bytes lie before it in its run.
        let before = unsafe { memory.sub(LEAD) };
        // SAFETY: as above, and aligned like a word.
        if !unsafe { super::is_zero(before, LEAD - 2 * END) } {
            complain("written before the beginning", memory);
        }
        let bytes = pages * heap.span.page_bytes();
        RunInUse { start, bytes, lead }
    }

    /// Returns the bytes that were asked for.
    ///
    /// # Safety
    /// Memory of a run in use begins there.
    #[cold]
    pub(super) unsafe fn run_size(&self, heap: &Heap, memory: NonNull<u8>) -> usize {
        // SAFETY: passed on.
        unsafe {
            let run = self.inner(heap, memory);
            self.ends.asked(memory, run.bytes - run.lead)
        }
    }

    /// Takes a run back: it waits, and cannot be accessed meanwhile.
    ///
    /// # Safety
    /// Memory of a run begins there, which this caller alone has freed.
    #[cold]
    pub(super) unsafe fn free_run(&self, heap: &Heap, memory: NonNull<u8>) {
        // SAFETY: passed on; the run is this caller's.
        let start = unsafe {
            let run = self.inner(heap, memory);
            self.ends.check(memory, run.bytes - run.lead);
            let is_empty = run.bytes >= EMPTIED && heap.span.empty_run(run.start);
            if !is_empty {
                run.start.write_bytes(0, run.bytes);
            }
            // If the system refuses, it can be accessed while it waits.
            let _ = deny(run.start, run.bytes);
            run.start
        };
        if let Some(old) = self.waiting.exchange(heap.cpus.cpu(), RUNS, start) {
            // SAFETY: a free run that waited, and that nobody else knows of.
            unsafe { give_run(heap, old) };
        }
    }

    #[cold]
    fn allocate_large(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        let page = page_bytes();
        let size = large_size_for(layout.size())?;
        let total = size.checked_add(page)?;
        let layout_of_all = Layout::from_size_align(total, layout.align()).ok()?;
        let inside = enter(heap);
        let block = match inside {
            Some(_) => INSTANCE.large.map(total, layout.align()),
            None => Some(closed_gate::allocate_large(heap, layout_of_all)?.0),
        };
        if inside.is_some() {
            drop(inside);
            closed_gate::free_what_waits(heap);
        }
        let block = block?;
        // SAFETY: the block has so many bytes, and is this caller's. If the system refuses, the
        // last page can be accessed.
        unsafe {
            let _ = deny(block.add(size), page);
            self.ends.mark(block, layout.size(), size);
        }
        Some(block)
    }

    /// Returns the bytes that were asked for; ends the process if no large block begins there.
    #[cold]
    pub(super) fn large_size(&self, memory: NonNull<u8>) -> usize {
        let Some(total) = INSTANCE.large.bytes_at(memory) else {
            complain("the size of what is not in use", memory);
        };
        // SAFETY: a block of so many bytes begins there.
        unsafe { self.ends.asked(memory, total - page_bytes()) }
    }

    /// Resizes a large block by moving its pages. `None`, and it is as it was, if that cannot be.
    ///
    /// # Safety
    /// Memory of a large block begins there, and is the caller's.
    #[cold]
    pub(super) unsafe fn resize_large(
        &self,
        heap: &Heap,
        memory: NonNull<u8>,
        bytes: usize,
    ) -> Option<NonNull<u8>> {
        let page = page_bytes();
        let had = INSTANCE.large.bytes_at(memory)?.checked_sub(page)?;
        let size = large_size_for(bytes)?;
        if bytes <= RUN_BYTES_MAX {
            return None;
        }
        let _inside = enter(heap)?;
        // SAFETY: the block has `had` bytes and a page, and is the caller's; then as many as it is
        // resized to. What lies behind the end is zero for whoever gets it by growing.
        unsafe {
            self.ends.check(memory, had);
            let asked = self.ends.asked(memory, had);
            allow(memory.add(had), page)?;
            let from = bytes.min(asked);
            // The last page too, which may hold what was there before the block was cut.
            memory.add(asked).write_bytes(0, had + page - asked);
            let moved = INSTANCE.large.resize(memory, size + page);
            let (block, bytes, size) = match moved {
                Some(block) => {
                    block.add(from).write_bytes(0, asked.min(size) - from);
                    (block, bytes, size)
                }
                None => (memory, asked, had),
            };
            let _ = deny(block.add(size), page);
            self.ends.mark(block, bytes, size);
            moved
        }
    }

    /// Takes a large block back.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    #[cold]
    pub(super) unsafe fn free_large(&self, heap: &'static Heap, memory: NonNull<u8>) -> Freed {
        let Some(total) = INSTANCE.large.bytes_at(memory) else {
            complain("free of what was not allocated, or is free already", memory);
        };
        // SAFETY: passed on.
        unsafe {
            self.ends.check(memory, total - page_bytes());
            let Some(_inside) = enter(heap) else {
                return closed_gate::free(heap, memory);
            };
            if !INSTANCE.large.unmap(memory) {
                complain("free of what was not allocated, or is free already", memory);
            }
            Freed::Inside
        }
    }
}

/// Returns the bytes of a large block up to its last page, for so many that are asked for.
fn large_size_for(bytes: usize) -> Option<usize> {
    let bytes = bytes.checked_next_multiple_of(END)?.checked_add(END)?;
    bytes.checked_next_multiple_of(page_bytes())
}

/// Gives a run back to the span. It stays lost if the system does not make it accessible again.
///
/// # Safety
/// It is a free run that nobody else knows of.
pub(super) unsafe fn give_run(heap: &Heap, start: NonNull<u8>) {
    let Some(pages) = heap.span.run_at(start) else {
        complain("the table of runs is damaged", start);
    };
    let inside = enter(heap);
    // SAFETY: the caller's promise.
    unsafe {
        if allow(start, pages * heap.span.page_bytes()).is_some() {
            let _ = match inside {
                Some(_) => heap.span.give_run(start),
                None => heap.span.give_run_without_locks(start),
            };
        }
    }
}
