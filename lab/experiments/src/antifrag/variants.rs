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

const PHASE: Variant = Variant {
    name: "sweep-phase-1",
    settings: Settings {
        phase: 1,
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

/// What is varied of 2007.
pub(crate) const OF_2007: [Variant; 7] = [
    memory("sweep-memory-0.75", 0.75),
    memory("sweep-memory-1.5", 1.5),
    memory("sweep-memory-2", 2.0),
    HALF_SETTLED,
    HALF_GAP,
    PHASE,
    NO_NAP,
];

/// What is varied of 2005, where memory and the time before the first try are known.
pub(crate) const OF_2005: [Variant; 4] = [
    HALF_GAP,
    Variant {
        name: "sweep-tree-0.75",
        settings: Settings {
            tree: DEFAULT.tree / 4 * 3,
            ..DEFAULT
        },
    },
    PHASE,
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
