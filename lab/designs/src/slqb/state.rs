//! The state of the design: of each cache, for each CPU and each node.

#![allow(unsafe_code, reason = "who can be pinned is a promise")]

use core::marker::PhantomData;

use brickyard::Platform;
use brickyard_slab::{CacheId, Counted, Local, Pinned};
use brickyard_sync::{AtomicU32, RawLock, TicketLock};

use super::links::{Encoded, Encoding};
use super::lists::{CpuState, List, NodeState};

/// A [`Local`] that keeps callers on their CPU for whole sections.
///
/// # Safety
/// A caller between [`Platform::pin`] and [`Platform::unpin`] is alone on the CPU that `pin`
/// returned, but for interrupts that are not masked: the contract of [`Pinned::new`].
pub unsafe trait Pins: Local {}

// SAFETY: `Pinned::new` is unsafe: its caller has promised this.
unsafe impl<P: Platform> Pins for Pinned<P> {}
// SAFETY: it forwards `pin` and `unpin`.
unsafe impl<L: Pins> Pins for Counted<'_, L> {}

/// Piggin's queued slab allocator, as it was designed: see the [crate]. Usable only where callers
/// can be kept on their CPU ([`Pins`]). Its state is in the caller's memory, 384 bytes per cache
/// for each CPU and each node.
#[derive(Debug)]
pub struct Slqb2008<'m, S, L, K = TicketLock, F = Encoded> {
    /// Indexed by CPU, then cache.
    pub(super) cpus: &'m [CpuState<K>],
    /// Indexed by node, then cache.
    pub(super) nodes: &'m [NodeState<K>],
    /// How many caches each CPU and each node has a state for.
    pub(super) caches: usize,
    pub(super) encoding: Encoding<F>,
    /// A function type, so that the design is `Send` and `Sync` whatever `S` and `L` are.
    pub(super) over: PhantomData<fn() -> (S, L)>,
}

impl<'m, S, L, K: RawLock, F> Slqb2008<'m, S, L, K, F> {
    /// Returns the state of a cache on a CPU; `None` for a CPU beyond the plan.
    #[inline(always)]
    pub(super) fn cpu(&self, cpu: usize, cache: CacheId) -> Option<&'m CpuState<K>> {
        debug_assert!(usize::from(cache) < self.caches);
        self.cpus
            .get(cpu.checked_mul(self.caches)? + usize::from(cache))
    }

    /// Returns the state of a cache on a node; `None` if there is no such node.
    pub(super) fn node(&self, node: usize, cache: CacheId) -> Option<&'m NodeState<K>> {
        self.nodes
            .get(node.checked_mul(self.caches)? + usize::from(cache))
    }

    /// Returns how many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len() / self.caches
    }

    /// Returns how many CPUs have a state of their own.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len() / self.caches
    }

    /// Returns the number of a node's list. A CPU's list has the CPU's number; the nodes' follow.
    pub(super) fn node_owner(&self, node: usize) -> u32 {
        (self.cpus() + node) as u32
    }

    /// Returns the shared part of the list with this number, and its check flag.
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
