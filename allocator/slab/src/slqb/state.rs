//! The state of the design: what each CPU and each node has of each cache.

use core::fmt;

use brickyard_sync::{AtomicU32, RawLock};

use super::links::Encoding;
use super::lists::{CpuState, List, NodeState};
use crate::layout::CacheId;

/// The state of the design, in the caller's memory: 384 bytes a cache for each CPU and each node.
pub struct Slqb<'m, K> {
    /// CPU by CPU, cache by cache.
    pub(super) cpus: &'m [CpuState<K>],
    /// Node by node, cache by cache.
    pub(super) nodes: &'m [NodeState<K>],
    /// Of one CPU or node.
    pub(super) caches: usize,
    pub(super) encoding: Encoding,
}

impl<K> fmt::Debug for Slqb<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slqb").finish_non_exhaustive()
    }
}

impl<'m, K: RawLock> Slqb<'m, K> {
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
