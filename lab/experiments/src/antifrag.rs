//! The protocol of 2005 and 2007 on one machine, and a film of it.

pub(crate) mod parameters;
pub(crate) mod variants;

use anyhow::Context as _;
use brickyard_designs::classics::Configuration;
use brickyard_pictures::pagetypes::Film;
use brickyard_run::side_by_side::Follow;
use brickyard_trace::Trace;
use brickyard_workload::antifrag::{self, MinFree, Profile, Protocol, Reclaim, TRIES_2005};
use brickyard_workload::jobs::own_events;
use brickyard_workload::{Script, ScriptError};

use crate::filming::{Camera, film};

/// The settings of the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The size in bytes of the source tree; all builds but one work on copies of their own.
    pub tree: usize,
    /// Seconds from the start of one build to the start of the next, while a tree is copied.
    /// Assumed: the 16 s in which a kernel was unpacked in 2005.
    pub gap: f64,
    /// Seconds that all builds run before the first huge page is requested (2005: 60).
    pub settle: f64,
    /// How many times longer a build takes than its recording did. None: 4 for the CPUs of the
    /// time, times 7 builds, divided by the machine's CPUs.
    pub stretch: Option<f64>,
    /// The factor on the machine's memory.
    pub memory: f64,
    /// Run the experiment with `min_free_kbytes` instead of the two passes.
    pub min_free: Option<MinFree>,
    /// Draws which moments of the builds coincide. 0: they begin at even times.
    pub phase: u64,
    /// Seconds that background reclaim of the time sleeps after each pass below priority 10. Linux
    /// 2.6 sleeps a tenth of a second, or shorter, by the disk's queue, which is not modelled.
    pub nap: f64,
    /// Percent of memory open to kernel allocations, where a configuration has a zone for movable
    /// pages (2007: 60).
    pub kernelcore: u8,
    /// Seconds between two samples under load.
    pub every: f64,
}

impl Settings {
    /// The defaults: what the documented figures were made with.
    pub const DEFAULT: Self = Self {
        tree: 250 << 20,
        gap: 16.0,
        settle: 60.0,
        stretch: None,
        memory: 1.0,
        min_free: None,
        phase: 0,
        nap: 0.1,
        kernelcore: 60,
        every: 2.0,
    };
}

/// One run: a machine, a way of reclaim, a configuration.
#[derive(Debug, Clone, Copy)]
pub struct AntifragRun {
    /// The machine.
    pub profile: Profile,
    /// How reclaim works.
    pub reclaim: Reclaim,
    /// The allocator.
    pub config: Configuration,
}

/// The recorded traces that make up the load.
#[derive(Debug, Clone, Copy)]
pub struct Load<'s> {
    /// A build, one job at a time.
    pub compile: &'s Script,
    /// A walk over the file system.
    pub walk: &'s Script,
}

/// Returns a trace as a load: only the recorded command's own events, if the trace names its
/// command. What else the host did would run seven times too.
///
/// # Errors
/// If it cannot be replayed.
pub fn load_of(trace: &Trace) -> Result<Script, ScriptError> {
    match own_events(trace) {
        Ok(own) => Script::of_events(&own),
        Err(_) => Script::of_events(trace),
    }
}

/// Whether the run is filmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filmed {
    /// The run returns a film.
    Yes,
    /// The run returns no film.
    No,
}

impl AntifragRun {
    /// Runs the protocol; returns its result, and a film of it if `filmed`.
    ///
    /// # Errors
    /// If the machine cannot be built or cannot be filmed.
    pub fn run(
        &self,
        settings: &Settings,
        load: &Load<'_>,
        filmed: Filmed,
        follow: Follow<'_>,
    ) -> anyhow::Result<(antifrag::Result, Option<Film>)> {
        let profile = Profile {
            memory: (self.profile.memory as f64 * settings.memory) as u64,
            ..self.profile
        };
        let machine = antifrag::machine(&profile, settings.kernelcore)?;
        let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
        let of_2005 = self.profile.name == Profile::OF_2005.name;
        let protocol = Protocol {
            compile: load.compile,
            walk: load.walk,
            tree: settings.tree as u64,
            gap: nanoseconds(settings.gap),
            settle: nanoseconds(settings.settle),
            stretch: settings
                .stretch
                .unwrap_or_else(|| antifrag::stretch(machine.cpus)),
            phase: settings.phase,
            nap: nanoseconds(settings.nap),
            min_free: settings.min_free,
            boot: profile.boot(),
            tries: of_2005.then_some(TRIES_2005),
            reclaim: self.reclaim,
            kernel_core: settings.kernelcore,
            sample_every: nanoseconds(settings.every),
        };
        let zones = machine.zones_for(self.config);
        let mut film = (filmed == Filmed::Yes)
            .then(|| {
                let name = settings.min_free.map_or(self.config.name(), MinFree::name);
                let (max, huge) = (machine.max_order, machine.huge_order);
                film(name, &zones, max, huge, machine.frame_bytes)
            })
            .transpose()?;
        let camera = Camera::new(follow, film.as_mut());
        let result = antifrag::run(self.config, &machine, &protocol, camera)
            .with_context(|| format!("{} on {}", self.config, self.profile.name))?;
        Ok((result, film))
    }
}
