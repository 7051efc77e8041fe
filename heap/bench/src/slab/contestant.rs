//! What can be compared, by name: our heap, the system's, libraries that are loaded before the
//! system's, the peers that the caller of the lab adds, and the yardsticks.

use std::alloc::System;
use std::path::PathBuf;

use super::baseline::{Floor, FloorDynamic};
use super::hits::Nothing;
use super::turn::{HeapPeer, HeapTurn};
use super::work::Workload;
use brickyard_measure::objects::heap::Global;
use brickyard_measure::objects::taken::Taken;

/// The heap that a preloaded library replaces.
pub(crate) const SYSTEM: &str = "system";

/// The empty loop, which is subtracted from counts of instructions. Users cannot name it.
pub(crate) const NOTHING: &str = "nothing";

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contestant {
    /// Its name.
    pub name: String,
    /// The heap that its process uses.
    pub(crate) heap: String,
    /// The library that its process preloads.
    pub(crate) library: Option<PathBuf>,
}

impl Contestant {
    /// Returns the contestant that is a heap of the process, by its name.
    #[must_use]
    pub fn heap(name: &str) -> Self {
        Self {
            name: name.into(),
            heap: name.into(),
            library: None,
        }
    }

    /// Returns the contestant that is a library loaded before the system's malloc.
    #[must_use]
    pub fn preloaded(name: &str, library: PathBuf) -> Self {
        Self {
            name: format!("{name}.so"),
            heap: SYSTEM.into(),
            library: Some(library),
        }
    }

    /// Returns true if it has rows of this workload.
    pub(crate) fn takes_part_in(&self, workload: Workload) -> bool {
        let is_yardstick = [Floor.name(), FloorDynamic.name()].contains(&&*self.heap);
        !(is_yardstick && workload.is_about_memory())
    }
}

/// Returns all heaps that can be named, in the order of their columns.
pub fn heaps(peers: &[&'static dyn HeapPeer]) -> Vec<&'static dyn HeapPeer> {
    let system: &'static dyn HeapPeer = &SystemHeap;
    let ours: &'static dyn HeapPeer = &ProcessHeap;
    let mut all = vec![ours, system];
    all.extend(peers);
    all.push(&Floor);
    all.push(&FloorDynamic);
    all
}

/// Returns the heap of this name, also the internal one.
pub fn heap(name: &str, peers: &[&'static dyn HeapPeer]) -> Option<&'static dyn HeapPeer> {
    if name == NOTHING {
        return Some(&Nothing);
    }
    heaps(peers).into_iter().find(|heap| heap.name() == name)
}

/// Our heap, as `#[global_allocator]`: a row per CPU by restartable sequences.
#[derive(Debug)]
struct ProcessHeap;

impl HeapPeer for ProcessHeap {
    fn name(&self) -> &'static str {
        "brickyard"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken> {
        turn.on(&Global(brickyard_heap::Global))
    }
}

/// The malloc family of the process: that of the dynamic symbols `malloc`, `calloc` and `free`.
#[derive(Debug)]
struct SystemHeap;

impl HeapPeer for SystemHeap {
    fn name(&self) -> &'static str {
        SYSTEM
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken> {
        turn.on(&Global(System))
    }
}

impl HeapPeer for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken> {
        turn.on_buffers(self)
    }
}

impl HeapPeer for FloorDynamic {
    fn name(&self) -> &'static str {
        "floor-dynamic"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken> {
        turn.on_buffers(self)
    }
}

impl HeapPeer for Nothing {
    fn name(&self) -> &'static str {
        NOTHING
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken> {
        turn.on_buffers(self)
    }
}
