//! The crate `x86_64`'s own mapper, on frames of a zone: page tables in memory of the test.

use core::mem::MaybeUninit;

use brickyard::node::{Node, Nodes};
use brickyard::{
    AnyZone, Frame, FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan,
};
use brickyard_adapters::{OnNode, PhysFrames};
use x86_64::structures::paging::mapper::CleanUp;
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, Mapper, OffsetPageTable, Page, PageTable, PageTableFlags,
    PhysFrame, Size1GiB, Size2MiB, Size4KiB, Translate,
};
use x86_64::{PhysAddr, VirtAddr};

use crate::support::leaked;

type KernelZone = Zone<'static, OneCpu>;

fn zone(frames: FrameRange, max_order: Order) -> KernelZone {
    let plan = ZonePlan {
        max_order,
        ..ZonePlan::new(ZoneKind::Normal, frames, 1)
    };
    let zone = Zone::new(&plan, OneCpu, leaked(KernelZone::bytes(&plan), 64)).unwrap();
    assert_eq!(zone.add(frames), Ok(frames.len()));
    zone
}

/// What the zone has, with its stash drained.
fn free(zone: &KernelZone) -> usize {
    zone.drain();
    zone.check().unwrap().free
}

const FLAGS: PageTableFlags = PageTableFlags::PRESENT.union(PageTableFlags::WRITABLE);

#[test]
fn pages_of_all_sizes_are_mapped_translated_and_given_back() {
    // 3 GiB of numbers, and memory behind the first 2 MiB, where page tables come from: the zone
    // below is for tables, the one above for pages.
    let tables = zone(FrameRange::new(1, 512), Order::DEFAULT_MAX);
    let pages = zone(FrameRange::new(1 << 18, 4 << 18), Order::MAX);
    let (all_tables, all_pages) = (free(&tables), free(&pages));
    let memory = leaked(512 << 12, 4096);
    memory.fill(MaybeUninit::new(0));
    let offset = VirtAddr::new(memory.as_mut_ptr().expose_provenance() as u64);
    // SAFETY: both: frame `i` is the memory at `i << 12`, or is never touched, and nobody else has
    // it. Frames are freed by who holds them.
    let (mut tables_of, mut pages_of) =
        unsafe { (PhysFrames::new(&tables), PhysFrames::new(&pages)) };

    let root: PhysFrame<Size4KiB> = tables_of.allocate_frame().unwrap();
    let table = offset + root.start_address().as_u64();
    // SAFETY: the frame was handed out to this test alone, and is zero: an empty table. All tables
    // lie at `offset` plus their addresses.
    let mut mapper = unsafe { OffsetPageTable::new(&mut *table.as_mut_ptr::<PageTable>(), offset) };
    let mut mapped = Vec::new();
    for i in 0..100_u64 {
        let at = VirtAddr::new(0x4000_0000_0000 + i * 0x4_0000_3000 / 0x1000 * 0x1000);
        let page = Page::<Size4KiB>::containing_address(at);
        let frame = pages_of.allocate_frame().unwrap();
        // SAFETY: nothing runs on these tables.
        unsafe { mapper.map_to(page, frame, FLAGS, &mut tables_of) }
            .unwrap()
            .ignore();
        mapped.push((page, frame));
    }
    let large = Page::<Size2MiB>::containing_address(VirtAddr::new(0x1234_4020_0000));
    let large_frame = pages_of.allocate_frame().unwrap();
    let huge = Page::<Size1GiB>::containing_address(VirtAddr::new(0x2222_4000_0000));
    let huge_frame = pages_of.allocate_frame().unwrap();
    // SAFETY: nothing runs on these tables.
    unsafe {
        mapper
            .map_to(large, large_frame, FLAGS, &mut tables_of)
            .unwrap()
            .ignore();
        mapper
            .map_to(huge, huge_frame, FLAGS, &mut tables_of)
            .unwrap()
            .ignore();
    }
    assert!(free(&tables) < all_tables - 100, "one table a page");
    assert_eq!(free(&pages), all_pages - 100 - 512 - (1 << 18));

    for &(page, frame) in &mapped {
        let at = mapper.translate_addr(page.start_address() + 0x123);
        assert_eq!(at, Some(frame.start_address() + 0x123));
    }
    let at = mapper.translate_addr(large.start_address() + 0x1f_fff7);
    assert_eq!(at, Some(large_frame.start_address() + 0x1f_fff7));
    let at = mapper.translate_addr(huge.start_address() + 0x3fff_fff7);
    assert_eq!(at, Some(huge_frame.start_address() + 0x3fff_fff7));

    for (page, _) in mapped {
        let (frame, flush) = mapper.unmap(page).unwrap();
        flush.ignore();
        // SAFETY: it is not mapped any more.
        unsafe { pages_of.deallocate_frame(frame) };
    }
    let (frame, flush) = mapper.unmap(large).unwrap();
    flush.ignore();
    // SAFETY: it is not mapped any more.
    unsafe { pages_of.deallocate_frame(frame) };
    let (frame, flush) = mapper.unmap(huge).unwrap();
    flush.ignore();
    // SAFETY: not mapped any more; the tables are used once, and here.
    unsafe {
        pages_of.deallocate_frame(frame);
        mapper.clean_up(&mut tables_of);
        tables_of.deallocate_frame(root);
    }
    assert_eq!((free(&tables), free(&pages)), (all_tables, all_pages));
    assert_eq!((tables_of.refused(), pages_of.refused()), (0, 0));
}

#[test]
fn each_size_is_aligned_and_ends_when_nothing_holds_it() {
    let zone = zone(FrameRange::new(256, 3 << 18), Order::MAX);
    let all = free(&zone);
    // SAFETY: nobody touches the memory.
    let mut frames = unsafe { PhysFrames::new(&zone) };
    let huge: Vec<PhysFrame<Size1GiB>> = core::iter::from_fn(|| frames.allocate_frame()).collect();
    // The first gigabyte has a hole.
    assert_eq!(huge.len(), 2);
    let large: Vec<PhysFrame<Size2MiB>> = core::iter::from_fn(|| frames.allocate_frame()).collect();
    assert_eq!(large.len(), 511);
    let small: Vec<PhysFrame<Size4KiB>> = core::iter::from_fn(|| frames.allocate_frame()).collect();
    assert_eq!(small.len(), 256);
    assert_eq!(free(&zone), 0);
    // SAFETY: nobody uses them.
    unsafe {
        huge.into_iter()
            .for_each(|one| frames.deallocate_frame(one));
        large
            .into_iter()
            .for_each(|one| frames.deallocate_frame(one));
        small
            .into_iter()
            .for_each(|one| frames.deallocate_frame(one));
    }
    assert_eq!((free(&zone), frames.refused()), (all, 0));
}

#[test]
fn a_size_above_the_highest_order_is_never_there() {
    let zone = zone(FrameRange::new(0, 4 << 18), Order::DEFAULT_MAX);
    // SAFETY: nobody touches the memory.
    let mut frames = unsafe { PhysFrames::new(&zone) };
    let huge: Option<PhysFrame<Size1GiB>> = frames.allocate_frame();
    assert_eq!(huge, None);
    let large: Option<PhysFrame<Size2MiB>> = frames.allocate_frame();
    assert!(large.is_some());
}

#[test]
fn frames_beyond_what_a_table_can_name_are_not_handed_out() {
    // From 2^52 on.
    let zone = zone(
        FrameRange::new(1 << 40, (1 << 40) + 512),
        Order::DEFAULT_MAX,
    );
    // SAFETY: nobody touches the memory.
    let mut frames = unsafe { PhysFrames::new(&zone) };
    let none: Option<PhysFrame<Size4KiB>> = frames.allocate_frame();
    assert_eq!((none, free(&zone)), (None, 512));
}

#[test]
fn bad_frees_are_refused_and_counted() {
    let zone = zone(FrameRange::new(0, 2048), Order::DEFAULT_MAX);
    // SAFETY: nobody touches the memory.
    let mut frames = unsafe { PhysFrames::new(&zone) };
    let large: PhysFrame<Size2MiB> = frames.allocate_frame().unwrap();
    let before = free(&zone);
    let outside = PhysFrame::<Size4KiB>::containing_address(PhysAddr::new(1 << 40));
    let wider = PhysFrame::<Size1GiB>::containing_address(PhysAddr::new(0));
    // SAFETY: nobody uses any of them.
    unsafe {
        frames.deallocate_frame(outside);
        frames.deallocate_frame(wider);
    }
    assert_eq!((frames.refused(), free(&zone)), (2, before));
    // A part of it, then the whole, then the rest of the parts.
    let part = PhysFrame::<Size4KiB>::containing_address(large.start_address());
    // SAFETY: as above.
    unsafe {
        frames.deallocate_frame(part);
        zone.drain();
        frames.deallocate_frame(large);
        frames.deallocate_frame(part);
    }
    assert_eq!((frames.refused(), free(&zone)), (4, before + 1));
    for frame in FrameRange::new(0, 512).frames().skip(1) {
        let at = large.start_address() + ((frame.number() as u64) << 12);
        // SAFETY: as above.
        unsafe { frames.deallocate_frame(PhysFrame::<Size4KiB>::containing_address(at)) };
    }
    assert_eq!((frames.refused(), free(&zone)), (4, 2048));
}

#[test]
fn nodes_and_limits_work_the_same_way() {
    let zones: &'static [KernelZone] =
        vec![zone(FrameRange::new(0, 2048), Order::DEFAULT_MAX)].leak();
    let node: &'static [Node<'static, KernelZone>] = vec![Node::new(0, zones)].leak();
    let nodes = Nodes::new(node);
    let low = Request::page(Mobility::Unmovable).below(Frame::new(3));
    // SAFETY: nobody touches the memory.
    let mut frames = unsafe { PhysFrames::new(OnNode::new(&nodes, 0)) }.with(&low);
    let taken: Vec<PhysFrame<Size4KiB>> = core::iter::from_fn(|| frames.allocate_frame()).collect();
    assert_eq!(taken.len(), 3);
    assert!(
        taken
            .iter()
            .all(|one| one.start_address().as_u64() < 3 << 12)
    );
    let large: Option<PhysFrame<Size2MiB>> = frames.allocate_frame();
    assert_eq!(large, None);
    for one in taken {
        // SAFETY: nobody uses it.
        unsafe { frames.deallocate_frame(one) };
    }
    nodes.drain();
    assert_eq!(
        nodes.check().unwrap().free,
        AnyZone::managed_frames(&zones[0])
    );
}
