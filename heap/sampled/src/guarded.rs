//! Guarded memory: a page for one request, between pages that cannot be accessed, so that a mistake
//! with it is found at once, with who asked for it, who freed it and who uses it.
//!
//! An object lies at the end of its page or at its beginning, drawn by lot: there the first byte
//! behind or before it ends the program. The rest of the page is filled, and looked at when the
//! object is freed. A freed page cannot be accessed until all others have had their turn.
//!
//! Invariant `slot-claimed`: a slot's state is changed by compare-and-swap only from [`FREE`] to
//! [`BUSY`], by who allocates, and from [`LIVE`] to [`BUSY`], by who frees. Who made it `BUSY` owns
//! the slot and its page until it stores `LIVE` or `FREE`. No lock is taken, so a fork may come at
//! any moment: what was `BUSY` then is lost to the child.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::io;

use brickyard::Platform;
use brickyard_arena::{Region, Threads, page_bytes};

use crate::countdown::Countdown;
use crate::report::{GuardedAddress, Report};
use crate::stack::{DEPTH, Stack};
use crate::walk::Walk;

/// So many requests can have guarded memory at a time.
pub(crate) const SLOTS: usize = 2048;

/// A request looks at so many slots for a free one.
const TRIES: usize = 16;

/// What fills the rest of a page.
const FILL: u8 = 0xb5;

const FREE: u32 = 0;
const BUSY: u32 = 1;
const LIVE: u32 = 2;

/// A stack that may be read while another thread writes it: what a finding then shows of it may be
/// of two stacks, which is said nowhere else.
struct Event {
    frames: [AtomicUsize; DEPTH],
    depth: AtomicUsize,
    task: AtomicU64,
}

impl Event {
    // Relaxed, all: who owns the slot writes, and who reports reads what there is.

    fn note(&self, stack: &Stack) {
        let frames = stack.frames();
        for (place, &frame) in self.frames.iter().zip(frames) {
            place.store(frame, Ordering::Relaxed);
        }
        self.depth.store(frames.len(), Ordering::Relaxed);
        self.task.store(task(), Ordering::Relaxed);
    }

    fn forget(&self) {
        self.depth.store(0, Ordering::Relaxed);
        self.task.store(0, Ordering::Relaxed);
    }

    fn copy_to(&self, stack: &mut Stack) {
        let depth = self.depth.load(Ordering::Relaxed);
        let frames = self.frames.iter().take(depth);
        stack.set(frames.map(|frame| frame.load(Ordering::Relaxed)));
    }
}

/// Returns the calling thread, by the system's number.
pub(crate) fn task() -> u64 {
    let thread = rustix::thread::gettid().as_raw_nonzero();
    thread.get().unsigned_abs().into()
}

struct Slot {
    state: AtomicU32,
    /// The object that is there, or was last.
    address: AtomicUsize,
    bytes: AtomicUsize,
    allocated: Event,
    freed: Event,
}

/// See the [module](self).
pub(crate) struct Guarded {
    gaps: Countdown,
    /// A page that cannot be accessed, then for each slot its page and another such one.
    pages: Region,
    slots: &'static [Slot],
    cursor: AtomicUsize,
    /// How many are in use.
    live: AtomicUsize,
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    Access,
    Free,
    WriteBeside,
}

impl Guarded {
    /// Makes guarded memory for one request in `every`, on average.
    pub(crate) fn new(every: usize) -> io::Result<Self> {
        let page = page_bytes();
        let pages = Region::map_addresses((2 * SLOTS + 1) * page, page)?;
        let slots = Region::map_for_ever(SLOTS * size_of::<Slot>())?;
        // SAFETY: the mapping has room for so many, begins with a page, is this caller's, and zero:
        // so are slots that are free.
        let slots = unsafe { slice::from_raw_parts(slots.as_ptr().cast(), SLOTS) };
        Ok(Self {
            gaps: Countdown::new(every as u64, Threads.ticks())?,
            pages,
            slots,
            cursor: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
        })
    }

    /// Counts a request of up to a page. Returns true if it is to be guarded.
    #[inline]
    pub(crate) fn is_due(&self, cpu: usize, layout: Layout) -> bool {
        let page = page_bytes();
        (1..=page).contains(&layout.size()) && layout.align() <= page && self.gaps.is_due(cpu, 1)
    }

    /// Returns true if an address lies in guarded memory, or between.
    #[inline]
    pub(crate) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.pages.start().addr().get()) < self.pages.bytes()
    }

    /// Returns the bytes of pages in use.
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a hint.
        self.live.load(Ordering::Relaxed) * page_bytes()
    }

    /// Returns where the page of a slot begins, in bytes from the start.
    fn offset(&self, slot: usize) -> usize {
        (2 * slot + 1) * page_bytes()
    }

    fn page(&self, slot: usize) -> NonNull<u8> {
        self.pages.at(self.offset(slot))
    }

    /// Returns the slot whose object an address is most likely meant to be in: that of its page; of
    /// a page between two the one that is nearer, unless only the other has been used.
    fn slot_near(&self, address: usize) -> usize {
        let page = page_bytes();
        let offset = address - self.pages.start().addr().get();
        let (number, within) = (offset / page, offset % page);
        if number % 2 == 1 {
            return number / 2;
        }
        let (before, after) = ((number / 2).saturating_sub(1), (number / 2).min(SLOTS - 1));
        let (near, far) = if within < page / 2 {
            (before, after)
        } else {
            (after, before)
        };
        // Relaxed: a guess.
        let was_used = |slot: usize| self.slots[slot].address.load(Ordering::Relaxed) != 0;
        if !was_used(near) && was_used(far) {
            far
        } else {
            near
        }
    }

    /// Allocates zeros for `layout`, of up to a page. `None` if there is no free slot at hand, or
    /// if the system refuses. `mark` lies in the frame of the heap's function that was called.
    #[cold]
    pub(crate) fn allocate<T>(&self, layout: Layout, mark: &T) -> Option<NonNull<u8>> {
        let number = (0..TRIES).find_map(|_| {
            // Relaxed: any slot will do.
            let number = self.cursor.fetch_add(1, Ordering::Relaxed) % SLOTS;
            // Acquire: pairs with the release of the last owner (`slot-claimed`).
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            let state = &self.slots[number].state;
            let claimed = state.compare_exchange(FREE, BUSY, success, failure);
            claimed.is_ok().then_some(number)
        })?;
        let slot = &self.slots[number];
        crate::fault::watch();
        let (page, start) = (page_bytes(), self.offset(number));
        if self.pages.commit(start..start + page).is_err() {
            // Release: pairs with the acquire above, here and below.
            slot.state.store(FREE, Ordering::Release);
            return None;
        }
        let bytes = layout.size();
        // As `malloc` promises, also where less is asked for.
        let align = layout.align().max(16);
        let at = match self.gaps.draw() % 2 {
            0 => 0,
            _ => (page - bytes) & !(align - 1),
        };
        // SAFETY: `slot-claimed`: the page is this caller's, and it can be written.
        let object = unsafe {
            let first = self.page(number);
            first.write_bytes(FILL, at);
            first.add(at + bytes).write_bytes(FILL, page - at - bytes);
            first.add(at)
        };
        slot.address.store(object.addr().get(), Ordering::Relaxed);
        slot.bytes.store(bytes, Ordering::Relaxed);
        slot.allocated.note(&Stack::of_caller(mark));
        slot.freed.forget();
        self.live.fetch_add(1, Ordering::Relaxed);
        // Release: pairs with the acquire in `free`.
        slot.state.store(LIVE, Ordering::Release);
        Some(object)
    }

    /// Frees an object. `mark` lies in the frame of the heap's function that was called.
    ///
    /// # Safety
    /// If it is one in use, nobody uses it any more.
    #[cold]
    pub(crate) unsafe fn free<T>(&self, object: NonNull<u8>, mark: &T) {
        let address = object.addr().get();
        let number = self.slot_near(address);
        let slot = &self.slots[number];
        if slot.address.load(Ordering::Relaxed) != address {
            self.end(Mistake::Free, address);
        }
        // Acquire: pairs with the release of who allocated it (`slot-claimed`).
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let claimed = slot.state.compare_exchange(LIVE, BUSY, success, failure);
        if claimed.is_err() {
            self.end(Mistake::Free, address);
        }
        let (page, start) = (page_bytes(), self.offset(number));
        let at = address - self.page(number).addr().get();
        let bytes = slot.bytes.load(Ordering::Relaxed);
        // SAFETY: `slot-claimed`: the page is this caller's, and it can be read.
        let whole = unsafe { slice::from_raw_parts(self.page(number).as_ptr(), page) };
        let beside = whole[..at].iter().chain(&whole[at + bytes..]);
        if beside.copied().any(|byte| byte != FILL) {
            self.end(Mistake::WriteBeside, address);
        }
        slot.freed.note(&Stack::of_caller(mark));
        // If the system refuses, the page keeps its memory, or can still be accessed.
        //
        // SAFETY: `slot-claimed`: nobody else uses the page.
        let _ = unsafe { self.pages.withdraw(start..start + page) };
        self.live.fetch_sub(1, Ordering::Relaxed);
        // Release: pairs with the acquire in `allocate`.
        slot.state.store(FREE, Ordering::Release);
    }

    /// Returns the bytes that were asked for; 0 where no object in use begins.
    pub(crate) fn usable_size(&self, object: NonNull<u8>) -> usize {
        let slot = &self.slots[self.slot_near(object.addr().get())];
        let begins = slot.address.load(Ordering::Relaxed) == object.addr().get();
        // Relaxed: whoever asks has the object, and so has what wrote this.
        if begins && slot.state.load(Ordering::Relaxed) == LIVE {
            slot.bytes.load(Ordering::Relaxed)
        } else {
            0
        }
    }

    /// Ends the process with all that is known of a mistake of the caller.
    fn end(&self, mistake: Mistake, address: usize) -> ! {
        let mark = 0_u8;
        self.report(mistake, address, |stack, _| {
            *stack = Stack::of_caller(&mark);
        });
        // SAFETY: ends the process.
        unsafe { libc::abort() }
    }

    /// Says what is known of an access that the system has refused.
    pub(crate) fn report_access(
        &self,
        address: usize,
        here: impl FnOnce(&mut Stack, &mut MaybeUninit<Walk>),
    ) {
        self.report(Mistake::Access, address, here);
    }

    fn report(
        &self,
        mistake: Mistake,
        address: usize,
        here: impl FnOnce(&mut Stack, &mut MaybeUninit<Walk>),
    ) {
        let slot = &self.slots[self.slot_near(address)];
        let place = GuardedAddress {
            address,
            object: slot.address.load(Ordering::Relaxed),
            bytes: slot.bytes.load(Ordering::Relaxed),
        };
        let what = match mistake {
            _ if place.object == 0 => "access to guarded memory that was never given",
            Mistake::WriteBeside => "write beside its memory, found when it is freed",
            Mistake::Free if place.object == address => "double free",
            Mistake::Free => "free of an address that is not its beginning",
            Mistake::Access if slot.state.load(Ordering::Relaxed) != LIVE => "use after free",
            Mistake::Access if address < place.object => "access before its beginning",
            Mistake::Access => "access behind its end",
        };
        let Some(mut report) = Report::begin() else {
            return;
        };
        report.say(format_args!("{what}: {place}"));
        for (event, name) in [(&slot.freed, "freed"), (&slot.allocated, "allocated")] {
            let task = event.task.load(Ordering::Relaxed);
            if task != 0 && place.object != 0 {
                report.say_stack(name, task, |stack, _| event.copy_to(stack));
            }
        }
        report.say_stack("here", task(), here);
    }
}
