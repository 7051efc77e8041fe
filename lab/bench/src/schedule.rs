//! The workloads of `pagealloc`, and which of those requested are left out.

use core::fmt;
use core::str::FromStr;

use anyhow::{Context, bail};
use brickyard::Order;

use brickyard_run::named;

use super::machine::{FRAME_BYTES, Level, Slots};

named! {
    /// The calls that allocate and free a batch.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Api {
        /// One call per block.
        Single => "single",
        /// One call per batch; for single pages only.
        Bulk => "bulk",
    }
}

named! {
    /// How a batch is freed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Freed {
        /// In the order of allocation.
        Same => "same",
        /// In random order, the same each time.
        Random => "random",
        /// In the order of allocation, by another thread: threads work in pairs, of which one only
        /// allocates and the other only frees.
        Remote => "remote",
    }
}

/// The setting that a machine is built for; workloads of the same setting run on the same machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) slots: Slots,
    /// How much of the memory is allocated beforehand, at random, in percent.
    pub(crate) fill: u8,
    pub(crate) level: Level,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    pub(crate) setting: Setting,
    pub(crate) order: Order,
    pub(crate) batch: usize,
    pub(crate) threads: usize,
    pub(crate) api: Api,
    pub(crate) freed: Freed,
}

impl Workload {
    /// Returns the workload of one thread that allocates so many single pages and frees them in the
    /// same order.
    pub(crate) const fn plain(setting: Setting, batch: usize) -> Self {
        Self {
            setting,
            order: Order::ZERO,
            batch,
            threads: 1,
            api: Api::Single,
            freed: Freed::Same,
        }
    }

    /// Returns the most frames that all its threads have allocated at once.
    pub const fn pages(&self) -> usize {
        (self.batch << self.order.get()) * self.threads
    }

    /// Returns true if both run on the same machine.
    #[must_use]
    pub fn is_at_the_setting_of(&self, other: &Self) -> bool {
        self.setting == other.setting
    }

    /// Returns why the workload is left out with so many frames of memory, if it is.
    fn nonsense(&self, frames: usize) -> Option<String> {
        if self.api == Api::Bulk && self.order > Order::ZERO {
            let why = "api bulk is for single pages; orders above 0 are left out";
            return Some(why.into());
        }
        if self.freed == Freed::Remote && !self.threads.is_multiple_of(2) {
            let threads = self.threads;
            return Some(format!(
                "free remote needs pairs of threads; {threads} threads are left out"
            ));
        }
        let fill = self.setting.fill;
        let free = frames * usize::from(100 - fill) / 100;
        // Twice, since caches have pages too. For an empty machine, the memory is checked
        // elsewhere.
        (fill > 0 && self.pages() * 2 > free).then(|| {
            let free = free * FRAME_BYTES / 1024;
            format!("fill {fill} leaves {free}K; batches larger than half of that are left out")
        })
    }
}

/// Writes the workload's name, with everything that differs from the defaults, so that no two rows
/// have the same name.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order-{} batch-{}", self.order, self.batch)?;
        if self.threads > 1 {
            write!(f, " threads-{}", self.threads)?;
        }
        if self.setting.slots == Slots::Shared {
            f.write_str(" shared")?;
        }
        match self.freed {
            Freed::Same => {}
            Freed::Random => f.write_str(" random-free")?,
            Freed::Remote => f.write_str(" remote-free")?,
        }
        if self.api == Api::Bulk {
            f.write_str(" api-bulk")?;
        }
        if self.setting.fill > 0 {
            write!(f, " fill-{}", self.setting.fill)?;
        }
        if self.setting.level == Level::Zone {
            f.write_str(" level-zone")?;
        }
        Ok(())
    }
}

/// Every combination of these, the first field outermost, with every allowed batch of 1, 2, 4 ….
#[derive(Debug, Clone)]
pub struct Schedule {
    /// How a CPU accesses its slot.
    pub slots: Vec<Slots>,
    /// How much of the memory is allocated beforehand, in percent.
    pub fill: Vec<u8>,
    /// The levels that requests enter at.
    pub level: Vec<Level>,
    /// How many threads run in parallel.
    pub threads: Vec<usize>,
    /// The calls that allocate and free.
    pub api: Vec<Api>,
    /// How a batch is freed.
    pub freed: Vec<Freed>,
    /// The orders of the blocks.
    pub orders: Vec<Order>,
    /// The smallest batch.
    pub least_batch: usize,
    /// The largest batch.
    pub most_batch: usize,
}

/// The batches of mmtests are below 128 MiB of 4 KiB pages.
const MMTESTS_PAGES: usize = (128 << 20) / FRAME_BYTES;

impl Schedule {
    /// Returns the schedule of one thread that allocates single pages one by one from an empty
    /// machine, and frees them in the same order.
    pub fn plain(level: &[Level]) -> Self {
        Self {
            slots: vec![Slots::Exclusive],
            fill: vec![0],
            level: level.to_vec(),
            threads: vec![1],
            api: vec![Api::Single],
            freed: vec![Freed::Same],
            orders: vec![Order::ZERO],
            least_batch: 1,
            most_batch: usize::MAX,
        }
    }

    /// Returns the workloads.
    pub fn workloads(&self) -> Vec<Workload> {
        let mut workloads = Vec::new();
        for setting in self.settings() {
            for &threads in &self.threads {
                for &api in &self.api {
                    for &freed in &self.freed {
                        for &order in &self.orders {
                            workloads.extend(self.batches(order).map(|batch| Workload {
                                setting,
                                order,
                                batch,
                                threads,
                                api,
                                freed,
                            }));
                        }
                    }
                }
            }
        }
        workloads
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for &slots in &self.slots {
            for &fill in &self.fill {
                settings.extend(
                    self.level
                        .iter()
                        .map(|&level| Setting { slots, fill, level }),
                );
            }
        }
        settings
    }

    fn batches(&self, order: Order) -> impl Iterator<Item = usize> + use<> {
        let (least, most) = (self.least_batch, self.most_batch);
        let powers = (0..usize::BITS).map(|power| 1 << power);
        let allowed = move |&batch: &usize| batch < MMTESTS_PAGES >> order.get() && batch <= most;
        powers
            .take_while(allowed)
            .skip_while(move |&batch| batch < least)
    }
}

/// Returns the workloads that the goals for the default configuration are stated for.
pub fn goals(level: &[Level]) -> Vec<Workload> {
    let plain = Schedule::plain(level);
    let schedules = [
        // Every batch, freed in order; and with two threads.
        Schedule {
            threads: vec![1, 2],
            ..plain.clone()
        },
        // The largest batch, freed in random order.
        Schedule {
            freed: vec![Freed::Random],
            least_batch: 16384,
            ..plain.clone()
        },
        // Bulk calls, from 64 pages up.
        Schedule {
            api: vec![Api::Bulk],
            least_batch: 64,
            ..plain.clone()
        },
        // Allocated on one CPU, freed on another.
        Schedule {
            threads: vec![2],
            freed: vec![Freed::Remote],
            ..plain.clone()
        },
        // Huge pages.
        Schedule {
            orders: vec![Order::HUGE],
            ..plain.clone()
        },
        // Half full and nearly full.
        Schedule {
            fill: vec![50, 99],
            ..plain.clone()
        },
        // Slots that other CPUs may access.
        Schedule {
            slots: vec![Slots::Shared],
            ..plain
        },
    ];
    schedules.iter().flat_map(Schedule::workloads).collect()
}

/// Returns the workloads that are possible with so many frames of memory, and the reasons why
/// others are left out, each once.
pub fn sensible(workloads: Vec<Workload>, frames: usize) -> (Vec<Workload>, Vec<String>) {
    let mut reasons = Vec::new();
    let mut sensible = workloads;
    sensible.retain(|workload| match workload.nonsense(frames) {
        None => true,
        Some(reason) => {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
            false
        }
    });
    (sensible, reasons)
}

/// Orders on the command line, such as `0-4,9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders(pub Vec<Order>);

impl FromStr for Orders {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut orders = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (order(first)?, order(last)?);
            if first > last {
                bail!("{part:?} is a reversed range; write {}-{}", last, first);
            }
            orders.extend(first.up_to(last));
        }
        orders.sort_unstable();
        orders.dedup();
        Ok(Self(orders))
    }
}

fn order(text: &str) -> anyhow::Result<Order> {
    let number: u8 = text
        .trim()
        .parse()
        .with_context(|| format!("{text:?} is not an order; write numbers such as 0-4,9"))?;
    match Order::try_new(number) {
        Some(order) if order <= Order::DEFAULT_MAX => Ok(order),
        _ => bail!(
            "order {number} is above the highest order {}",
            Order::DEFAULT_MAX
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_ranges_and_numbers() {
        let numbers = |text: &str| -> Vec<u8> {
            let orders: Orders = text.parse().unwrap();
            orders.0.iter().map(|order| order.get()).collect()
        };
        assert_eq!(numbers("0-4,9"), [0, 1, 2, 3, 4, 9]);
        assert_eq!(numbers("3,1-3"), [1, 2, 3]);
        for wrong in ["", "x", "4-1", "11", "1-"] {
            assert!(wrong.parse::<Orders>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn batches_are_those_of_mmtests() {
        let of = |order| {
            let orders = vec![Order::new(order)];
            let plain = Schedule::plain(&[Level::Node]);
            let workloads = Schedule { orders, ..plain }.workloads();
            workloads.last().map(|last| (workloads.len(), last.batch))
        };
        assert_eq!(of(0), Some((15, 16384)));
        assert_eq!(of(4), Some((11, 1024)));
        assert_eq!(of(9), Some((6, 32)));
    }

    #[test]
    fn every_goal_is_a_workload_and_none_occurs_twice() {
        let goals = goals(&[Level::Node]);
        let names: Vec<String> = goals.iter().map(Workload::to_string).collect();
        for goal in [
            "order-0 batch-1",
            "order-0 batch-16384",
            "order-0 batch-16384 random-free",
            "order-0 batch-64 shared",
            "order-0 batch-64 api-bulk",
            "order-0 batch-256 threads-2 remote-free",
            "order-0 batch-256 fill-50",
            "order-0 batch-256 fill-99",
            "order-0 batch-16384 threads-2",
            "order-9 batch-32",
        ] {
            assert!(names.contains(&goal.to_owned()), "{goal}");
        }
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn impossible_workloads_are_left_out_with_one_reason_each() {
        let all = Schedule {
            fill: vec![0, 99],
            api: vec![Api::Single, Api::Bulk],
            freed: vec![Freed::Same, Freed::Remote],
            orders: vec![Order::ZERO, Order::new(1)],
            ..Schedule::plain(&[Level::Node])
        };
        let (sensible, reasons) = sensible(all.workloads(), 1 << 18);
        assert_eq!(reasons.len(), 3, "{reasons:#?}");
        assert!(sensible.iter().all(|w| w.freed == Freed::Same));
        let largest = |fill, api| {
            let of = sensible
                .iter()
                .filter(|w| (w.setting.fill, w.api) == (fill, api));
            of.map(|w| w.pages()).max()
        };
        assert_eq!(largest(0, Api::Bulk), Some(16384));
        assert_eq!(largest(99, Api::Single), Some(1024));
    }
}
