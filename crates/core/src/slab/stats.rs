//! What is counted of a cache, as numbers and as the text of slabinfo.

use core::fmt;

use super::kind::Kind;

/// What is counted of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// Slabs.
    pub slabs: u64,
    /// Slabs with objects in use and free ones.
    pub partial_slabs: u64,
    /// Objects that are not in slabs: in use, or in queues.
    pub out: u64,
    /// Times that a CPU took a queue of free objects which others had filled.
    pub claims: u64,
    /// Times that a CPU left a queue of free objects to others.
    pub stored: u64,
    /// Times that objects were put back into slabs.
    pub flushes: u64,
    /// Objects put back into slabs.
    pub flushed: u64,
    /// Objects taken out of slabs.
    pub filled: u64,
    /// Slabs made.
    pub slabs_new: u64,
    /// Slabs whose pages were given back.
    pub slabs_gone: u64,
    /// Frees that turned out bad when they reached the slab.
    pub refused: u64,
}

impl CacheNumbers {
    pub(super) fn of(kind: &Kind) -> Self {
        Self {
            name: kind.spec.name,
            size: kind.spec.size as u64,
            stride: u64::from(kind.geometry.stride),
            per_slab: u64::from(kind.geometry.objects),
            pages_per_slab: kind.geometry.order.frames() as u64,
            ..Self::default()
        }
    }
}

/// The text of slabinfo.
#[derive(Debug, Clone, Copy)]
pub struct SlabInfo;

impl fmt::Display for SlabInfo {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// The name of a general size's cache.
pub(super) const fn general_name(_size: u32) -> &'static str {
    "general"
}
