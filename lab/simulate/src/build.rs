//! An allocator of some configuration, built in memory that a machine can map.
//!
//! Metadata, zones and everything else that CPUs share are on separate pages ([`OwnPages`]), so
//! that each word has the same address in the machine in every run.

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::slice;

use brickyard::node::Node;
use brickyard::sync::{Exclusive, SlotAccess};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Choice, Configuration, LabLock, LabPlan, MachinePlan, Planned};
use brickyard_machine::{Machine, Setup};
use brickyard_run::named;

use crate::lock::{ChosenLock, LockKind};
use crate::platform::Simulated;
use crate::timed::Timed;

/// Bytes of a page, the unit in which memory is mapped.
const PAGE: usize = 4096;

/// A value on pages that nothing else shares.
#[repr(C, align(4096))]
pub struct OwnPages<T>(T);

impl<T> OwnPages<T> {
    /// Moves `value` to the heap, on pages that nothing else shares.
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self(value))
    }

    /// Returns its pages, for a machine to map.
    #[must_use]
    pub fn shared_pages(&self) -> SharedPages {
        SharedPages {
            first: core::ptr::from_ref(self).cast(),
            bytes: size_of::<Self>(),
        }
    }
}

impl<T> Deref for OwnPages<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for OwnPages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnPages")
    }
}

/// Memory of the host that a machine can map: what its CPUs share.
#[derive(Debug, Clone, Copy)]
pub struct SharedPages {
    first: *const u8,
    bytes: usize,
}

impl SharedPages {
    /// The pages of `memory`, which begins at a page's boundary.
    #[must_use]
    pub fn of(memory: &[MaybeUninit<u8>]) -> Self {
        Self {
            first: memory.as_ptr().cast(),
            bytes: memory.len(),
        }
    }

    /// A machine with all of `shared` mapped, in this order.
    pub(crate) fn machine<'a>(setup: Setup, shared: &[Self]) -> Machine<'a> {
        let mut machine = Machine::new(setup);
        for pages in shared {
            pages.map(&mut machine);
        }
        machine
    }

    /// Maps it in `machine`.
    pub fn map(self, machine: &mut Machine<'_>) {
        machine.map(self.first, self.bytes);
    }
}

named! {
    /// Which CPUs may enter a CPU's slot (its lists or stash).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Slots {
        /// Only the CPU itself.
        Exclusive => "exclusive",
        /// Any CPU, one at a time.
        Shared => "shared",
    }
}

/// An allocator to be built.
#[derive(Debug, Clone, Copy)]
pub struct Blueprint {
    /// Its configuration.
    pub configuration: Configuration,
    /// Its memory, sizes and policies.
    pub plan: MachinePlan,
    /// The kind of the locks of its zones and magazines.
    pub locks: LockKind,
}

/// Its locks, where they share a cache line with what they guard.
pub type MachineLock = Timed<ChosenLock>;

/// Work on an allocator, all of whose memory is free.
pub trait Job {
    /// The result.
    type Output;

    /// Does the work. A machine that runs the allocator must map `shared`.
    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output;
}

impl Blueprint {
    /// `configuration` with memory, sizes and policies by `plan`, and ticket locks.
    #[must_use]
    pub const fn new(configuration: Configuration, plan: MachinePlan) -> Self {
        Self {
            configuration,
            plan,
            locks: LockKind::TICKET,
        }
    }

    /// Builds it with exclusive slots and passes it to `job`.
    pub fn run<J: Job>(&self, job: J) -> J::Output {
        self.with::<Exclusive, MachineLock, J>(job)
    }

    /// Builds it with slots and locks of the given types and passes it to `job`. Each combination
    /// is compiled for every design.
    pub fn with<A: SlotAccess, L: LabLock, J: Job>(&self, job: J) -> J::Output {
        let bytes = self
            .configuration
            .bytes::<A, L, Simulated>(&self.plan)
            .next_multiple_of(PAGE);
        let mut memory = vec![MaybeUninit::uninit(); bytes + PAGE];
        let skip = memory.as_ptr().align_offset(PAGE);
        let memory = &mut memory[skip..skip + bytes];
        let metadata = SharedPages::of(memory);
        let build = Build {
            zones: self.plan.zones(self.configuration),
            memory,
            metadata,
            job,
        };
        let configuration = self.configuration;
        (self.locks).during(|| configuration.choose::<A, L, Simulated, _>(build))
    }
}

struct Build<'m, J> {
    zones: (LabPlan, Option<LabPlan>),
    memory: &'m mut [MaybeUninit<u8>],
    metadata: SharedPages,
    job: J,
}

impl<'m, J: Job> Choice<'m, Simulated> for Build<'m, J> {
    type Output = J::Output;

    fn run<Z: Planned<'m, Platform = Simulated>>(self) -> J::Output {
        let built = |plan: &LabPlan, memory| {
            let zone = Z::by(plan, Simulated, memory)
                .expect("the memory is as large as the plan requires");
            zone.add(plan.span).expect("the span is the zone's own");
            zone
        };
        let (first, second) = self.zones;
        let bytes = Z::checked_bytes_for(&first).expect("the plan's memory was allocated");
        let (low, high) = self.memory.split_at_mut(bytes);
        let low = built(&first, low);
        match second {
            None => {
                let zones = OwnPages::new([low]);
                let shared = [self.metadata, zones.shared_pages()];
                self.job
                    .run(&Node::new(0, slice::from_ref(&zones[0])), &shared)
            }
            Some(second) => {
                let zones = OwnPages::new([low, built(&second, high)]);
                let shared = [self.metadata, zones.shared_pages()];
                self.job.run(&Node::new(0, &zones[..]), &shared)
            }
        }
    }
}
