//! The load of `fragmentation`: how many huge blocks are left after random allocations and frees.
//!
//! All single movable pages are allocated and half of them, chosen at random, freed. Then follow
//! rounds, in each of which a tenth of the allocated pages is freed at random and as many are
//! allocated again, page by page. At the end all caches are drained. The result is the share of the
//! free memory in whole huge blocks (order 9), in percent. The best lock-free allocator elsewhere
//! keeps 93 % in whole blocks, a plain buddy 0.3 %.
//!
//! Nothing is timed and there is one thread, so a seed gives the same number on every machine.

use anyhow::{Context, bail};
use brickyard::node::{Node, Nodes};
use brickyard::sync::{Exclusive, TicketLock};
use brickyard::{Mobility, Order};
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
    let build = Build::plain(memory / FRAME_BYTES);
    let share = build.run_with::<Exclusive, TicketLock, _>(configuration, churn)?;
    share.with_context(|| format!("{configuration} lost pages"))
}

/// The allocations and frees of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Churn {
    /// How many rounds of freeing and allocating a tenth of the allocated pages.
    pub rounds: usize,
    /// The seed of all random choices.
    pub seed: u64,
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
