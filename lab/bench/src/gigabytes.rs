//! The load of `gigabytes`: how many gigabytes kernel memory spoils while memory is full.
//!
//! A page table of 1 GiB, or a huge page of that size, needs a whole aligned gigabyte, and one frame
//! that cannot be moved spoils it for as long as it lives. So a machine wants its kernel memory in as
//! few gigabytes as hold it. That is hard where memory is full all the time: what is free then lies
//! where the cache has just given way.
//!
//! 1. The kernel takes its least, a half of it for good; the cache takes all the rest but what is
//!    kept free.
//! 2. Kernel memory swings from its least to its peak and back, so many times. Each of its blocks has
//!    a lifetime of its own, most of them short and some very long, and the cache gives way to it at
//!    random: frame by frame, and for a larger block by a whole neighbourhood. It also replaces some
//!    of its frames all the time. A few of them are pinned, which stay where they are.
//!
//! A *tainted* gigabyte has kernel memory in it. The least possible number of them is that of all
//! kernel memory side by side. Of page blocks (2 MiB) the same is counted.
//!
//! Nothing is timed and there is one thread, so a seed gives the same numbers on every machine.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::{Context as _, bail, ensure};
use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Configuration, Experiment};

use super::machine::{Build, FRAME_BYTES, HostPlatform};
use brickyard_run::Random;
use brickyard_run::interrupt;

/// Frames of a gigabyte.
pub const GIGABYTE: usize = (1 << 30) / FRAME_BYTES;

/// How memory is used, in parts of a thousand of it.
#[derive(Debug, Clone, Copy)]
pub struct Swings {
    /// How often kernel memory grows to its peak and shrinks again.
    pub swings: usize,
    /// Kernel memory at its least.
    pub least: usize,
    /// Kernel memory at its peak.
    pub peak: usize,
    /// What is kept free.
    pub free: usize,
    /// What is pinned.
    pub pinned: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Where kernel memory lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    /// Gigabytes, and page blocks, with kernel memory.
    pub tainted: [usize; 2],
    /// How many of each would hold it.
    pub least: [usize; 2],
    /// Gigabytes, and page blocks, in which everything could be moved away.
    pub movable: [usize; 2],
}

/// What a load did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// At the last peak, and at the end.
    pub spread: [Spread; 2],
    /// Requests of the kernel that failed: they could not wait, or what the cache gave did not help.
    pub failed: usize,
}

/// Returns what the load does to a machine with so much memory, of which only the metadata is real.
///
/// # Errors
/// The machine cannot be built, or is too small.
pub fn spoilt(
    configuration: Configuration,
    memory: usize,
    swings: Swings,
) -> anyhow::Result<Outcome> {
    let build = Build::plain(memory / FRAME_BYTES);
    let outcome = build.run_alone(configuration, swings)?;
    outcome.with_context(|| format!("{configuration}"))
}

/// A block of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    /// In allocations of the kernel since the start.
    until: u64,
    frame: u32,
    order: u8,
}

/// A request looks for so many neighbourhoods that could give way, and is tried so often.
const TRIES: usize = 64;

/// In the cache, a frame that is not.
const NOWHERE: u32 = u32::MAX;

/// The cache replaces so many of its frames for each block by which the kernel grows or shrinks.
const REPLACED: usize = 4;

/// The machine while it is loaded.
struct Load<'n, 'z, Z: LabZone> {
    nodes: &'n Nodes<'z, Z>,
    frames: usize,
    random: Random,
    cache: Vec<u32>,
    /// Where each frame is in the cache.
    places: Vec<u32>,
    pinned: Vec<u32>,
    kernel: BinaryHeap<Reverse<Held>>,
    /// Frames of the kernel.
    held: usize,
    /// Blocks that the kernel has taken since the start.
    taken: u64,
    failed: usize,
}

impl<Z: LabZone> Load<'_, '_, Z> {
    fn alloc(&self, request: &Request) -> Option<u32> {
        let frame = self.nodes.alloc(0, request).ok()?;
        Some(frame.number() as u32)
    }

    fn free(&self, frame: u32, order: Order) -> anyhow::Result<()> {
        let freed = self.nodes.free(Frame::new(frame as usize), order);
        freed.context("a free of what was allocated")
    }

    fn used(&self) -> usize {
        self.cache.len() + self.pinned.len() + self.held
    }

    fn put_into_cache(&mut self, frame: u32) {
        self.places[frame as usize] = self.cache.len() as u32;
        self.cache.push(frame);
    }

    /// Takes what lies at `place` out of the cache.
    fn out_of_cache(&mut self, place: usize) -> u32 {
        let frame = self.cache.swap_remove(place);
        if let Some(&moved) = self.cache.get(place) {
            self.places[moved as usize] = place as u32;
        }
        self.places[frame as usize] = NOWHERE;
        frame
    }

    /// Frees so many frames of the cache, at random.
    fn give_way(&mut self, frames: usize) -> anyhow::Result<()> {
        for _ in 0..frames.min(self.cache.len()) {
            let place = self.random.below(self.cache.len());
            let frame = self.out_of_cache(place);
            self.free(frame, Order::ZERO)?;
        }
        Ok(())
    }

    /// Frees what of the cache lies in the place of a block of this order: of several at random, the
    /// one with most of it.
    fn give_way_to(&mut self, order: u8) -> anyhow::Result<()> {
        let size = 1_u32 << order;
        let mut best = (0, 0);
        for _ in 0..TRIES {
            let frame = self.cache[self.random.below(self.cache.len())];
            let first = frame & !(size - 1);
            let block = first as usize..self.frames.min((first + size) as usize);
            let cached = self.places[block].iter().filter(|&&at| at != NOWHERE);
            best = best.max((cached.count(), first));
            if best.0 == size as usize {
                break;
            }
        }
        for frame in best.1..(best.1 + size).min(self.frames as u32) {
            let place = self.places[frame as usize];
            if place != NOWHERE {
                let frame = self.out_of_cache(place as usize);
                self.free(frame, Order::ZERO)?;
            }
        }
        // What lies in a cache of the allocator merges with nothing.
        if order > 0 {
            self.nodes.drain();
        }
        Ok(())
    }

    /// Makes the cache as large as it may be, if so many frames are to be free.
    fn fit_cache(&mut self, free: usize) -> anyhow::Result<()> {
        let most = self.frames - free;
        self.give_way(self.used().saturating_sub(most))?;
        while self.used() < most {
            let Some(frame) = self.alloc(&Request::page(Mobility::Movable)) else {
                break;
            };
            self.put_into_cache(frame);
        }
        Ok(())
    }

    /// Allocates a block of the kernel. The cache gives way if it has to, unless the request cannot
    /// wait. `None` if it failed.
    fn alloc_for_kernel(&mut self) -> anyhow::Result<Option<Held>> {
        let order = match self.random.below(100) {
            0..80 => 0,
            80..90 => 1,
            90..96 => 2,
            _ => 3,
        };
        let mobility = match self.random.below(2) {
            0 => Mobility::Unmovable,
            _ => Mobility::Reclaimable,
        };
        let request = Request::new(Order::new(order), mobility);
        let waits = self.random.below(20) != 0;
        let request = if waits { request } else { request.atomic() };
        self.taken += 1;
        // Half of them live for less than two thousand others, one in a thousand for a million.
        let lives = 1e3 / (self.random.below(1 << 20) + 1) as f64 * f64::from(1 << 20);
        for _ in 0..TRIES {
            if let Some(frame) = self.alloc(&request) {
                self.held += 1 << order;
                let until = self.taken + lives as u64;
                return Ok(Some(Held {
                    until,
                    frame,
                    order,
                }));
            }
            if !waits {
                break;
            }
            self.give_way_to(order)?;
        }
        self.failed += 1;
        Ok(None)
    }

    fn take_for_kernel(&mut self) -> anyhow::Result<()> {
        if let Some(held) = self.alloc_for_kernel()? {
            self.kernel.push(Reverse(held));
        }
        Ok(())
    }

    /// Frees the block of the kernel whose time is up next.
    fn drop_of_kernel(&mut self) -> anyhow::Result<()> {
        if let Some(Reverse(held)) = self.kernel.pop() {
            self.held -= 1 << held.order;
            self.free(held.frame, Order::new(held.order))?;
        }
        Ok(())
    }

    /// Lets kernel memory grow or shrink to so many frames, with so many free.
    fn swing(&mut self, to: usize, free: usize) -> anyhow::Result<()> {
        let grows = self.held < to;
        let mut failures = 0;
        while (self.held < to) == grows {
            ensure!(!interrupt::asked(), "interrupted");
            // Two come for one that goes, or the reverse.
            let before = self.failed;
            self.take_for_kernel()?;
            self.drop_of_kernel()?;
            match grows {
                true => self.take_for_kernel()?,
                false => self.drop_of_kernel()?,
            }
            failures = if self.failed > before {
                failures + 1
            } else {
                0
            };
            if failures > TRIES {
                bail!("the kernel gets no memory");
            }
            self.give_way(REPLACED)?;
            self.fit_cache(free)?;
        }
        Ok(())
    }

    fn spread(&self, forever: &[Held]) -> Spread {
        let sizes = [GIGABYTE, Order::HUGE.frames()];
        let places = sizes.map(|size| self.frames.div_ceil(size));
        let [mut kernel, mut fixed] = [places, places].map(|places| places.map(|n| vec![false; n]));
        let blocks = self.kernel.iter().map(|Reverse(held)| held).chain(forever);
        for held in blocks {
            for (of, size) in kernel.iter_mut().zip(sizes) {
                of[held.frame as usize / size] = true;
            }
        }
        for &frame in &self.pinned {
            for (of, size) in fixed.iter_mut().zip(sizes) {
                of[frame as usize / size] = true;
            }
        }
        let count = |of: &[bool]| of.iter().filter(|&&is| is).count();
        let either = |i: usize| {
            let both = kernel[i].iter().zip(&fixed[i]);
            both.filter(|&(&kernel, &fixed)| kernel || fixed).count()
        };
        Spread {
            tainted: [count(&kernel[0]), count(&kernel[1])],
            least: sizes.map(|size| self.held.div_ceil(size)),
            movable: [places[0] - either(0), places[1] - either(1)],
        }
    }
}

impl Experiment<HostPlatform> for Swings {
    type Output = anyhow::Result<Outcome>;

    fn run<Z: LabZone<Platform = HostPlatform>>(self, node: &Node<'_, Z>) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let frames: usize = nodes.zones().map(|zone| zone.managed_frames()).sum();
        let part = |thousandths: usize| frames / 1000 * thousandths;
        let mut load = Load {
            nodes: &nodes,
            frames,
            random: Random::new(self.seed),
            cache: Vec::with_capacity(frames),
            places: vec![NOWHERE; frames],
            pinned: Vec::new(),
            kernel: BinaryHeap::new(),
            held: 0,
            taken: 0,
            failed: 0,
        };
        let mut forever = Vec::new();
        while load.held < part(self.least) / 2 {
            let held = load.alloc_for_kernel()?;
            forever.push(held.context("too little memory for what the kernel never frees")?);
        }
        while load.held < part(self.least) {
            load.take_for_kernel()?;
        }
        load.fit_cache(part(self.free))?;
        for _ in 0..part(self.pinned) {
            let place = load.random.below(load.cache.len());
            let pinned = load.out_of_cache(place);
            load.pinned.push(pinned);
        }
        let mut outcome = Outcome::default();
        for _ in 0..self.swings {
            load.swing(part(self.peak), part(self.free))?;
            outcome.spread[0] = load.spread(&forever);
            load.swing(part(self.least), part(self.free))?;
        }
        outcome.spread[1] = load.spread(&forever);
        outcome.failed = load.failed;
        Ok(outcome)
    }
}
