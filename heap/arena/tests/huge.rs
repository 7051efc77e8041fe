//! Huge pages: given where the machine has them, and a clear error where it has not.
//!
//! What a machine offers is its administrator's choice, so these tests say what they could not
//! show.

#![cfg(target_os = "linux")]

use std::fs;

use brickyard_arena::{HUGE_BYTES, Huge, MapError, MapPlan, Mapped, PartError, Release};

/// Kilobytes of transparent huge pages in the mappings that `memory` has a part in; or why that
/// cannot be told.
fn transparent_kib(memory: &Mapped) -> Result<usize, String> {
    let smaps = fs::read_to_string("/proc/self/smaps").map_err(|e| format!("no smaps: {e}"))?;
    let (first, last) = (memory.start().addr().get(), memory.bytes());
    let (mut ours, mut found) = (false, None);
    for line in smaps.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        let hex = |digits| usize::from_str_radix(digits, 16).ok();
        if let Some((Some(start), Some(end))) = word.split_once('-').map(|(s, e)| (hex(s), hex(e)))
        {
            ours = start < first + last && first < end;
        } else if ours && word == "AnonHugePages:" {
            let number = line.split_whitespace().nth(1);
            let kib: usize = number.and_then(|kib| kib.parse().ok()).ok_or(line)?;
            found = Some(found.unwrap_or(0) + kib);
        }
    }
    found.ok_or_else(|| "smaps has no AnonHugePages".to_owned())
}

/// Why this machine gives no transparent huge pages, if it gives none.
fn withheld() -> Option<String> {
    let setting = "/sys/kernel/mm/transparent_hugepage/enabled";
    let enabled = match fs::read_to_string(setting) {
        Ok(enabled) => enabled,
        Err(error) => return Some(format!("{setting}: {error}")),
    };
    if enabled.contains("[never]") {
        return Some(format!("{setting} says never"));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let disabled = status
        .lines()
        .any(|line| line.starts_with("THP_enabled:") && line.ends_with('0'));
    disabled.then(|| "they are disabled for this process (prctl)".to_owned())
}

#[test]
fn transparent_huge_pages_where_the_machine_gives_them() {
    let mut memory = match MapPlan::new(16 * HUGE_BYTES).huge(Huge::Transparent).map() {
        Ok(memory) => memory,
        Err(error @ MapError::NoTransparent { .. }) => {
            assert!(error.to_string().contains("CONFIG_TRANSPARENT_HUGEPAGE"));
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(memory.huge(), Huge::Transparent);
    assert!(memory.start().addr().get().is_multiple_of(HUGE_BYTES));
    for byte in memory.as_uninit().iter_mut().step_by(4096) {
        byte.write(1);
    }
    let reason = match (withheld(), transparent_kib(&memory)) {
        (Some(reason), _) | (None, Err(reason)) => reason,
        (None, Ok(kib)) => {
            assert!(kib >= 2048, "{kib} KiB in huge pages");
            println!("{kib} KiB of {} in huge pages", memory.bytes() / 1024);
            // What is given back is in no huge page any more.
            memory.release(0..memory.bytes(), Release::Now).unwrap();
            assert_eq!(transparent_kib(&memory), Ok(0));
            return;
        }
    };
    println!("skipped: {reason}");
}

#[test]
fn too_few_explicit_huge_pages_are_an_error_that_says_what_to_do() {
    // 16 TiB: no pool has that.
    let pages = 1 << 23;
    let error = MapPlan::new(pages * HUGE_BYTES)
        .huge(Huge::Explicit)
        .map()
        .unwrap_err();
    let says = error.to_string();
    match error {
        MapError::TooFewHugePages { pages: needed, .. } => {
            assert_eq!(needed, pages);
            assert!(says.contains("add 8388608 to the number in /proc/sys/vm/nr_hugepages"));
        }
        MapError::NoExplicit { .. } => assert!(says.contains("CONFIG_HUGETLBFS"), "{says}"),
        other => panic!("{other:?}"),
    }
    println!("{says}");
}

#[test]
fn explicit_huge_pages_where_the_pool_has_them() {
    // One byte is rounded up to a huge page.
    match MapPlan::new(1).huge(Huge::Explicit).map() {
        Ok(mut memory) => {
            assert_eq!(memory.bytes(), HUGE_BYTES);
            assert!(memory.start().addr().get().is_multiple_of(HUGE_BYTES));
            for byte in memory.as_uninit().iter_mut().step_by(4096) {
                byte.write(1);
            }
            let refused = memory.release(0..HUGE_BYTES, Release::Now);
            assert!(matches!(refused, Err(PartError::Explicit)), "{refused:?}");
        }
        Err(error) => println!("skipped: {error}"),
    }
    // Alignment beyond a huge page needs as many more for a moment.
    if let Ok(memory) = MapPlan::new(1)
        .align_to(2 * HUGE_BYTES)
        .huge(Huge::Explicit)
        .map()
    {
        assert!(memory.start().addr().get().is_multiple_of(2 * HUGE_BYTES));
        assert_eq!(memory.bytes(), HUGE_BYTES);
    }
    let reserved = MapPlan::new(1).huge(Huge::Explicit).reserve();
    assert!(
        matches!(reserved, Err(MapError::ExplicitReserved)),
        "{reserved:?}"
    );
}
