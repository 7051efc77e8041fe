//! The heap as the allocator of single collections: against the standard library's, and block by
//! block against what the trait promises.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use brickyard_heap::{Bump, Global, usable_size};
use proptest::prelude::*;

/// What is done with a list.
#[derive(Debug, Clone)]
enum Step {
    Push(u32),
    Pop,
    Extend(usize),
    Truncate(usize),
    ShrinkToFit,
    Clone,
    IntoBox,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any::<u32>().prop_map(Step::Push),
        2 => Just(Step::Pop),
        // Above 2 MiB at times.
        3 => (0_usize..4000).prop_map(Step::Extend),
        1 => (100_000_usize..700_000).prop_map(Step::Extend),
        3 => (0_usize..6000).prop_map(Step::Truncate),
        2 => Just(Step::ShrinkToFit),
        1 => Just(Step::Clone),
        1 => Just(Step::IntoBox),
    ]
}

/// What is done with a block: a new size and alignment, and whether new bytes are to be 0.
fn sizes() -> impl Strategy<Value = (usize, u32, bool)> {
    let bytes = prop_oneof![
        1 => Just(0_usize),
        6 => 0_usize..300,
        4 => 0_usize..40_000,
        2 => 0_usize..300_000,
        1 => 0_usize..5_000_000,
    ];
    // Alignments up to 64 KiB, mostly small.
    let shift = prop_oneof![4 => 0_u32..5, 2 => 5_u32..17];
    (bytes, shift, any::<bool>())
}

/// Checks and fills a block: its first `kept` bytes hold `had`, those behind are 0 if promised.
fn check(memory: NonNull<[u8]>, layout: Layout, kept: usize, had: u8, zero: bool, fill: u8) {
    let first = memory.cast::<u8>();
    assert!(
        first.addr().get().is_multiple_of(layout.align()),
        "{layout:?}"
    );
    assert_eq!(memory.len(), layout.size());
    // SAFETY: the block is this test's, has so many bytes, and those read were written.
    unsafe {
        let kept = core::slice::from_raw_parts(first.as_ptr(), kept);
        assert!(kept.iter().all(|byte| *byte == had), "{layout:?}");
        if zero {
            let tail = first.add(kept.len());
            let tail = core::slice::from_raw_parts(tail.as_ptr(), layout.size() - kept.len());
            assert!(tail.iter().all(|byte| *byte == 0), "{layout:?}");
        }
        first.write_bytes(fill, layout.size());
    }
}

/// Does the steps with a list in `place` and with one of the standard library.
fn same_list(steps: std::vec::Vec<Step>, place: impl Allocator + Copy) {
    let mut list: Vec<u32, _> = Vec::new_in(place);
    let mut model = std::vec::Vec::new();
    for step in steps {
        match step {
            Step::Push(number) => {
                list.push(number);
                model.push(number);
            }
            Step::Pop => assert_eq!(list.pop(), model.pop()),
            Step::Extend(count) => {
                let numbers = || (0..count).map(|number| number as u32 ^ 0x5a5a);
                list.extend(numbers());
                model.extend(numbers());
            }
            Step::Truncate(length) => {
                list.truncate(length);
                model.truncate(length);
            }
            Step::ShrinkToFit => list.shrink_to_fit(),
            Step::Clone => list = list.clone(),
            Step::IntoBox => list = list.into_boxed_slice().into_vec(),
        }
        assert!(list.as_slice() == model.as_slice());
    }
}

/// Takes two blocks of `place` through all sizes in turn; each must keep its bytes.
fn kept_bytes(steps: std::vec::Vec<(usize, u32, bool)>, place: impl Allocator) {
    let nothing = Layout::new::<()>();
    let new = || (place.allocate(nothing).unwrap(), nothing, 0_u8);
    let mut blocks = [new(), new()];
    for (number, (bytes, shift, zero)) in steps.into_iter().enumerate() {
        let (memory, layout, had) = &mut blocks[number / 3 % 2];
        let new = Layout::from_size_align(bytes, 1 << shift).unwrap();
        let start = memory.cast::<u8>();
        // SAFETY: the block is this test's, and of this layout; sizes are compared first.
        let resized = unsafe {
            match (bytes >= layout.size(), zero) {
                (true, true) => place.grow_zeroed(start, *layout, new),
                (true, false) => place.grow(start, *layout, new),
                (false, _) => place.shrink(start, *layout, new),
            }
        };
        *memory = resized.unwrap();
        let fill = number as u8 + 1;
        let kept = bytes.min(layout.size());
        let zero = zero && bytes >= layout.size();
        check(*memory, new, kept, *had, zero, fill);
        (*layout, *had) = (new, fill);
    }
    for (memory, layout, had) in blocks {
        check(memory, layout, layout.size(), had, false, 0);
        // SAFETY: as above.
        unsafe { place.deallocate(memory.cast(), layout) };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_list_is_that_of_the_standard_library(steps in prop::collection::vec(step(), 1..60)) {
        same_list(steps.clone(), Global);
        same_list(steps, &Bump::new());
    }

    #[test]
    fn a_block_keeps_its_bytes_through_every_size(steps in prop::collection::vec(sizes(), 1..60)) {
        kept_bytes(steps.clone(), Global);
        kept_bytes(steps, &Bump::new());
    }
}

#[test]
fn the_last_list_of_a_bump_grows_in_place() {
    let bump = Bump::new();
    let mut list = Vec::with_capacity_in(10, &bump);
    list.extend(0..10_u64);
    let place = list.as_ptr();
    list.extend(10..60);
    assert_eq!((list.as_ptr(), list.len()), (place, 60));
    drop(list);
    let again: Box<u64, _> = Box::new_in(1, &bump);
    assert_eq!(&raw const *again, place);
}

#[test]
fn what_cannot_be_served_is_an_error_and_leaves_the_block_alone() {
    let huge = Layout::from_size_align(isize::MAX as usize - 4095, 4096).unwrap();
    assert!(Global.allocate(huge).is_err() && Global.allocate_zeroed(huge).is_err());
    for bytes in [100, 50_000, 3 << 20] {
        let layout = Layout::from_size_align(bytes, 64).unwrap();
        let memory = Global.allocate_zeroed(layout).unwrap();
        check(memory, layout, 0, 0, true, 7);
        // SAFETY: the block is this test's, and of this layout.
        unsafe {
            let same = Layout::from_size_align(huge.size() & !63, 64).unwrap();
            assert!(Global.grow(memory.cast(), layout, same).is_err());
            assert!(Global.grow_zeroed(memory.cast(), layout, huge).is_err());
            check(memory, layout, bytes, 7, false, 8);
            Global.deallocate(memory.cast(), layout);
        }
    }
}

#[test]
fn boxes_have_the_heap_s_memory_and_go_between_threads() {
    let (one, other) = (
        Box::new_in([1_u64; 7], Global),
        Box::new_in([2_u64; 7], Global),
    );
    assert_eq!(usable_size((&raw const *one).cast_mut().cast()), 64);
    let sum = std::thread::spawn(move || one[0] + other[6])
        .join()
        .unwrap();
    assert_eq!(sum, 3);
}
