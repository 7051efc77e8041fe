//! Statistics of a cache, as numbers and as a line of slabinfo.
//!
//! Nothing is counted where an object is handed out or taken back without a lock: a count there
//! would cost as much as the work. What is counted happens under locks that are held anyway. What
//! lies in queues is read off them when somebody asks, while their CPUs go on. So `queued` and what
//! follows from it are estimates. Hits are counted by a [`Local`](crate::Local) that counts
//! ([`Counted`](crate::Counted)), or by a design that has its queues to itself.

use core::fmt;

use crate::cache_info::CacheInfo;
use crate::pages::Tables;

/// Statistics of a cache. They are sums over all CPUs and nodes, taken at slightly different
/// moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheNumbers {
    /// Its name.
    pub name: &'static str,
    /// Bytes of an object.
    pub size: u64,
    /// Bytes from one object to the next.
    pub stride: u64,
    /// Objects of a slab.
    pub per_slab: u64,
    /// Pages of a slab.
    pub pages_per_slab: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Slabs.
    pub slabs: u64,
    /// Slabs with free objects. In the default design that includes those of which no object was
    /// ever taken.
    pub partial_slabs: u64,
    /// Objects that are not in slabs: in use, or in queues.
    pub out: u64,
    /// Free objects in queues.
    pub queued: u64,
    /// Objects given out by a CPU without a lock; `None` where that is not counted.
    pub hits: Option<u64>,
    /// Objects taken back by a CPU without a lock; `None` where that is not counted.
    pub free_hits: Option<u64>,
    /// Allocations that a CPU could not serve from what it had: they took a lock.
    pub misses: u64,
    /// Frees that a CPU had no room for: they took a lock.
    pub free_misses: u64,
    /// Times that a queue of free objects was taken from those that CPUs share: by a CPU that had
    /// none, or to be emptied.
    pub claims: u64,
    /// Times that a queue of free objects was put there.
    pub stored: u64,
    /// Times that objects of a queue were put back into slabs.
    pub flushes: u64,
    /// Objects put back into slabs.
    pub flushed: u64,
    /// Objects freed on a CPU of another node, or, where pages have [homes](crate::Homes), away
    /// from them, as far as they went through a queue.
    pub remote_frees: u64,
    /// Objects taken out of slabs.
    pub filled: u64,
    /// Slabs made.
    pub slabs_new: u64,
    /// Slabs whose pages were given back.
    pub slabs_gone: u64,
    /// Frees that turned out bad when they reached the slab.
    pub refused: u64,
}

/// Bytes of a cache that no object can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Waste {
    /// Around objects: alignment, and what checks add.
    pub around: u64,
    /// At the ends of slabs; colours lie in it.
    pub ends: u64,
    /// In the tables of pages, for the pages of its slabs.
    pub tables: u64,
}

impl Waste {
    /// Returns the sum of all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.around + self.ends + self.tables
    }
}

impl CacheNumbers {
    pub(crate) fn of(info: &CacheInfo, page_bytes: usize) -> Self {
        Self {
            name: info.spec.name,
            size: info.spec.size as u64,
            stride: u64::from(info.geometry.stride),
            per_slab: u64::from(info.geometry.objects),
            pages_per_slab: u64::from(info.geometry.pages),
            page_bytes: page_bytes as u64,
            ..Self::default()
        }
    }

    /// Returns how many objects its slabs have, in use or free.
    #[must_use]
    pub const fn objects(&self) -> u64 {
        self.slabs * self.per_slab
    }

    /// Returns how many objects are in use. Exact while no CPU uses the cache. Objects that were
    /// left out as damaged count as in use.
    #[must_use]
    pub const fn in_use(&self) -> u64 {
        self.out.saturating_sub(self.queued)
    }

    /// Returns the bytes of its slabs.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.slabs * self.pages_per_slab * self.page_bytes
    }

    /// Returns the bytes that no object can use, of [`CacheNumbers::bytes`] and of the tables
    /// beside them.
    #[must_use]
    pub const fn waste(&self) -> Waste {
        let table = (Tables::bytes(1) - Tables::bytes(0)) as u64;
        Waste {
            around: self.objects() * (self.stride - self.size),
            ends: self.bytes() - self.objects() * self.stride,
            tables: self.slabs * self.pages_per_slab * table,
        }
    }
}

/// One line of slabinfo, as Linux prints it, without the line's end.
impl fmt::Display for CacheNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<17} {:>6} {:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {:>6} {:>6} {:>6}",
            self.name,
            self.in_use(),
            self.objects(),
            self.stride,
            self.per_slab,
            self.pages_per_slab,
            // Nothing can be tuned. Every slab counts as active, as in Linux's own slabinfo since
            // SLUB.
            0,
            0,
            0,
            self.slabs,
            self.slabs,
            0
        )
    }
}
