//! The load of `scarce`: requests when memory is nearly exhausted, on machines of several sizes.
//!
//! One thread does five tests on one machine of each size, of which only the metadata is real:
//!
//! | workload | what is free | the request |
//! |---|---|---|
//! | `order-0 none-free`, `order-9 none-free` | nothing: all single pages are allocated | must fail |
//! | `order-3 scattered` | one page of each pair, at random, so no two buddies are free | must fail |
//! | `order-0 one-free`, `order-9 one-free` | one block of that order, at a random place, and in no cache | must find it |
//!
//! A request that fails is timed in a loop without a clock inside. One that finds its block is
//! timed alone, minus the cost of reading the clock, since before each a block must be freed and
//! the caches drained. In ns per request.

use core::time::Duration;
use std::time::Instant;

use anyhow::{Context, bail};
use brickyard::node::{Node, Nodes};
use brickyard::sync::{Exclusive, TicketLock};
use brickyard::{Frame, Mobility, Order};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Configuration, Experiment};
use brickyard_results::bytes_text;

use super::design::{ThroughNodes, ThroughZone};
use super::fill::take_all;
use super::machine::{Build, FRAME_BYTES, HostPlatform, Level};
use super::subject::{Handle, Subject};
use brickyard_measure::clock::{Laps, ns_of_the_clock};
use brickyard_run::Random;

/// The tests, in the order in which they are run.
pub const QUESTIONS: [&str; 5] = [
    "order-9 one-free",
    "order-0 none-free",
    "order-9 none-free",
    "order-0 one-free",
    "order-3 scattered",
];

/// The order of the request that scattered pages cannot serve.
const SMALL: Order = Order::new(3);

/// The result of each test, in ns per request.
pub type Answers = [f64; QUESTIONS.len()];

/// The tests on one machine.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// The mobility of the requests.
    pub mobility: Mobility,
    /// The level that requests enter at.
    pub level: Level,
    /// The least time of a sample's loop.
    pub least: Duration,
}

impl Asking {
    /// Does the tests on a machine with so much memory, of which only the metadata is real.
    ///
    /// # Errors
    /// The machine cannot be built, or a request that must fail succeeds or the reverse.
    pub fn of(self, configuration: Configuration, memory: usize) -> anyhow::Result<Answers> {
        let build = Build::plain(memory / FRAME_BYTES);
        build
            .run_with::<Exclusive, TicketLock, _>(configuration, self)?
            .with_context(|| format!("{configuration} with {}", bytes_text(memory)))
    }
}

impl Experiment<HostPlatform> for Asking {
    type Output = anyhow::Result<Answers>;

    fn run<Z: LabZone<Platform = HostPlatform>>(self, node: &Node<'_, Z>) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let (nodes, mobility) = (&nodes, self.mobility);
        match self.level {
            Level::Node => self.ask(&ThroughNodes { nodes, mobility }),
            Level::Zone => {
                let zone = ThroughZone::of(nodes, mobility).context("a machine has a zone")?;
                self.ask(&zone)
            }
        }
    }
}

impl Asking {
    fn ask<S: Subject>(&self, subject: &S) -> anyhow::Result<Answers> {
        let mut random = Random::new(1);
        let (mut pages, mut huge) = (subject.handle(Order::ZERO), subject.handle(Order::HUGE));

        let mut blocks = take_all(&mut huge);
        let one_huge = self.found(&mut huge, &mut blocks, &mut random)?;
        for block in blocks {
            huge.free(block);
        }
        huge.settle();

        let mut held = take_all(&mut pages);
        let no_page = self.refused(&mut pages)?;
        let no_huge = self.refused(&mut huge)?;
        let one_page = self.found(&mut pages, &mut held, &mut random)?;

        // One bit per pair: which of its two pages is freed.
        let pairs = held.iter().map(|page| page.number() / 2).max();
        let sides: Vec<bool> = (0..=pairs.unwrap_or(0))
            .map(|_| random.below(2) == 1)
            .collect();
        for &page in &held {
            if (page.number() % 2 == 1) == sides[page.number() / 2] {
                pages.free(page);
            }
        }
        pages.settle();
        let scattered = self.refused(&mut subject.handle(SMALL))?;
        Ok([one_huge, no_page, no_huge, one_page, scattered])
    }

    /// Returns the time of a request that must fail.
    fn refused(&self, handle: &mut impl Handle) -> anyhow::Result<f64> {
        // The first quarter of the time warms up.
        let (mut rounds, begun) = (0_u32, Instant::now());
        while rounds == 0 || begun.elapsed() < self.least / 4 {
            if handle.alloc().is_some() {
                bail!("a request succeeded though no free block could serve it");
            }
            rounds += 1;
        }
        let rounds = rounds * 4;
        let begun = Instant::now();
        let served = (0..rounds).any(|_| handle.alloc().is_some());
        let spent = begun.elapsed();
        if served {
            bail!("a request succeeded though no free block could serve it");
        }
        Ok(spent.as_nanos() as f64 / f64::from(rounds))
    }

    /// Returns the time of a request that must find the only free block, one of those in `held`.
    fn found(
        &self,
        handle: &mut impl Handle,
        held: &mut [Frame],
        random: &mut Random,
    ) -> anyhow::Result<f64> {
        if held.is_empty() {
            bail!("there is no block to free and find again");
        }
        let clock = ns_of_the_clock();
        let (mut spent, mut timed) = (Laps::default(), 0_u32);
        let begun = Instant::now();
        while timed == 0 || begun.elapsed() < self.least + self.least / 4 {
            let block = &mut held[random.below(held.len())];
            handle.free(*block);
            handle.settle();
            let before = Instant::now();
            let found = handle.alloc();
            let took = before.elapsed();
            let Some(found) = found else {
                bail!("the only free block was not found");
            };
            *block = found;
            // The first quarter of the time warms up.
            if begun.elapsed() > self.least / 4 {
                spent.add(took);
                timed += 1;
            }
        }
        Ok(spent.ns(clock) / f64::from(timed))
    }
}
