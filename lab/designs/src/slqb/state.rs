//! The state of the design: of each cache, for each CPU and each node.

use core::marker::PhantomData;

use brickyard_slab::CacheId;
use brickyard_sync::{AtomicU32, RawLock, TicketLock};

use crate::slab_designs::CacheStates;

use super::links::{Encoded, Encoding};
use super::lists::{CpuState, List, NodeState};

/// Piggin's queued slab allocator, as it was designed: see the [crate]. Usable only where callers
/// can be kept on their CPU ([`Pins`](super::Pins)). Its state is in the caller's memory, 384 bytes
/// per cache for each CPU and each node.
#[derive(Debug)]
pub struct Slqb2008<'m, S, L, K = TicketLock, F = Encoded> {
    pub(super) states: CacheStates<'m, CpuState<K>, NodeState<K>>,
    pub(super) encoding: Encoding<F>,
    /// A function type, so that the design is `Send` and `Sync` whatever `S` and `L` are.
    pub(super) over: PhantomData<fn() -> (S, L)>,
}

impl<'m, S, L, K: RawLock, F> Slqb2008<'m, S, L, K, F> {
    /// Returns the number of a node's list. A CPU's list has the CPU's number; the nodes' follow.
    pub(super) fn node_owner(&self, node: usize) -> u32 {
        (self.states.cpus() + node) as u32
    }

    /// Returns the shared part of the list with this number, and its check flag.
    pub(super) fn list(&self, owner: u32, cache: CacheId) -> Option<(&'m List<K>, &'m AtomicU32)> {
        let owner = owner as usize;
        match owner.checked_sub(self.states.cpus()) {
            None => {
                let state = self.states.cpu(owner, cache)?;
                Some((&state.list, &state.own.check))
            }
            Some(node) => {
                let state = self.states.node(node, cache)?;
                Some((&state.list, &state.own.0.unlocked().check))
            }
        }
    }
}
