//! Memory of this process: asks for huge pages in it, as any user may, and gives it back page by
//! page. All of it is returned to the kernel when the process ends, however it does.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io_uring::{
    IoringRegisterOp, io_uring_params, io_uring_register, io_uring_setup, iovec,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::trial::{Outcome, TrialError};

/// Buffers that are registered in one call: the kernel's limit.
pub const MOST_BUFFERS: usize = 1 << 14;

/// Private anonymous memory, zeroed by the kernel when it is first touched.
///
/// Invariant `mapping`: `start` is the address of a mapping of `bytes` bytes that this value made,
/// and that nothing else unmaps or refers to.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: by invariant `mapping` it owns its memory, which any thread may use.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps so many bytes.
    ///
    /// # Errors
    /// If there are no addresses for it, or it would exceed a limit.
    pub fn new(bytes: usize) -> Result<Self, TrialError> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address, and without MAP_FIXED, no existing mapping is touched.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) };
        let start = start.map_err(|error| {
            TrialError::failed(format!("map {} MiB", bytes >> 20))(error.into())
        })?;
        let start = NonNull::new(start.cast())
            .ok_or_else(|| TrialError::failed("map memory")(io::ErrorKind::OutOfMemory.into()))?;
        Ok(Self { start, bytes })
    }

    /// Returns its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes a byte at an offset.
    ///
    /// # Panics
    /// Beyond the end.
    pub fn touch(&mut self, offset: usize) {
        assert!(offset < self.bytes, "{offset} is beyond {}", self.bytes);
        // SAFETY: by invariant `mapping`, and the offset is inside.
        unsafe { self.start.add(offset).write_volatile(1) };
    }

    /// Gives pages back to the kernel, which are zero when they are touched again.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn give_back(&mut self, offset: usize, bytes: usize) -> io::Result<()> {
        self.advise(offset, bytes, Advice::LinuxDontNeed)
    }

    /// Lets the kernel use huge pages here, or keeps it from that.
    ///
    /// # Errors
    /// If the kernel has none.
    pub fn huge(&mut self, huge: bool) -> io::Result<()> {
        let advice = if huge {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        self.advise(0, self.bytes, advice)
    }

    fn advise(&mut self, offset: usize, bytes: usize, advice: Advice) -> io::Result<()> {
        let fits = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes);
        if !fits {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: by invariant `mapping`, and the range is inside. Nothing refers to the memory.
        unsafe { madvise(self.start.add(offset).as_ptr().cast(), bytes, advice)? };
        Ok(())
    }

    /// Pins the page at each of these offsets, until the returned descriptor is closed.
    ///
    /// # Errors
    /// If io_uring is not allowed here, an offset is outside, or there are more than
    /// [`MOST_BUFFERS`].
    pub fn pin(&self, offsets: &[usize], page: usize) -> io::Result<OwnedFd> {
        let inside = |&offset: &usize| {
            offset
                .checked_add(page)
                .is_some_and(|end| end <= self.bytes)
        };
        if offsets.len() > MOST_BUFFERS || !offsets.iter().all(inside) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let buffer = |&offset: &usize| iovec {
            // SAFETY: by invariant `mapping`, and the offset is inside.
            iov_base: unsafe { self.start.add(offset) }.as_ptr().cast::<c_void>(),
            iov_len: page,
        };
        let buffers: Vec<_> = offsets.iter().map(buffer).collect();
        let mut parameters = io_uring_params::default();
        // SAFETY: the parameters ask for a ring of the kernel's own memory, which is not mapped.
        let ring = unsafe { io_uring_setup(8, &mut parameters)? };
        let count = buffers.len();
        // SAFETY: the vector has `count` buffers, each inside the mapping. The kernel only pins
        // them, since no operation is ever submitted.
        unsafe {
            let op = IoringRegisterOp::RegisterBuffers;
            io_uring_register(&ring, op, buffers.as_ptr().cast(), count as u32)?;
        }
        Ok(ring)
    }

    /// Returns how much of it is in huge pages, in bytes, by `/proc/self/smaps`.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn in_huge_pages(&self) -> io::Result<u64> {
        let smaps = fs::read_to_string("/proc/self/smaps")?;
        let start = self.start.as_ptr().addr() as u64;
        Ok(anonymous_huge(&smaps, start, start + self.bytes as u64))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: by invariant `mapping`. An error leaves it mapped until the process ends.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Returns the sum of `AnonHugePages`, in bytes, of the mappings of a `smaps` between two
/// addresses.
fn anonymous_huge(smaps: &str, start: u64, end: u64) -> u64 {
    let mut inside = false;
    let mut sum = 0;
    for line in smaps.lines() {
        let range = line
            .split_whitespace()
            .next()
            .and_then(|word| word.split_once('-'));
        let address = |text| u64::from_str_radix(text, 16).ok();
        if let Some((low, high)) = range
            && let (Some(low), Some(high)) = (address(low), address(high))
        {
            inside = low < end && start < high;
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            let kib = rest.trim().trim_end_matches("kB").trim().parse::<u64>();
            sum += kib.unwrap_or(0) * 1024;
        }
    }
    sum
}

/// Asks for so many huge pages of `huge` bytes in memory of this process, until `stop` is true.
/// Whether the kernel compacts for them is up to `transparent_hugepage/defrag`.
///
/// # Errors
/// If the memory cannot be mapped, or the kernel has no transparent huge pages.
pub fn ask(blocks: u64, huge: usize, stop: impl Fn() -> bool) -> Result<Outcome, TrialError> {
    let bytes = usize::try_from(blocks)
        .ok()
        .and_then(|blocks| blocks.checked_add(1)?.checked_mul(huge));
    let bytes = bytes.ok_or_else(|| {
        TrialError::failed(format!("map {blocks} huge pages"))(io::ErrorKind::OutOfMemory.into())
    })?;
    let mut memory = Mapping::new(bytes)?;
    memory
        .huge(true)
        .map_err(TrialError::failed("use transparent huge pages"))?;
    let first = memory.start.as_ptr().addr().next_multiple_of(huge) - memory.start.as_ptr().addr();
    let began = Instant::now();
    let mut stopped = false;
    for block in 0..blocks as usize {
        stopped = stop();
        if stopped {
            break;
        }
        memory.touch(first + block * huge);
    }
    let took = began.elapsed();
    let in_huge = memory
        .in_huge_pages()
        .map_err(TrialError::failed("read /proc/self/smaps"))?;
    Ok(Outcome {
        asked: blocks,
        came: in_huge / huge as u64,
        took,
        stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      2048 kB
7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [anon:x]
AnonHugePages:      4096 kB
";

    #[test]
    fn huge_pages_of_the_mapping_alone_are_counted() {
        let at = |start, end| anonymous_huge(SMAPS, start, end) / 1024;
        assert_eq!(at(0x7f00_0000_0000, 0x7f00_0040_0000), 2048);
        assert_eq!(at(0x7f00_0020_0000, 0x7f00_0060_0000), 6144);
        assert_eq!(at(0x7f00_0080_0000, 0x7f00_0090_0000), 0);
        assert_eq!(anonymous_huge("AnonHugePages: nonsense", 0, u64::MAX), 0);
    }

    #[test]
    fn memory_is_given_back_page_by_page() {
        let page = rustix::param::page_size();
        let mut memory = Mapping::new(4 * page).unwrap();
        memory.touch(0);
        memory.touch(4 * page - 1);
        memory.give_back(page, page).unwrap();
        assert!(memory.give_back(page, 4 * page).is_err());
        assert!(memory.give_back(usize::MAX, 2).is_err());
    }

    #[test]
    fn huge_pages_of_own_memory_are_asked_for() {
        let outcome = ask(2, 2 << 20, || false).unwrap();
        assert_eq!(outcome.asked, 2);
        assert!(outcome.came <= 2, "{outcome:?}");
        assert_eq!(ask(2, 2 << 20, || true).unwrap().came, 0);
        assert!(ask(u64::MAX, 2 << 20, || false).is_err());
    }
}
