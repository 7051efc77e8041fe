//! A test case: a configuration on a machine, with sizes and policies.
//!
//! Small sizes make rare events common: lists overflow after a few frees, blocks are claimed after
//! a few requests.

use core::mem::MaybeUninit;

use brickyard::bitmap::SetAside;
use brickyard::node::Node;
use brickyard::stash::StashSizes;
use brickyard::sync::{Exclusive, Shared, SlotAccess, TestAndSetLock, TicketLock};
use brickyard::{FrameRange, Order, Platform};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::bulk::{BulkPolicy, Timing, Tuning};
use brickyard_designs::classics::store::grouping::HighAtomic;
use brickyard_designs::classics::{Configuration, Experiment, LabLock, MachinePlan, OwnLine};

use crate::operation::CPUS;
use crate::{Driven, ManyCpus, drive};

/// How CPUs enter the slots of their caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// Each CPU enters only its own.
    Exclusive,
    /// Any CPU enters any slot, by a lock.
    Shared,
}

/// A configuration on a machine.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The configuration.
    pub configuration: Configuration,
    /// How CPUs enter the slots of their caches.
    pub slots: Slots,
    /// The machine, with its sizes and policies.
    pub machine: MachinePlan,
}

impl Case {
    /// Returns a machine of 600 frames that begins at an odd frame, with blocks of up to 64 frames,
    /// page blocks of 16, and caches of a few frames. The bitmap store, whose page blocks have at
    /// least 64 frames, gets twice the frames, page blocks of two words, and blocks of up to four
    /// page blocks.
    #[must_use]
    pub fn small(configuration: Configuration, slots: Slots) -> Self {
        let mut machine = MachinePlan::small(CPUS - 1);
        let whole = &mut machine.whole;
        whole.stash = StashSizes {
            singles: 8,
            small: 2,
            huge: 1,
            ..StashSizes::LARGEST
        };
        if configuration == Configuration::Brickyard {
            whole.span = FrameRange::new(5, 1205);
            whole.set_aside = SetAside {
                percent: 30,
                blocks: 2,
            };
            whole.max_order = Order::new(9);
            whole.page_block_order = Order::new(7);
        }
        Self {
            configuration,
            slots,
            machine,
        }
    }

    /// Returns a machine of 6000 frames with the sizes of Linux.
    #[must_use]
    pub fn of_linux(configuration: Configuration, slots: Slots) -> Self {
        Self {
            configuration,
            slots,
            machine: MachinePlan::new(FrameRange::new(3, 6003), CPUS - 1),
        }
    }

    /// Decodes a case from the first four bytes, mostly a small one; returns it and the rest of the
    /// bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> (Self, &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        let byte = |i: usize| head.get(i).copied().unwrap_or(0);
        let all = Configuration::ALL;
        let configuration = all[usize::from(byte(0)) % all.len()];
        let slots = match byte(1) % 2 {
            0 => Slots::Exclusive,
            _ => Slots::Shared,
        };
        let mut case = match byte(1) / 2 % 8 {
            0 => Self::of_linux(configuration, slots),
            _ => Self::small(configuration, slots),
        };
        let whole = &mut case.machine.whole;
        whole.tuning = Tuning {
            bulk: match byte(2) % 3 {
                0 => BulkPolicy::Hold,
                1 => BulkPolicy::ReleaseEachPage,
                _ => BulkPolicy::YieldWhenContended,
            },
            timing: match byte(2) / 4 % 2 {
                0 => Timing::Off,
                _ => Timing::On,
            },
        };
        whole.high_atomic = match byte(3) % 2 {
            0 => HighAtomic::OwnType,
            _ => HighAtomic::SetAside,
        };
        whole.set_aside.blocks = usize::from(byte(3) / 2 % 3);
        whole.magazines = 1 + usize::from(byte(3) / 2 % 3);
        if configuration == Configuration::Brickyard && byte(3) / 8 % 4 == 0 {
            // Page blocks of one word, and of four.
            let order = 6 + 2 * (byte(3) / 32 % 2);
            whole.page_block_order = Order::new(order);
        }
        (case, rest)
    }

    /// Builds the case on `platform` and runs `experiment` on the node.
    pub fn run<P: Platform + Clone, E: Experiment<P>>(
        &self,
        platform: P,
        experiment: E,
    ) -> E::Output {
        match self.slots {
            Slots::Exclusive => self.build::<Exclusive, TicketLock, _, _>(platform, experiment),
            Slots::Shared => {
                self.build::<Shared, OwnLine<TestAndSetLock>, _, _>(platform, experiment)
            }
        }
    }

    fn build<A: SlotAccess, L: LabLock, P: Platform + Clone, E: Experiment<P>>(
        &self,
        platform: P,
        experiment: E,
    ) -> E::Output {
        let (plan, configuration) = (&self.machine, self.configuration);
        let mut memory = vec![MaybeUninit::uninit(); configuration.bytes::<A, L, P>(plan)];
        let out = configuration.run::<A, L, _, _>(plan, platform, &mut memory, experiment);
        match out {
            Ok(out) => out,
            Err(error) => panic!("the computed size is too small: {error}"),
        }
    }

    /// Runs the operations encoded in `bytes` on this case and on the model, see [`drive()`].
    #[must_use]
    pub fn drive(&self, bytes: &[u8]) -> Driven {
        let platform = ManyCpus::new();
        let experiment = Drive {
            platform: &platform,
            bytes,
        };
        self.run(&platform, experiment)
    }
}

struct Drive<'d> {
    platform: &'d ManyCpus,
    bytes: &'d [u8],
}

impl<'d> Experiment<&'d ManyCpus> for Drive<'d> {
    type Output = Driven;

    fn run<Z: LabZone<Platform = &'d ManyCpus>>(self, node: &Node<'_, Z>) -> Driven {
        drive(node, self.platform, self.bytes)
    }
}
