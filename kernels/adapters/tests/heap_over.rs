//! The heap over frames that others use too, and with a lock of the kernel's own.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;

use brickyard::node::{Node, Nodes};
use brickyard::sync::{Shared, TicketLock};
use brickyard::{AnyZone, FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan};
use brickyard_adapters::{HeapError, HeapPlan, KernelHeap, Map, OnNode};

use crate::support::{Dice, Held, leaked};

type KernelZone = Zone<'static, OneCpu, Shared>;
type KernelNodes = Nodes<'static, KernelZone>;
type Over = OnNode<'static, 'static, KernelZone, brickyard::pressure::NoHooks>;

/// Frames by physical number, whose memory is mapped elsewhere: what a kernel's direct map is.
fn machine(frames: FrameRange) -> (&'static KernelNodes, Map) {
    let plan = ZonePlan::new(ZoneKind::Normal, frames, 1);
    let zone = Zone::new(&plan, OneCpu, leaked(KernelZone::bytes(&plan), 64)).unwrap();
    assert_eq!(zone.add(frames), Ok(frames.len()));
    let zones: &'static [KernelZone] = vec![zone].leak();
    let node: &'static [Node<'static, KernelZone>] = vec![Node::new(0, zones)].leak();
    let memory = leaked(frames.len() << 12, 2 << 20);
    let at = memory.as_mut_ptr().expose_provenance();
    let offset = at.wrapping_sub(frames.start.number() << 12);
    let map = Map {
        span: frames,
        offset,
    };
    (Box::leak(Box::new(Nodes::new(node))), map)
}

#[test]
fn a_heap_shares_the_kernels_nodes_with_everybody_else() {
    // Not aligned to a largest slab.
    let (nodes, map) = machine(FrameRange::new(0x8_0005, 0x8_1000));
    let map = Map {
        // A multiple of 128 KiB: the memory begins at a multiple of 2 MiB, less five pages.
        offset: map.offset + (5 << 12),
        ..map
    };
    // The last five frames have no memory then.
    let map = Map {
        span: FrameRange::new(0x8_0005, 0x8_0ffb),
        ..map
    };
    nodes.nodes()[0].zones()[0]
        .remove(FrameRange::new(0x8_0ffb, 0x8_1000))
        .unwrap();
    // SAFETY: one thread.
    let heap: &'static KernelHeap<OneCpu, TicketLock, Over> =
        Box::leak(Box::new(unsafe { KernelHeap::new(OneCpu) }));
    let plan = HeapPlan::new(1);
    let bytes = KernelHeap::<OneCpu, TicketLock, Over>::bytes_over(&plan, &map).unwrap();
    let metadata = leaked(bytes, 1);
    // SAFETY: the map is the memory's, which nobody else has; frames are freed by who holds them.
    let built = unsafe { heap.init_over(&plan, OnNode::new(nodes, 0), map, metadata) };
    assert_eq!(built, Ok(()));

    let page = Request::page(Mobility::Movable);
    let (mut objects, mut pages) = (Vec::new(), Vec::new());
    let mut dice = Dice::new(17);
    for step in 0..20_000_usize {
        let stamp = step as u8;
        match dice.below(4) {
            0 if objects.len() < 500 => {
                let bytes = 1 + dice.below([100, 5000, 60_000][step % 3]);
                let layout = Layout::from_size_align(bytes, 8).unwrap();
                // SAFETY: the layout is not empty.
                objects.push(Held::new(unsafe { heap.alloc(layout) }, layout, stamp));
            }
            1 if pages.len() < 500 => {
                let frame = nodes.alloc(0, &page).unwrap();
                let at = (frame.number() << 12).wrapping_add(map.offset);
                let at = core::ptr::with_exposed_provenance_mut(at);
                let layout = Layout::from_size_align(4096, 4096).unwrap();
                pages.push((frame, Held::new(at, layout, stamp)));
            }
            2 if !objects.is_empty() => {
                let old: Held = objects.swap_remove(dice.below(objects.len()));
                old.check(old.layout.size());
                // SAFETY: it is this caller's, taken with this layout.
                unsafe { heap.dealloc(old.pointer(), old.layout) };
            }
            _ if !pages.is_empty() => {
                let (frame, old) = pages.swap_remove(dice.below(pages.len()));
                old.check(4096);
                nodes.free(frame, Order::ZERO).unwrap();
            }
            _ => {}
        }
    }
    for old in objects {
        old.check(old.layout.size());
        // SAFETY: it is this caller's, taken with this layout.
        unsafe { heap.dealloc(old.pointer(), old.layout) };
    }
    for (frame, old) in pages {
        old.check(4096);
        nodes.free(frame, Order::ZERO).unwrap();
    }
    let slabs = heap.slabs().unwrap();
    slabs.drain();
    slabs.shrink();
    nodes.drain();
    let census = nodes.check().unwrap();
    let first = slabs.numbers().next().unwrap();
    let sheaves = (first.slabs * first.pages_per_slab) as usize;
    assert_eq!((census.allocated, heap.refused()), (sheaves, 0));
    assert_eq!(census.free + sheaves, 0xff6);
}

#[test]
fn a_map_that_slabs_cannot_use_is_refused() {
    type Heap = KernelHeap<OneCpu, TicketLock, Over>;
    let plan = HeapPlan::new(1);
    let bytes = |span, offset| Heap::bytes_over(&plan, &Map { span, offset });
    let span = FrameRange::new(32, 1024);
    assert!(bytes(span, 0).is_ok_and(|bytes| bytes > 992 * 65));
    assert!(bytes(span, 1 << 17).is_ok());
    let refused = [
        bytes(span, 4096),
        bytes(span, 7),
        bytes(FrameRange::new(0, 1024), 0),
        bytes(FrameRange::new(5, 1024), 0),
        bytes(FrameRange::new(64, 64), 0),
        bytes(FrameRange::new(32, 1 << 60), 0),
        bytes(FrameRange::new(32, 4096), 0_usize.wrapping_sub(1 << 17)),
    ];
    assert_eq!(refused, [Err(HeapError::Map); 7]);
    assert!(HeapError::Map.to_string().contains("128 KiB"));
    let (nodes, map) = machine(FrameRange::new(32, 1024));
    // SAFETY: one thread.
    let heap: &'static Heap = Box::leak(Box::new(unsafe { Heap::new(OneCpu) }));
    let needed = Heap::bytes_over(&plan, &map).unwrap();
    let short: &'static mut [MaybeUninit<u8>] = leaked(needed - 1, 64);
    // SAFETY: the map is the memory's.
    let built = unsafe { heap.init_over(&plan, OnNode::new(nodes, 0), map, short) };
    assert_eq!(built, Err(HeapError::TooSmall { needed }));
    assert_eq!(nodes.nodes()[0].zones()[0].managed_frames(), 992);
}

#[cfg(feature = "lock_api")]
mod own_lock {
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use brickyard::sync::LockApi;

    use super::*;

    static LOCKED: AtomicUsize = AtomicUsize::new(0);

    /// A kernel's spin lock, which counts how often it was taken.
    struct Spin(AtomicBool);

    // SAFETY: who turned the flag on holds the lock until it turns it off; acquire and release.
    unsafe impl lock_api::RawMutex for Spin {
        #[allow(
            clippy::declare_interior_mutable_const,
            reason = "the trait's pattern to make locks from"
        )]
        const INIT: Self = Self(AtomicBool::new(false));
        type GuardMarker = lock_api::GuardNoSend;

        fn lock(&self) {
            while !self.try_lock() {
                core::hint::spin_loop();
            }
        }

        fn try_lock(&self) -> bool {
            let taken = !self.0.swap(true, Ordering::Acquire);
            LOCKED.fetch_add(taken.into(), Ordering::Relaxed);
            taken
        }

        unsafe fn unlock(&self) {
            self.0.store(false, Ordering::Release);
        }

        fn is_locked(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_kernels_own_lock_is_the_heaps() {
        // SAFETY: one thread.
        let heap: &'static KernelHeap<OneCpu, LockApi<Spin>> =
            Box::leak(Box::new(unsafe { KernelHeap::new(OneCpu) }));
        let memory = leaked(4 << 20, 4096);
        assert_eq!(heap.init(&HeapPlan::new(1), memory), Ok(()));
        let built = LOCKED.load(Ordering::Relaxed);
        let layout = Layout::from_size_align(64, 8).unwrap();
        let take = |stamp| {
            // SAFETY: the layout is not empty.
            Held::new(unsafe { heap.alloc(layout) }, layout, stamp)
        };
        let held: Vec<_> = (0..5000).map(|i| take(i as u8)).collect();
        let taken = LOCKED.load(Ordering::Relaxed);
        // Once for many objects, and only by this lock.
        assert!((10..500).contains(&(taken - built)), "{built} {taken}");
        for old in held {
            old.check(64);
            // SAFETY: it is this caller's, taken with this layout.
            unsafe { heap.dealloc(old.pointer(), layout) };
        }
        assert_eq!(heap.refused(), 0);
    }
}
