//! The protocol of 2005 and 2007: how many huge pages can be allocated under load, and at rest.
//!
//! Seven kernel builds are started one after another, six on copies of the tree and one on the tree
//! itself, with a walk over the file system beside them. When all run, a huge page is requested
//! every tenth of a second, and each one is held to the end of the pass. Then comes the pass at
//! rest: the processes end, the trees are deleted, a file as large as memory goes through the page
//! cache and is deleted, and as many huge pages are requested as memory has.

mod load;
mod min_free;
mod profile;
mod programs;
mod stage;

pub use load::{Program, Served};
pub use min_free::{MOMENTS, MinFree};
pub use profile::{Profile, Reclaim};

use brickyard::node::movable::Sizing;
use brickyard::node::{Node, Nodes};
use brickyard::{Frame, FrameRange, ZoneKind};
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::LabZone;

use crate::build::{BuildError, Job, build};
use crate::kernel::{Flusher, Kernel, Of2007, Pressure, Rules, Scheme, Swap};
use crate::machine::{Machine, MachineError, ZonePlace};
use crate::outcome::Sample;
use crate::pages::Pages;
use crate::processor::Processor;
use crate::replay::Watcher;
use crate::script::Script;
use load::Load;
use programs::programs;
use stage::Stage;

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
    /// The nanoseconds that background reclaim of that time sleeps: see [`Of2007::nap`].
    pub nap: u64,
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
            scheme: scheme(configuration, protocol),
        },
    )
}

/// Returns whose reclaim a run has: that of 2007, unless the design's kernel, or the row, is of a
/// later time.
fn scheme(configuration: Configuration, protocol: &Protocol<'_>) -> Scheme {
    let later = matches!(
        configuration,
        Configuration::Linux612 | Configuration::Linux618
    );
    match protocol.reclaim.of_2007() {
        Some(lumpy) if !later => Scheme::Of2007(Of2007 {
            lumpy,
            drains_above: configuration.drains_above(),
            tests_each_order: configuration.tests_each_order(),
            nap: protocol.nap,
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
