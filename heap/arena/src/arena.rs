//! Mapped memory as page frames: a frame is a page of the process, and a thread is a CPU.

use core::ops::Range;
use core::ptr::NonNull;

use brickyard::{Frame, FrameRange, InterruptState, Platform};

use crate::region::Region;
use crate::{Mapped, PartError, Release, Reserved, Threads};

/// A piece of mapped memory whose pages are frames, and the platform of the zones over it.
///
/// **Frame numbers are absolute**: a frame's number is its address divided by the page size, as in
/// a kernel. So they are large, about 2^35 on x86-64. Then a block of order *n* is aligned to its
/// size in memory too, whatever the arena's own alignment, and an order-9 block can be a huge page.
/// Frames of different arenas never have the same number, so one [`Nodes`](brickyard::node::Nodes)
/// can span several arenas. A zone's metadata does not grow with the numbers, since its span begins
/// where the arena does.
///
/// **Zones are built on `&Arena`**, which is a [`Platform`]. CPU numbers, waiting and clock are
/// those of [`Threads`]; addresses are the arena's. Any number of zones can share one arena, each
/// with a part of its frames. The crate's [first page](crate) has an example.
///
/// The allocator never touches the arena's memory, and the arena never learns which frames are in
/// use. The user of a frame reads and writes it, through a raw pointer.
#[derive(Debug)]
pub struct Arena {
    region: Region,
    /// log2 of the size of a frame.
    frame_shift: u32,
}

impl Arena {
    /// Makes an arena that can be used throughout.
    #[must_use]
    pub fn new(memory: Mapped) -> Self {
        Self::over(memory.into_region())
    }

    /// Makes an arena that grows. Its frames have addresses, but each must be
    /// [committed](Arena::commit) before it is used, best before it is
    /// [added](brickyard::zone::Zone::add) to a zone.
    ///
    /// ```
    /// use brickyard::zone::{Zone, ZonePlan};
    /// use brickyard::{FrameRange, ZoneKind};
    /// use brickyard_arena::{Arena, MapPlan, Mapped};
    ///
    /// let arena = Arena::growing(MapPlan::new(1 << 30).align_to(4 << 20).reserve()?);
    /// let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 1);
    /// let mut metadata = Mapped::new(Zone::<&Arena>::checked_bytes(&plan)?)?;
    /// let zone = Zone::<&Arena>::new(&plan, &arena, metadata.as_uninit())?;
    ///
    /// let first = FrameRange::at(arena.frames().start, 1024);
    /// arena.commit(first)?;
    /// assert_eq!(zone.add(first)?, 1024);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn growing(addresses: Reserved) -> Self {
        Self::over(addresses.into_region())
    }

    fn over(region: Region) -> Self {
        // A frame is a page of the system even in huge pages: those are blocks.
        let frame_shift = crate::page_bytes().trailing_zeros();
        Self {
            region,
            frame_shift,
        }
    }

    /// Returns all its frames.
    #[must_use]
    pub fn frames(&self) -> FrameRange {
        let first = Frame::new(self.region.start().addr().get() >> self.frame_shift);
        FrameRange::at(first, self.region.bytes() >> self.frame_shift)
    }

    /// Returns the size of a frame, in bytes: the system's page.
    #[must_use]
    pub const fn page_bytes(&self) -> usize {
        1 << self.frame_shift
    }

    /// Returns the frame that a byte lies in, by its address, if it is one of the arena's.
    #[must_use]
    pub fn frame_of(&self, byte: *const u8) -> Option<Frame> {
        let frame = Frame::new(byte.addr() >> self.frame_shift);
        self.frames().contains(frame).then_some(frame)
    }

    /// Makes frames of a [growing](Arena::growing) arena usable. Frames that are usable already
    /// stay as they are. Takes one system call, whatever the number.
    ///
    /// # Errors
    /// [`PartError`]: they are not frames of the arena, or the system is out of memory or of
    /// mappings.
    pub fn commit(&self, range: FrameRange) -> Result<(), PartError> {
        self.region.commit(self.part(range)?)
    }

    /// Gives the memory of frames back to the system. They stay usable. Costs a system call, and
    /// some tenths of a microsecond per frame. A huge page of which a part is given back is split.
    ///
    /// To shrink an arena, allocate large blocks from its zone until there are none, release them,
    /// and free them again.
    ///
    /// # Errors
    /// [`PartError`]: they are not frames of the arena, are explicit huge pages, or are locked
    /// memory.
    ///
    /// # Safety
    /// Nobody relies on the contents of these frames, and nobody has a reference to them. They are
    /// allocated by the caller, or free and kept from being allocated meanwhile.
    pub unsafe fn release(&self, range: FrameRange, how: Release) -> Result<(), PartError> {
        let part = self.part(range)?;
        // SAFETY: the caller's promise.
        unsafe { self.region.release(part, how) }
    }

    /// Takes frames out of use until they are committed again, and gives their memory back to the
    /// system. For frames that were [removed](brickyard::zone::Zone::remove) from their zone.
    ///
    /// # Errors
    /// The errors of [`Arena::release`], and also if the system is out of mappings.
    ///
    /// # Safety
    /// Nobody uses these frames until they are committed again.
    pub unsafe fn withdraw(&self, range: FrameRange) -> Result<(), PartError> {
        let part = self.part(range)?;
        // SAFETY: the caller's promise.
        unsafe { self.region.withdraw(part) }
    }

    /// Converts frames to bytes from the region's start.
    fn part(&self, range: FrameRange) -> Result<Range<usize>, PartError> {
        let all = self.frames();
        if range.is_empty() {
            return Ok(0..0);
        }
        if !all.covers(range) {
            return Err(PartError::OutsideArena { range, all });
        }
        let from_start = |frame: Frame| (frame.number() - all.start.number()) << self.frame_shift;
        Ok(from_start(range.start)..from_start(range.end))
    }
}

/// CPU numbers, waiting and clock are those of [`Threads`]; addresses are the arena's.
impl Platform for Arena {
    #[inline]
    fn cpu(&self) -> usize {
        Threads.cpu()
    }

    #[inline]
    fn pin(&self) -> usize {
        Threads.pin()
    }

    #[inline]
    fn unpin(&self) {
        Threads.unpin();
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        Threads.in_interrupt()
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        Threads.mask_interrupts()
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        Threads.restore_interrupts(found);
    }

    #[inline]
    fn relax(&self) {
        Threads.relax();
    }

    #[inline]
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        Threads.run_on(cpu, work)
    }

    #[inline]
    fn ticks(&self) -> u64 {
        Threads.ticks()
    }

    /// Returns the first byte of a frame of the arena. It is valid for [`Arena::page_bytes`] bytes,
    /// and for all of a block's where the frame begins one, as long as the arena lives. `None` for
    /// frames that are not the arena's.
    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        let all = self.frames();
        all.contains(frame).then(|| {
            self.region
                .at((frame.number() - all.start.number()) << self.frame_shift)
        })
    }
}
