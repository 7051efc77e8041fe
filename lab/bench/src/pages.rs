//! Pages of real memory, from any of our allocators: each is its holder's alone, and has bytes.
//!
//! Invariant `page-is-its-holders`: a page's bytes are accessed only through its one [`Page`],
//! which is created only for an allocator that has the memory to itself.

use core::fmt;
use core::slice;

use anyhow::Context;
use brickyard::node::{Node, Nodes};
use brickyard::sync::{Exclusive, TicketLock};
use brickyard::{Frame, Mobility, Order, Platform, Request};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Configuration, Experiment, MachinePlan};
use brickyard_measure::memory::{FRAME_BYTES, FrameMemory};

use super::machine::{CANNOT_BUILD, metadata};
use super::masking::{Masking, MaskingPlatform, MemoryPlatform};

/// Memory of the process, mapped and touched, so that the system maps none of it during a
/// measurement.
#[derive(Debug)]
pub struct PageMemory(FrameMemory);

/// A page, until it is freed.
pub struct Page<'a> {
    frame: Frame,
    bytes: &'a mut [u8],
}

impl fmt::Debug for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Page").field(&self.frame).finish()
    }
}

impl Page<'_> {
    /// Returns its bytes: of a new page, those of its last use.
    #[inline]
    pub const fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }
}

/// The source of pages.
pub struct Pages<'n, 'a, Z: LabZone> {
    nodes: Nodes<'n, Z>,
    memory: &'a FrameMemory,
}

impl<Z: LabZone> fmt::Debug for Pages<'_, '_, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl<'a, Z: LabZone<Platform = MemoryPlatform<'a>>> Pages<'_, 'a, Z> {
    /// Allocates a movable page; `None` if memory is exhausted.
    #[inline]
    pub fn take(&self) -> Option<Page<'a>> {
        let request = Request::new(Order::ZERO, Mobility::Movable);
        let frame = self.nodes.alloc(0, &request).ok()?;
        let first = self.memory.address(frame)?;
        // SAFETY: all of the memory is mapped for as long as it lives, which is longer than 'a, and
        // was zero at first, so it is initialised. There is no other reference to this page:
        // `PageMemory::with` has the memory for this allocator alone, and the allocator gives a
        // frame to one holder, until `give` frees it and takes the reference with it.
        let bytes = unsafe { slice::from_raw_parts_mut(first.as_ptr(), FRAME_BYTES) };
        Some(Page { frame, bytes })
    }

    /// Frees a page.
    #[inline]
    pub fn give(&self, page: Page<'a>) {
        let freed = self.nodes.free(page.frame, Order::ZERO);
        debug_assert_eq!(freed, Ok(()), "a page is freed once, to its allocator");
    }
}

/// Work to do with pages of any allocator.
pub trait Work {
    /// The result.
    type Output;

    /// Does the work.
    fn run<'a, Z: LabZone<Platform = MemoryPlatform<'a>>>(
        self,
        pages: &Pages<'_, 'a, Z>,
    ) -> Self::Output;
}

struct OnPages<'a, W> {
    memory: &'a FrameMemory,
    work: W,
}

impl<'a, W: Work> Experiment<MemoryPlatform<'a>> for OnPages<'a, W> {
    type Output = W::Output;

    fn run<Z: LabZone<Platform = MemoryPlatform<'a>>>(self, node: &Node<'_, Z>) -> W::Output {
        self.work.run(&Pages {
            nodes: Nodes::new(slice::from_ref(node)),
            memory: self.memory,
        })
    }
}

impl PageMemory {
    /// Maps and touches so many pages, rounded up to whole blocks.
    ///
    /// # Errors
    /// The system has too little memory.
    pub fn new(pages: usize) -> anyhow::Result<Self> {
        Ok(Self(FrameMemory::new(pages * FRAME_BYTES)?))
    }

    /// Builds an allocator of all the memory, with ticket locks, exclusive slots and such masks of
    /// interrupts, and runs `work` with it on the calling thread. The memory is the allocator's
    /// alone meanwhile.
    ///
    /// # Errors
    /// The allocator cannot be built.
    pub fn with<W: Work>(
        &mut self,
        configuration: Configuration,
        masking: Masking,
        work: W,
    ) -> anyhow::Result<W::Output> {
        let memory = &self.0;
        // A CPU for each number up to this thread's, and no more: they have equal shares.
        let plan = MachinePlan::new(memory.frames(), memory.cpu() + 1);
        let bytes = configuration.checked_bytes::<Exclusive, TicketLock, MemoryPlatform<'_>>(&plan);
        let mut metadata = metadata(bytes.context(CANNOT_BUILD)?)?;
        configuration
            .run::<Exclusive, TicketLock, _, _>(
                &plan,
                MaskingPlatform::new(memory, masking),
                &mut metadata,
                OnPages { memory, work },
            )
            .context(CANNOT_BUILD)
    }
}
