//! The load of `fragmentation`: how many huge blocks are left after random allocations and frees.
//!
//! All single movable pages are allocated and half of them, chosen at random, freed. Then follow
//! rounds, in each of which a tenth of the allocated pages is freed at random and as many are
//! allocated again, page by page, in batches: so many are freed, then as many allocated. This is
//! what the benchmark `frag` of LLFree does. At the end all caches are drained. The result is the
//! share of the free memory in whole huge blocks (order 9), in percent. The best lock-free allocator
//! elsewhere keeps 93 % in whole blocks, a plain buddy 0.3 %.
//!
//! Nothing is timed. Several threads, each a CPU with pages of its own, take turns of a batch and at
//! least [`TURN`] pages. So a seed gives the same number on every machine.

use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context, bail, ensure};
use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Order};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Configuration, Experiment};

use super::design::ThroughNodes;
use super::fill::take_all;
use super::machine::{Build, FRAME_BYTES, HostPlatform};
use super::subject::{Handle, Subject};
use brickyard_run::Random;
use brickyard_run::interrupt;

/// Returns the share of the free memory in whole huge blocks, in percent.
///
/// # Errors
/// The machine cannot be built, or loses pages.
pub fn whole_huge(
    configuration: Configuration,
    memory: usize,
    churn: Churn,
) -> anyhow::Result<f64> {
    let mut build = Build::plain(memory / FRAME_BYTES);
    build.threads = churn.threads;
    let share = build.run_alone(configuration, churn)?;
    share.with_context(|| format!("{configuration} lost pages"))
}

/// The allocations and frees of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Churn {
    /// How many rounds of freeing and allocating a tenth of the allocated pages.
    pub rounds: usize,
    /// How many pages are freed before as many are allocated; `None`: all of a round.
    pub batch: Option<usize>,
    /// How many threads take turns.
    pub threads: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The least number of pages that a thread frees and allocates in its turn.
const TURN: usize = 64;

impl Churn {
    /// Frees so many pages of `held` and allocates as many, by batches. Returns false if there was
    /// nothing to allocate.
    fn exchange(
        self,
        pages: &mut impl Handle,
        held: &mut Vec<Frame>,
        random: &mut Random,
        mut left: usize,
    ) -> bool {
        while left > 0 {
            let batch = self.batch.unwrap_or(left).clamp(1, left);
            for _ in 0..batch {
                pages.free(held.swap_remove(random.below(held.len())));
            }
            for _ in 0..batch {
                let Some(page) = pages.alloc() else {
                    return false;
                };
                held.push(page);
            }
            left -= batch;
        }
        true
    }
}

/// A thread that does what it is told: the turns that it is told of, and how they went.
struct Worker<'s> {
    turns: mpsc::Sender<usize>,
    went: mpsc::Receiver<bool>,
    thread: ScopedJoinHandle<'s, Result<(), mpsc::SendError<bool>>>,
}

impl Churn {
    /// Tells the threads, each with so many pages, to take their turns.
    fn lead(self, workers: &[Worker<'_>], pages: usize) -> anyhow::Result<()> {
        for _ in 0..self.rounds {
            let mut left = pages / 10;
            while left > 0 {
                let turn = self.batch.unwrap_or(left).max(TURN).min(left);
                for Worker { turns, went, .. } in workers {
                    ensure!(!interrupt::asked(), "interrupted");
                    turns.send(turn)?;
                    if !went.recv()? {
                        bail!("half of the memory is free, but a page could not be allocated");
                    }
                }
                left -= turn;
            }
        }
        Ok(())
    }
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
        let mut held = take_all(&mut pages);
        Random::new(self.seed).shuffle(&mut held);
        for page in held.drain(held.len() / 2..) {
            pages.free(page);
        }
        thread::scope(|scope| {
            let part = held.len() / self.threads;
            let start = |(number, part): (usize, &[Frame])| {
                let (turns, told) = mpsc::channel();
                let (tell, went) = mpsc::channel();
                let (subject, mut held) = (&subject, part.to_vec());
                let mut random = Random::new(self.seed ^ number as u64);
                let thread = scope.spawn(move || {
                    let mut pages = subject.handle(Order::ZERO);
                    let told = told
                        .into_iter()
                        .map(|turn| self.exchange(&mut pages, &mut held, &mut random, turn))
                        .try_for_each(|well| tell.send(well));
                    pages.settle();
                    told
                });
                Worker {
                    turns,
                    went,
                    thread,
                }
            };
            let parts = held.chunks_exact(part).take(self.threads);
            let workers: Vec<_> = parts.enumerate().map(start).collect();
            let led = self.lead(&workers, part);
            for Worker { turns, thread, .. } in workers {
                drop(turns);
                // It was told everything that it has an answer to.
                let _ended = thread.join();
            }
            led
        })?;
        nodes.drain();
        let (mut free, mut huge) = (0, 0);
        for counts in nodes.zones().map(|zone| zone.free_counts()) {
            free += counts.free_frames();
            huge += counts.suitable(Order::HUGE) * Order::HUGE.frames();
        }
        Ok(huge as f64 * 100.0 / free.max(1) as f64)
    }
}
