//! How often the protocol of 2005 and 2007 is run, and what the documents do not say, varied: runs
//! of the document's kernels once more with another size of memory, another time, or a disk whose
//! queue never gets long.
//!
//! Which moments of the builds coincide is chance, so a run is a phase, and a figure is the mean of
//! all of them. A direction that an assumption turns round is one of the assumption, not of the
//! kernels. The rows are those of the protocol, with the variant's name after the workload: `plain
//! under load sweep-memory-1.1`. Only the full run has them.

use brickyard_designs::classics::Configuration;

use super::Settings;

/// A variant of the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variant {
    /// Its name, as it ends workloads and cells.
    pub(crate) name: &'static str,
    /// Its settings.
    pub(crate) settings: Settings,
}

impl Variant {
    /// The runs of a variant: enough to see whether the mean moves, not how much single runs vary.
    pub(crate) const RUNS: u32 = 2;
}

/// The runs of the protocol itself.
pub(crate) const RUNS: u32 = 5;

impl Settings {
    /// Returns these settings for a run, from 1: each has other moments of the builds that
    /// coincide.
    pub(crate) const fn of_run(self, run: u32) -> Self {
        Self {
            phase: run as u64 - 1,
            ..self
        }
    }
}

const DEFAULT: Settings = Settings::DEFAULT;

const HALF_SETTLED: Variant = Variant {
    name: "sweep-settle-0.5",
    settings: Settings {
        settle: DEFAULT.settle * 0.5,
        ..DEFAULT
    },
};

const HALF_GAP: Variant = Variant {
    name: "sweep-gap-0.5",
    settings: Settings {
        gap: DEFAULT.gap * 0.5,
        ..DEFAULT
    },
};

const NO_NAP: Variant = Variant {
    name: "sweep-nap-0",
    settings: Settings {
        nap: 0.0,
        ..DEFAULT
    },
};

/// Returns the variant with memory of another size.
const fn memory(name: &'static str, memory: f64) -> Variant {
    let settings = Settings { memory, ..DEFAULT };
    Variant { name, settings }
}

/// What is varied of 2007. Memory is calibrated on what `vanilla` has under load, so other sizes are
/// those with which it still has about that: with half as much again it has 69 % on elm3b14, where
/// 21 were published.
pub(crate) const OF_2007: [Variant; 5] = [
    memory("sweep-memory-0.9", 0.9),
    memory("sweep-memory-1.1", 1.1),
    HALF_SETTLED,
    HALF_GAP,
    NO_NAP,
];

/// What is varied of 2005, where memory and the time before the first try are known.
pub(crate) const OF_2005: [Variant; 3] = [
    HALF_GAP,
    Variant {
        name: "sweep-tree-0.75",
        settings: Settings {
            tree: DEFAULT.tree / 4 * 3,
            ..DEFAULT
        },
    },
    NO_NAP,
];

/// The configurations that are varied: the document's kernels of 2007, and `brickyard`.
pub(crate) const CONFIGS_2007: [Configuration; 5] = [
    Configuration::Vanilla,
    Configuration::List2007,
    Configuration::Zone2007,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// The same of 2005.
pub(crate) const CONFIGS_2005: [Configuration; 3] = [
    Configuration::Vanilla,
    Configuration::TwoKinds2005,
    Configuration::Brickyard,
];
