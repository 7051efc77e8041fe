//! What the documents of 2005 and 2007 do not say, varied: each run of the document's kernels once
//! more with another size of memory, another time, or other moments of the builds that coincide.
//!
//! A direction that one of these turns round is one of the assumption, not of the kernels. The rows
//! are those of the protocol, with the variant's name after the workload: `plain under load
//! sweep-memory-1.5`. Only the full run has them.

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

/// The phases besides that of the protocol itself, so that a direction holds over five.
const PHASES: [Variant; 4] = [
    phase("sweep-phase-1", 1),
    phase("sweep-phase-2", 2),
    phase("sweep-phase-3", 3),
    phase("sweep-phase-4", 4),
];

/// Returns the variant in which other moments of the builds coincide.
const fn phase(name: &'static str, phase: u64) -> Variant {
    let settings = Settings { phase, ..DEFAULT };
    Variant { name, settings }
}

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

/// What is varied of 2007.
pub(crate) const OF_2007: [Variant; 10] = [
    memory("sweep-memory-0.75", 0.75),
    memory("sweep-memory-1.5", 1.5),
    memory("sweep-memory-2", 2.0),
    HALF_SETTLED,
    HALF_GAP,
    PHASES[0],
    PHASES[1],
    PHASES[2],
    PHASES[3],
    NO_NAP,
];

/// What is varied of 2005, where memory and the time before the first try are known.
pub(crate) const OF_2005: [Variant; 7] = [
    HALF_GAP,
    Variant {
        name: "sweep-tree-0.75",
        settings: Settings {
            tree: DEFAULT.tree / 4 * 3,
            ..DEFAULT
        },
    },
    PHASES[0],
    PHASES[1],
    PHASES[2],
    PHASES[3],
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
