//! The workloads, the names of their rows, and their metrics. A [`SlabWork`] is also passed to the
//! process that runs it, as arguments on the command line.

use core::fmt;
use core::time::Duration;

use brickyard_results::{Metric, bytes_text};

use brickyard_measure::objects::crowd::Clock;
use brickyard_measure::objects::object::Shape;
use brickyard_run::named;
use brickyard_run::named::Names;

named! {
    /// The workloads.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Workload {
        /// socketallocbench: the four objects of a socket are allocated and freed.
        Socket => "socket",
        /// One thread allocates and frees a batch.
        Local => "local",
        /// One thread allocates, another frees.
        Remote => "remote",
        /// Threads swap objects through a shared table.
        Swap => "swap",
        /// Eight threads allocate, one frees; the peak of resident memory.
        Producers => "producers",
        /// Small objects are freed at random and larger ones allocated; resident memory after that.
        Refill => "refill",
        /// How much memory is returned to the system after everything is freed.
        Giveback => "giveback",
        /// Percentiles of the time of an allocation.
        Tail => "tail",
        /// Hits only, for valgrind.
        Hits => "hits",
    }
}

impl Workload {
    /// Returns the workloads that users can name.
    #[must_use]
    pub fn user_choices() -> &'static Names<Self> {
        Self::NAMES.split_last().map_or(&[], |(_, choices)| choices)
    }

    /// Returns true if it measures memory; a heap of fixed buffers has no row then.
    pub const fn is_about_memory(self) -> bool {
        matches!(self, Self::Producers | Self::Refill | Self::Giveback)
    }

    /// Returns true if its threads never wait for each other, so that their CPU time is its cost.
    const fn can_choose_the_clock(self) -> bool {
        matches!(self, Self::Socket | Self::Local | Self::Swap)
    }

    /// Returns the metrics of its rows, in their order.
    pub(crate) const fn metrics(self) -> &'static [Metric<'static>] {
        match self {
            Self::Socket => &SOCKET,
            Self::Local => const { &[ns("pair")] },
            Self::Remote => const { &[ns("object")] },
            Self::Swap => const { &[ns("swap")] },
            Self::Producers => &PRODUCERS,
            Self::Refill => &REFILL,
            Self::Giveback => &GIVEBACK,
            Self::Tail => &TAIL,
            Self::Hits => &[],
        }
    }

    /// Returns its default amount of live memory, in bytes.
    pub const fn live(self) -> usize {
        match self {
            Self::Producers => 181 << 20,
            _ => 488 << 20,
        }
    }
}

const fn lower(name: &'static str, unit: &'static str) -> Metric<'static> {
    Metric::lower(name, unit)
}

const fn ns(name: &'static str) -> Metric<'static> {
    lower(name, "ns")
}

const fn higher(name: &'static str, unit: &'static str) -> Metric<'static> {
    Metric::higher(name, unit)
}

const SOCKET: [Metric<'static>; 4] = [ns("pair"), ns("zeroing"), ns("rest"), ns("masking")];
const PRODUCERS: [Metric<'static>; 2] = [lower("peak", "MiB"), higher("rate", "million/s")];
const REFILL: [Metric<'static>; 2] = [lower("killed", "MiB"), lower("refilled", "MiB")];
const GIVEBACK: [Metric<'static>; 2] = [higher("at-once", "%"), higher("at-rest", "%")];
const TAIL: [Metric<'static>; 4] = [
    lower("p50", CYCLES),
    lower("p99", CYCLES),
    lower("p99.9", CYCLES),
    lower("p99.99", CYCLES),
];
const CYCLES: &str = "TSC cycles";

/// One workload with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabWork {
    /// The workload.
    pub workload: Workload,
    /// How many threads do the same work.
    pub threads: usize,
    /// How many objects are allocated before they are freed.
    pub batch: usize,
    /// The size of the objects in bytes, for workloads without sizes of their own.
    pub size: u32,
    /// How much memory is live in the memory workloads.
    pub live: usize,
    /// The approximate time of a sample, in microseconds.
    pub sample_us: u64,
    /// The clock of workloads whose threads do not wait for each other.
    pub clock: Clock,
}

impl SlabWork {
    /// Returns the time of a sample on one CPU, and the clock that measures it.
    pub(crate) const fn sample(&self) -> (Duration, Clock) {
        (Duration::from_micros(self.sample_us), self.clock)
    }

    pub(crate) const fn shape(&self) -> Shape {
        Shape::of(self.size)
    }

    /// Returns the arguments of a process that does the work.
    pub(crate) fn arguments(&self) -> Vec<String> {
        [
            ("--workload", self.workload.name().to_owned()),
            ("--threads", self.threads.to_string()),
            ("--batch", self.batch.to_string()),
            ("--size", self.size.to_string()),
            ("--live", self.live.to_string()),
            ("--sample-us", self.sample_us.to_string()),
            ("--clock", self.clock.name().to_owned()),
        ]
        .into_iter()
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
    }
}

/// Writes the row's name: the workload, and the parameters by which its rows differ.
impl fmt::Display for SlabWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.workload.name())?;
        match self.workload {
            Workload::Socket => write!(f, " threads-{}", self.threads),
            Workload::Swap => write!(f, " threads-{} size-{}", self.threads, self.size),
            Workload::Local => write!(f, " batch-{} size-{}", self.batch, self.size),
            Workload::Remote | Workload::Tail | Workload::Hits => {
                write!(f, " size-{}", self.size)
            }
            Workload::Producers | Workload::Refill | Workload::Giveback => {
                write!(f, " live-{}", bytes_text(self.live))
            }
        }?;
        if self.clock == Clock::Cpu && self.workload.can_choose_the_clock() {
            f.write_str(" clock-cpu")?;
        }
        Ok(())
    }
}
