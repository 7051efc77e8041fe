//! ArceOS's traits, called as its global allocator calls them.

use core::alloc::Layout;

use ax_allocator::{AllocError, BaseAllocator, ByteAllocator, PageAllocator};
use brickyard_adapters::{AxBytes, AxPages};

use crate::support::{Dice, Held, leaked};

const PAGE: usize = 4096;

/// Memory as ArceOS passes it: a start and a size.
fn region(bytes: usize) -> (usize, usize) {
    let memory = leaked(bytes, PAGE);
    (memory.as_mut_ptr().expose_provenance(), bytes)
}

fn pages_with<const N: usize>(bytes: usize) -> (AxPages<N>, usize) {
    let (start, size) = region(bytes);
    let mut pages = AxPages::new();
    pages.init(start, size);
    (pages, start)
}

fn held(at: usize, pages: usize, stamp: u8) -> Held {
    let layout = Layout::from_size_align(pages * PAGE, PAGE).unwrap();
    Held::new(core::ptr::with_exposed_provenance_mut(at), layout, stamp)
}

#[test]
fn any_number_of_pages_at_any_alignment_keeps_its_contents() {
    let (mut pages, _) = pages_with::<1>(64 << 20);
    let all = pages.available_pages();
    // The metadata is a few pages.
    assert!(all > (64 << 8) - 16, "{all}");
    assert_eq!((pages.total_pages(), pages.used_pages()), (all, 0));
    let mut dice = Dice::new(23);
    let (mut inside, mut used) = (Vec::new(), 0);
    for step in 0..10_000_usize {
        if dice.below(2) == 0 && used < all / 2 {
            let most = dice.one_of(&[1, 4, 60, 600]);
            let many = 1 + dice.below(most);
            let align = PAGE << dice.below(6);
            let at = pages.alloc_pages(many, align).unwrap();
            assert_eq!(at % align, 0);
            used += many;
            inside.push(held(at, many, step as u8));
        } else if !inside.is_empty() {
            let old: Held = inside.swap_remove(dice.below(inside.len()));
            old.check(old.layout.size());
            let many = old.layout.size() / PAGE;
            used -= many;
            pages.dealloc_pages(old.at, many);
        }
        assert_eq!(pages.used_pages(), used);
    }
    for old in inside {
        old.check(old.layout.size());
        pages.dealloc_pages(old.at, old.layout.size() / PAGE);
    }
    assert_eq!((pages.available_pages(), pages.refused()), (all, 0));
}

#[test]
fn a_full_allocator_says_so_and_finds_pages_side_by_side_that_are_no_block() {
    let (mut pages, _) = pages_with::<1>(4 << 20);
    let all = pages.available_pages();
    let mut single: Vec<usize> = Vec::new();
    while let Ok(at) = pages.alloc_pages(1, PAGE) {
        single.push(at);
    }
    assert_eq!((single.len(), pages.available_pages()), (all, 0));
    let full = pages.alloc_pages(1, PAGE).unwrap_err();
    assert!(matches!(full, AllocError::NoMemory));
    single.sort_unstable();
    assert!(single.windows(2).all(|pair| pair[1] == pair[0] + PAGE));
    // Five pages around a multiple of eight.
    let middle = single
        .iter()
        .position(|at| at % (8 * PAGE) == 0 && *at > single[20]);
    let first = middle.unwrap() - 2;
    for &at in &single[first..first + 5] {
        pages.dealloc_pages(at, 1);
    }
    let six = pages.alloc_pages(6, PAGE).unwrap_err();
    assert!(matches!(six, AllocError::NoMemory));
    assert_eq!(pages.alloc_pages(5, PAGE).unwrap(), single[first]);
    pages.dealloc_pages(single[first], 5);
    for &at in single[..first].iter().chain(&single[first + 5..]) {
        pages.dealloc_pages(at, 1);
    }
    assert_eq!((pages.available_pages(), pages.refused()), (all, 0));
}

#[test]
fn a_given_place_is_taken_or_refused_as_a_whole() {
    let (mut pages, start) = pages_with::<1>(16 << 20);
    let all = pages.available_pages();
    let at = (start + (8 << 20)).next_multiple_of(1 << 16);
    assert_eq!(pages.alloc_pages_at(at, 77, 1 << 16).unwrap(), at);
    assert_eq!(pages.used_pages(), 77);
    let overlapping = pages.alloc_pages_at(at - 5 * PAGE, 7, PAGE).unwrap_err();
    assert!(matches!(overlapping, AllocError::NoMemory));
    assert_eq!(pages.used_pages(), 77);
    // The metadata is in use.
    assert!(pages.alloc_pages_at(start, 1, PAGE).is_err());
    for (base, many, align) in [
        (at + PAGE, 3, 1 << 16),
        (at + 7, 3, PAGE),
        (at, 0, PAGE),
        (at, 3, 3 * PAGE),
        (at, 3, 1024),
        (start + (16 << 20) - PAGE, 2, PAGE),
        (0x1000, 1, PAGE),
    ] {
        let refused = pages.alloc_pages_at(base, many, align).unwrap_err();
        assert!(matches!(refused, AllocError::InvalidParam), "{base:#x}");
    }
    for (many, align) in [(0, PAGE), (1, 0), (1, 5000), (1, 2048)] {
        let refused = pages.alloc_pages(many, align).unwrap_err();
        assert!(matches!(refused, AllocError::InvalidParam), "{many}");
    }
    pages.dealloc_pages(at, 77);
    assert_eq!(pages.available_pages(), all);
}

#[test]
fn bad_frees_are_refused_and_counted() {
    let (mut pages, start) = pages_with::<1>(4 << 20);
    let all = pages.available_pages();
    let at = pages.alloc_pages(10, PAGE).unwrap();
    // More than it has, twice, nothing, inside a page, the metadata's place, nowhere.
    pages.dealloc_pages(at, 11);
    pages.dealloc_pages(at, 0);
    pages.dealloc_pages(at + 8, 1);
    pages.dealloc_pages(start, 1);
    pages.dealloc_pages(0x1000, 1);
    assert_eq!((pages.refused(), pages.used_pages()), (5, 10));
    // In parts, which is no fault.
    pages.dealloc_pages(at + 4 * PAGE, 6);
    pages.dealloc_pages(at, 4);
    assert_eq!((pages.refused(), pages.available_pages()), (5, all));
    pages.dealloc_pages(at, 10);
    assert_eq!((pages.refused(), pages.available_pages()), (6, all));
}

#[test]
fn regions_may_lie_anywhere_and_must_not_overlap() {
    let (mut pages, start) = pages_with::<3>(2 << 20);
    let one = pages.total_pages();
    assert!(matches!(
        pages.add_memory(start + (1 << 20), 4 << 20),
        Err(AllocError::MemoryOverlap)
    ));
    let (second, size) = region(8 << 20);
    assert!(pages.add_memory(second, size).is_ok());
    assert!(pages.total_pages() > one + 2000);
    // Larger than the first region.
    let large = pages.alloc_pages(1000, PAGE).unwrap();
    assert!((second..second + size).contains(&large));
    let (small, size) = region(3 * PAGE);
    let too_small = pages.add_memory(small, size);
    assert!(matches!(too_small, Err(AllocError::InvalidParam)));
    // At odd addresses the pages inside count.
    let (third, size) = region(1 << 20);
    assert!(pages.add_memory(third + 9, size - 20).is_ok());
    let (fourth, size) = region(1 << 20);
    let too_many = pages.add_memory(fourth, size);
    assert!(matches!(too_many, Err(AllocError::InvalidParam)));
    pages.dealloc_pages(large, 1000);
    assert_eq!((pages.used_pages(), pages.refused()), (0, 0));
}

#[test]
#[should_panic(expected = "a first region of 8192 bytes")]
fn a_first_region_that_is_too_small_stops_the_kernel_with_a_reason() {
    let (start, size) = region(2 * PAGE);
    AxPages::<1>::new().init(start, size);
}

#[test]
fn bytes_of_all_sizes_keep_their_contents_and_come_back() {
    let (start, size) = region(8 << 20);
    let mut bytes = AxBytes::<2>::new();
    bytes.init(start, size);
    let overlap = bytes.add_memory(start, PAGE);
    assert!(matches!(overlap, Err(AllocError::MemoryOverlap)));
    let (more, size) = region(16 << 20);
    assert!(bytes.add_memory(more, size).is_ok());
    assert!(bytes.total_bytes() > 23 << 20);
    let mut dice = Dice::new(29);
    let (mut inside, mut used) = (Vec::new(), 0);
    for step in 0..20_000_usize {
        if dice.below(2) == 0 && used < 16 << 20 {
            let most = dice.one_of(&[50, 3000, 40_000, 300_000]);
            let size = 1 + dice.below(most);
            let layout = Layout::from_size_align(size, 1 << dice.below(14)).unwrap();
            let at = bytes.alloc(layout).unwrap();
            used += size;
            inside.push(Held::new(at.as_ptr(), layout, step as u8));
        } else if !inside.is_empty() {
            let old: Held = inside.swap_remove(dice.below(inside.len()));
            old.check(old.layout.size());
            used -= old.layout.size();
            let at = core::ptr::NonNull::new(old.pointer()).unwrap();
            bytes.dealloc(at, old.layout);
        }
        assert_eq!(bytes.used_bytes(), used);
    }
    for old in inside {
        old.check(old.layout.size());
        bytes.dealloc(core::ptr::NonNull::new(old.pointer()).unwrap(), old.layout);
    }
    assert_eq!((bytes.used_bytes(), bytes.refused()), (0, 0));
    // What lies in queues is there for whoever needs it: 3 MiB in one piece.
    let most = Layout::from_size_align(3 << 20, PAGE).unwrap();
    assert!(bytes.alloc(most).is_ok());
}

#[test]
fn exhausted_bytes_and_bad_calls_are_errors() {
    let (start, size) = region(2 << 20);
    let mut bytes = AxBytes::<1>::new();
    bytes.init(start, size);
    let layout = Layout::from_size_align(100_000, 8).unwrap();
    let mut inside = Vec::new();
    while let Ok(at) = bytes.alloc(layout) {
        inside.push(at);
    }
    // Each from a block of 32 pages, whose rest serves smaller requests.
    assert!(inside.len() >= 14, "{}", inside.len());
    assert!(matches!(bytes.alloc(layout), Err(AllocError::NoMemory)));
    let none = Layout::from_size_align(0, 8).unwrap();
    assert!(matches!(bytes.alloc(none), Err(AllocError::InvalidParam)));
    let used = bytes.used_bytes();
    let at = inside[3];
    bytes.dealloc(at, layout);
    bytes.dealloc(at, layout);
    let other = core::ptr::NonNull::from(&mut 7_u64).cast();
    bytes.dealloc(other, layout);
    assert_eq!(
        (bytes.refused(), bytes.used_bytes()),
        (2, used - layout.size())
    );
    assert_eq!(bytes.alloc(layout).unwrap(), at);
}
