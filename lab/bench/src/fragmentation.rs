//! `bench fragmentation`: how many huge blocks are left after random allocations and frees.
//!
//! All single movable pages are allocated and half of them, chosen at random, freed. Then follow
//! rounds, in each of which a tenth of the allocated pages is freed at random and as many are
//! allocated again, page by page. At the end all caches are drained. The result is the share of the
//! free memory in whole huge blocks (order 9), in percent. The best lock-free allocator elsewhere
//! keeps 93 % in whole blocks, a plain buddy 0.3 %.
//!
//! Nothing is timed and there is one thread, so a seed gives the same number on every machine.

use core::time::Duration;

use anyhow::{Context, bail};
use brickyard::node::{Node, Nodes};
use brickyard::sync::{Exclusive, TicketLock};
use brickyard::{Mobility, Order};
use brickyard_classics::LabZone;
use brickyard_classics::{Configuration, Experiment};
use brickyard_report::{Host, Metric, Results, Row, bytes_text};

use super::design::ThroughNodes;
use super::fill::take_all;
use super::machine::{Build, FRAME_BYTES, HostPlatform};
use super::subject::{Handle, Subject};
use brickyard_measure::turns::{Round, Turns};
use brickyard_run::Random;
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

const WHOLE_HUGE: Metric<'static> = Metric::higher("whole-huge", "percent");

/// What is measured, on what machine, and how often.
#[derive(Debug)]
pub struct Fragmentation<'a> {
    /// The columns.
    pub configurations: &'a [Configuration],
    /// The memory of the machine in bytes; only its metadata is real.
    pub memory: usize,
    /// How many rounds of freeing and allocating a tenth of the allocated pages.
    pub rounds: usize,
    /// The random seed of sample 1; sample 2 has the next one.
    pub seed: u64,
    /// Samples of each row.
    pub samples: usize,
}

impl Fragmentation<'_> {
    /// Measures, and returns the results as rows.
    ///
    /// # Errors
    /// A machine cannot be built or loses pages, or the run is interrupted before the first round
    /// is complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<Results> {
        let configs = self.configurations;
        let names: Vec<_> = configs.iter().map(|config| config.name()).collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            lasting: Duration::ZERO,
            steps: 1,
            progress,
        };
        let shares = turns.take(|whose, round, step| {
            let Round::Measured(round) = round else {
                // Nothing is timed, so no warm-up is needed.
                return Ok(0.0);
            };
            let experiment = Churn {
                rounds: self.rounds,
                seed: self.seed.wrapping_add(round as u64),
            };
            let build = Build::plain(self.memory / FRAME_BYTES);
            let share = build.run_with::<Exclusive, TicketLock, _>(configs[whose], experiment)?;
            step();
            share.with_context(|| format!("{} lost pages", configs[whose]))
        })?;
        let memory = bytes_text(self.memory);
        let workload = format!("half-taken rounds-{} memory-{memory}", self.rounds);
        let mut results = Results::new("fragmentation", Host::read());
        for (config, shares) in configs.iter().zip(shares) {
            results.push(Row::new(config.name(), &workload, WHOLE_HUGE, shares)?.exact())?;
        }
        Ok(results)
    }
}

/// The allocations and frees of one sample.
struct Churn {
    rounds: usize,
    seed: u64,
}

impl Experiment<HostPlatform> for Churn {
    type Output = anyhow::Result<f64>;

    fn run<Z: LabZone<Platform = HostPlatform>>(self, node: &Node<'_, Z>) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let subject = ThroughNodes {
            nodes: &nodes,
            mobility: Mobility::Movable,
        };
        let mut pages = subject.handle(Order::ZERO);
        let mut random = Random::new(self.seed);
        let mut held = take_all(&mut pages);
        random.shuffle(&mut held);
        for page in held.drain(held.len() / 2..) {
            pages.free(page);
        }
        for _ in 0..self.rounds {
            if interrupt::asked() {
                break;
            }
            let tenth = held.len() / 10;
            for _ in 0..tenth {
                pages.free(held.swap_remove(random.below(held.len())));
            }
            for _ in 0..tenth {
                let Some(page) = pages.alloc() else {
                    bail!("half of the memory is free, but a page could not be allocated");
                };
                held.push(page);
            }
        }
        nodes.drain();
        let (mut free, mut huge) = (0, 0);
        for counts in nodes.zones().map(|zone| zone.free_counts()) {
            free += counts.free_frames();
            huge += counts.suitable(Order::HUGE) * Order::HUGE.frames();
        }
        Ok(huge as f64 * 100.0 / free.max(1) as f64)
    }
}
