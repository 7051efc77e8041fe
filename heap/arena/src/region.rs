//! A piece of address space that belongs to one value. Every system call that changes mappings is
//! here.
//!
//! - Invariant `mapped-while-alive`: the `bytes` bytes from `start` on are one anonymous private
//!   mapping of its own, from construction until the value is dropped or leaked. Nobody else unmaps
//!   it.
//! - Invariant `no-reference-meanwhile`: a region itself makes no references into its memory,
//!   unless it ends as memory that is there [for ever](Region::for_ever).
//!   [`Mapped`](crate::Mapped) makes one, by `&mut self`, and so never while another of its methods
//!   runs. All other users have raw pointers.

use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use core::slice;
use std::io;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

use crate::errno::keeping_errno;
use crate::{Huge, PartError, Release};

/// A piece of address space, unmapped on drop. [`Mapped`](crate::Mapped),
/// [`Reserved`](crate::Reserved) and [`Arena`](crate::Arena) are made of it. Use it directly if you
/// know better than they which parts are in use.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
    /// The size of the pages that it is made of, in bytes.
    page_bytes: usize,
    /// The kind of those pages.
    huge: Huge,
}

// SAFETY: by `mapped-while-alive` the memory lives as long as the value, on whichever thread that
// is. Nothing in it belongs to a thread.
unsafe impl Send for Region {}
// SAFETY: by `no-reference-meanwhile` a shared region gives out raw pointers only. The system calls
// can run on several threads at once.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes` bytes, a multiple of `page_bytes`, at a multiple of `align`, a power of two.
    /// `access` says what may be done with them.
    pub(crate) fn map(
        bytes: usize,
        align: usize,
        pages: (usize, Huge),
        access: ProtFlags,
    ) -> Result<Self, Errno> {
        let flags = match pages.1 {
            Huge::No | Huge::Transparent => MapFlags::PRIVATE,
            Huge::Explicit => MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB,
        };
        Self::map_with(bytes, align, pages, (access, flags))
    }

    /// Maps `bytes` bytes, rounded up to the system's pages, at a multiple of `align`, a power of
    /// two. They can be read and written.
    ///
    /// # Errors
    /// The system's error.
    pub fn map_memory(bytes: usize, align: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        Self::map_small_pages(bytes, align, access, MapFlags::PRIVATE)
    }

    /// Maps memory as [`Region::map_memory`] does. Nothing of it counts as memory before it is
    /// touched, unless the system counts strictly (`2` in `/proc/sys/vm/overcommit_memory`).
    ///
    /// # Errors
    /// The errors of [`Region::map_memory`].
    pub fn map_sparse(bytes: usize, align: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        Self::map_small_pages(bytes, align, access, flags)
    }

    /// Maps memory that is zero and can be read, and written where it was
    /// [committed](Self::commit_new). Only that counts towards limits of memory.
    ///
    /// # Errors
    /// The errors of [`Region::map_memory`].
    pub fn map_zeros(bytes: usize, align: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        Self::map_small_pages(bytes, align, ProtFlags::READ, flags)
    }

    /// Maps addresses only, which never count as memory. They are usable where they were
    /// [committed](Self::commit).
    ///
    /// # Errors
    /// The errors of [`Region::map_memory`].
    pub fn map_addresses(bytes: usize, align: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        Self::map_small_pages(bytes, align, ProtFlags::empty(), flags)
    }

    /// Maps `bytes` bytes for ever, zero throughout, as [`Region::map_sparse`] does.
    ///
    /// # Errors
    /// The errors of [`Region::map_memory`].
    pub fn map_for_ever(bytes: usize) -> io::Result<&'static mut [MaybeUninit<u8>]> {
        // SAFETY: a new mapping, which can be read and written, and which nobody else knows of.
        let memory = unsafe { Self::map_sparse(bytes, 1)?.for_ever() };
        Ok(&mut memory[..bytes])
    }

    fn map_small_pages(
        bytes: usize,
        align: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        let page_bytes = crate::page_bytes();
        let bytes = bytes.checked_next_multiple_of(page_bytes);
        let bytes = bytes.ok_or(Errno::NOMEM)?;
        let pages = (page_bytes, Huge::No);
        Ok(Self::map_with(bytes, align, pages, (access, flags))?)
    }

    /// Maps more than needed where the system's own alignment does not suffice, and cuts both ends
    /// off.
    fn map_with(
        bytes: usize,
        align: usize,
        (page_bytes, huge): (usize, Huge),
        (access, flags): (ProtFlags, MapFlags),
    ) -> Result<Self, Errno> {
        if !align.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let spare = align.saturating_sub(page_bytes);
        let mapped = bytes.checked_add(spare).ok_or(Errno::NOMEM)?;
        // SAFETY: without MAP_FIXED the system chooses a place where nothing is mapped. So no
        // memory in use is changed.
        let start = unsafe { mmap_anonymous(null_mut(), mapped, access, flags) };
        // The system never chooses a mapping at address 0.
        let start = NonNull::new(start?.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let head = start.addr().get().next_multiple_of(align) - start.addr().get();
        // SAFETY: `mapped-while-alive`: both ends are whole pages of the mapping above, no more
        // than `spare` bytes in front. Nobody else knows of them.
        let start = unsafe {
            unmap(start, head);
            let start = start.add(head);
            unmap(start.add(bytes), spare - head);
            start
        };
        Ok(Self {
            start,
            bytes,
            page_bytes,
            huge,
        })
    }

    /// Returns the first byte. The memory stays mapped for ever, or until it is a region again.
    #[must_use = "the memory is lost with its address"]
    pub fn leak(self) -> NonNull<u8> {
        ManuallyDrop::new(self).start
    }

    /// Keeps the memory for ever.
    ///
    /// # Safety
    /// All of it can be read and written, and nobody else uses it.
    #[must_use = "the memory is lost with its address"]
    pub unsafe fn for_ever(self) -> &'static mut [MaybeUninit<u8>] {
        let bytes = self.bytes;
        // SAFETY: `mapped-while-alive`, and from now on for ever. The rest is the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.leak().as_ptr().cast(), bytes) }
    }

    /// Makes a region again.
    ///
    /// # Safety
    /// So many bytes from there on, rounded up to the system's pages, are a mapping that belongs to
    /// nobody else: it was [leaked](Self::leak), or moved there since.
    #[must_use = "it is unmapped as soon as this is dropped"]
    pub unsafe fn from_leaked(start: NonNull<u8>, bytes: usize) -> Self {
        let page_bytes = crate::page_bytes();
        Self {
            start,
            bytes: bytes.next_multiple_of(page_bytes),
            page_bytes,
            huge: Huge::No,
        }
    }

    /// Returns the first byte. Pointers made from it are valid as long as the region lives.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn huge(&self) -> Huge {
        self.huge
    }

    /// Returns the address of the byte at `offset`, which is at most the region's length.
    #[inline]
    #[must_use]
    pub fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.bytes);
        let address = self.start.addr().saturating_add(offset);
        self.start.with_addr(address)
    }

    /// Asks for transparent huge pages wherever they fit.
    pub(crate) fn advise_huge(&self) -> Result<(), Errno> {
        let start = self.start.as_ptr().cast();
        // SAFETY: `mapped-while-alive`: the bytes are this region's. The advice changes no
        // contents.
        unsafe { madvise(start, self.bytes, Advice::LinuxHugepage) }
    }

    /// Asks for transparent huge pages wherever they fit in a part, or that there be none. What is
    /// there stays as it is.
    ///
    /// # Errors
    /// [`PartError`]; [`PartError::Refused`] also where the kernel has none
    /// (`CONFIG_TRANSPARENT_HUGEPAGE`). Where it is set to give none, nothing happens.
    pub fn want_huge(&self, part: Range<usize>, wanted: bool) -> Result<(), PartError> {
        let advice = match wanted {
            true => Advice::LinuxHugepage,
            false => Advice::LinuxNoHugepage,
        };
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive`: the bytes are this region's. The advice changes no
            // contents.
            unsafe { madvise(start, bytes, advice) }
        })
    }

    /// Leaves the region out of core dumps, but for what is [put in](Self::put_into_dumps). The
    /// system's own have no addresses that are only reserved anyway; those of debuggers (gdb's
    /// `gcore`) have zeros for all of them. A system that refuses this dumps all.
    #[must_use]
    pub fn not_in_dumps(self) -> Self {
        let start = self.start.as_ptr().cast();
        // SAFETY: `mapped-while-alive`: the bytes are this region's. The advice changes no
        // contents.
        let _ = unsafe { madvise(start, self.bytes, Advice::LinuxDontDump) };
        self
    }

    /// Has core dumps have a part again.
    ///
    /// # Errors
    /// [`PartError`].
    pub fn put_into_dumps(&self, part: Range<usize>) -> Result<(), PartError> {
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive`: the bytes are this region's. The advice changes no
            // contents.
            unsafe { madvise(start, bytes, Advice::LinuxDoDump) }
        })
    }

    /// Makes a part readable and writable; its contents stay. `part` is in bytes from the start,
    /// and begins and ends at a page boundary.
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
            // SAFETY: `mapped-while-alive`: the bytes are this region's. Allowing more takes
            // nothing from anybody.
            unsafe { mprotect(start, bytes, access) }
        })
    }

    /// Makes a part usable that was never committed, like [`Region::commit`]. Where a filter of
    /// system calls refuses the change, the part is mapped anew.
    ///
    /// # Errors
    /// [`PartError`].
    ///
    /// # Safety
    /// No byte of the part was ever written to.
    pub unsafe fn commit_new(&self, part: Range<usize>) -> Result<(), PartError> {
        self.change(part, |start, bytes| {
            let access = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: `mapped-while-alive`: the bytes are this region's, and by the caller's
            // promise they are zero, as those of a new mapping.
            unsafe { mprotect(start, bytes, access).or_else(|errno| map_anew(start, bytes, errno)) }
        })
    }

    /// Gives the memory of a part back to the system. The part stays usable. (Where a filter of
    /// system calls refuses [`Release::Now`], the part is mapped anew.)
    ///
    /// # Errors
    /// [`PartError`].
    ///
    /// # Safety
    /// It is committed. Nobody relies on its contents, and nobody has a reference to it.
    pub unsafe fn release(&self, part: Range<usize>, how: Release) -> Result<(), PartError> {
        self.not_explicit()?;
        let advice = match how {
            Release::Now => Advice::LinuxDontNeed,
            Release::Lazily => Advice::LinuxFree,
        };
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive`: the bytes are this region's. The caller promises that
            // their contents may go.
            unsafe {
                madvise(start, bytes, advice).or_else(|errno| match (how, errno) {
                    (Release::Now, Errno::INVAL) => release_locked(start, bytes),
                    (Release::Now, _) => map_anew(start, bytes, errno),
                    (Release::Lazily, _) => Err(errno),
                })
            }
        })
    }

    /// Gives a part back with its addresses, which may be others' from then on.
    ///
    /// # Errors
    /// [`PartError`].
    ///
    /// # Safety
    /// Nobody uses the part any more, nor anything of this region in it; and the region is never
    /// dropped.
    pub unsafe fn give_up(&self, part: Range<usize>) -> Result<(), PartError> {
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive` ends here for the part, by the caller's promise.
            unsafe { munmap(start, bytes) }
        })
    }

    /// Gets a part back that was [given up](Self::give_up): zeros that can be read, or addresses
    /// alone. They are usable where they are committed again, and in no core dump.
    ///
    /// # Errors
    /// [`PartError`]; [`PartError::Refused`] also where somebody else has mapped anything there.
    pub fn regain(&self, part: Range<usize>, can_be_read: bool) -> Result<(), PartError> {
        self.change(part, |start, bytes| {
            let access = match can_be_read {
                true => ProtFlags::READ,
                false => ProtFlags::empty(),
            };
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
            // SAFETY: nothing is mapped there that this could replace.
            let mapped = unsafe { mmap_anonymous(start, bytes, access, flags) }?;
            if mapped == start {
                // SAFETY: just mapped. The advice changes no contents.
                let _ = unsafe { madvise(start, bytes, Advice::LinuxDontDump) };
                return Ok(());
            }
            // An old system, which takes the address for a hint.
            // SAFETY: just mapped, and nobody knows of it.
            unsafe { munmap(mapped, bytes) }?;
            Err(Errno::EXIST)
        })
    }

    /// Gives the memory of a part back and keeps only its addresses.
    ///
    /// # Errors
    /// [`PartError`].
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn withdraw(&self, part: Range<usize>) -> Result<(), PartError> {
        self.not_explicit()?;
        self.change(part, |start, bytes| {
            // SAFETY: `mapped-while-alive`: the bytes are this region's. The caller promises that
            // nobody uses them.
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

    /// Checks that `part` lies in the region on page boundaries, and makes the system call unless
    /// it is empty.
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
        // SAFETY: `mapped-while-alive` ends here. Holders of raw pointers into the region promised
        // not to use them longer than it lives.
        unsafe { unmap(self.start, self.bytes) };
    }
}

/// Gives memory back of which some is locked (`mlock`), as Linux 5.18 and later can. It stays
/// locked when it is used again.
///
/// # Errors
/// [`Errno::INVAL`], if the system cannot.
///
/// # Safety
/// The bytes are whole pages of a mapping, and nobody relies on their contents.
#[cold]
unsafe fn release_locked(start: *mut c_void, bytes: usize) -> Result<(), Errno> {
    const DONTNEED_LOCKED: i32 = 24;
    // SAFETY: passed on.
    let done = keeping_errno(|| unsafe { libc::madvise(start, bytes, DONTNEED_LOCKED) });
    if done == 0 { Ok(()) } else { Err(Errno::INVAL) }
}

/// Replaces a part of a mapping by a new one that can be read and written, if `errno` is that of a
/// call that the process may not make.
///
/// # Errors
/// `errno`, if it is another one, or that of the system.
///
/// # Safety
/// The bytes are whole pages of a mapping, and nobody relies on their contents.
#[cold]
unsafe fn map_anew(start: *mut c_void, bytes: usize, errno: Errno) -> Result<(), Errno> {
    if !matches!(errno, Errno::PERM | Errno::ACCESS | Errno::NOSYS) {
        return Err(errno);
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: passed on.
    unsafe { mmap_anonymous(start, bytes, access, flags) }.map(drop)
}

/// # Safety
/// The bytes are a mapping, or whole pages of one, that nobody uses any more.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        let start = start.as_ptr().cast();
        // This fails only if a mapping would be split (the system merges neighbours into one) and
        // the process may have no more mappings. Then the addresses are lost, and the memory alone
        // goes back.
        //
        // SAFETY: passed on, both.
        unsafe {
            if munmap(start, bytes).is_err() {
                let _ = madvise(start, bytes, Advice::LinuxDontNeed);
            }
        }
    }
}
