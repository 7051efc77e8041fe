//! Slabs over all zones of a machine: two nodes, of which one also has memory that slabs must not
//! use.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::node::{Node, Nodes};
use brickyard::pressure::NoHooks;
use brickyard::{AnyZone, FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan};
use brickyard_slab::{
    BuildError, CacheSpec, NodesPages, PageAsk, PageSource, Pinned, Sheafed, SlabPlan, Slabs,
    TaskOnly,
};

use crate::machine::{self, Machine};

/// The frames of a zone.
const EACH: usize = 64;
const FIRST: usize = 128;
const BLOCK: Order = Order::new(5);

type AZone = Zone<'static, Machine>;
type System = Nodes<'static, AZone, NoHooks>;

/// A zone without memory yet.
fn zone_of(machine: Machine, span: FrameRange, kind: ZoneKind) -> AZone {
    let plan = ZonePlan {
        max_order: BLOCK,
        page_block_order: BLOCK,
        ..ZonePlan::new(kind, span, 1)
    };
    machine::zone(&plan, machine)
}

/// Zone `place` of the machine's memory, all of it free.
fn zone(machine: Machine, place: usize, kind: ZoneKind) -> AZone {
    let start = FIRST + place * EACH;
    let span = FrameRange::new(start, start + EACH);
    let zone = zone_of(machine, span, kind);
    zone.add(span).unwrap();
    zone
}

/// Node 0 with DMA32 and Normal memory, node 1 with Normal and Movable memory.
fn machine() -> &'static System {
    let machine = Machine::new(FIRST, 4 * EACH);
    let kinds = [
        ZoneKind::Dma32,
        ZoneKind::Normal,
        ZoneKind::Normal,
        ZoneKind::Movable,
    ];
    let zones = (0..4).map(|place| zone(machine, place, kinds[place]));
    let (near, far) = zones.collect::<Vec<_>>().leak().split_at(2);
    let nodes = vec![Node::new(0, near), Node::new(7, far)];
    Box::leak(Box::new(Nodes::new(nodes.leak())))
}

fn source(nodes: &'static System) -> NodesPages<'static, AZone, NoHooks> {
    // SAFETY: the memory is leaked, mapped in one piece and aligned; only this test uses the nodes.
    unsafe { NodesPages::shared(nodes, 12) }.unwrap()
}

fn free(nodes: &System) -> usize {
    nodes.drain();
    nodes.zones().map(AnyZone::free_frames).sum()
}

/// What was taken with this order goes back, and all is free again.
fn all_back(nodes: &System, pages: &impl PageSource, taken: &[NonNull<u8>], order: Order) {
    for &page in taken {
        // SAFETY: it was taken with this order, and is not used.
        unsafe { pages.give(page, order) };
    }
    assert_eq!(free(nodes), 4 * EACH);
    nodes.check().unwrap();
}

#[test]
fn pages_come_from_mapped_zones_of_the_node_that_was_asked() {
    let nodes = machine();
    let pages = source(nodes).near(|cpu| cpu);
    assert_eq!((pages.nodes(), pages.pages()), (2, 3 * EACH));
    assert_eq!(
        [0, 1, 2, usize::MAX].map(|cpu| pages.local_node(cpu)),
        [0, 1, 0, 0]
    );
    let ask = PageAsk {
        order: Order::new(1),
        mobility: Mobility::Reclaimable,
        node: Some(1),
        context: brickyard::Context::MaySleep,
    };
    let mut taken = Vec::new();
    while let Some(page) = pages.take(ask) {
        assert_eq!(pages.node_of(page), 1);
        taken.push(page);
    }
    // All of node 1 that is not only for movable pages; nothing of node 0 is kept.
    assert_eq!(taken.len(), EACH / 2);
    assert_eq!(free(nodes), 3 * EACH);
    let anywhere = PageAsk { node: None, ..ask };
    while let Some(page) = pages.take(anywhere) {
        assert_eq!(pages.node_of(page), 0);
        taken.push(page);
    }
    assert_eq!(taken.len(), 3 * EACH / 2);
    let whole = |page: &NonNull<u8>| page.addr().get().is_multiple_of(2 << 12);
    assert!(taken.iter().all(whole));
    all_back(nodes, &pages, &taken, ask.order);
}

/// Both nodes span all memory, and have every other lump of it.
#[test]
fn pages_of_nodes_that_interleave_are_of_the_node_that_has_them() {
    const LUMP: usize = EACH / 2;
    let machine = Machine::new(FIRST, 4 * EACH);
    let all = FrameRange::new(FIRST, FIRST + 4 * EACH);
    let nodes: Vec<_> = (0..2)
        .map(|id| {
            let zone = zone_of(machine, all, ZoneKind::Normal);
            for start in (FIRST + id * LUMP..all.end.number()).step_by(2 * LUMP) {
                zone.add(FrameRange::new(start, start + LUMP)).unwrap();
            }
            Node::new(id as u32, vec![zone].leak())
        })
        .collect();
    let nodes = Box::leak(Box::new(Nodes::new(nodes.leak())));
    let pages = source(nodes).near(|cpu| cpu);
    assert_eq!(pages.pages(), 4 * EACH);
    let ask = PageAsk {
        order: Order::new(2),
        mobility: Mobility::Unmovable,
        node: Some(1),
        context: brickyard::Context::Atomic,
    };
    let mut taken = Vec::new();
    for node in [1, 0] {
        let node = Some(node);
        while let Some(page) = pages.take(PageAsk { node, ..ask }) {
            let lump = (page.addr().get() - pages.start().addr().get()) >> 12;
            assert_eq!(Some(lump / LUMP % 2), node);
            assert_eq!(Some(pages.node_of(page)), node);
            taken.push(page);
        }
    }
    assert_eq!(taken.len(), EACH);
    all_back(nodes, &pages, &taken, ask.order);
}

#[test]
fn slabs_over_a_machine_give_everything_back() {
    for told in [false, true] {
        let nodes = machine();
        let pages = source(nodes);
        let pages = if told { pages.near(|_| 1) } else { pages };
        // SAFETY: one thread uses these slabs.
        let local = unsafe { Pinned::new(OneCpu) };
        type Design = Sheafed<'static, NodesPages<'static, AZone, NoHooks>, Pinned<OneCpu>>;
        let plan = SlabPlan::new(4, 1).over(&pages);
        let memory = vec![MaybeUninit::uninit(); Slabs::<Design>::bytes(&plan)].leak();
        let slabs = Slabs::<Design>::new(plan, pages, local, memory).unwrap();
        let spec = CacheSpec::new("object", 1000);
        let cache = slabs.cache::<TaskOnly>(spec).unwrap();
        let mut objects = Vec::new();
        while let Ok(object) = cache.alloc() {
            // SAFETY: the object is this test's.
            unsafe { object.write_bytes(objects.len() as u8, 1000) };
            objects.push(object);
        }
        // Four objects a page, less some pages for sheaves.
        assert!(objects.len() > 3 * EACH * 3, "{}", objects.len());
        assert!(nodes.alloc(0, &Request::page(Mobility::Unmovable)).is_err());
        for (number, object) in objects.into_iter().enumerate() {
            // SAFETY: as above, and it is not used any more.
            unsafe {
                assert_eq!(object.add(999).read(), number as u8);
                cache.free(object).unwrap();
            }
        }
        cache.destroy().unwrap();
        slabs.drain();
        slabs.shrink();
        assert_eq!(free(nodes), 4 * EACH, "told {told}");
        nodes.check().unwrap();
    }
}

#[test]
fn memory_that_is_not_mapped_or_not_aligned_is_refused() {
    let machine = Machine::new(FIRST, 4 * EACH);
    let refused = |zones: Vec<AZone>| {
        let nodes = Nodes::new(vec![Node::new(0, zones.leak())].leak());
        let nodes = Box::leak(Box::new(nodes));
        // SAFETY: nothing is taken.
        unsafe { NodesPages::shared(nodes, 12) }.unwrap_err()
    };
    assert_eq!(refused(Vec::new()), BuildError::Unmapped);
    let movable = vec![zone(machine, 0, ZoneKind::Movable)];
    assert_eq!(refused(movable), BuildError::Unmapped);
    let odd = vec![zone(machine.moved_by(1 << 12), 0, ZoneKind::Normal)];
    assert_eq!(refused(odd), BuildError::Unmapped);
    let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, EACH), 1);
    let outside = machine::zone(&plan, machine);
    assert_eq!(refused(vec![outside]), BuildError::Unmapped);
}
