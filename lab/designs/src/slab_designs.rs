//! What the designs for slabs have in common: a state of each cache for each CPU and each node, in
//! the caller's memory; callers that stay on their CPU; calls that go to a slow path.

#![allow(unsafe_code, reason = "who can be pinned is a promise")]

use core::mem::MaybeUninit;

use brickyard::Platform;
use brickyard_slab::design::Footprint;
use brickyard_slab::{CacheId, CacheSpec, Checks, Counted, Local, Pinned, SlabPlan};
use brickyard_sync::place;

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

/// Aligned to a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CacheLine<T>(pub(crate) T);

/// The states of all caches: a `C` for each CPU, an `N` for each node.
#[derive(Debug)]
pub(crate) struct CacheStates<'m, C, N> {
    /// Indexed by CPU, then cache.
    cpus: &'m [C],
    /// Indexed by node, then cache.
    nodes: &'m [N],
    /// How many caches each CPU and each node has a state for.
    caches: usize,
}

impl<'m, C, N> CacheStates<'m, C, N> {
    pub(crate) const FOOTPRINT: Footprint = Footprint {
        cpu: size_of::<C>(),
        node: size_of::<N>(),
        row: [0; 2],
        align: align_of::<C>() + align_of::<N>(),
    };

    /// Makes the states in the caller's memory; `None` if it is too small.
    pub(crate) fn new(
        plan: &SlabPlan,
        memory: &'m mut [MaybeUninit<u8>],
        cpu: impl FnMut() -> C,
        node: impl FnMut() -> N,
    ) -> Option<Self> {
        let caches = plan.numbers();
        let (cpus, rest) = place(memory, plan.cpus.checked_mul(caches)?, cpu)?;
        let (nodes, _) = place(rest, plan.nodes.checked_mul(caches)?, node)?;
        Some(Self {
            cpus,
            nodes,
            caches,
        })
    }

    /// Returns the state of a cache on a CPU; `None` for a CPU beyond the plan.
    #[inline(always)]
    pub(crate) fn cpu(&self, cpu: usize, cache: CacheId) -> Option<&'m C> {
        debug_assert!(usize::from(cache) < self.caches);
        self.cpus
            .get(cpu.checked_mul(self.caches)? + usize::from(cache))
    }

    /// Returns the state of a cache on a node; `None` if there is no such node.
    pub(crate) fn node(&self, node: usize, cache: CacheId) -> Option<&'m N> {
        self.nodes
            .get(node.checked_mul(self.caches)? + usize::from(cache))
    }

    /// Returns how many CPUs have a state of their own.
    pub(crate) const fn cpus(&self) -> usize {
        self.cpus.len() / self.caches
    }

    /// Returns the states of a cache on all CPUs.
    pub(crate) fn each_cpu(&self, cache: CacheId) -> impl Iterator<Item = &'m C> {
        (0..self.cpus()).filter_map(move |cpu| self.cpu(cpu, cache))
    }

    /// Returns the states of a cache on all nodes.
    pub(crate) fn each_node(&self, cache: CacheId) -> impl Iterator<Item = &'m N> {
        (0..self.nodes.len() / self.caches).filter_map(move |node| self.node(node, cache))
    }
}

/// Returns the bytes of a word for the link, where it may not be stored in the object: an object's
/// bytes last while it is free, or it is too small. Else 0.
pub(crate) fn bytes_for_link(spec: &CacheSpec) -> usize {
    let small = spec.size < size_of::<u64>() && !spec.checks.is_empty();
    let behind = spec.constructor.is_some() || spec.checks.has(Checks::POISON) || small;
    if behind { size_of::<u64>() } else { 0 }
}

/// The calls of a [`SlabDesign`](brickyard_slab::SlabDesign) that one call of its slow path serves,
/// made by a function such as `SlowPath::run`.
macro_rules! by_slow_path {
    ($($run:tt)+) => {
        fn miss<C: Caller>(
            &self,
            backend: &BackendOf<'m, Self>,
            info: &CacheInfo,
        ) -> Option<NonNull<u8>> {
            $($run)+(self, backend, info, |path| path.alloc::<C>(None))
        }

        fn miss_on<C: Caller>(
            &self,
            backend: &BackendOf<'m, Self>,
            info: &CacheInfo,
            node: usize,
        ) -> Option<NonNull<u8>> {
            $($run)+(self, backend, info, |path| path.alloc::<C>(Some(node)))
        }

        unsafe fn overflow<C: Caller>(
            &self,
            backend: &BackendOf<'m, Self>,
            info: &CacheInfo,
            object: NonNull<u8>,
        ) -> Result<(), FreeFault> {
            $($run)+(self, backend, info, |path| path.free::<C>(object))
        }

        fn drain<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
            $($run)+(self, backend, info, SlowPath::drain::<C>);
        }

        fn shrink<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo) {
            $($run)+(self, backend, info, SlowPath::shrink::<C>);
        }
    };
}

pub(crate) use by_slow_path;
