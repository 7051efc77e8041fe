//! Who may have a zone to themselves: its memory is all there and aligned, and nothing of it is in
//! use.

use core::mem::MaybeUninit;

use brickyard::{FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan};
use brickyard_slab::{
    BuildError, DirectMap, DirectMapped, PageAsk, PageSource, Pinned, Sheafed, SlabPlan, Slabs,
    TaskOnly, ZonePages,
};

use crate::machine::{self, Machine};

const PAGES: usize = 64;

/// A zone over `span` on a machine whose memory begins at frame `first`, `add` of it free.
fn zone(first: usize, span: FrameRange, add: FrameRange) -> DirectMapped<'static, Machine> {
    let plan = ZonePlan {
        max_order: Order::new(6),
        page_block_order: Order::new(6),
        ..ZonePlan::new(ZoneKind::Normal, span, 1)
    };
    // SAFETY: the memory is leaked and nobody else's, and the one thread of a test uses it.
    let map = unsafe { DirectMap::new(Machine::new(first, PAGES), 12) };
    let metadata = vec![MaybeUninit::uninit(); DirectMapped::<Machine>::bytes(&plan)].leak();
    let zone = DirectMapped::new(&plan, map, metadata).unwrap();
    assert_eq!(zone.add(add), Ok(add.len()));
    zone
}

const SPAN: FrameRange = FrameRange::new(64, 128);

type System<'m, 'z> =
    Slabs<'m, Sheafed<'m, ZonePages<'m, Zone<'z, DirectMap<Machine>>>, Pinned<OneCpu>>>;

#[test]
fn a_zone_of_which_something_is_in_use_is_refused() {
    let mut zone = zone(64, SPAN, SPAN);
    let page = Request::page(Mobility::Movable);
    let [one, two] = [(); 2].map(|()| zone.alloc(&page).unwrap());
    let refused = ZonePages::new(&mut zone).unwrap_err();
    assert_eq!(refused, BuildError::ZoneInUse);
    // Freed twice, one frame does not pass for two.
    zone.free(one, Order::ZERO).unwrap();
    let _ = zone.free(one, Order::ZERO);
    let refused = ZonePages::new(&mut zone).unwrap_err();
    assert_eq!(refused, BuildError::ZoneInUse);
    zone.free(two, Order::ZERO).unwrap();
    let pages = ZonePages::new(&mut zone).unwrap();
    assert_eq!(pages.pages(), PAGES);
}

#[test]
fn frames_without_memory_are_refused() {
    for (first, span) in [
        (65, SPAN),
        (63, SPAN),
        (64, FrameRange::new(0, 128)),
        (64, FrameRange::new(64, 192)),
        // Aligned by address alone, and by number alone.
        (32, FrameRange::new(32, 96)),
        (32, FrameRange::new(64, 96)),
    ] {
        let add = FrameRange::new(span.start.number().max(64), 96);
        let mut zone = zone(first, span, add);
        let refused = ZonePages::new(&mut zone).unwrap_err();
        assert_eq!(refused, BuildError::Unmapped, "{first}, {span:?}");
    }
}

#[test]
fn slabs_have_a_zone_to_themselves() {
    const PLAN: SlabPlan = SlabPlan::new(4, 1).pages(PAGES);
    const BYTES: usize = System::bytes(&PLAN);

    let mut zone = zone(64, SPAN, SPAN);
    let mut memory = vec![MaybeUninit::uninit(); BYTES];
    // SAFETY: one thread uses them.
    let thread = || unsafe { Pinned::new(OneCpu) };
    let needed = BuildError::Memory { needed: BYTES };
    let less = System::over_zone(PLAN, &mut zone, thread(), &mut memory[1..]);
    assert_eq!(less.unwrap_err(), needed);
    let slabs = System::over_zone(PLAN, &mut zone, thread(), &mut memory).unwrap();
    let texts = slabs.typed::<&str, TaskOnly>("texts").unwrap();
    let text = texts.alloc("a text").unwrap();
    assert_eq!(*text, "a text");
    drop(text);
    texts.destroy().unwrap();
    // What slabs have never asked for is still there.
    let ask = PageAsk {
        order: Order::new(5),
        mobility: Mobility::Unmovable,
        node: None,
        context: brickyard::Context::Atomic,
    };
    let block = slabs.source().take(ask).unwrap();
    assert!(block.addr().get().is_multiple_of(1 << 17));
}

/// To a second zone the same numbers are frames of its own. All that it hands out, takes back and
/// removes leaves the slabs' pages to the slabs.
#[test]
fn a_zone_of_the_same_numbers_takes_nothing_from_slabs() {
    const PLAN: SlabPlan = SlabPlan::new(4, 1).pages(PAGES);
    let mut zone = zone(64, SPAN, SPAN);
    let mut memory = vec![MaybeUninit::uninit(); System::bytes(&PLAN)];
    // SAFETY: one thread uses them.
    let thread = unsafe { Pinned::new(OneCpu) };
    let slabs = System::over_zone(PLAN, &mut zone, thread, &mut memory).unwrap();
    let texts = slabs.typed::<&'static str, TaskOnly>("texts").unwrap();
    let text = texts.alloc("a text").unwrap();

    let plan = ZonePlan::new(ZoneKind::Normal, SPAN, 1);
    let other: Zone<'_, OneCpu> = machine::zone(&plan, OneCpu);
    assert_eq!(other.add(SPAN), Ok(PAGES));
    let page = Request::page(Mobility::Unmovable);
    for _ in 0..PAGES {
        other.alloc(&page).unwrap();
    }
    other.free_range(SPAN).unwrap();
    assert_eq!(other.remove(SPAN), Ok(PAGES));

    // The slabs take all that is left, and nobody's memory twice.
    let numbers = slabs.typed::<[usize; 2], TaskOnly>("numbers").unwrap();
    let mut all = Vec::new();
    while let Ok(number) = numbers.alloc([all.len(), 0x4141]) {
        all.push(number);
    }
    assert!(all.len() > (PAGES - 8) * 256, "{}", all.len());
    let numbered = |(i, number): (usize, [usize; 2])| number == [i, 0x4141];
    assert!(all.iter().map(|number| **number).enumerate().all(numbered));
    assert_eq!(*text, "a text");
}
