// One CPU, whose frames from some number on are memory of the test's own, in one piece.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::sync::SlotAccess;
use brickyard::{Frame, Platform, Zone, ZonePlan};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    first: usize,
    pages: usize,
    start: NonNull<u8>,
}

// SAFETY: the pointer is an address.
unsafe impl Sync for Machine {}

impl Machine {
    /// A machine with so many pages, aligned to all of them; they live as long as the test process.
    pub(crate) fn new(first: usize, pages: usize) -> Self {
        let layout = Layout::from_size_align(pages << 12, (pages << 12).next_power_of_two());
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc(layout.unwrap()) };
        let start = NonNull::new(start).unwrap();
        Self {
            first,
            pages,
            start,
        }
    }

    /// The same with its memory so many bytes further on: addresses to compare, and no more.
    pub(crate) fn moved_by(self, bytes: usize) -> Self {
        let start = NonNull::new(self.start.as_ptr().wrapping_add(bytes)).unwrap();
        Self { start, ..self }
    }
}

impl Platform for Machine {
    fn cpu(&self) -> usize {
        0
    }

    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        let page = frame.number().checked_sub(self.first)?;
        // SAFETY: a page of the memory.
        (page < self.pages).then(|| unsafe { self.start.add(page << 12) })
    }
}

/// A zone by `plan` without memory yet, whose metadata lives as long as the test process.
pub(crate) fn zone<P: Platform, A: SlotAccess>(
    plan: &ZonePlan,
    platform: P,
) -> Zone<'static, P, A> {
    let metadata = vec![MaybeUninit::uninit(); Zone::<P, A>::bytes(plan)].leak();
    Zone::new(plan, platform, metadata).unwrap()
}
