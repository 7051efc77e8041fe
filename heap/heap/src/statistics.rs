//! What the heap holds at the moment, as numbers.
//!
//! Nothing is counted on the fast paths for this: what lies in queues is read off them while their
//! CPUs go on. So the numbers are exact while nobody allocates or frees, and estimates otherwise.

use brickyard_slab::CacheNumbers;
use brickyard_slab::sizes::process::SIZES;

use crate::instance::{INSTANCE, built, enter};
use crate::sampling;

/// What the heap holds, in bytes where nothing else is said.
///
/// Objects count with the size that they have, which is that of their slab and not what was asked
/// for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Pages in use, by slabs and runs. Guarded pages (`BRICKYARD_SAMPLE`) count as runs, and so do
    /// pages that the run of an object above 32 KiB has more than the object, by an eighth at most.
    pub pages: usize,
    /// Pages of slabs, those of queues included.
    pub slabs: usize,
    /// Large blocks: mappings of their own.
    pub large: usize,
    /// The number of large blocks.
    pub large_blocks: usize,
    /// The most bytes of large blocks that there were.
    pub large_most: usize,
    /// The most large blocks that there were.
    pub large_blocks_most: usize,
    /// Free memory that has not gone back to the system: pages, and mappings of freed large blocks.
    pub idle: usize,
    /// Memory of the span that can be used so far: no more of its pages were ever in use.
    pub usable: usize,
    /// The addresses of the span, which slabs and runs cannot exceed.
    pub span: usize,
    /// Every size of objects, ascending.
    pub sizes: [SizeStatistics; SIZES.len()],
}

/// What the heap holds of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SizeStatistics {
    /// Bytes of an object.
    pub size: usize,
    /// The number of objects in use.
    pub in_use: usize,
    /// The number of free objects that lie in queues, of CPUs and between them.
    pub queued: usize,
    /// The number of objects that its slabs have, in use or free.
    pub objects: usize,
    /// Bytes of its slabs.
    pub slabs: usize,
}

/// Those of a heap that is not built.
impl Default for Statistics {
    fn default() -> Self {
        Self {
            pages: 0,
            slabs: 0,
            large: 0,
            large_blocks: 0,
            large_most: 0,
            large_blocks_most: 0,
            idle: 0,
            usable: 0,
            span: 0,
            sizes: SIZES.map(|size| SizeStatistics {
                size: size as usize,
                ..SizeStatistics::default()
            }),
        }
    }
}

impl Statistics {
    /// Returns the bytes of objects in use.
    #[must_use]
    pub fn objects(&self) -> usize {
        bytes(self.sizes.iter().map(|of| (of.in_use, of.size)))
    }

    /// Returns the bytes of free objects in queues.
    #[must_use]
    pub fn queued(&self) -> usize {
        bytes(self.sizes.iter().map(|of| (of.queued, of.size)))
    }

    /// Returns the bytes of runs: blocks of whole pages, of up to 2 MiB.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.pages.saturating_sub(self.slabs)
    }

    /// Adds what caches hold. The first is the cache of sheaves, the queues themselves.
    pub(crate) fn add_caches(&mut self, mut caches: impl Iterator<Item = CacheNumbers>) {
        self.slabs = caches.next().map_or(0, |sheaves| sheaves.bytes() as usize);
        for (of, numbers) in self.sizes.iter_mut().zip(caches) {
            *of = SizeStatistics {
                size: numbers.size as usize,
                in_use: numbers.in_use().min(numbers.objects()) as usize,
                queued: numbers.queued.min(numbers.out) as usize,
                objects: numbers.objects() as usize,
                slabs: numbers.bytes() as usize,
            };
            self.slabs += of.slabs;
        }
    }

    /// Returns the bytes that the program uses: objects, runs and large blocks.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.objects() + self.runs() + self.large
    }

    /// Returns the bytes that the heap holds for the program, in use or free. Its tables are not
    /// among them.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.pages + self.idle + self.large
    }
}

/// Returns the bytes of so many objects of each size. What is read of another process may be
/// anything.
fn bytes(counts: impl Iterator<Item = (usize, usize)>) -> usize {
    counts.fold(0, |sum: usize, (count, size)| {
        sum.saturating_add(count.saturating_mul(size))
    })
}

/// Returns statistics of the heap; zeros before its first use. Takes the locks of every size once,
/// and looks at the queues of every CPU. While another thread forks, and takes long, sizes are not
/// told apart, and the bytes of large blocks are told without their number.
#[must_use]
pub fn statistics() -> Statistics {
    let Some(heap) = built() else {
        return Statistics::default();
    };
    let inside = enter(heap);
    let mut statistics = Statistics {
        usable: heap.span.usable_bytes(),
        span: heap.span.bytes(),
        ..Statistics::default()
    };
    statistics.large = INSTANCE.large.bytes();
    statistics.idle = heap.span.idle_bytes() + INSTANCE.large.idle_bytes();
    [statistics.large_most, statistics.large_blocks_most] = INSTANCE.large.most();
    statistics.pages = heap.span.bytes_in_use();
    if inside.is_none() {
        return statistics;
    }
    statistics.add_caches(heap.slabs.numbers());
    statistics.large_blocks = INSTANCE.large.blocks();
    // Last, so that pages taken meanwhile are not missing among those of slabs.
    statistics.pages = heap.span.bytes_in_use().max(statistics.slabs);
    statistics.pages += sampling::guarded_bytes();
    statistics
}
