//! Memory from the system: mapped and usable at once, or reserved and committed part by part.
//!
//! Pages get memory when they are first touched, and are zero then. So a mapping costs little,
//! however long it is, and can be longer than the machine's memory. A process that touches more
//! than there is may be killed.

use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::slice;
use std::io;

use rustix::io::Errno;
use rustix::mm::ProtFlags;

use crate::region::Region;
use crate::{MapError, PartError};

/// The size of a huge page, in bytes: 2 MiB.
pub const HUGE_BYTES: usize = 2 << 20;

/// The size of the system's page, in bytes: 4 KiB on x86, up to 64 KiB elsewhere.
#[must_use]
pub fn page_bytes() -> usize {
    // The C library's value. Asking the system would need memory, or a look into the program's own
    // headers.
    //
    // SAFETY: a plain call.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has a page size")
}

/// The kind of pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Huge {
    /// Pages of the system's own size, unless the machine gives huge ones to everybody (`always` in
    /// `/sys/kernel/mm/transparent_hugepage/enabled`).
    #[default]
    No,
    /// Huge pages where the system has them free, other pages elsewhere (`madvise` with
    /// `MADV_HUGEPAGE`). The mapping is aligned to [`HUGE_BYTES`].
    ///
    /// This is a request, not a promise. A machine set to `never` in
    /// `/sys/kernel/mm/transparent_hugepage/enabled` accepts it and gives none.
    Transparent,
    /// Huge pages of [`HUGE_BYTES`] from the pool that the administrator has set aside
    /// (`MAP_HUGETLB`), or an error. Length and alignment are rounded up to [`HUGE_BYTES`].
    Explicit,
}

/// The fate of memory that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Release {
    /// It leaves the process at once (`MADV_DONTNEED`). The pages read as zero from then on, and
    /// get new memory when they are written.
    Now,
    /// The system takes it when it is short of memory (`MADV_FREE`), and it counts as the process's
    /// until then. This is cheaper where the pages are used again soon. Until it is written, each
    /// page holds either what it held or zeros, and may change from the one to the other at any
    /// moment.
    Lazily,
}

/// A plan of how memory is to be mapped.
///
/// ```
/// use brickyard_arena::{HUGE_BYTES, Huge, MapPlan};
///
/// let memory = MapPlan::new(10 << 20).align_to(4 << 20).map()?;
/// assert!(memory.start().addr().get().is_multiple_of(4 << 20));
///
/// let memory = MapPlan::new(1).huge(Huge::Transparent).map()?;
/// assert!(memory.start().addr().get().is_multiple_of(HUGE_BYTES));
/// # Ok::<(), brickyard_arena::MapError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a plan maps nothing before `map` or `reserve`"]
pub struct MapPlan {
    /// The length in bytes; rounded up to pages.
    pub bytes: usize,
    /// The start is a multiple of this, in bytes: a power of two. Less than a page means a page.
    pub align: usize,
    /// The kind of pages.
    pub huge: Huge,
}

impl MapPlan {
    /// Plans `bytes` bytes in pages of the system's size, aligned to a page.
    pub const fn new(bytes: usize) -> Self {
        Self {
            bytes,
            align: 1,
            huge: Huge::No,
        }
    }

    /// Returns the same plan, starting at a multiple of `align` bytes. With [`HUGE_BYTES`], huge
    /// pages are possible.
    pub const fn align_to(self, align: usize) -> Self {
        Self { align, ..self }
    }

    /// Returns the same plan, with pages of this kind.
    pub const fn huge(self, huge: Huge) -> Self {
        Self { huge, ..self }
    }

    /// Maps it, to be used at once. Takes a few system calls, whatever the length.
    ///
    /// # Errors
    /// [`MapError`]: a length of zero or beyond the address space, an alignment that is not a power
    /// of two, or the system's refusal with advice.
    pub fn map(self) -> Result<Mapped, MapError> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        Ok(Mapped {
            region: self.region(access)?,
        })
    }

    /// Reserves addresses only. No page can be used, and nothing counts as memory, before it is
    /// committed.
    ///
    /// # Errors
    /// The errors of [`MapPlan::map`], and [`MapError::ExplicitReserved`] for explicit huge pages.
    pub fn reserve(self) -> Result<Reserved, MapError> {
        if self.huge == Huge::Explicit {
            return Err(MapError::ExplicitReserved);
        }
        Ok(Reserved {
            region: self.region(ProtFlags::empty())?,
        })
    }

    fn region(self, access: ProtFlags) -> Result<Region, MapError> {
        let Self { bytes, align, huge } = self;
        if bytes == 0 {
            return Err(MapError::Empty);
        }
        if !align.is_power_of_two() {
            return Err(MapError::Alignment { align });
        }
        let (page_bytes, least_align) = match huge {
            Huge::No => (page_bytes(), page_bytes()),
            Huge::Transparent => (page_bytes(), HUGE_BYTES.max(page_bytes())),
            Huge::Explicit => (HUGE_BYTES, HUGE_BYTES),
        };
        let align = align.max(least_align);
        // A slice, and so an offset, is at most `isize::MAX` bytes.
        let rounded = bytes
            .checked_next_multiple_of(page_bytes)
            .filter(|rounded| rounded.saturating_add(align) <= isize::MAX as usize)
            .ok_or(MapError::TooLong { bytes, align })?;
        let region = Region::map(rounded, align, (page_bytes, huge), access).map_err(|errno| {
            let source = io::Error::from(errno);
            match huge {
                Huge::No | Huge::Transparent => MapError::Refused {
                    bytes: rounded,
                    source,
                },
                Huge::Explicit if errno == Errno::NOMEM => MapError::TooFewHugePages {
                    pages: rounded / HUGE_BYTES,
                    source,
                },
                Huge::Explicit => MapError::NoExplicit { source },
            }
        })?;
        if huge == Huge::Transparent {
            region
                .advise_huge()
                .map_err(|errno| MapError::NoTransparent {
                    source: errno.into(),
                })?;
        }
        Ok(region)
    }
}

/// Memory that can be read and written throughout. It is zero at first, and unmapped on drop.
///
/// Invariant `usable-throughout`: every byte can be read and written, from construction to drop.
///
/// ```
/// use brickyard_arena::{Mapped, Release, page_bytes};
///
/// let mut memory = Mapped::new(3 * page_bytes())?;
/// memory.as_uninit()[0].write(7);
/// memory.release(0..page_bytes(), Release::Now)?; // zero again
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mapped {
    region: Region,
}

impl Mapped {
    /// Maps `bytes` bytes in pages of the system's size, rounded up to pages: [`MapPlan::new`] and
    /// [`MapPlan::map`].
    ///
    /// # Errors
    /// The errors of [`MapPlan::map`].
    pub fn new(bytes: usize) -> Result<Self, MapError> {
        MapPlan::new(bytes).map()
    }

    /// Returns the first byte. Pointers made from it are valid as long as the mapping lives.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.region.start()
    }

    /// Returns the length in bytes, a multiple of the page size.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Returns the kind of pages that it was asked to be made of.
    #[must_use]
    pub const fn huge(&self) -> Huge {
        self.region.huge()
    }

    /// Returns all of it as a slice, to build a zone's metadata in or for anything else. (It is
    /// uninitialised as far as the compiler knows, but in fact zero until it is written.)
    #[must_use]
    pub const fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
        let first = self.region.start().as_ptr().cast();
        // SAFETY: `mapped-while-alive` and `usable-throughout`: these bytes are there and usable as
        // long as `self` is. The slice borrows `&mut self`, so it is the only one. Bytes that need
        // not be initialised are valid as they are. `MapPlan::region` limits the length to
        // `isize::MAX`.
        unsafe { slice::from_raw_parts_mut(first, self.region.bytes()) }
    }

    /// Gives the memory of a part back to the system. Its addresses stay usable. `part` is in bytes
    /// from the start, and begins and ends at a page boundary. Costs a system call, and some tenths
    /// of a microsecond per page.
    ///
    /// # Errors
    /// [`PartError`]; the memory is as it was, unless the system itself gave up midway.
    pub fn release(&mut self, part: Range<usize>, how: Release) -> Result<(), PartError> {
        // SAFETY: `no-reference-meanwhile`, by `&mut self`, which also ends the use of earlier
        // slices. Both ways leave the pages usable (`usable-throughout`).
        unsafe { self.region.release(part, how) }
    }

    pub(crate) fn into_region(self) -> Region {
        self.region
    }
}

/// Addresses without memory: more than the machine has, if needed. [`Reserved::commit`] makes parts
/// usable. Unmapped on drop.
///
/// ```
/// use brickyard_arena::{MapPlan, page_bytes};
///
/// let mut addresses = MapPlan::new(1 << 36).reserve()?; // 64 GiB
/// addresses.commit(0..page_bytes())?;
/// // SAFETY: the first page is committed, and nobody else knows of it.
/// unsafe { addresses.start().write(1) };
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reserved {
    region: Region,
}

impl Reserved {
    /// Returns the first byte. Pointers made from it are valid as long as the reservation lives, to
    /// read and write what is committed.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.region.start()
    }

    /// Returns the length in bytes, a multiple of the page size.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.region.bytes()
    }

    /// Makes a part usable. What is usable already stays as it is. `part` is in bytes from the
    /// start, and begins and ends at a page boundary. Takes one system call, whatever the length.
    ///
    /// # Errors
    /// [`PartError`]: it is not a part of the reservation, or the system is out of memory or of
    /// mappings.
    pub fn commit(&mut self, part: Range<usize>) -> Result<(), PartError> {
        self.region.commit(part)
    }

    /// Takes a part out of use. Its memory goes back to the system, and its addresses stay
    /// reserved; touching them is an error that ends the process. (Where the system counts promised
    /// memory, `2` in `/proc/sys/vm/overcommit_memory`, it goes on counting the part.)
    ///
    /// # Errors
    /// [`PartError`].
    pub fn withdraw(&mut self, part: Range<usize>) -> Result<(), PartError> {
        // SAFETY: `no-reference-meanwhile`. Pointers into it may be used on committed parts only,
        // as `start` says.
        unsafe { self.region.withdraw(part) }
    }

    pub(crate) fn into_region(self) -> Region {
        self.region
    }
}
