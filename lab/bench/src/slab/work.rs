//! The workloads: which there are, what a row is called, what each measures. A [`Work`] is also
//! what a process is told that runs one: it is written on its command line as it is read from
//! there.

use core::fmt;
use core::time::Duration;

use brickyard_report::{Metric, bytes_text};

use super::crowd::Clock;
use super::objects::Shape;
use crate::choice::{Choice, choices};

choices! {
    /// What is done.
    pub enum Workload {
        /// socketallocbench: the four objects of a socket, allocated and freed.
        Socket = "socket",
        /// A batch allocated and freed by one thread.
        Local = "local",
        /// One thread allocates, another frees.
        Remote = "remote",
        /// Threads swap objects through shared places.
        Swap = "swap",
        /// Eight threads allocate, one frees; the most memory that was resident.
        Producers = "producers",
        /// Small objects die at random and larger ones follow; what is resident then.
        Refill = "refill",
        /// What is given back after everything is freed.
        Giveback = "giveback",
        /// Percentiles of the time of an allocation.
        Tail = "tail",
        /// Hits alone, for valgrind.
        Hits = "hits",
    }
}

impl Workload {
    /// Those that a user asks for by name.
    #[must_use]
    pub fn asked_for() -> &'static [(Self, &'static str, &'static str)] {
        Self::ALL
            .split_last()
            .map_or(&[], |(_, asked_for)| asked_for)
    }

    /// Is it about memory? Then a heap of fixed buffers has no row.
    pub const fn is_about_memory(self) -> bool {
        matches!(self, Self::Producers | Self::Refill | Self::Giveback)
    }

    /// Do its threads never wait for each other, so that what they spend on a CPU is what it costs?
    const fn can_choose_the_clock(self) -> bool {
        matches!(self, Self::Socket | Self::Local | Self::Swap)
    }

    /// What its rows measure, in their order.
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

    /// The memory that lives in it, in bytes, where the user does not say.
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

/// One workload with all that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What is done.
    pub workload: Workload,
    /// How many threads do the same.
    pub threads: usize,
    /// How many objects are allocated before they are freed.
    pub batch: usize,
    /// The size of the objects where it is not the workload's own, in bytes.
    pub size: u32,
    /// The memory that lives in the workloads about memory.
    pub live: usize,
    /// The time that a sample takes about, in microseconds.
    pub sample_us: u64,
    /// What time is measured, where threads do not wait for each other.
    pub clock: Clock,
}

impl Work {
    /// The time that one CPU is given, and the clock that measures it.
    pub(crate) const fn sample(&self) -> (Duration, Clock) {
        (Duration::from_micros(self.sample_us), self.clock)
    }

    pub(crate) const fn shape(&self) -> Shape {
        Shape::of(self.size)
    }

    /// What a process is told that is to do it.
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

/// The row's name: the workload, and what two rows of it differ by.
impl fmt::Display for Work {
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
