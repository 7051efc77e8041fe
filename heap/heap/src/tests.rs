//! The heap as programs use it.

use core::alloc::Layout;

use brickyard_slab::sizes::process::MAX_GENERAL;

use core::ptr::null_mut;

use brickyard_slab::sizes::process::SIZES;

use super::fast_path::BY_LAYOUT;
use super::*;

#[test]
fn memory_is_apart_aligned_and_kept() {
    let mut held = Vec::new();
    for bytes in [
        0,
        1,
        8,
        16,
        17,
        64,
        100,
        1000,
        1216,
        4096,
        5000,
        32768,
        32769,
        100_000,
        2 << 20,
        (2 << 20) + 1,
        5 << 20,
    ] {
        for _ in 0..20 {
            let memory = alloc(bytes);
            assert!(!memory.is_null() && memory.addr().is_multiple_of(16));
            assert!(usable_size(memory) >= bytes);
            // SAFETY: the memory has so many bytes.
            unsafe { memory.write_bytes(held.len() as u8, bytes) };
            held.push((memory, bytes));
        }
    }
    for (index, (memory, bytes)) in held.into_iter().enumerate() {
        // SAFETY: the memory is this test's.
        unsafe {
            for byte in 0..bytes {
                assert_eq!(memory.add(byte).read(), index as u8);
            }
            free(memory);
        }
    }
}

#[test]
fn alignments_are_kept() {
    for shift in 0..24 {
        for bytes in [1, 100, 5000, 40_000, 3 << 20] {
            let layout = Layout::from_size_align(bytes, 1 << shift).unwrap();
            let memory = allocate_aligned(layout);
            assert!(
                !memory.is_null() && memory.addr().is_multiple_of(layout.align()),
                "{layout:?}"
            );
            // SAFETY: the memory is this test's.
            unsafe {
                memory.write_bytes(1, bytes);
                free(memory);
            }
        }
    }
}

#[test]
fn contents_survive_resizing() {
    let sizes = [
        1,
        20,
        200,
        2000,
        40_000,
        20_000,
        60_000,
        3 << 20,
        9 << 20,
        4 << 20,
        50_000,
        10,
    ];
    let mut memory = alloc(1);
    let mut had = 1;
    // SAFETY: the memory is this test's, and has as many bytes as it was resized to.
    unsafe {
        memory.write(7);
        for bytes in sizes {
            memory = reallocate(memory, bytes);
            assert!(!memory.is_null());
            for byte in 0..had.min(bytes) {
                assert_eq!(memory.add(byte).read(), 7);
            }
            memory.write_bytes(7, bytes);
            had = bytes;
        }
        free(memory);
    }
}

#[test]
fn contents_survive_quick_resizing() {
    let resized = |memory, bytes| {
        // SAFETY: the memory is this test's.
        unsafe {
            let quickly = quick_reallocate(memory, bytes);
            if quickly.is_null() {
                reallocate(memory, bytes)
            } else {
                quickly
            }
        }
    };
    let mut memory = alloc(24);
    let mut had = 24;
    // SAFETY: the memory is this test's, and has as many bytes as it was resized to.
    unsafe {
        memory.write_bytes(7, had);
        for bytes in (1..150_000)
            .step_by(431)
            .chain((1..150_000).rev().step_by(777))
        {
            let (old, usable) = (memory, usable_size(memory));
            memory = resized(memory, bytes);
            assert!(usable_size(memory) >= bytes);
            // It stays where half of it is needed, or of more a larger part.
            let part = match usable {
                0..=BY_LAYOUT => 2,
                _ if usable <= MAX_GENERAL => 4,
                _ => 8,
            };
            let least = usable - usable / part;
            assert!(memory == old || bytes > usable || bytes < least);
            if bytes < least {
                let is_smaller = usable_size(memory) < usable;
                let is_class = plain::size_of_class(bytes) == usable;
                assert!(is_smaller || is_class, "{usable} for {bytes}");
            }
            assert!((0..had.min(bytes)).all(|byte| memory.add(byte).read() == 7));
            memory.write_bytes(7, bytes);
            had = bytes;
        }
        free(memory);
        // Objects of every size: those above 32 KiB are copied where a third would be wasted.
        for had in SIZES.map(|size| size as usize) {
            for memory in [
                resized(alloc(had), had / 3 * 2),
                reallocate(alloc(had), had / 3 * 2),
            ] {
                assert_eq!(usable_size(memory) < had, had > BY_LAYOUT, "{had}");
                free(memory);
            }
        }
        // What is of no general size takes the slow path.
        assert!(quick_reallocate(null_mut(), 10).is_null());
        let run = alloc(MAX_GENERAL + 1);
        assert!(quick_reallocate(run, 100).is_null());
        free(run);
        let small = alloc(100);
        assert!(quick_reallocate(small, MAX_GENERAL + 1).is_null());
        free(small);
    }
}

#[test]
fn zeroed_memory_is_zero_whatever_was_there() {
    for bytes in [1, 100, 5000, 40_000, 300_000, 3 << 20, 9 << 20] {
        for _ in 0..3 {
            let memory = allocate_zeroed(bytes);
            assert!(!memory.is_null());
            // SAFETY: the memory is this test's, and has so many bytes.
            unsafe {
                assert!(
                    (0..bytes).all(|byte| memory.add(byte).read() == 0),
                    "{bytes}"
                );
                memory.write_bytes(7, bytes);
                free(memory);
            }
        }
    }
}

#[test]
fn what_there_is_not_is_null() {
    assert!(alloc(usize::MAX).is_null());
    assert!(alloc(1 << 62).is_null());
    assert_eq!(usable_size(null_mut()), 0);
    // SAFETY: null is nothing.
    unsafe { free(null_mut()) };
}
