//! A case: an allocator, a machine and what its tasks do there, all chosen by a seed.
//!
//! The sizes are mostly small ones, as in the tests of the allocator: lists that overflow after a
//! few frees, blocks that are claimed after a few requests. Others have so many page blocks that a
//! set of them takes more than one word, or the sizes of Linux. In half of all cases nearly all of
//! the memory is in use from the beginning on, so that it runs out again and again. Whatever the
//! seed chose can be chosen otherwise; a case prints itself as the command that runs it.

use core::fmt;

use brickyard::node::SlowPath;
use brickyard::stash::StashSizes;
use brickyard::{Frame, FrameRange, Order};
use brickyard_classics::bulk::{BulkPolicy, Timing, Tuning};
use brickyard_classics::store::grouping::HighAtomic;
use brickyard_classics::{Configuration, MachinePlan};
use brickyard_machine::{Dice, Profile, Setup, Stops, Timing as Clock, Watch};
use brickyard_workload::named;

use super::starve::{CPUS_MOST, TASKS_MOST};
use crate::build::{Blueprint, Slots};

/// A run fails after so many shared accesses, and so many more for each operation and CPU, since
/// CPUs that wait look again and again. Some ten times what is common.
const ACCESSES_MOST: u64 = 30_000_000;
const ACCESSES_PER_OPERATION: u64 = 2_000;

/// Cycles between two interrupts of a CPU, on average; with so many CPUs more, twice as many, and
/// so on, since a request that finds nothing looks at all of them.
const INTERRUPT_CYCLES: u64 = 20_000;
const INTERRUPT_CPUS: u64 = 8;

/// CPUs and tasks that a seed gives to a case whose memory is short: each request that finds
/// nothing looks at all of them again and again.
const SHORT_CPUS: u64 = 20;

/// CPUs that are stopped: for millions of cycles, in which all others do what they have to do. More
/// often in the middle of something that the CPU is pinned for.
const STOPS: Stops = Stops {
    one_in_pinned: 1_000,
    one_in: 4_000,
    cycles_least: 1_000_000,
    cycles_most: 8_000_000,
};

/// The same for designs with locks, where all others wait for a CPU that has one and stands still.
const SHORT_STOPS: Stops = Stops {
    cycles_least: 20_000,
    cycles_most: 300_000,
    ..STOPS
};

named! {
    /// What is tried.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Mode {
        /// Every operation beside every other.
        Mixed => "mixed",
        /// The same, while CPUs are stopped for long wherever they are.
        Stop => "stop",
        /// One request that cannot be served at once, while the other CPUs allocate and free for
        /// ever.
        Starve => "starve",
    }
}

named! {
    /// How large memory and caches are.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Sizes {
        /// A few hundred frames, caches of a few.
        Small => "small",
        /// Dozens to hundreds of page blocks, as small as they can be; now and then thousands.
        Many => "many",
        /// Thousands of frames, with the sizes of Linux.
        Linux => "linux",
    }
}

named! {
    /// How much of the memory can be had.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Memory {
        /// All of it.
        Plenty => "plenty",
        /// What somebody has left who came first: some hundred frames here and there, less than the
        /// tasks want.
        Short => "short",
    }
}

named! {
    /// Whether interrupts come, allocate and free.
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
        /// It takes pages away from their users.
        Reclaim => "reclaim",
        /// It compacts, then reclaims.
        Compaction => "compaction",
        /// It reclaims round an old page.
        Lumpy => "lumpy",
    }
}

named! {
    /// Whether some memory is held back.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Marks {
        /// Every frame can be had.
        Off => "off",
        /// Watermarks, which change while requests are made.
        On => "on",
    }
}

/// How CPUs reach their own, by its name as an option of the command.
pub const SLOTS: [(Slots, &str); 2] = [(Slots::Exclusive, "exclusive"), (Slots::Shared, "shared")];
/// How long the lock is held, by its name as an option of the command.
pub const POLICIES: [(BulkPolicy, &str); 3] = [
    (BulkPolicy::Hold, "hold"),
    (BulkPolicy::ReleaseEachPage, "release"),
    (BulkPolicy::YieldWhenContended, "yield"),
];

fn name_of<T: PartialEq>(all: &[(T, &'static str)], one: &T) -> &'static str {
    let found = all.iter().find(|(value, _)| value == one);
    found.map_or("?", |(_, name)| name)
}

/// What is run: see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// What all chance comes from.
    pub seed: u64,
    /// What is tried.
    pub mode: Mode,
    /// Which allocator.
    pub configuration: Configuration,
    /// How CPUs reach their lists and stashes. Where each reaches only its own the zones have
    /// ticket locks, else test-and-set locks.
    pub slots: Slots,
    /// How long it is held in a bulk operation.
    pub policy: BulkPolicy,
    /// How large memory and caches are.
    pub sizes: Sizes,
    /// How much of the memory can be had.
    pub memory: Memory,
    /// What a request does that finds nothing.
    pub pressure: Pressure,
    /// Whether some memory is held back.
    pub marks: Marks,
    /// Whether interrupts come.
    pub interrupts: Interrupts,
    /// CPUs of the machine, 1 to 256.
    pub cpus: usize,
    /// Tasks that use the allocator.
    pub tasks: usize,
    /// What each of them does, in operations.
    pub operations: usize,
    /// What the accesses that a run may take are divided by: 1, but where many are tried that may
    /// have no end.
    pub hurry: u64,
}

impl Case {
    /// The case that `seed` chooses: 2 to 64 CPUs, mostly few, and some hundred operations in all.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let configurations = Configuration::ALL;
        // Half of all seeds are the default's: it has no lock to put its CPUs in order.
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
        let memory = Memory::ALL[usize::from(dice.chance(2))];
        let (cpus, tasks) = match memory {
            Memory::Plenty => (cpus, tasks),
            Memory::Short => (cpus.min(SHORT_CPUS), tasks.min(SHORT_CPUS)),
        };
        let operations = match memory {
            Memory::Plenty => 8 + (100 + dice.below(700)) / tasks,
            // What cannot be served takes long, the longer the more CPUs there are.
            Memory::Short => 4 + (100 + dice.below(400)) / (tasks + cpus * cpus / 16),
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
            slots: SLOTS[dice.below(2) as usize].0,
            policy: POLICIES[dice.below(3) as usize].0,
            sizes,
            memory,
            pressure: Pressure::ALL[dice.below(3) as usize],
            marks: Marks::ALL[usize::from(dice.chance(6))],
            interrupts: Interrupts::ALL[usize::from(!dice.chance(3))],
            cpus: cpus as usize,
            tasks: tasks as usize,
            operations: operations as usize,
            hurry: 1,
        }
    }

    /// The making of a machine for it: random time, races watched.
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
        let most = (ACCESSES_MOST + ACCESSES_PER_OPERATION * operations) / self.hurry;
        match self.sizes {
            Sizes::Small => most,
            // What a task has at its end, it frees.
            Sizes::Many | Sizes::Linux => 2 * most,
        }
    }

    /// Dice for a part of the case, other ones for each number.
    #[must_use]
    pub fn dice(&self, part: u64) -> Dice {
        Dice::new(Dice::new(self.seed ^ part.wrapping_mul(0x9e37_79b9)).next())
    }

    /// Cycles between two interrupts of a CPU on average; none where none come.
    #[must_use]
    pub const fn interrupt_cycles(&self) -> Option<u64> {
        match self.interrupts {
            Interrupts::Off => None,
            Interrupts::On => Some(INTERRUPT_CYCLES * (1 + self.cpus as u64 / INTERRUPT_CPUS)),
        }
    }

    /// Do its tasks take most of the memory before anything else?
    pub(crate) fn begins_full(&self) -> bool {
        let may = self.sizes == Sizes::Small || self.memory == Memory::Short;
        may && self.dice(u64::MAX - 2).chance(2)
    }

    /// Are half of all requests for page blocks?
    pub(crate) fn wants_blocks(&self) -> bool {
        self.dice(u64::MAX - 6).chance(4)
    }

    /// The frame that requests with a limit have theirs at as a rule, so that what is free below it
    /// can be counted: in the lower half of the memory, which no zone for movable pages reaches
    /// into.
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

    /// The allocator.
    pub(crate) fn blueprint(&self) -> Blueprint {
        Blueprint::new(self.configuration, self.plan())
    }

    /// The order of a page block.
    pub(crate) fn page_block(&self) -> Order {
        self.plan().whole.page_block_order
    }

    fn plan(&self) -> MachinePlan {
        let mut dice = self.dice(u64::MAX);
        // Now and then there is a CPU without slots.
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

    /// 600 frames from an odd one on, with blocks of up to 64 frames and page blocks of 16. The
    /// bitmap store, whose page blocks have 64 frames and more, has twice the frames.
    fn small(&self, slots: usize, dice: &mut Dice) -> MachinePlan {
        let mut plan = MachinePlan::small(slots);
        let whole = &mut plan.whole;
        whole.stash = StashSizes {
            singles: 1 + dice.below(16) as usize,
            small: dice.below(4) as usize,
            huge: dice.below(9) as usize,
        };
        if self.configuration == Configuration::Brickyard {
            whole.span = FrameRange::new(5, 1205);
            let order = 6 + dice.below(3) as u8;
            whole.page_block_order = Order::new(order);
            whole.max_order = Order::new(order + dice.below(3) as u8);
        }
        plan
    }

    /// The same with 66 to 320 of the smallest page blocks, so that a set of them takes several
    /// words; with the bitmap store now and then with more than 4096, for which its sets have a
    /// level more.
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
    /// Whatever the seed chose, as options of the command.
    fn options(&self) -> [(&'static str, String); 12] {
        let named = |name: &str| name.to_owned();
        [
            ("mode", named(self.mode.name())),
            ("config", named(self.configuration.name())),
            ("slots", named(name_of(&SLOTS, &self.slots))),
            ("policy", named(name_of(&POLICIES, &self.policy))),
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
        write!(f, "brickyard simulate explore --replay {}", self.seed)?;
        let usual = Self::of(self.seed).options();
        for ((name, value), (_, usual)) in self.options().iter().zip(&usual) {
            if value != usual {
                write!(f, " --{name} {value}")?;
            }
        }
        Ok(())
    }
}
