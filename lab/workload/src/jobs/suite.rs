//! The ten workloads with which Porter compared lock policies in 2007, as modelled here: which
//! trace, how it is cut, how many instances. And one of 2005: unpacking a kernel tree.
//!
//! The programs are today's versions, recorded on a host of today (`traces/README.md` has the
//! commands). So they request more pages than in 2007: today's compilers use several times the
//! memory. Files and the memory of processes are taken in single frames, as kernels of that time
//! did ([`MovableBlocks`]).
//!
//! `objdump` and `dd` are single commands, timed alone on the machine. The kernel was built with
//! `make -j 16` on eight CPUs, which is two jobs for each CPU. The document does not say how many
//! processes `dpunish` had: 32 is our assumption, since that is the number of `find` and `bonnie`,
//! and since its time falls with the number of CPUs, so that its work did not grow with it.

use super::{Cut, How, MovableBlocks, Processes, Waits};

/// User-mode instructions that the recorded host executes in 100 ns of computing, for converting a
/// trace's computing time to a machine with another clock.
///
/// Measured on that host: callgrind's count, divided by the least user and system time of nine
/// runs.
///
/// | program | instructions | time | in 100 ns |
/// |---|---|---|---|
/// | `cc1 -O2` of libFLAC's `format.c` | 549,850,802 | 89.9 ms | 612 |
/// | `cc1 -O2` of libFLAC's `stream_encoder.c` | 4,121,313,586 | 556.7 ms | 740 |
/// | `grep -r` through 573 MB of Linux (`drivers/gpu`, `drivers/net`), in memory | 564,174,670 | 240.8 ms | 234 |
/// | together | 5,235,339,058 | 887.4 ms | 590 |
///
/// The kernel's instructions are not counted, but its time is, so the true figure of a program such
/// as `grep` is higher. The figure is rounded to one digit; it is no more precise.
pub const HOST_INSTRUCTIONS_PER_100_NS: u64 = 600;

/// Returns the number of instructions in `ns` nanoseconds of computing on the recorded host. See
/// [`HOST_INSTRUCTIONS_PER_100_NS`].
#[must_use]
pub const fn instructions(ns: u64) -> u64 {
    let whole = (ns / 100).saturating_mul(HOST_INSTRUCTIONS_PER_100_NS);
    whole.saturating_add(ns % 100 * HOST_INSTRUCTIONS_PER_100_NS / 100)
}

/// The number of tasks that run a workload's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Instances {
    /// A fixed number. Each task runs all jobs, one after another.
    Fixed(usize),
    /// A number per CPU. Each task runs all jobs, one after another.
    PerCpu(usize),
    /// A pool of this many workers per CPU, as with `make -j`: each job runs once, on the first
    /// free worker.
    PoolPerCpu(usize),
}

impl Instances {
    /// Returns the number of tasks on `cpus` CPUs.
    #[must_use]
    pub const fn tasks(self, cpus: usize) -> usize {
        match self {
            Self::Fixed(tasks) => tasks,
            Self::PerCpu(tasks) | Self::PoolPerCpu(tasks) => tasks.saturating_mul(cpus),
        }
    }
}

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Workload {
    /// Its name in the documents' tables.
    pub name: &'static str,
    /// What it does, as reports print it.
    pub about: &'static str,
    /// The trace of one instance, relative to the project's root.
    pub trace: &'static str,
    /// Where its jobs begin.
    pub cut: Cut,
    /// Which gaps are waits for the disk.
    pub waits: Waits,
    /// The number of tasks.
    pub instances: Instances,
}

impl Workload {
    /// The ten of 2007, in the order of the tables.
    pub const ALL: [Self; 10] = [
        Self {
            name: "find",
            about: "32 finds, each searching a source tree of 5 MB in memory for a text that is not there",
            trace: "traces/find.parquet",
            cut: Cut::Whole,
            waits: Waits::Never,
            instances: Instances::Fixed(32),
        },
        Self {
            name: "pmake",
            about: "make -j 2N of 27 source files of libFLAC, for N CPUs",
            trace: "traces/pmake.parquet",
            cut: Cut::ByProcess("cc1"),
            waits: Waits::Never,
            instances: Instances::PoolPerCpu(2),
        },
        Self {
            name: "dpunish",
            about: "look-ups and renames in file systems in memory, 32 times four processes, which take turns",
            trace: "traces/dpunish.parquet",
            cut: Cut::Whole,
            waits: Waits::Never,
            instances: Instances::Fixed(32),
        },
        Self {
            name: "bonnie",
            about: "32 runs of bonnie++ that create, stat and delete empty files",
            trace: "traces/bonnie.parquet",
            cut: Cut::Whole,
            waits: Waits::USUAL,
            instances: Instances::Fixed(32),
        },
        Self {
            name: "mab",
            about: "an Andrew-like script on each CPU: make folders, copy, stat and read files; without its compile",
            trace: "traces/mab.parquet",
            cut: Cut::Whole,
            waits: Waits::Never,
            instances: Instances::PerCpu(1),
        },
        Self {
            name: "config",
            about: "the beginning of a configure script, one for each CPU",
            trace: "traces/config.parquet",
            cut: Cut::Whole,
            waits: Waits::Never,
            instances: Instances::PerCpu(1),
        },
        Self {
            name: "objdump",
            about: "one objdump -d -l of a program through grep",
            trace: "traces/objdump.parquet",
            cut: Cut::Whole,
            waits: Waits::Never,
            instances: Instances::Fixed(1),
        },
        Self {
            name: "kernel-full",
            about: "make -j 2N of files of the Linux kernel with many options, for N CPUs",
            trace: "traces/kernel-full.parquet",
            cut: Cut::ByProcess("cc1"),
            waits: Waits::Never,
            instances: Instances::PoolPerCpu(2),
        },
        Self {
            name: "kernel",
            about: "the same of other files, with few options",
            trace: "traces/kernel.parquet",
            cut: Cut::ByProcess("cc1"),
            waits: Waits::Never,
            instances: Instances::PoolPerCpu(2),
        },
        Self {
            name: "dd",
            about: "one dd bs=16k count=2048 into a file, which is then deleted",
            trace: "traces/dd.parquet",
            cut: Cut::Whole,
            waits: Waits::USUAL,
            instances: Instances::Fixed(1),
        },
    ];

    /// Unpacking a kernel tree, which Gorman timed in 2005 beside a build. Not one of the ten with
    /// which lock policies were compared.
    pub const EXTRACT: Self = Self {
        name: "extract",
        about: "tar -xzf of 20 MB of a kernel tree, one for each CPU",
        trace: "traces/extract.parquet",
        cut: Cut::Whole,
        waits: Waits::Never,
        instances: Instances::PerCpu(1),
    };

    /// Returns the workload with this name: one of the ten, or `extract`.
    ///
    /// # Errors
    /// [`UnknownWorkload`] if there is none.
    pub fn by_name(name: &str) -> Result<Self, UnknownWorkload> {
        let mut all = Self::ALL.into_iter().chain([Self::EXTRACT]);
        let found = all.find(|workload| workload.name == name);
        found.ok_or_else(|| UnknownWorkload(name.to_owned()))
    }

    /// How its trace is cut.
    #[must_use]
    pub const fn how(&self) -> How {
        How {
            cut: self.cut,
            waits: self.waits,
            processes: Processes::Command,
            movable: MovableBlocks::Single,
        }
    }
}

/// The error for a name that no workload has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no workload {0}: name one of find, pmake, dpunish, bonnie, mab, config, objdump, kernel-full, kernel, dd, extract"
)]
pub struct UnknownWorkload(pub String);
