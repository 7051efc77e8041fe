//! Memory that ends as a whole: pieces are apart, aligned and kept, and their memory comes back.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::alloc::Layout;
use core::ptr::NonNull;

use brickyard_heap::{Bump, Object};
use proptest::prelude::*;

fn layout() -> impl Strategy<Value = Layout> {
    let bytes = prop_oneof![
        1 => Just(0_usize),
        12 => 0_usize..200,
        4 => 0_usize..5000,
        1 => 0_usize..100_000,
        1 => 2_000_000_usize..2_200_000,
    ];
    let shift = prop_oneof![6 => 0_u32..5, 1 => 5_u32..17];
    (bytes, shift).prop_map(|(bytes, shift)| Layout::from_size_align(bytes, 1 << shift).unwrap())
}

/// A piece, and the byte that it was filled with.
type Piece = (NonNull<u8>, Layout, u8);

/// Checks that pieces are apart, and that each is as it was filled.
fn check(pieces: &[Piece]) {
    let mut ranges = Vec::new();
    for (memory, layout, fill) in pieces {
        assert!(
            memory.addr().get().is_multiple_of(layout.align()),
            "{layout:?}"
        );
        // SAFETY: the piece has so many bytes, which were written.
        let bytes = unsafe { core::slice::from_raw_parts(memory.as_ptr(), layout.size()) };
        assert!(bytes.iter().all(|byte| byte == fill), "{layout:?}");
        if layout.size() != 0 {
            ranges.push((memory.addr().get(), layout.size()));
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pieces_are_apart_aligned_and_kept(
        rounds in prop::collection::vec(prop::collection::vec(layout(), 1..200), 1..4),
    ) {
        let mut bump = Bump::new();
        for layouts in rounds {
            let mut pieces: Vec<Piece> = Vec::new();
            for (number, layout) in layouts.into_iter().enumerate() {
                let memory = bump.memory(layout).unwrap();
                // SAFETY: the piece has so many bytes, and is this test's.
                unsafe { memory.write_bytes(number as u8, layout.size()) };
                pieces.push((memory, layout, number as u8));
            }
            check(&pieces);
            let asked: usize = pieces.iter().map(|(_, layout, _)| layout.size()).sum();
            assert!(bump.bytes() >= asked);
            bump.reset();
            assert!(bump.bytes() <= 2 << 20);
        }
    }
}

#[test]
fn values_and_slices() {
    #[derive(Debug, PartialEq)]
    #[repr(align(64))]
    struct Line(u8);
    let bump = Bump::new();
    let mut numbers = Vec::new();
    for number in 0..10_000_u64 {
        numbers.push(bump.alloc(number).unwrap());
        assert_eq!(bump.alloc(()).unwrap(), &());
        assert_eq!(bump.alloc(Line(number as u8)).unwrap(), &Line(number as u8));
    }
    let words = bump.copy(b"some words").unwrap();
    words.make_ascii_uppercase();
    assert_eq!(words, b"SOME WORDS");
    assert_eq!(bump.copy::<u64>(&[]).unwrap(), &[]);
    for (number, value) in numbers.iter().enumerate() {
        assert_eq!(**value, number as u64);
    }
    let huge = Layout::from_size_align(isize::MAX as usize - 4095, 4096).unwrap();
    let had = bump.bytes();
    assert_eq!((bump.memory(huge), bump.bytes()), (None, had));
    assert_eq!(bump.copy(b"after").unwrap(), b"after");
}

#[test]
fn what_ended_serves_what_follows() {
    let mut bump = Bump::new();
    assert_eq!(bump.bytes(), 0);
    bump.reset();
    bump.copy(&[1_u8; 100]).unwrap();
    assert!(bump.bytes() <= 2048, "{} bytes for 100", bump.bytes());
    for _ in 0..1000 {
        let place = bump.copy(&[7_u32; 10_000]).unwrap().as_ptr();
        bump.reset();
        let again = bump.copy(&[8_u32; 10_000]).unwrap().as_ptr();
        assert_eq!(place, again);
        bump.reset();
    }
    // One that is larger than 2 MiB is not kept.
    bump.memory(Layout::new::<[u8; 5 << 20]>()).unwrap();
    assert!(bump.bytes() > 5 << 20);
    bump.reset();
    assert_eq!(bump.bytes(), 0);
}

#[test]
fn what_an_end_gives_back_is_used_again() {
    // The heap of this process must not grow by what ended.
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
    };
    let round = || {
        let bump = Bump::new();
        for _ in 0..100 {
            bump.copy(&[1_u8; 50_000]).unwrap();
        }
    };
    round();
    let before = resident();
    (0..200).for_each(|_| round());
    let grown = resident().saturating_sub(before) * 4096;
    assert!(grown < 100 << 20, "{grown} bytes more after a thousand MB");
}

#[test]
fn it_can_be_sent_with_what_is_in_it() {
    let bump = Bump::new();
    let rest = bump.copy(&[3_u8; 3000]).unwrap().len();
    let bump = std::thread::spawn(move || {
        bump.alloc(rest).unwrap();
        bump
    });
    let bump = Object::new(bump.join().unwrap()).unwrap();
    assert_eq!(bump.alloc(5).unwrap(), &5);
}
