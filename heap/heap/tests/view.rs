//! What another process reads of the heap is what the heap tells itself, in a process of its own.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use brickyard_heap::view::{ViewError, candidates};
use brickyard_heap::{Statistics, alloc, free, statistics};

/// Reads this process' memory as another process would.
fn reader() -> impl FnMut(usize, &mut [u8]) -> io::Result<()> {
    let memory = File::open("/proc/self/mem").unwrap();
    move |address, bytes| memory.read_exact_at(bytes, address as u64)
}

/// Returns the addresses of this program's own variables at which a view may be.
fn found() -> Vec<usize> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps
        .lines()
        .filter(|line| line.contains(" rw-p ") && line.contains('/'));
    let mut places = Vec::new();
    for line in own {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
        let mut piece = vec![0; end - start];
        reader()(start, &mut piece).unwrap();
        places.extend(candidates(&piece).map(|at| start + at));
    }
    places
}

#[test]
fn another_process_computes_the_same_numbers() {
    let [view] = found()[..] else {
        panic!("a program with the heap has one view: {:?}", found());
    };
    assert!(matches!(
        Statistics::of_view(view, reader()),
        Err(ViewError::Unused)
    ));
    let mut held = Vec::new();
    for round in 0..2000_usize {
        let bytes = [24, 100, 1000, 5000, 30_000][round % 5];
        held.push(alloc(bytes));
    }
    held.extend([
        alloc(200 << 10),
        alloc(1 << 20),
        alloc(3 << 20),
        alloc(5 << 20),
    ]);
    let same = || {
        let inside = statistics();
        assert_eq!(Statistics::of_view(view, reader()).unwrap(), inside);
        inside
    };
    let full = same();
    assert!(
        full.objects() > 7_000_000 && full.runs() > 1 << 20,
        "{full:?}"
    );
    assert_eq!((full.large_blocks, full.large), (2, 8 << 20));
    for memory in held.drain(..).step_by(2) {
        // SAFETY: allocated above, and freed once.
        unsafe { free(memory) };
    }
    let half = same();
    assert!(
        half.queued() > 0 && half.objects() < full.objects(),
        "{half:?}"
    );
    assert_eq!(half.large_blocks, 1);
    // Anything else at an address is no view.
    let memory = alloc(64);
    let other = Statistics::of_view(memory.addr(), reader());
    assert!(matches!(other, Err(ViewError::NoView)));
    // Nor is a copy of one.
    let shifted = |address: usize, bytes: &mut [u8]| reader()(address - 64 + view, bytes);
    assert!(matches!(
        Statistics::of_view(64, shifted),
        Err(ViewError::NoView)
    ));
    // A heap of another version is told apart from none.
    let newer = |address: usize, bytes: &mut [u8]| {
        reader()(address, bytes)?;
        if address == view + 16 {
            bytes.fill(7);
        }
        Ok::<(), io::Error>(())
    };
    let other = Statistics::of_view(view, newer).unwrap_err();
    assert!(
        matches!(other, ViewError::Version { ours: 4, .. }),
        "{other}"
    );
    // Whatever a process writes there, it is refused or read, with no number beyond all bounds.
    let mut refused = 0;
    for at in 0..421 {
        let wild = |address: usize, bytes: &mut [u8]| {
            reader()(address, bytes)?;
            if bytes.len() > 2000 && address < view + 64 {
                bytes[8 * at..8 * at + 8].fill(0xff);
            }
            Ok::<(), io::Error>(())
        };
        match Statistics::of_view(view, wild) {
            Ok(wild) => assert!(wild.held() < 1 << 50, "word {at}: {wild:?}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 200, "{refused}");
    let nothing = Statistics::of_view(0, reader());
    assert!(matches!(nothing, Err(ViewError::Memory(_))));
}
