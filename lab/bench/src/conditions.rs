//! The conditions of a contestant's turn in `pagealloc` besides the workloads, and the turn
//! itself.

use brickyard::Mobility;
use brickyard::node::{Node, Nodes};
use brickyard_designs::classics::Experiment;
use brickyard_designs::classics::LabZone;

use super::contestant::Contestant;
use super::design::{ThroughNodes, ThroughZone};
use super::machine::{Build, Bulk, FRAME_BYTES, HostPlatform, Level, Lock};
use super::masking::Masking;
use super::peer::Machine;
use super::rounds::{Rounds, Taken};
use super::schedule::Workload;
use super::yardstick::{ArrayStack, FetchAdd, Yardstick};
use brickyard_measure::mobility::MOBILITIES;
use brickyard_run::named::name_of;

/// The machine, and the mobility of the requests.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// Its memory, in frames; only the metadata is real.
    pub frames: usize,
    /// The mobility of the requests.
    pub mobility: Mobility,
    /// The lock of the zones and magazines.
    pub lock: Lock,
    /// How long the zone lock is held in a bulk operation.
    pub bulk: Bulk,
    /// What a mask of interrupts does.
    pub masking: Masking,
}

impl Conditions {
    /// The defaults of `pagealloc`: 1 GiB, unmovable pages, masks that do nothing.
    pub const USUAL: Self = Self {
        frames: (1 << 30) / FRAME_BYTES,
        mobility: Mobility::Unmovable,
        lock: Lock::Ticket,
        bulk: Bulk::Hold,
        masking: Masking::Nothing,
    };

    /// Builds a machine for the setting of these workloads, which they share, and runs each of them
    /// on it once.
    pub fn turn(&self, contestant: &Contestant, rounds: &Rounds<'_>) -> anyhow::Result<Taken> {
        let of_all = |of: fn(&Workload) -> usize| rounds.workloads.iter().map(of).max();
        let (Some(threads), Some(batch)) = (of_all(|w| w.threads), of_all(|w| w.batch)) else {
            return Ok(Taken::default());
        };
        let &Self {
            frames, mobility, ..
        } = self;
        let setting = rounds.workloads[0].setting;
        match *contestant {
            Contestant::Yardstick(Yardstick::FetchAdd) => Ok(rounds.on_unfilled(&FetchAdd)),
            Contestant::Yardstick(Yardstick::ArrayStack) => {
                Ok(rounds.on_unshared(&ArrayStack(batch)))
            }
            Contestant::Peer(peer) => peer.measure(&Machine { frames, threads }, rounds),
            Contestant::Configuration(configuration) => {
                let build = Build {
                    frames,
                    threads,
                    slots: setting.slots,
                    lock: self.lock,
                    bulk: self.bulk,
                    masking: self.masking,
                };
                match setting.level {
                    Level::Node => build.run(configuration, OnNodes { rounds, mobility }),
                    Level::Zone => {
                        build.run_with_ticket(configuration, OnZone { rounds, mobility })
                    }
                }
            }
        }
    }

    /// Returns the workload's name, with the conditions that are not the defaults.
    #[must_use]
    pub fn name(&self, workload: &Workload) -> String {
        let (here, usual) = (self, Self::USUAL);
        let mut name = workload.to_string();
        for (condition, value, usual) in [
            (
                "mobility",
                name_of(MOBILITIES, &here.mobility),
                name_of(MOBILITIES, &usual.mobility),
            ),
            ("lock", here.lock.name(), usual.lock.name()),
            ("bulk", here.bulk.name(), usual.bulk.name()),
            ("masking", here.masking.name(), usual.masking.name()),
        ] {
            if value != usual {
                name += &format!(" {condition}-{value}");
            }
        }
        name
    }
}

/// Runs every workload once, through the nodes of one of our machines.
struct OnNodes<'r, 'a> {
    rounds: &'r Rounds<'a>,
    mobility: Mobility,
}

impl Experiment<HostPlatform> for OnNodes<'_, '_> {
    type Output = Taken;

    fn run<Z: LabZone<Platform = HostPlatform>>(self, node: &Node<'_, Z>) -> Taken {
        let nodes = Nodes::new(core::slice::from_ref(node));
        self.rounds.on(&ThroughNodes {
            nodes: &nodes,
            mobility: self.mobility,
        })
    }
}

/// Runs every workload once, directly at a zone of one of our machines.
struct OnZone<'r, 'a> {
    rounds: &'r Rounds<'a>,
    mobility: Mobility,
}

impl Experiment<HostPlatform> for OnZone<'_, '_> {
    type Output = Taken;

    fn run<Z: LabZone<Platform = HostPlatform>>(self, node: &Node<'_, Z>) -> Taken {
        let nodes = Nodes::new(core::slice::from_ref(node));
        ThroughZone::of(&nodes, self.mobility)
            .map_or_else(Taken::default, |zone| self.rounds.on(&zone))
    }
}
