//! Objects of several pages: each has just its pages, they go back, and zeros of that size are
//! pages that are not memory before they are used. In a process of its own, since it counts pages.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;

use brickyard_heap::{
    allocate_zeroed, free, reallocate, statistics, trim, usable_size, wants_hardening,
};

const PAGE: usize = 4096;
const KIB: usize = 1 << 10;

/// Returns the bytes of this process that are memory.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = text.split(' ').nth(1).unwrap();
    pages.parse::<usize>().unwrap() * PAGE
}

fn taken(bytes: usize, fill: u8) -> *mut u8 {
    let memory = brickyard_heap::alloc(bytes);
    assert!(!memory.is_null() && usable_size(memory) >= bytes);
    // SAFETY: just allocated, with so many bytes.
    unsafe { memory.write_bytes(fill, bytes) };
    memory
}

fn is_filled(memory: *mut u8, bytes: usize, with: u8) -> bool {
    // SAFETY: the callers' memory has so many bytes, all of them written.
    unsafe { core::slice::from_raw_parts(memory, bytes) }
        .iter()
        .all(|&byte| byte == with)
}

#[test]
fn objects_of_several_pages_have_just_these_and_give_them_back() {
    // SAFETY: a plain call.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if page != PAGE as i64 || wants_hardening() {
        println!("skipped: pages of another size, or the hardened heap");
        return;
    }
    // In small pages, which a heap has at first, zeros are no memory before they are used.
    let much = resident();
    let zeros: Vec<_> = (0..100).map(|_| allocate_zeroed(120 * KIB)).collect();
    assert!(resident() < much + (4 << 20), "{} {much}", resident());
    for (i, &memory) in zeros.iter().enumerate() {
        assert!(is_filled(memory, 120 * KIB, 0));
        assert!(usable_size(memory) >= 120 * KIB);
        // Larger, smaller, and free: it is found to be what it is.
        let bytes = [130 * KIB, 50 * KIB, 100][i % 3];
        // SAFETY: allocated above, and not used afterwards.
        let memory = unsafe { reallocate(memory, bytes) };
        assert!(!memory.is_null() && is_filled(memory, bytes.min(120 * KIB), 0));
        // SAFETY: as above.
        unsafe { free(memory) };
    }
    let before = statistics();
    // Sizes that leave longer runs behind, then all that there are, in three orders of freeing.
    for round in 0..3_usize {
        let mut zeros: Vec<_> = (0..60)
            .map(|i| allocate_zeroed(33 * KIB + i % 7 * 13 * PAGE + PAGE * 3))
            .collect();
        for memory in zeros.drain(..) {
            // SAFETY: allocated above, and freed once.
            unsafe { free(memory) };
        }
        let mut held = Vec::new();
        for i in 0..1000_usize {
            let bytes = 32 * KIB + 1 + i * 7919 % (96 * KIB);
            held.push((taken(bytes, i as u8), bytes, i as u8));
        }
        let full = statistics();
        // What their classes have more than was asked for is a ninth at most, and a page.
        let asked: usize = held.iter().map(|held| held.1).sum();
        let large = full.sizes.iter().filter(|size| size.size > 32 * KIB);
        let mut in_use = 0;
        for size in large {
            assert_eq!(size.slabs, size.objects * size.size, "{size:?}");
            in_use += size.in_use * size.size;
        }
        assert!(
            (asked..asked / 9 * 10 + 1000 * PAGE).contains(&in_use),
            "{asked} {in_use}"
        );
        // Runs that were longer serve too, by an eighth at most.
        assert!(full.runs() <= before.runs() + in_use / 8, "{full:?}");
        let mut number = round;
        while !held.is_empty() {
            number = (number * 31 + 17) % 1_000_003;
            let place = match round {
                0 => held.len() - 1,
                1 => 0,
                _ => number % held.len(),
            };
            let (memory, bytes, fill) = held.swap_remove(place);
            assert!(is_filled(memory, bytes, fill));
            // SAFETY: allocated above, and freed once.
            unsafe { free(memory) };
        }
        trim();
        let after = statistics();
        assert!(after.pages <= before.pages + (4 << 20), "{after:?}");
        assert_eq!(after.objects(), before.objects());
    }
}
