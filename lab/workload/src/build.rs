//! Building a machine with an allocator of some configuration: zones with their metadata, and all
//! memory free.

use core::mem::MaybeUninit;

use brickyard::node::Node;
use brickyard::sync::{Exclusive, TicketLock};
use brickyard::zone::ZonePlan;
use brickyard::{PlanError, RangeError};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Choice, Configuration, LabPlan, Planned};

use crate::machine::{Machine, ZonePlace};
use crate::processor::Processor;

/// A computation on a machine and its allocator, generic over the zone type.
pub trait Job {
    /// Its result.
    type Output;

    /// Runs it. All memory is free; watermarks are not set.
    fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], processor: &Processor) -> Self::Output;
}

/// Why the allocator could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A zone refused its own memory: zones overlap, or a span is too wide.
    #[error(
        "a zone cannot add its memory ({0}): the trace's zoneinfo and page states contradict each other"
    )]
    Memory(RangeError),
    /// A zone cannot be planned, for example because it is too large.
    #[error("a zone of the machine cannot be built: {0}")]
    Plan(#[from] PlanError),
    /// This host has too little memory for the metadata.
    #[error(
        "this host cannot allocate {0} bytes for the allocator's metadata: replay on less memory"
    )]
    TooLittleMemory(usize),
    /// Several traces together have more pages than can be numbered.
    #[error(
        "the frames of the traces are too far apart to run eight of them at once: record them on a host of less than 2 TiB"
    )]
    TooManyPages,
    /// A script has its steps in a file, and they are needed in memory.
    #[error(
        "the steps of a trace are in a temporary file, and several traces run at once only from memory: prepare it by `Script::of_events`"
    )]
    StepsInFile,
    /// A trace of this many nanoseconds, with its stretch, is to be repeated for minutes.
    #[error(
        "a trace of the load lasts {0} ns, with its stretch, and is repeated until the load ends: record one of a millisecond or more, or raise the stretch"
    )]
    TooShort(u64),
    /// The steps could not be read back from their temporary file.
    #[error("the steps of the replay cannot be read back from their temporary file: {0}")]
    Steps(std::io::Error),
}

/// Builds `machine` with an allocator of this configuration and runs `job` on it. Per-CPU lists and
/// stashes are exclusive, locks are ticket locks; there is one thread.
///
/// # Errors
/// [`BuildError`] where the machine's parts contradict each other, or this host's memory is too
/// small.
pub fn build<J: Job>(
    configuration: Configuration,
    machine: &Machine,
    job: J,
) -> Result<J::Output, BuildError> {
    let places = machine.zones_for(configuration);
    let mut plans = Vec::new();
    for place in &places {
        plans.push(LabPlan::of(ZonePlan {
            max_order: machine.max_order,
            page_block_order: machine.page_block_order,
            ..ZonePlan::new(place.kind, place.span, machine.cpus)
        }));
    }
    let processor = Processor::new();
    let mut bytes: usize = 0;
    for plan in &plans {
        let more = configuration.checked_zone_bytes::<Exclusive, TicketLock, &Processor>(plan)?;
        bytes = bytes.checked_add(more).ok_or(PlanError::TooManyBytes)?;
    }
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(bytes)
        .map_err(|_| BuildError::TooLittleMemory(bytes))?;
    memory.resize(bytes, MaybeUninit::uninit());
    configuration.choose::<Exclusive, TicketLock, &Processor, _>(Built {
        machine,
        places: &places,
        plans: &plans,
        memory: &mut memory,
        processor: &processor,
        job,
    })
}

struct Built<'m, 'a, J> {
    machine: &'a Machine,
    places: &'a [ZonePlace],
    plans: &'a [LabPlan],
    memory: &'m mut [MaybeUninit<u8>],
    processor: &'m Processor,
    job: J,
}

impl<'m, J: Job> Choice<'m, &'m Processor> for Built<'m, '_, J> {
    type Output = Result<J::Output, BuildError>;

    fn run<Z: Planned<'m, Platform = &'m Processor>>(self) -> Self::Output {
        let mut nodes: Vec<(u32, Vec<Z>)> = Vec::new();
        let mut rest = self.memory;
        for (place, plan) in self.places.iter().zip(self.plans) {
            let (own, others) = rest.split_at_mut(Z::checked_bytes_for(plan)?);
            rest = others;
            let zone = Z::by(plan, self.processor, own)?;
            for range in &self.machine.memory {
                let range = range.intersection(place.span);
                if !range.is_empty() {
                    zone.add(range).map_err(BuildError::Memory)?;
                }
            }
            match nodes.last_mut().filter(|(node, _)| *node == place.node) {
                Some((_, zones)) => zones.push(zone),
                None => nodes.push((place.node, vec![zone])),
            }
        }
        let nodes: Vec<Node<'_, Z>> = nodes
            .iter()
            .map(|(id, zones)| Node::new(*id, zones))
            .collect();
        Ok(self.job.run(&nodes, self.processor))
    }
}
