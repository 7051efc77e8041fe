//! Memory maps with holes, overlaps and nonsense; and the kernel's command line.

use crate::memory_map::{MemoryMap, PAGE, TooMany};
use crate::settings;

fn free(map: &MemoryMap) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    map.free(|from, to| found.push((from, to)));
    found
}

#[test]
fn what_is_reserved_is_not_free() {
    let mut map = MemoryMap::new();
    map.memory.push(0, 640 << 10).unwrap();
    map.memory.push(1 << 20, 15 << 20).unwrap();
    // Overlapping, in any order, and cutting pages.
    map.reserved.push((4 << 20) + 1, PAGE).unwrap();
    map.reserved.push(0, 1 << 20).unwrap();
    map.reserved.push(2 << 20, 1 << 20).unwrap();
    map.reserved.push(5 << 19, 1 << 20).unwrap();
    assert_eq!(free(&map), [(256, 512), (896, 1024), (1026, 4096)]);
    assert_eq!(map.pages(), Some((0, 4096)));
    let metadata = map.carve(300 * PAGE).unwrap();
    assert_eq!(metadata, Some(1026 * PAGE));
    assert_eq!(free(&map), [(256, 512), (896, 1024), (1326, 4096)]);
    assert_eq!(map.carve(4096 * PAGE), Ok(None));
}

#[test]
fn nonsense_is_harmless() {
    let mut map = MemoryMap::new();
    assert_eq!(map.pages(), None);
    assert_eq!(map.carve(PAGE), Ok(None));
    map.memory.push(PAGE / 2, PAGE).unwrap();
    map.memory.push(77, 0).unwrap();
    assert_eq!(free(&map), []);
    map.memory.push(usize::MAX - PAGE, usize::MAX).unwrap();
    map.reserved.push(0, usize::MAX).unwrap();
    assert_eq!(free(&map), []);
    let mut full = MemoryMap::new();
    let pushed = (0..1000).map(|i| full.memory.push(i * PAGE, PAGE));
    assert_eq!(pushed.filter(|pushed| *pushed == Err(TooMany)).count(), 936);
}

#[test]
fn the_command_line() {
    let read = |text: &'static str| settings::read(text.as_bytes());
    let set = read("/boot/metal seed=7  steps=30 seconds=2\trounds=9").unwrap();
    assert_eq!(
        (set.seed, set.steps, set.seconds, set.rounds),
        (7, 30, 2, 9)
    );
    assert_eq!(read("").unwrap().rounds, 2);
    for wrong in [
        "sed=7",
        "seed=",
        "seed=x",
        "seed=-1",
        "=3",
        "steps=99999999999999999999",
    ] {
        let said = read(wrong).unwrap_err().to_string();
        assert!(said.contains(wrong) && said.contains("seed="), "{said}");
    }
}
