//! The state of the design: what each CPU and each node has of each cache.

#![allow(unsafe_code, reason = "who can be pinned is a promise")]

use core::marker::PhantomData;

use brickyard::Platform;
use brickyard_slab::{CacheId, Counted, Local, Pinned};
use brickyard_sync::{AtomicU32, RawLock, TicketLock};

use super::links::{Encoded, Encoding};
use super::lists::{CpuState, List, NodeState};

/// A way to CPUs by which whole sections are a caller's own.
///
/// # Safety
/// Whoever is between [`Platform::pin`](brickyard::Platform::pin) and
/// [`Platform::unpin`](brickyard::Platform::unpin) is alone on the CPU that `pin` told, but for
/// interrupts that are not masked: as [`Pinned::new`] asks.
pub unsafe trait Pins: Local {}

// SAFETY: what who made it has promised.
unsafe impl<P: Platform> Pins for Pinned<P> {}
// SAFETY: it passes pins on.
unsafe impl<L: Pins> Pins for Counted<'_, L> {}

/// Piggin's queued slab allocator, as it was designed: see the [crate](crate). Only where callers
/// can be kept on their CPU ([`Pins`]). Its state lies in the caller's memory, 384 bytes a cache
/// for each CPU and each node.
#[derive(Debug)]
pub struct Slqb2008<'m, S, L, K = TicketLock, F = Encoded> {
    /// CPU by CPU, cache by cache.
    pub(super) cpus: &'m [CpuState<K>],
    /// Node by node, cache by cache.
    pub(super) nodes: &'m [NodeState<K>],
    /// Of one CPU or node.
    pub(super) caches: usize,
    pub(super) encoding: Encoding<F>,
    /// A function type, so that it is `Send` and `Sync` whatever these are.
    pub(super) over: PhantomData<fn() -> (S, L)>,
}

impl<'m, S, L, K: RawLock, F> Slqb2008<'m, S, L, K, F> {
    /// What a CPU has of a cache, if it has a row.
    #[inline(always)]
    pub(super) fn cpu(&self, cpu: usize, cache: CacheId) -> Option<&'m CpuState<K>> {
        debug_assert!(usize::from(cache) < self.caches);
        self.cpus
            .get(cpu.checked_mul(self.caches)? + usize::from(cache))
    }

    /// What a node has of a cache.
    pub(super) fn node(&self, node: usize, cache: CacheId) -> Option<&'m NodeState<K>> {
        self.nodes
            .get(node.checked_mul(self.caches)? + usize::from(cache))
    }

    /// Nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len() / self.caches
    }

    /// CPUs with a row.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len() / self.caches
    }

    /// The number of a node's lists: behind those of the CPUs, whose numbers are the CPUs'.
    pub(super) fn node_owner(&self, node: usize) -> u32 {
        (self.cpus() + node) as u32
    }

    /// What others reach of the list with this number, and its check flag.
    pub(super) fn list(&self, owner: u32, cache: CacheId) -> Option<(&'m List<K>, &'m AtomicU32)> {
        let owner = owner as usize;
        match owner.checked_sub(self.cpus()) {
            None => {
                let state = self.cpu(owner, cache)?;
                Some((&state.list, &state.own.check))
            }
            Some(node) => {
                let state = self.node(node, cache)?;
                Some((&state.list, &state.own.0.unlocked().check))
            }
        }
    }
}
