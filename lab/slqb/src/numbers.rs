//! What is counted of this design alone, beside what [`CacheNumbers`](brickyard_slab::CacheNumbers)
//! has.

/// What is counted of a cache. Sums over all CPUs and nodes, of slightly different moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlqbNumbers {
    /// Objects in the queues that were taken.
    pub claimed: u64,
    /// Objects among the flushed ones that were of other lists' slabs.
    pub flushed_remote: u64,
    /// Times that a CPU sent off what it had for another list.
    pub outgoing_flushes: u64,
    /// Objects sent off so.
    pub outgoing_flushed: u64,
    /// Slabs without a free object that got one back.
    pub slabs_partial: u64,
    /// Free objects left out for good, since somebody wrote over the links between them.
    pub lost: u64,
}
