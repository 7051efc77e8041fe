//! Which CPU each page of objects is at home on, so that objects side by side serve one CPU.
//!
//! Queues by CPU give a CPU what it has freed. If that was allocated elsewhere, its cache line
//! belongs to another CPU's objects too, and both write to it: false sharing that the allocator
//! makes (Berger, McKinley, Blumofe, Wilson 2000 call it passive). The same happens to all objects
//! of a thread that the system moves. So a page has a home: the CPU that objects were last taken
//! out of its slab for. What is freed elsewhere waits for that CPU, or goes back to its slab.
//!
//! A home is a byte, the lower eight bits of the CPU's number: CPUs 256 apart share theirs. It is a
//! hint. Whatever it says, an object that is queued on any CPU is a free object, and no more.

use core::mem::MaybeUninit;

use brickyard_sync::{AtomicU8, Ordering, place_zeroed};

/// A byte for each page of the source, in the embedder's memory. All are 0 at first, which is the
/// home of CPU 0.
///
/// ```
/// # use brickyard_slab::{Pinned, Sheafed};
/// # use brickyard::OneCpu;
/// # mod support { include!("../tests/support/pages.rs"); }
/// # use support::TestPages;
/// use brickyard::sync::AtomicU8;
/// use brickyard_slab::{Homes, Parts, SlabPlan, Slabs};
/// # fn main() -> Result<(), brickyard_slab::BuildError> {
/// type Design<'s> = Sheafed<'s, &'s TestPages, Pinned<OneCpu>>;
/// # let source = TestPages::new(64, 1);
/// # // SAFETY: one thread uses these slabs.
/// # let cpus = unsafe { Pinned::new(OneCpu) };
/// let plan = SlabPlan::new(8, 1).pages(64).with_homes();
/// let homes: Vec<_> = (0..64).map(|_| AtomicU8::new(0)).collect();
/// let mut memory = vec![core::mem::MaybeUninit::uninit(); Slabs::<Design<'_>>::bytes(&plan)];
/// let parts = Parts { homes: Some(Homes::new(&homes)), ..Parts::of(&mut memory) };
/// let slabs = Slabs::<Design<'_>>::in_parts(plan, &source, cpus, parts)?;
/// # drop(slabs);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Homes<'m>(&'m [AtomicU8]);

impl<'m> Homes<'m> {
    /// Homes matter for objects below this, in bytes from one to the next: for larger ones it is
    /// worth more that what was freed a moment ago is used again where it was freed.
    pub const STRIDE_BELOW: u32 = 128;

    /// Makes homes of bytes, one for each page.
    #[must_use]
    pub const fn new(bytes: &'m [AtomicU8]) -> Self {
        Self(bytes)
    }

    /// Makes homes of as many pages as there are bytes of memory.
    ///
    /// # Safety
    /// Every byte of it is 0. It can be read from now on, and the byte of a page can be written
    /// before the source hands the page out.
    #[must_use]
    pub unsafe fn zeroed(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        let pages = memory.len();
        // SAFETY: the caller's promise.
        match unsafe { place_zeroed(memory, pages) } {
            Some((bytes, _)) => Self(bytes),
            None => Self(&[]),
        }
    }

    /// Returns the number of pages that have one.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the byte of page 0, for a custom fast path to read.
    #[must_use]
    pub const fn start(&self) -> *const AtomicU8 {
        self.0.as_ptr()
    }

    /// Returns true if a page is at home on `cpu`. A page that has no byte is so everywhere.
    #[inline]
    #[must_use]
    pub(crate) fn is_on(&self, page: usize, cpu: usize) -> bool {
        let home = self.0.get(page);
        // Relaxed, here and below: a hint.
        home.is_none_or(|home| home.load(Ordering::Relaxed) == cpu as u8)
    }

    /// Makes `cpu` the home of so many pages from `head` on.
    pub(crate) fn settle(&self, head: usize, pages: usize, cpu: usize) {
        for home in self.0.iter().skip(head).take(pages) {
            home.store(cpu as u8, Ordering::Relaxed);
        }
    }
}
