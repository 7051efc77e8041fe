//! A case: an allocator, a machine and what its tasks do there, all chosen by a seed.
//!
//! The sizes are mostly small, as in the tests of the allocator: lists that overflow after a few
//! frees, blocks that are claimed after a few requests. Others have so many page blocks that a set
//! of them takes more than one word, or the sizes of Linux. In half of all cases nearly all of the
//! memory is in use from the beginning on, so that it runs out again and again. Options can
//! override everything that the seed chose; a case prints itself as the command that runs it.

use core::fmt;

use brickyard::bitmap::SetAside;
use brickyard::node::SlowPath;
use brickyard::stash::StashSizes;
use brickyard::{Frame, FrameRange, Order};
use brickyard_designs::classics::bulk::{BulkPolicy, Timing, Tuning};
use brickyard_designs::classics::store::grouping::HighAtomic;
use brickyard_designs::classics::{Configuration, MachinePlan};
use brickyard_machine::{Profile, Setup, Stops, Timing as Clock, Watch};
use brickyard_run::named::{Names, name_of};
use brickyard_run::{Dice, named};

use super::starve::{CPUS_MOST, TASKS_MOST};
use crate::build::{Blueprint, Slots};

/// A run fails after this many shared accesses, and this many more for each operation and CPU,
/// since CPUs that wait keep polling. Some ten times the usual number.
const ACCESSES_MOST: u64 = 30_000_000;
const ACCESSES_PER_OPERATION: u64 = 2_000;

/// Mean cycles between two interrupts of a CPU; with each [`INTERRUPT_CPUS`] CPUs, as many more,
/// since a request that finds nothing looks at all CPUs.
const INTERRUPT_CYCLES: u64 = 20_000;
const INTERRUPT_CPUS: u64 = 8;

/// The most CPUs and tasks that a seed gives to a case whose memory is short: each request that
/// finds nothing looks at all CPUs again and again.
const SHORT_CPUS: u64 = 20;

/// Stops of CPUs: for millions of cycles, in which all others can finish their work. They are more
/// frequent while the CPU is pinned.
const STOPS: Stops = Stops {
    one_in_pinned: 1_000,
    one_in: 4_000,
    cycles_least: 1_000_000,
    cycles_most: 8_000_000,
};

/// The same for designs with locks, where all others wait for a stopped CPU that holds one.
const SHORT_STOPS: Stops = Stops {
    cycles_least: 20_000,
    cycles_most: 300_000,
    ..STOPS
};

named! {
    /// The kind of test.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Mode {
        /// Every operation concurrently with every other.
        Mixed => "mixed",
        /// The same, while CPUs are stopped for long at any access.
        Stop => "stop",
        /// A request that cannot be served at once, while the other CPUs allocate and free without
        /// end.
        Starve => "starve",
    }
}

named! {
    /// How large memory and caches are.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Sizes {
        /// A few hundred frames, caches of a few.
        Small => "small",
        /// Dozens to hundreds of page blocks of the smallest size; now and then thousands.
        Many => "many",
        /// Thousands of frames, with the sizes of Linux.
        Linux => "linux",
    }
}

named! {
    /// How much of the memory is free at the beginning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FreeMemory {
        /// All of it.
        Plenty => "plenty",
        /// Some hundred frames here and there, less than the tasks want; the rest is allocated
        /// before the run.
        Short => "short",
    }
}

named! {
    /// Whether interrupts allocate and free.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Interrupts {
        /// None.
        Off => "off",
        /// On every CPU, at random.
        On => "on",
    }
}

named! {
    /// What a request does that finds nothing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Pressure {
        /// It reclaims pages.
        Reclaim => "reclaim",
        /// It compacts, then reclaims.
        Compaction => "compaction",
        /// It reclaims the pages around an old one (lumpy reclaim).
        Lumpy => "lumpy",
    }
}

named! {
    /// Whether watermarks hold some memory back.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Marks {
        /// No watermarks.
        Off => "off",
        /// Watermarks that change while requests are made.
        On => "on",
    }
}

/// How long the lock is held in a bulk operation, with its names as values of the command's option.
pub const POLICIES: &Names<BulkPolicy> = &[
    (BulkPolicy::Hold, "hold", ""),
    (BulkPolicy::ReleaseEachPage, "release", ""),
    (BulkPolicy::YieldWhenContended, "yield", ""),
];

/// A case: what is run, see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The kind of test.
    pub mode: Mode,
    /// Which allocator.
    pub configuration: Configuration,
    /// Which CPUs may enter a CPU's lists or stash. Where only the CPU itself may, the zones have
    /// ticket locks, else test-and-set locks.
    pub slots: Slots,
    /// How long the lock is held in a bulk operation.
    pub policy: BulkPolicy,
    /// How large memory and caches are.
    pub sizes: Sizes,
    /// How much of the memory is free at the beginning.
    pub memory: FreeMemory,
    /// What a request does that finds nothing.
    pub pressure: Pressure,
    /// Whether watermarks hold some memory back.
    pub marks: Marks,
    /// Whether interrupts allocate and free.
    pub interrupts: Interrupts,
    /// CPUs of the machine, 1 to 256.
    pub cpus: usize,
    /// Tasks that use the allocator.
    pub tasks: usize,
    /// Operations of each task.
    pub operations: usize,
    /// Divides the limit on the accesses of a run. It is 1, except where many cases are tried that
    /// may not end.
    pub limit_divisor: u64,
}

impl Case {
    /// The case that `seed` chooses: 2 to 64 CPUs, mostly few, and some hundred operations in all.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let configurations = Configuration::ALL;
        // Half of all seeds use the default: it has no lock that orders its CPUs.
        let configuration = match dice.chance(2) {
            true => Configuration::Brickyard,
            false => configurations[dice.below(configurations.len() as u64) as usize],
        };
        let cpus = match dice.below(16) {
            0..=7 => 2 + dice.below(3),
            8..=12 => 5 + dice.below(4),
            13 | 14 => 9 + dice.below(8),
            _ => 17 + dice.below(48),
        };
        let tasks = 1 + cpus / 2 + dice.below(cpus);
        let memory = FreeMemory::ALL[usize::from(dice.chance(2))];
        let (cpus, tasks) = match memory {
            FreeMemory::Plenty => (cpus, tasks),
            FreeMemory::Short => (cpus.min(SHORT_CPUS), tasks.min(SHORT_CPUS)),
        };
        let operations = match memory {
            FreeMemory::Plenty => 8 + (100 + dice.below(700)) / tasks,
            // A request that cannot be served takes long, the longer the more CPUs there are.
            FreeMemory::Short => 4 + (100 + dice.below(400)) / (tasks + cpus * cpus / 16),
        };
        let mode = match dice.below(16) {
            0..13 => Mode::Mixed,
            13 | 14 => Mode::Stop,
            _ => Mode::Starve,
        };
        let (cpus, tasks) = match mode {
            Mode::Starve => (cpus.min(CPUS_MOST), tasks.min(TASKS_MOST)),
            Mode::Mixed | Mode::Stop => (cpus, tasks),
        };
        let sizes = match dice.below(16) {
            0..9 => Sizes::Small,
            9..13 => Sizes::Many,
            _ => Sizes::Linux,
        };
        Self {
            seed,
            mode,
            configuration,
            slots: Slots::ALL[dice.below(2) as usize],
            policy: POLICIES[dice.below(3) as usize].0,
            sizes,
            memory,
            pressure: Pressure::ALL[dice.below(3) as usize],
            marks: Marks::ALL[usize::from(dice.chance(6))],
            interrupts: Interrupts::ALL[usize::from(!dice.chance(3))],
            cpus: cpus as usize,
            tasks: tasks as usize,
            operations: operations as usize,
            limit_divisor: 1,
        }
    }

    /// Returns the setup of its machine: random time, with checks for races.
    #[must_use]
    pub fn setup(&self) -> Setup {
        Setup {
            timing: Clock::Random,
            watch: Watch::Races,
            accesses_most: self.accesses_most(),
            stops: match self.mode {
                Mode::Stop if self.configuration == Configuration::Brickyard => Some(STOPS),
                Mode::Stop => Some(SHORT_STOPS),
                Mode::Mixed | Mode::Starve => None,
            },
            ..Setup::new(Profile::ALL[0], self.cpus, self.seed)
        }
    }

    const fn accesses_most(&self) -> u64 {
        let operations = (self.tasks * self.operations * self.cpus) as u64;
        let most = (ACCESSES_MOST + ACCESSES_PER_OPERATION * operations) / self.limit_divisor;
        match self.sizes {
            Sizes::Small => most,
            // At its end a task frees all that it has, which is more here.
            Sizes::Many | Sizes::Linux => 2 * most,
        }
    }

    /// Returns the random numbers for a part of the case, different for each `part`.
    #[must_use]
    pub fn dice(&self, part: u64) -> Dice {
        Dice::new(Dice::new(self.seed ^ part.wrapping_mul(0x9e37_79b9)).next())
    }

    /// Returns the mean cycles between two interrupts of a CPU; `None` without interrupts.
    #[must_use]
    pub const fn interrupt_cycles(&self) -> Option<u64> {
        match self.interrupts {
            Interrupts::Off => None,
            Interrupts::On => Some(INTERRUPT_CYCLES * (1 + self.cpus as u64 / INTERRUPT_CPUS)),
        }
    }

    /// Whether its tasks first allocate most of the memory.
    pub(crate) fn begins_full(&self) -> bool {
        let may = self.sizes == Sizes::Small || self.memory == FreeMemory::Short;
        may && self.dice(u64::MAX - 2).chance(2)
    }

    /// Whether half of all requests are for page blocks.
    pub(crate) fn prefers_blocks(&self) -> bool {
        self.dice(u64::MAX - 6).chance(4)
    }

    /// Returns the usual limit of requests that have one, so that the free frames below it can be
    /// counted. It is in the lower half of the memory, where no zone for movable pages is.
    pub(crate) fn limit(&self, span: FrameRange) -> Frame {
        let most = span.len() as u64 * 3 / 8;
        span.start
            .plus(1 + self.dice(u64::MAX - 3).below(most) as usize)
    }

    pub(crate) const fn slow_path(&self) -> SlowPath {
        match self.pressure {
            Pressure::Reclaim => SlowPath::PLAIN,
            Pressure::Compaction => SlowPath::MODERN,
            Pressure::Lumpy => SlowPath::LUMPY_2007,
        }
    }

    /// Returns the allocator to build.
    pub(crate) fn blueprint(&self) -> Blueprint {
        Blueprint::new(self.configuration, self.plan())
    }

    /// Returns the order of a page block.
    pub(crate) fn page_block(&self) -> Order {
        self.plan().whole.page_block_order
    }

    fn plan(&self) -> MachinePlan {
        let mut dice = self.dice(u64::MAX);
        // Now and then one CPU has no slots.
        let slots = self.cpus - usize::from(self.cpus > 1 && dice.chance(4));
        let mut plan = match self.sizes {
            Sizes::Linux => {
                let frames = 2_100 + dice.below(12_000) as usize;
                MachinePlan::new(FrameRange::at(Frame::new(3), frames), slots)
            }
            Sizes::Small => self.small(slots, &mut dice),
            Sizes::Many => self.many(slots, &mut dice),
        };
        plan.whole.tuning = Tuning {
            bulk: self.policy,
            timing: match dice.chance(4) {
                true => Timing::On,
                false => Timing::Off,
            },
        };
        plan.whole.high_atomic = match dice.chance(2) {
            true => HighAtomic::OwnType,
            false => HighAtomic::SetAside,
        };
        plan.whole.magazines = 1 + dice.below(3) as usize;
        plan
    }

    /// Returns a plan of 600 frames that begin at an odd number, with blocks of up to 64 frames and
    /// page blocks of 16. The bitmap store, whose page blocks have at least 64 frames, gets twice
    /// the frames.
    fn small(&self, slots: usize, dice: &mut Dice) -> MachinePlan {
        let mut plan = MachinePlan::small(slots);
        let whole = &mut plan.whole;
        let singles = 1 + dice.below(16) as usize;
        whole.stash = StashSizes {
            singles,
            small: dice.below(4) as usize,
            huge: dice.below(9) as usize,
            // In half of the cases the arrays of a CPU compete for its share.
            percent: if singles.is_multiple_of(2) {
                100
            } else {
                singles
            },
        };
        if self.configuration == Configuration::Brickyard {
            whole.span = FrameRange::new(5, 1205);
            let order = 6 + dice.below(3) as u8;
            whole.page_block_order = Order::new(order);
            whole.max_order = Order::new(order + dice.below(3) as u8);
            whole.set_aside = SetAside {
                percent: 40,
                blocks: dice.below(3) as usize,
            };
        }
        plan
    }

    /// Returns the same with 66 to 320 of the smallest page blocks, so that a set of them takes
    /// several words; with the bitmap store now and then with more than 4096, for which its sets
    /// have one more level.
    fn many(&self, slots: usize, dice: &mut Dice) -> MachinePlan {
        let mut plan = self.small(slots, dice);
        let whole = &mut plan.whole;
        let mut blocks = 66 + dice.below(255) as usize;
        let over = dice.below(3) as u8;
        if self.configuration == Configuration::Brickyard {
            whole.page_block_order = Order::new(6);
            whole.max_order = Order::new(6 + over);
            if dice.chance(24) && self.cpus <= 8 && self.mode != Mode::Starve {
                blocks = 4_100;
            }
        }
        let start = Frame::new(5);
        whole.span = FrameRange::at(start, blocks * whole.page_block_order.frames());
        plan
    }
}

impl Case {
    /// Returns all that the seed chose, as options of the command.
    fn options(&self) -> [(&'static str, String); 12] {
        let named = |name: &str| name.to_owned();
        [
            ("mode", named(self.mode.name())),
            ("config", named(self.configuration.name())),
            ("slots", named(self.slots.name())),
            ("policy", named(name_of(POLICIES, &self.policy))),
            ("sizes", named(self.sizes.name())),
            ("memory", named(self.memory.name())),
            ("pressure", named(self.pressure.name())),
            ("marks", named(self.marks.name())),
            ("interrupts", named(self.interrupts.name())),
            ("cpus", self.cpus.to_string()),
            ("tasks", self.tasks.to_string()),
            ("operations", self.operations.to_string()),
        ]
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "brickyard explore --replay {}", self.seed)?;
        let usual = Self::of(self.seed).options();
        for ((name, value), (_, usual)) in self.options().iter().zip(&usual) {
            if value != usual {
                write!(f, " --{name} {value}")?;
            }
        }
        Ok(())
    }
}
