//! The protocol of 2005 and 2007: how many huge pages can be allocated under load, and at rest.
//!
//! Seven kernel builds are started one after another, each on its own copy of the tree, with a walk
//! over the file system beside them. When all run, a huge page is requested every tenth of a
//! second, and each one is held to the end of the pass. Then comes the pass at rest: the processes
//! end, the trees are deleted, a file as large as memory goes through the page cache and is
//! deleted, and as many huge pages are requested as memory has.

mod load;
mod min_free;
mod profile;

pub use load::{Program, Served};
pub use min_free::{MOMENTS, MinFree};
pub use profile::{
    Known, Line2007, OF_2007, Profile, Published, Reclaim, published, published_2005,
};

use brickyard::node::movable::Sizing;
use brickyard::node::{Node, Nodes};
use brickyard::{Frame, FrameRange, Mobility, Order, Request, ZoneKind};
use brickyard_classics::Configuration;
use brickyard_classics::LabZone;

use crate::build::{BuildError, Job, build};
use crate::kernel::{Flusher, Kernel, Of2007, Pressure, Rules, Scheme, Swap, WRITE_NANOSECONDS};
use crate::machine::{Machine, MachineError, ZonePlace};
use crate::outcome::Sample;
use crate::pages::{Block, PageId, Pages, Role, mark};
use crate::processor::Processor;
use crate::replay::{Watcher, possible};
use crate::script::Script;
use crate::view::View;
use load::Load;

/// The number of tries in 2005: 275 in its tables (the text also says 160).
pub const TRIES_2005: usize = 275;

/// The time between two tries, in nanoseconds.
pub const PAUSE: u64 = 100_000_000;

/// The number of builds that run at once.
pub const BUILDS: usize = 7;

/// The factor by which CPUs of these machines are slower than today's. Assumed: 2 GHz then, against
/// 3 GHz with about three times the work per cycle.
pub const ERA: f64 = 4.0;

/// Returns the factor by which a build, recorded as one job at a time (`make -j1`, as the document
/// has it), takes longer on a machine of `cpus` CPUs: seven builds share them, and each is slower.
#[must_use]
pub fn stretch(cpus: usize) -> f64 {
    ERA * BUILDS as f64 / cpus.clamp(1, BUILDS) as f64
}

/// The share of a compiler's memory that one of that time used. Assumed: half. Without it, seven of
/// today's compilers hold a seventh of the machine of 2005.
pub const COMPILER: f64 = 0.5;

/// The builds before the load, one after another on a tree of their own: the documents' benchmarks
/// ran without a reboot, after a build of the kernel and others. Assumed: as long as three
/// recordings.
pub const WARM_UP: u32 = 3;

/// The settings of the protocol.
#[derive(Debug, Clone, Copy)]
pub struct Protocol<'s> {
    /// A kernel build, or a substitute.
    pub compile: &'s Script,
    /// A walk over the file system, or a substitute.
    pub walk: &'s Script,
    /// The bytes of a kernel tree.
    pub tree: u64,
    /// The time from the start of one build to that of the next, in nanoseconds.
    pub gap: u64,
    /// The time that all programs run before the first try, in nanoseconds.
    pub settle: u64,
    /// The factor by which a build takes longer than recorded. See [`stretch`].
    pub stretch: f64,
    /// Which moments of the builds coincide: each begins later by a part of the gap, drawn by this
    /// seed. 0: by none.
    pub phase: u64,
    /// The bytes that the kernel takes at boot and never frees, at the low end of memory.
    pub boot: u64,
    /// The number of tries under load. `None`: as many as memory has huge pages.
    pub tries: Option<usize>,
    /// How reclaim works.
    pub reclaim: Reclaim,
    /// Run the experiment with `min_free_kbytes` instead of the two passes.
    pub min_free: Option<MinFree>,
    /// The percentage of memory for the kernel, in configurations with a zone for movable pages.
    pub kernel_core: u8,
    /// The time between two samples, in nanoseconds.
    pub sample_every: u64,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Pass {
    /// The number of tries.
    pub tries: usize,
    /// The number of huge pages allocated.
    pub got: usize,
}

/// The results of the protocol.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Result {
    /// The number of huge pages in all of memory.
    pub all: usize,
    /// The pass under load.
    pub load: Pass,
    /// The huge pages that the immovable pages left possible when the pass under load began.
    pub load_possible: usize,
    /// The pass at rest.
    pub rest: Pass,
    /// The huge pages that the immovable pages left possible at the end of the pass at rest.
    pub rest_possible: usize,
    /// The load's requests.
    pub served: Served,
    /// Counts of reclaim and compaction.
    pub pressure: Pressure,
    /// Frames moved by compaction while the load ran; all others were moved at rest.
    pub moved_under_load: u64,
    /// Memory over time.
    pub samples: Vec<Sample>,
    /// Requests served from memory of another mobility.
    pub fallbacks: u64,
    /// In an experiment with `min_free_kbytes`, the free huge pages at each of [`MOMENTS`].
    pub free: Vec<usize>,
    /// Whether the watcher ended the run early.
    pub interrupted: bool,
}

impl Result {
    /// Returns a number of huge pages in percent of memory.
    #[must_use]
    pub fn percent(&self, pages: usize) -> f64 {
        match self.all {
            0 => 0.0,
            all => pages as f64 * 100.0 / all as f64,
        }
    }
}

/// Makes the machine of a profile: its memory in one zone, or in two if it has high memory.
///
/// # Errors
/// [`MachineError`], where its memory is too small or too large.
pub fn machine(profile: &Profile, kernel_core: u8) -> core::result::Result<Machine, MachineError> {
    const FRAME_BYTES: usize = 4096;
    let mut machine = Machine::sized(profile.memory, profile.cpus, FRAME_BYTES)?;
    // Whole blocks of the highest order, so that zones are aligned to them.
    let frames = machine.frames() / profile.max.frames() * profile.max.frames();
    let span = FrameRange::new(0, frames);
    machine = machine.with_orders(profile.huge, profile.max);
    machine.memory = vec![span];
    machine.zones[0].span = span;
    let high_from = profile
        .high_memory_from
        .map(|from| Frame::new((from / FRAME_BYTES as u64) as usize).align_down(profile.max));
    // With less memory than that there is none.
    if let Some(from) = high_from.filter(|&from| from < span.end) {
        machine.zones[0].span.end = from;
        machine.zones.push(ZonePlace {
            node: 0,
            kind: ZoneKind::HighMem,
            span: FrameRange {
                start: from,
                ..span
            },
        });
    }
    machine.min_free_kbytes = profile.min_free_kbytes();
    machine.sizing = Sizing::KernelCorePercent(kernel_core);
    Ok(machine)
}

/// Runs the protocol on a machine with an allocator of this configuration.
///
/// # Errors
/// [`BuildError`] if the machine cannot be built.
pub fn run<W: Watcher>(
    configuration: Configuration,
    machine: &Machine,
    protocol: &Protocol<'_>,
    watcher: W,
) -> core::result::Result<Result, BuildError> {
    let load = Load::new(&programs(protocol, machine))?;
    build(
        configuration,
        machine,
        Antifrag {
            machine,
            protocol,
            load,
            watcher,
            scheme: scheme(configuration, protocol.reclaim),
        },
    )
}

/// Returns whose reclaim a run has: that of 2007, unless the design's kernel, or the row, is of a
/// later time.
fn scheme(configuration: Configuration, reclaim: Reclaim) -> Scheme {
    let later = matches!(
        configuration,
        Configuration::Linux612 | Configuration::Linux618
    );
    match reclaim.of_2007() {
        Some(lumpy) if !later => Scheme::Of2007(Of2007 {
            lumpy,
            drains_above: configuration.drains_above(),
            tests_each_order: configuration.tests_each_order(),
        }),
        _ => Scheme::Today,
    }
}

struct Antifrag<'a, W> {
    machine: &'a Machine,
    protocol: &'a Protocol<'a>,
    load: Load<'a>,
    watcher: W,
    scheme: Scheme,
}

impl<W: Watcher> Job for Antifrag<'_, W> {
    type Output = Result;

    fn run<Z: LabZone>(mut self, nodes: &[Node<'_, Z>], processor: &Processor) -> Result {
        let machine = self.machine;
        let plain = Nodes::new(nodes);
        plain.set_min_free_kbytes(machine.min_free_kbytes, machine.frame_bytes);
        let load = self.load;
        let span = machine.span();
        let zones = plain.zones().count();
        let block_order = machine.page_block_order;
        let pages = Pages::new(span.start, span.len(), zones, load.pages(), block_order);
        let rules = Rules {
            slow_path: self.protocol.reclaim.slow_path(),
            swap: Swap::On,
            scheme: self.scheme,
            flusher: Flusher::On,
        };
        let kernel = Kernel::new(Nodes::new(nodes), pages, rules);
        let hooked = Nodes::with_hooks(nodes, &kernel, rules.slow_path);
        let mut stage = Stage {
            machine,
            protocol: self.protocol,
            kernel: &kernel,
            nodes: &hooked,
            plain: &plain,
            processor,
            load,
            next_sample: 0,
            now: 0,
            held: Vec::new(),
            result: Result {
                all: machine.frames() / machine.huge_order.frames(),
                ..Result::default()
            },
        };
        stage.boot();
        stage.result.interrupted = match self.protocol.min_free {
            Some(min_free) => {
                stage.result.free = stage.with_min_free(min_free, &mut self.watcher);
                stage.result.free.len() < MOMENTS.len()
            }
            None if stage.under_load(&mut self.watcher) => {
                stage.at_rest(&mut self.watcher);
                false
            }
            None => true,
        };
        stage.result.pressure = kernel.pressure();
        stage.result.fallbacks = plain.zones().map(|zone| zone.meter().fallbacks).sum();
        stage.release_held();
        plain
            .check()
            .expect("every invariant holds, whatever the load requests");
        stage.result
    }
}

/// Returns the time at which the load begins, after the builds before it.
fn warmed_up(protocol: &Protocol<'_>) -> u64 {
    let build = (protocol.compile.duration() as f64 * ERA) as u64;
    protocol.gap + build * u64::from(WARM_UP)
}

/// Returns a build that ends before the load, seven builds and a walk.
fn programs<'s>(protocol: &Protocol<'s>, machine: &Machine) -> Vec<Program<'s>> {
    let build = Program {
        script: protocol.compile,
        starts: protocol.gap,
        tree: protocol.tree / machine.frame_bytes as u64,
        copying: protocol.gap,
        stretch: protocol.stretch,
        anonymous: COMPILER,
        passes: None,
    };
    let warm_up = Program {
        stretch: ERA,
        passes: Some(WARM_UP),
        ..build
    };
    let begins = warmed_up(protocol);
    let builds = (1..=BUILDS as u64).map(|place| Program {
        starts: begins + protocol.gap * place + later(protocol.phase, protocol.gap, place),
        ..build
    });
    let walk = Program {
        script: protocol.walk,
        starts: begins,
        tree: 0,
        copying: 0,
        stretch: ERA,
        ..build
    };
    [warm_up, walk].into_iter().chain(builds).collect()
}

/// Returns how much later than at its even time a build begins in this phase: less than the gap.
fn later(phase: u64, gap: u64, place: u64) -> u64 {
    if phase == 0 {
        return 0;
    }
    let drawn = phase
        .wrapping_mul(place)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Less than the gap, so it fits.
    ((u128::from(drawn) * u128::from(gap)) >> 64) as u64
}

/// A run of the protocol.
struct Stage<'a, 's, 'z, Z: LabZone> {
    machine: &'a Machine,
    protocol: &'a Protocol<'s>,
    kernel: &'a Kernel<'z, Z>,
    nodes: &'a Nodes<'z, Z, &'a Kernel<'z, Z>>,
    plain: &'a Nodes<'z, Z>,
    processor: &'a Processor,
    load: Load<'s>,
    next_sample: u64,
    now: u64,
    held: Vec<Frame>,
    result: Result,
}

impl<Z: LabZone> Stage<'_, '_, '_, Z> {
    /// Takes what the kernel takes at boot: the lowest memory.
    fn boot(&self) {
        let wanted = (self.protocol.boot / self.machine.frame_bytes as u64) as usize;
        let Some(zone) = self.plain.zones().next() else {
            return;
        };
        let order = zone.max_order();
        let request = Request::new(Order::ZERO, Mobility::Unmovable);
        let mut at = zone.span().start;
        let end = at.plus(wanted.min(zone.span().len() / 2));
        while at < end {
            let fits =
                |&order: &Order| at.align_down(order) == at && at.plus(order.frames()) <= end;
            let order = Order::ZERO.up_to(order).rfind(fits);
            let order = order.unwrap_or(Order::ZERO);
            let request = Request { order, ..request };
            if zone.alloc_at(at, &request).is_ok() {
                self.kernel.own(at, order, Role::Pinned, 0, PageId::NONE);
            }
            at = at.plus(order.frames());
        }
    }

    /// Runs the pass under load. Returns false if the watcher ended it.
    fn under_load(&mut self, watcher: &mut impl Watcher) -> bool {
        // The last build begins when its tree, the original, has been cleaned.
        let started = warmed_up(self.protocol) + self.protocol.gap * BUILDS as u64;
        let begins = started + self.protocol.settle;
        if !self.run_to(begins, watcher) {
            return false;
        }
        self.result.load_possible = possible(self.plain, self.kernel, self.machine.huge_order);
        let tries = self.protocol.tries.unwrap_or(self.result.all);
        for _ in 0..tries {
            self.result.load.tries += 1;
            self.result.load.got += usize::from(self.take_huge_page());
            let next = self.now + PAUSE;
            if !self.run_to(next, watcher) {
                return false;
            }
        }
        self.result.served = self.load.served();
        self.result.moved_under_load = self.kernel.pressure().moved;
        true
    }

    fn at_rest(&mut self, watcher: &mut impl Watcher) {
        self.release_held();
        self.end_everything();
        self.stream_file();
        self.sample(watcher);
        // As many as memory has: the passes of 2007 request all of it.
        for _ in 0..self.result.all {
            self.result.rest.tries += 1;
            self.result.rest.got += usize::from(self.take_huge_page());
            self.now += PAUSE;
            self.kernel.idle_until(self.now);
        }
        // Held pages count as clear; slabs freed during the pass no longer block a huge page.
        self.result.rest_possible = possible(self.plain, self.kernel, self.machine.huge_order);
        self.sample(watcher);
    }

    /// Runs the load up to the time `until`, with samples. Returns false if the watcher ended it.
    fn run_to(&mut self, until: u64, watcher: &mut impl Watcher) -> bool {
        while self.now < until {
            let next = until.min(self.next_sample.max(self.now + 1));
            let cpus = self.machine.cpus;
            self.load
                .run(next, self.kernel, self.nodes, self.processor, cpus);
            self.now = next;
            if self.now >= self.next_sample {
                self.next_sample = self.now + self.protocol.sample_every.max(1);
                self.sample(watcher);
            }
            if !watcher.progress(self.load.served().steps) {
                return false;
            }
        }
        true
    }

    /// Requests a huge page and holds it. Returns false if there is none.
    fn take_huge_page(&mut self) -> bool {
        let request = Request::new(self.machine.huge_order, Mobility::Movable);
        let held = self
            .kernel
            .take(self.nodes, 0, &request, Role::Held, 0, PageId::NONE);
        if let Ok(frame) = held {
            self.held.push(frame);
        }
        if self.kernel.is_woken() {
            self.kernel.run_background();
        }
        held.is_ok()
    }

    fn release_held(&mut self) {
        for frame in self.held.drain(..) {
            self.kernel.release(frame);
        }
    }

    /// Ends the processes and deletes the trees. Unmovable slabs stay, and slabs that are not
    /// empty.
    fn end_everything(&self) {
        let goes = |block: &Block| match block.role {
            Role::Anonymous | Role::PageTable | Role::Kernel | Role::File => true,
            Role::SlabReclaimable => !holds_others(block),
            _ => false,
        };
        self.kernel.end(goes);
    }

    /// Writes a file as large as memory through the page cache, and deletes it. (That the posting of
    /// 2005 also read it, with `cat`, is not modelled.)
    fn stream_file(&mut self) {
        let request = Request::page(Mobility::Movable);
        for _ in 0..self.machine.frames() {
            let page = PageId::NONE;
            let taken = self
                .kernel
                .take(self.nodes, 0, &request, Role::File, mark::DIRTY, page);
            if taken.is_err() {
                break;
            }
            if self.kernel.is_woken() {
                self.kernel.run_background();
            }
            // The disk's rate.
            self.now += WRITE_NANOSECONDS;
            self.kernel.set_time(self.now);
        }
        self.kernel.end(|block| block.role == Role::File);
    }

    fn sample(&mut self, watcher: &mut impl Watcher) {
        let view = View::new(self.kernel, self.plain, self.now);
        let sample = view.sample(self.machine.huge_order);
        self.result.samples.push(sample);
        watcher.sample(&view);
    }
}

/// Returns true for a slab that stays when the trees are deleted. Most inodes of deleted files are
/// freed, but one slab in eight also holds another object. Which ones depends on the slab's own
/// number.
fn holds_others(slab: &Block) -> bool {
    let number = slab.page.0 >> slab.order.get();
    (number.wrapping_mul(0x9E37_79B1) >> 16).is_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slab of the trees, of this number.
    fn slab(number: u32) -> Block {
        Block {
            frame: Frame::new(0),
            order: Order::ZERO,
            role: Role::SlabReclaimable,
            marks: 0,
            page: PageId(number),
            zone: 0,
        }
    }

    #[test]
    fn a_machine_smaller_than_the_kernel_maps_has_no_high_memory() {
        for profile in [Profile::OF_2005, Profile::OF_2007[1]] {
            for mib in [150, 895, 896, 900, 1200] {
                let memory = mib << 20;
                let profile = Profile { memory, ..profile };
                let machine = machine(&profile, 60).unwrap();
                let spans: Vec<_> = machine.zones.iter().map(|zone| zone.span).collect();
                let all: usize = spans.iter().map(|span| span.len()).sum();
                assert_eq!(all, machine.frames(), "{mib} MiB: {spans:?}");
                assert!(
                    spans.iter().all(|span| !span.is_empty()),
                    "{mib} MiB: {spans:?}"
                );
                assert_eq!(spans.len(), 1 + usize::from(mib > 896), "{mib} MiB");
            }
        }
    }

    #[test]
    fn a_phase_draws_delays_from_the_whole_gap() {
        assert_eq!(later(0, 16_000_000_000, 3), 0);
        for gap in [16_000_000_000, u64::MAX] {
            let delays: Vec<u64> = (1..=64).map(|place| later(1, gap, place)).collect();
            assert!(delays.iter().all(|&delay| delay < gap), "{delays:?}");
            let late = delays.iter().filter(|&&delay| delay > gap / 4 * 3);
            assert!((8..=24).contains(&late.count()), "{delays:?}");
        }
    }

    #[test]
    fn one_slab_in_eight_stays_wherever_their_numbers_begin() {
        for first in [0, 7, 16, 52_428_800] {
            let stay = (first..first + 8000).filter(|&number| holds_others(&slab(number)));
            let count = stay.count();
            assert!((800..1200).contains(&count), "{count} of 8000 from {first}");
        }
        // The trees' slabs used to have the numbers of their last page: all 15 modulo 16.
        let numbers = (0..8000).map(|number| number * 16 + 15);
        let count = numbers
            .filter(|&number| holds_others(&slab(number)))
            .count();
        assert!((800..1200).contains(&count), "{count} of 8000");
    }
}
