//! Mapped memory: aligned, zero at first, zero again when it was given back; wrong input is an
//! error.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use brickyard_arena::{
    HUGE_BYTES, Huge, MapError, MapPlan, Mapped, PartError, Release, page_bytes,
};

/// What the first byte of each page holds.
fn first_bytes(memory: &Mapped) -> Vec<u8> {
    let pages = memory.bytes() / page_bytes();
    // SAFETY: a mapping is zero or what was written to it, so initialised, and can be read
    // throughout.
    let read = |page| unsafe { memory.start().add(page * page_bytes()).read_volatile() };
    (0..pages).map(read).collect()
}

fn fill(memory: &mut Mapped, byte: u8) {
    for at in memory.as_uninit() {
        at.write(byte);
    }
}

#[test]
fn a_length_is_rounded_up_to_pages_and_zero_at_first() {
    for bytes in [1, page_bytes() - 1, page_bytes(), page_bytes() + 1, 1 << 20] {
        let mut memory = Mapped::new(bytes).unwrap();
        assert_eq!(memory.bytes(), bytes.next_multiple_of(page_bytes()));
        assert!(first_bytes(&memory).iter().all(|&byte| byte == 0));
        assert_eq!(memory.as_uninit().len(), memory.bytes());
        fill(&mut memory, 0xa5);
        assert!(first_bytes(&memory).iter().all(|&byte| byte == 0xa5));
    }
}

#[test]
fn a_start_is_aligned_and_no_byte_is_lost_by_it() {
    let mut kept = Vec::new();
    for shift in [0, 3, 12, 16, 21, 22, 30] {
        for bytes in [1, 3 * page_bytes(), HUGE_BYTES + page_bytes()] {
            let mut memory = MapPlan::new(bytes).align_to(1 << shift).map().unwrap();
            assert!(memory.start().addr().get().is_multiple_of(1 << shift));
            fill(&mut memory, shift as u8);
            kept.push((memory, shift as u8));
        }
    }
    for (memory, byte) in kept {
        assert!(first_bytes(&memory).iter().all(|&found| found == byte));
    }
}

#[test]
fn what_is_unmapped_is_gone() {
    // Often enough that a leak would end it: 1024 TiB in all, of the 128 TiB that a process of
    // x86-64 has.
    for _ in 0..1024 {
        let memory = MapPlan::new(1 << 40).reserve().unwrap();
        assert_eq!(memory.bytes(), 1 << 40);
    }
}

#[test]
fn released_pages_are_zero_again_and_others_are_not() {
    let page = page_bytes();
    let mut memory = Mapped::new(8 * page).unwrap();
    fill(&mut memory, 1);
    memory.release(2 * page..5 * page, Release::Now).unwrap();
    assert_eq!(first_bytes(&memory), [1, 1, 0, 0, 0, 1, 1, 1]);
    memory.as_uninit()[3 * page].write(2);
    assert_eq!(first_bytes(&memory), [1, 1, 0, 2, 0, 1, 1, 1]);

    fill(&mut memory, 3);
    memory.release(0..8 * page, Release::Lazily).unwrap();
    assert!(first_bytes(&memory).iter().all(|&b| b == 0 || b == 3));
    fill(&mut memory, 4);
    assert_eq!(first_bytes(&memory), [4; 8]);
    memory.release(page..page, Release::Now).unwrap();
    assert_eq!(first_bytes(&memory), [4; 8]);
}

#[test]
fn parts_that_are_none_are_refused() {
    let page = page_bytes();
    let mut memory = Mapped::new(4 * page).unwrap();
    fill(&mut memory, 1);
    let backwards = core::ops::Range {
        start: page,
        end: 0,
    };
    for part in [0..5 * page, 5 * page..6 * page, 0..usize::MAX, backwards] {
        let refused = memory.release(part, Release::Now);
        assert!(
            matches!(refused, Err(PartError::Outside { .. })),
            "{refused:?}"
        );
    }
    for part in [1..page, 0..1, page - 1..page] {
        let refused = memory.release(part, Release::Now);
        assert!(
            matches!(refused, Err(PartError::Misaligned { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(first_bytes(&memory), [1; 4]);
}

#[test]
fn reserved_memory_is_committed_by_parts() {
    let page = page_bytes();
    // More than any machine has.
    let mut addresses = MapPlan::new(1 << 42).align_to(1 << 30).reserve().unwrap();
    let middle = 1 << 41;
    addresses.commit(middle..middle + 2 * page).unwrap();
    // SAFETY: these two pages are committed.
    let at = unsafe { addresses.start().add(middle) };
    // SAFETY: as above; nobody else uses them.
    unsafe {
        assert_eq!(at.read(), 0);
        at.write(7);
        at.add(2 * page - 1).write(8);
    }
    // Again changes nothing.
    addresses.commit(middle..middle + page).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { at.read() }, 7);
    addresses.withdraw(middle..middle + page).unwrap();
    addresses.commit(middle..middle + page).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { (at.read(), at.add(2 * page - 1).read()) }, (0, 8));
    assert!(matches!(
        addresses.commit((1 << 42)..(1 << 42) + page),
        Err(PartError::Outside { .. })
    ));
}

#[test]
fn wrong_lengths_and_alignments_are_errors() {
    for huge in [Huge::No, Huge::Transparent, Huge::Explicit] {
        let empty = MapPlan::new(0).huge(huge).map();
        assert!(matches!(empty, Err(MapError::Empty)), "{empty:?}");
        for bytes in [usize::MAX, usize::MAX - 5000, isize::MAX as usize] {
            let long = MapPlan::new(bytes).huge(huge).map();
            assert!(matches!(long, Err(MapError::TooLong { .. })), "{long:?}");
        }
        for align in [0, 3, page_bytes() + 1] {
            let odd = MapPlan::new(1).align_to(align).huge(huge).map();
            assert!(matches!(odd, Err(MapError::Alignment { .. })), "{odd:?}");
        }
        let wide = MapPlan::new(1).align_to(1 << 63).huge(huge).map();
        assert!(matches!(wide, Err(MapError::TooLong { .. })), "{wide:?}");
    }
    let empty = MapPlan::new(0).reserve();
    assert!(matches!(empty, Err(MapError::Empty)), "{empty:?}");
    // More than an address of today's processors can name.
    for plan in [
        MapPlan::new(1 << 61),
        MapPlan::new(1 << 61).huge(Huge::Transparent),
    ] {
        for refused in [plan.map().map(drop), plan.reserve().map(drop)] {
            let Err(MapError::Refused { bytes, .. }) = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(*bytes, 1 << 61);
            let says = refused.unwrap_err().to_string();
            assert!(says.contains("MapPlan::reserve"), "{says}");
        }
    }
}
