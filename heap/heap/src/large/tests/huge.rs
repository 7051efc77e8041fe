//! Large blocks of huge pages: these are aligned, and not kept in parts.

use super::*;
use crate::huge::tests::mapping_of;

const HUGE: usize = crate::huge::BYTES;

/// Blocks that ask for huge pages.
pub(super) fn huge_blocks() -> LargeBlocks {
    LargeBlocks {
        huge: Some(Huge::Asked),
        ..LargeBlocks::new()
    }
}

#[test]
fn blocks_begin_with_a_huge_page_and_long_ones_end_with_one() {
    let large = huge_blocks();
    for (mib, kib, expected) in [
        (3, 4, (3 << 10) + 4),
        (7, 4, (7 << 10) + 4),
        (8, 4, 10 << 10),
        (64, 0, 64 << 10),
    ] {
        let (block, contents) = large.alloc((mib << 20) + (kib << 10), 1).unwrap();
        assert_eq!(contents, Contents::Zeros);
        assert!(block.addr().get().is_multiple_of(HUGE));
        assert_eq!(large.bytes_at(block), Some(expected << 10));
        // SAFETY: the block is this test's.
        assert!(unsafe { large.unmap(block) });
    }
    assert!(large.alloc(isize::MAX as usize - 1, 1).is_none());
}

/// Returns the first and last byte of each MiB.
fn marks(block: NonNull<u8>, mib: usize) -> Vec<u8> {
    let bytes = (0..mib).flat_map(|at| [at * MIB, (at + 1) * MIB - 1]);
    // SAFETY: the block is the caller's, and has so many bytes.
    bytes.map(|at| unsafe { block.add(at).read() }).collect()
}

#[test]
fn a_shorter_block_leaves_whole_huge_pages() {
    let large = huge_blocks();
    keeps(&large, [14]);
    // It ends with the second huge page.
    let (block, _) = large.alloc(3 * MIB, 1).unwrap();
    assert_eq!((large.bytes(), large.idle_bytes()), (4 * MIB, 10 * MIB));
    let (other, _) = large.alloc(7 * MIB, 1).unwrap();
    assert_eq!((large.bytes(), large.idle_bytes()), (12 * MIB, 2 * MIB));
    assert_eq!(other.addr().get(), block.addr().get() + 4 * MIB);
    assert_eq!(marks(other, 8), [14; 16]);
    for block in [block, other] {
        // SAFETY: the block is this test's.
        assert!(unsafe { large.unmap(block) });
    }
    let _ = large.release_idle();
    // One that is too short is not made longer: moved, it might not begin with a huge page.
    keeps(&large, [5]);
    let (block, contents) = large.alloc(9 * MIB, 1).unwrap();
    assert_eq!(contents, Contents::Zeros);
    assert_eq!((large.bytes(), large.idle_bytes()), (10 * MIB, 5 * MIB));
    for bytes in [8 * MIB + 1, 10 * MIB, 9 * MIB] {
        // SAFETY: the block is this test's.
        assert_eq!(unsafe { large.resize(block, bytes) }, Some(block));
        assert_eq!(large.bytes(), 10 * MIB);
    }
    // SAFETY: as above.
    assert!(unsafe { large.unmap(block) });
    let _ = large.release_idle();
    // One that would leave less than a huge page takes all.
    keeps(&large, [5]);
    let (block, _) = large.alloc(3 * MIB, 1).unwrap();
    assert_eq!((large.bytes(), large.idle_bytes()), (5 * MIB, 0));
    // SAFETY: as above.
    assert!(unsafe { large.unmap(block) });
}

#[test]
fn huge_pages_are_given_back_whole() {
    let large = huge_blocks();
    keeps(&large, [32, 8]);
    large.begin_look();
    assert_eq!(large.go_on_with_look(1, 16), 0);
    large.begin_look();
    // At least as much as was asked for.
    let bytes = large.go_on_with_look(1, 4);
    assert!(bytes >= 10 * MIB && bytes.is_multiple_of(HUGE), "{bytes}");
    assert_eq!(large.idle_bytes(), 40 * MIB - bytes);
    assert_eq!(large.release_idle(), 40 * MIB - bytes);
}

#[test]
fn the_system_is_asked_for_huge_pages() {
    let large = huge_blocks();
    let (block, _) = large.alloc(64 * MIB, 1).unwrap();
    let bytes = 64 * MIB;
    // SAFETY: the block is this test's.
    unsafe { block.write_bytes(1, bytes) };
    match mapping_of(block.addr().get()) {
        _ if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() => {
            println!("skipped: this kernel has no huge pages (CONFIG_TRANSPARENT_HUGEPAGE)");
        }
        Some((kib, told)) => {
            assert!(told.contains(" hg"), "{told}");
            if kib < 2048 {
                println!("no huge page came: none is free, or they are disabled");
            }
        }
        None => println!("skipped: smaps cannot be read"),
    }
    assert_eq!(resident(block, bytes), bytes / page_bytes());
    // SAFETY: as above.
    assert!(unsafe { large.unmap(block) });
}
