//! Who can be compared, by name: our heaps, the system's, libraries that are loaded before the system's, the peers that whoever runs the lab has brought, and the yardsticks.

use std::alloc::System;
use std::path::PathBuf;

use super::floor::{Floor, FloorDynamic};
use super::heap::Global;
use super::hits::Nothing;
use super::ours;
use super::preload::{self, Known};
use super::turn::{HeapPeer, HeapTaken, HeapTurn};
use super::work::Workload;
use crate::misuse::Misuse;

/// The heap that a preloaded library answers for.
pub(crate) const SYSTEM: &str = "system";

/// What counts instructions subtracts: the loop with nothing in it. Nobody can ask for it.
pub(crate) const NOTHING: &str = "nothing";

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contestant {
    pub(crate) name: String,
    /// The heap that is asked for in its process.
    pub(crate) heap: String,
    /// The library that is loaded there first.
    pub(crate) library: Option<PathBuf>,
}

impl Contestant {
    fn heap(name: &str) -> Self {
        Self {
            name: name.into(),
            heap: name.into(),
            library: None,
        }
    }

    fn preloaded(name: &str, library: PathBuf) -> Self {
        Self {
            name: format!("{name}.so"),
            heap: SYSTEM.into(),
            library: Some(library),
        }
    }

    /// Does it have rows of this workload?
    pub(crate) fn takes_part_in(&self, workload: Workload) -> bool {
        let is_yardstick = [Floor.name(), FloorDynamic.name()].contains(&&*self.heap);
        !(is_yardstick && workload.is_about_memory())
    }
}

/// All heaps that a process can be asked for, in the order of their columns.
pub(crate) fn heaps(peers: &[&'static dyn HeapPeer]) -> Vec<&'static dyn HeapPeer> {
    let system: &'static dyn HeapPeer = &SystemHeap;
    let mut all = ours::HEAPS.to_vec();
    all.push(system);
    all.extend(peers);
    all.push(&Floor);
    all.push(&FloorDynamic);
    all
}

/// The heap of this name, also those that nobody can ask for.
pub(crate) fn heap(name: &str, peers: &[&'static dyn HeapPeer]) -> Option<&'static dyn HeapPeer> {
    if name == NOTHING {
        return Some(&Nothing);
    }
    heaps(peers).into_iter().find(|heap| heap.name() == name)
}

/// Who is compared, and why some are not.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) skipped: Vec<String>,
}

/// Those that the user names, or all there are; then the libraries that the user gives.
pub(crate) fn choose(
    names: &[String],
    preload: &[String],
    peers: &[&'static dyn HeapPeer],
) -> Result<Chosen, Misuse> {
    let mut chosen = Chosen::default();
    let given: Vec<Known> = preload
        .iter()
        .map(|text| preload::given(text))
        .collect::<Result<_, _>>()?;
    let all = heaps(peers);
    if names.is_empty() {
        for heap in &all {
            chosen.contestants.push(Contestant::heap(heap.name()));
        }
        for known in preload::KNOWN {
            let is_given = given.iter().any(|given| given.name == known);
            if !is_given {
                chosen.add(known, preload::find(known));
            }
        }
    }
    for name in names {
        let library = name.strip_suffix(".so");
        if let Some(heap) = all.iter().find(|heap| heap.name() == name) {
            chosen.contestants.push(Contestant::heap(heap.name()));
        } else if let Some(known) = library.filter(|name| preload::KNOWN.contains(name)) {
            chosen.add(known, preload::find(known));
        } else {
            let mut known: Vec<String> = all.iter().map(|heap| heap.name().into()).collect();
            known.extend(preload::KNOWN.iter().map(|name| format!("{name}.so")));
            return Err(Misuse::new(format!(
                "--config: nothing is called {name:?}; there are {}",
                known.join(", ")
            )));
        }
    }
    for known in given {
        chosen.add(&known.name, known.library);
    }
    let mut names: Vec<_> = chosen.contestants.iter().map(|one| &one.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Misuse::new(format!(
            "{} is there twice; name it once in --config or --preload",
            pair[0]
        )));
    }
    Ok(chosen)
}

impl Chosen {
    fn add(&mut self, name: &str, library: Result<PathBuf, String>) {
        match library {
            Ok(library) => self.contestants.push(Contestant::preloaded(name, library)),
            Err(reason) => self.skipped.push(format!("{name}.so is skipped: {reason}")),
        }
    }
}

/// The C family as the process has it: whoever the dynamic symbols `malloc`, `calloc` and `free` belong to.
#[derive(Debug)]
struct SystemHeap;

impl HeapPeer for SystemHeap {
    fn name(&self) -> &'static str {
        SYSTEM
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        turn.on(&Global(System))
    }
}

impl HeapPeer for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        turn.on_buffers(self)
    }
}

impl HeapPeer for FloorDynamic {
    fn name(&self) -> &'static str {
        "floor-dynamic"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        turn.on_buffers(self)
    }
}

impl HeapPeer for Nothing {
    fn name(&self) -> &'static str {
        NOTHING
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        turn.on_buffers(self)
    }
}
