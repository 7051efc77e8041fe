//! A piece of address space that belongs to one value: every call of the system that changes mappings is here.
//!
//! - Invariant `mapped-while-alive`: the `bytes` bytes from `start` on are one anonymous private mapping from construction to drop, made by this value and
//!   unmapped by nobody else.
//! - Invariant `no-reference-meanwhile`: a region itself makes no references into its memory. [`Mapped`](crate::Mapped) makes one, by `&mut self`, and
//!   so never while another of its methods runs; all others have raw pointers.

use core::ffi::c_void;
use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use std::io;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

use crate::{Huge, PartError, Release};

/// A piece of address space, unmapped on drop: what [`Mapped`](crate::Mapped), [`Reserved`](crate::Reserved)
/// and [`Arena`](crate::Arena) are made of, for who knows better than they which parts are in use.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
    /// The size of the pages that it is made of, in bytes.
    page_bytes: usize,
    /// Which pages those are.
    huge: Huge,
}

// SAFETY: by `mapped-while-alive` the memory lives as long as the value, on whichever thread that is; nothing in it is a thread's own.
unsafe impl Send for Region {}
// SAFETY: by `no-reference-meanwhile` a shared region gives out raw pointers only, and the system's calls can run on several threads at once.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes` bytes, a multiple of `page_bytes`, at a multiple of `align`, a power of two; `access` is what may be done with them.
    ///
    /// Maps more and cuts both ends off where the system's own alignment does not suffice.
    pub(crate) fn map(
        bytes: usize,
        align: usize,
        (page_bytes, huge): (usize, Huge),
        access: ProtFlags,
    ) -> Result<Self, Errno> {
        let flags = match huge {
            Huge::No | Huge::Transparent => MapFlags::PRIVATE,
            Huge::Explicit => MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB,
        };
        Self::map_with(bytes, align, (page_bytes, huge), (access, flags))
    }

    /// Maps `bytes` bytes, a multiple of the system's page, at a multiple of `align`, a power of two,
    /// to be read and written; nothing of it counts as memory before it is touched, unless the system
    /// counts strictly (`2` in `/proc/sys/vm/overcommit_memory`).
    ///
    /// # Errors
    /// What the system says.
    pub fn map_sparse(bytes: usize, align: usize) -> io::Result<Self> {
        Self::map_unreserved(bytes, align, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// The same as addresses only, which never count as memory: usable where it was
    /// [committed](Self::commit).
    ///
    /// # Errors
    /// As [`Region::map_sparse`].
    pub fn map_addresses(bytes: usize, align: usize) -> io::Result<Self> {
        Self::map_unreserved(bytes, align, ProtFlags::empty())
    }

    fn map_unreserved(bytes: usize, align: usize, access: ProtFlags) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let pages = (crate::page_bytes(), Huge::No);
        Ok(Self::map_with(bytes, align, pages, (access, flags))?)
    }

    fn map_with(
        bytes: usize,
        align: usize,
        (page_bytes, huge): (usize, Huge),
        (access, flags): (ProtFlags, MapFlags),
    ) -> Result<Self, Errno> {
        let spare = align.saturating_sub(page_bytes);
        let mapped = bytes.checked_add(spare).ok_or(Errno::NOMEM)?;
        // SAFETY: without MAP_FIXED, the system chooses a place where nothing is mapped, so no memory in use is changed.
        let start = unsafe { mmap_anonymous(null_mut(), mapped, access, flags) };
        // A mapping at address 0 is never chosen by the system.
        let start = NonNull::new(start?.cast()).ok_or(Errno::NOMEM)?;
        let mut region = Self {
            start,
            bytes: mapped,
            page_bytes,
            huge,
        };
        let address = start.addr().get();
        region.cut_head(address.next_multiple_of(align) - address)?;
        region.cut_tail(bytes)?;
        Ok(region)
    }

    /// Unmaps the first `head` bytes, less than all; for a region that nobody else knows yet.
    fn cut_head(&mut self, head: usize) -> Result<(), Errno> {
        if head == 0 {
            return Ok(());
        }
        let rest = self.at(head);
        // SAFETY: `mapped-while-alive`: these bytes are this region's, and nobody has been told of them.
        unsafe { munmap(self.start.as_ptr().cast(), head)? };
        self.start = rest;
        self.bytes -= head;
        Ok(())
    }

    /// Unmaps all but the first `kept` bytes; for a region that nobody else knows yet.
    fn cut_tail(&mut self, kept: usize) -> Result<(), Errno> {
        if kept == self.bytes {
            return Ok(());
        }
        // SAFETY: `mapped-while-alive`: these bytes are this region's, and nobody has been told of them.
        unsafe { munmap(self.at(kept).as_ptr().cast(), self.bytes - kept)? };
        self.bytes = kept;
        Ok(())
    }

    /// The first byte. Pointers made from it are good as long as the region lives.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn huge(&self) -> Huge {
        self.huge
    }

    /// The address of the byte at `offset`, which is at most the region's length.
    #[inline]
    #[must_use]
    pub fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.bytes);
        let address = self.start.addr().saturating_add(offset);
        self.start.with_addr(address)
    }

    /// Asks for transparent huge pages wherever they fit.
    pub(crate) fn advise_huge(&self) -> Result<(), Errno> {
        // SAFETY: `mapped-while-alive`: the bytes are this region's; the advice changes no contents.
        unsafe {
            madvise(
                self.start.as_ptr().cast(),
                self.bytes,
                Advice::LinuxHugepage,
            )
        }
    }

    /// Makes a part readable and writable; what is in it stays. `part` is in bytes from the start, and
    /// begins and ends with a page.
    ///
    /// # Errors
    /// [`PartError`].
    pub fn commit(&self, part: Range<usize>) -> Result<(), PartError> {
        // Explicit huge pages are usable from the start.
        if self.huge == Huge::Explicit {
            return Ok(());
        }
        self.change(part, |start, bytes| {
            let access = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: `mapped-while-alive`: the bytes are this region's; to allow more takes nothing from anybody.
            unsafe { mprotect(start, bytes, access) }
        })
    }

    /// Gives the memory of a part back; it stays usable.
    ///
    /// # Errors
    /// [`PartError`].
    ///
    /// # Safety
    /// Nobody relies on what is in it, and nobody has a reference to it.
    pub unsafe fn release(&self, part: Range<usize>, how: Release) -> Result<(), PartError> {
        self.not_explicit()?;
        let advice = match how {
            Release::Now => Advice::LinuxDontNeed,
            Release::Lazily => Advice::LinuxFree,
        };
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive`: the bytes are this region's; that their contents may go is the caller's promise.
            unsafe { madvise(start, bytes, advice) }
        })
    }

    /// Gives the memory of a part back and keeps only its addresses.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub(crate) unsafe fn withdraw(&self, part: Range<usize>) -> Result<(), PartError> {
        self.not_explicit()?;
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive`: the bytes are this region's; that nobody uses them is the caller's promise.
            unsafe {
                mprotect(start, bytes, MprotectFlags::empty())?;
                madvise(start, bytes, Advice::LinuxDontNeed)
            }
        })
    }

    fn not_explicit(&self) -> Result<(), PartError> {
        match self.huge {
            Huge::No | Huge::Transparent => Ok(()),
            Huge::Explicit => Err(PartError::Explicit),
        }
    }

    /// Calls the system for a part, if it is one and has any bytes.
    fn change(
        &self,
        part: Range<usize>,
        call: impl FnOnce(*mut c_void, usize) -> Result<(), Errno>,
    ) -> Result<(), PartError> {
        let Range { start, end } = part;
        let page_bytes = self.page_bytes;
        if start > end || end > self.bytes {
            let bytes = self.bytes;
            return Err(PartError::Outside { start, end, bytes });
        }
        if !start.is_multiple_of(page_bytes) || !end.is_multiple_of(page_bytes) {
            return Err(PartError::Misaligned {
                start,
                end,
                page_bytes,
            });
        }
        if start == end {
            return Ok(());
        }
        call(self.at(start).as_ptr().cast(), end - start).map_err(|errno| PartError::Refused {
            start,
            end,
            source: io::Error::from(errno),
        })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // It fails only where it would have to split a mapping that the system has merged with a neighbour, and the process may have no more
        // mappings: then the addresses are lost, and nothing else is.
        //
        // SAFETY: `mapped-while-alive` ends here: who has raw pointers into the region promised not to use them any longer than it lives.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
