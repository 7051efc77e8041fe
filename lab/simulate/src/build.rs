//! An allocator of some configuration, built in memory that a machine can have as its own.
//!
//! Metadata, zones and whatever else CPUs share lie on pages of their own ([`OwnPages`]), so that each
//! word has the same address in the machine in every run.

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::slice;

use brickyard::node::Node;
use brickyard::sync::{Exclusive, RawLock, SlotAccess, TicketLock};
use brickyard_classics::LabZone;
use brickyard_classics::{Choice, Configuration, LabPlan, MachinePlan, Planned};
use brickyard_machine::{Machine, Setup};

use crate::platform::Simulated;

/// Bytes of a page, which is what memory is mapped in.
const PAGE: usize = 4096;

/// A value on pages of its own.
#[repr(C, align(4096))]
pub struct OwnPages<T>(T);

impl<T> OwnPages<T> {
    /// Moves `value` there.
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self(value))
    }

    /// Where it lies.
    #[must_use]
    pub fn piece(&self) -> SharedPages {
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

/// Memory of the host that a machine can be given.
#[derive(Debug, Clone, Copy)]
pub struct SharedPages {
    first: *const u8,
    bytes: usize,
}

impl SharedPages {
    /// A machine that has `pieces`.
    pub(crate) fn machine<'a>(setup: Setup, pieces: &[Self]) -> Machine<'a> {
        let mut machine = Machine::new(setup);
        for piece in pieces {
            piece.map(&mut machine);
        }
        machine
    }

    /// Gives it to `machine`.
    pub fn map(self, machine: &mut Machine<'_>) {
        machine.map(self.first, self.bytes);
    }
}

/// How CPUs reach what is their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// Each only its own.
    Exclusive,
    /// Any, by a lock.
    Shared,
}

/// An allocator to be built.
#[derive(Debug, Clone, Copy)]
pub struct Blueprint {
    /// Which one.
    pub configuration: Configuration,
    /// Its memory, sizes and policies.
    pub plan: MachinePlan,
}

/// Something to be done with an allocator, all of whose memory is free.
pub trait Job {
    /// What comes out.
    type Output;

    /// Does it. `pieces` are what a machine has to be given of it.
    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        pieces: &[SharedPages],
    ) -> Self::Output;
}

impl Blueprint {
    /// `configuration` with memory, sizes and policies by `plan`.
    #[must_use]
    pub const fn new(configuration: Configuration, plan: MachinePlan) -> Self {
        Self {
            configuration,
            plan,
        }
    }

    /// Builds it with exclusive slots and ticket locks and hands it to `job`: what needs no others
    /// has these, since each kind is compiled for every design.
    pub fn run<J: Job>(&self, job: J) -> J::Output {
        self.with::<Exclusive, TicketLock, J>(job)
    }

    /// The same with slots and a lock that are known when this is compiled: any that keep the
    /// contract.
    pub fn with<A: SlotAccess, L: RawLock, J: Job>(&self, job: J) -> J::Output {
        let bytes = self
            .configuration
            .bytes::<A, L, Simulated>(&self.plan)
            .next_multiple_of(PAGE);
        let mut memory = vec![MaybeUninit::uninit(); bytes + PAGE];
        let skip = memory.as_ptr().align_offset(PAGE);
        let memory = &mut memory[skip..skip + bytes];
        let metadata = SharedPages {
            first: memory.as_ptr().cast(),
            bytes,
        };
        self.configuration.choose::<A, L, Simulated, _>(Build {
            zones: self.plan.zones(self.configuration),
            memory,
            metadata,
            job,
        })
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
                .expect("as much memory as the plan says that it needs");
            zone.add(plan.span)
                .expect("a zone's own span, which nobody else has");
            zone
        };
        let (first, second) = self.zones;
        let bytes = Z::checked_bytes_for(&first).expect("a plan that memory was found for");
        let (low, high) = self.memory.split_at_mut(bytes);
        let low = built(&first, low);
        match second {
            None => {
                let zones = OwnPages::new([low]);
                let pieces = [self.metadata, zones.piece()];
                self.job
                    .run(&Node::new(0, slice::from_ref(&zones[0])), &pieces)
            }
            Some(second) => {
                let zones = OwnPages::new([low, built(&second, high)]);
                let pieces = [self.metadata, zones.piece()];
                self.job.run(&Node::new(0, &zones[..]), &pieces)
            }
        }
    }
}
