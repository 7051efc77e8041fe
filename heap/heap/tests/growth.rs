//! Memory that grows by little moves a few times for each doubling, keeps its contents, and takes
//! an eighth more than it needs at most.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use brickyard_heap::{alloc, free, reallocate, usable_size, wants_hardening};

#[test]
fn what_grows_by_little_seldom_moves() {
    if wants_hardening() {
        println!("skipped: the hardened heap gives exactly what is asked for");
        return;
    }
    for step in [100, 4096, 65_536] {
        let (mut bytes, mut moves) = (64 << 10, 0);
        let mut memory = alloc(bytes);
        // SAFETY: allocated with so many bytes; each is used by its last address alone.
        unsafe {
            memory.write_bytes(7, bytes);
            while bytes < 24 << 20 {
                let had = usable_size(memory);
                let longer = reallocate(memory, bytes + step);
                assert!(!longer.is_null());
                moves += usize::from(usable_size(longer) != had);
                memory = longer;
                memory.add(bytes).write_bytes(7, step);
                bytes += step;
                let most = bytes + bytes / 4 + (64 << 10);
                assert!(
                    usable_size(memory) <= most,
                    "{bytes} {}",
                    usable_size(memory)
                );
            }
            let all = core::slice::from_raw_parts(memory, bytes);
            assert!(all.iter().all(|&byte| byte == 7));
            free(memory);
        }
        // Nine doublings of some six steps each.
        assert!(moves < 80, "{moves} by {step}");
    }
}
