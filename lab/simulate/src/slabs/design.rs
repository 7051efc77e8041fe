//! The designs of slabs, built in memory that a machine can map.

#![allow(unsafe_code, reason = "objects are freed by address")]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard_designs::slab_slub::{Slab2008, Slub2008};
use brickyard_designs::slqb::Slqb2008;
use brickyard_machine::{Machine, current};
use brickyard_run::named;
use brickyard_slab::{
    CacheSpec, Everywhere, Pinned, RawCache, Sheafed, SlabDesign, SlabPlan, Slabs,
};

use super::Purpose;
use super::pages::{Pages, fill, has};
use crate::SharedPages;
use crate::platform::Simulated;

/// Bytes of a page.
const PAGE: usize = 4096;

/// The bytes of a socket's objects: the socket itself, its inode, its file, its directory entry.
/// The same as in the loop on a host.
pub const SOCKET: [usize; 4] = [1216, 640, 256, 192];

named! {
    /// A design of slabs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Design {
        /// Piggin's of 2008.
        Slqb => "slqb-2008",
        /// SLAB of Linux 2.6.28.
        Slab => "slab-2008",
        /// SLUB of Linux 2.6.28.
        Slub => "slub-2008",
        /// The library's.
        Brickyard => "brickyard-slab",
    }
}

/// A design on a machine.
pub(super) trait Simulates<'m>:
    SlabDesign<'m, Source = &'m Pages, Local = Pinned<Simulated>>
{
    /// Returns the bytes that queues and lists of caches of these sizes take, without what they
    /// queue.
    fn metadata(cpus: usize, nodes: usize, sizes: &[usize]) -> usize {
        let _ = sizes;
        let row = Self::FOOTPRINT.row[usize::from(nodes > 1)] * size_of::<usize>();
        let each = cpus * (Self::FOOTPRINT.cpu + row) + nodes * Self::FOOTPRINT.node;
        sizes.len() * each
    }
}

type Local = Pinned<Simulated>;

impl<'m> Simulates<'m> for Slqb2008<'m, &'m Pages, Local> {}
impl<'m> Simulates<'m> for Slub2008<'m, &'m Pages, Local> {}
impl<'m> Simulates<'m> for Sheafed<'m, &'m Pages, Local> {}
impl<'m> Simulates<'m> for Slab2008<'m, &'m Pages, Local> {
    /// Allocated in Linux's way: arrays are as long as their limit.
    fn metadata(cpus: usize, nodes: usize, sizes: &[usize]) -> usize {
        let bytes = |&size: &usize| Self::linux_bytes(size, PAGE, cpus, nodes);
        sizes.iter().map(bytes).sum()
    }
}

/// A machine's memory for slabs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) pages: usize,
    pub(super) nodes: usize,
    pub(super) cpus: usize,
}

/// Work on slabs, of which none is taken.
pub(super) trait SlabJob {
    type Output;

    /// Does the work. A machine that runs it must map `shared`.
    fn run<'m, D: Simulates<'m>>(
        self,
        slabs: &Slabs<'m, D>,
        shared: &[SharedPages],
    ) -> Self::Output;
}

impl Design {
    /// Builds it and passes it to `job`.
    pub(super) fn with<J: SlabJob>(self, room: Room, job: J) -> J::Output {
        let pages = Pages::new(room.pages, room.nodes, room.cpus);
        let mut memory = Vec::new();
        match self {
            Self::Slqb => build::<Slqb2008<'_, _, _>, J>(room, &pages, &mut memory, job),
            Self::Slab => build::<Slab2008<'_, _, _>, J>(room, &pages, &mut memory, job),
            Self::Slub => build::<Slub2008<'_, _, _>, J>(room, &pages, &mut memory, job),
            Self::Brickyard => build::<Sheafed<'_, _, _>, J>(room, &pages, &mut memory, job),
        }
    }
}

fn build<'m, D: Simulates<'m>, J: SlabJob>(
    room: Room,
    pages: &'m Pages,
    memory: &'m mut Vec<MaybeUninit<u8>>,
    job: J,
) -> J::Output {
    let plan = SlabPlan::new(SOCKET.len(), room.cpus);
    let bytes = Slabs::<D>::bytes(&plan.over(&pages)).next_multiple_of(PAGE);
    memory.resize(bytes + PAGE, MaybeUninit::uninit());
    let skip = memory.as_ptr().align_offset(PAGE);
    let memory = &mut memory[skip..skip + bytes];
    let shared = [SharedPages::of(memory), pages.shared()];
    // SAFETY: a task that is pinned is alone on its CPU of the machine.
    let local = unsafe { Pinned::new(Simulated) };
    let slabs = Slabs::<D>::new(plan, pages, local, memory);
    job.run(&slabs.expect("the memory was sized by the plan"), &shared)
}

/// A cache that interrupts use too: each call masks them, as every one did in 2008.
pub(super) struct Objects<'s, 'm, D: SlabDesign<'m>> {
    cache: RawCache<'s, 'm, D, Everywhere>,
    size: usize,
    purpose: Purpose,
    /// Objects allocated so far: the next one's mark.
    marks: Cell<u64>,
}

impl<'s, 'm, D: SlabDesign<'m>> Objects<'s, 'm, D> {
    pub(super) fn of(slabs: &'s Slabs<'m, D>, size: usize, purpose: Purpose) -> Self {
        let cache = slabs.cache(CacheSpec::new("socket", size));
        Self {
            cache: cache.expect("the plan has room for the caches"),
            size,
            purpose,
            marks: Cell::new(0),
        }
    }

    /// Allocates an object; the run ends if there is no memory.
    pub(super) fn take(&self) -> Taken {
        let mark = self.marks.get() + 1;
        self.marks.set(mark);
        let start = self.cache.alloc().unwrap_or_else(|why| {
            current::fail(format!("no object of {} bytes: {why}", self.size));
            NonNull::dangling()
        });
        Taken {
            start,
            size: self.size,
            mark,
        }
    }

    /// Frees an object of this cache.
    pub(super) fn give(&self, object: Taken) {
        assert_eq!(object.size, self.size, "an object of this cache");
        if self.purpose == Purpose::Explore && !has(object.start, object.size, object.mark) {
            current::fail(format!("an object of {} bytes has two owners", self.size));
        }
        // SAFETY: it was allocated, and nobody else has it: `Taken` is made by `take` alone, and
        // consumed here. Caches of one machine have different sizes, so it is of this one.
        if let Err(why) = unsafe { self.cache.free(object.start) } {
            current::fail(format!("the free of an object was refused: {why}"));
        }
    }
}

/// An object in use, of one cache.
#[derive(Debug)]
pub(super) struct Taken {
    start: NonNull<u8>,
    size: usize,
    mark: u64,
}

impl Taken {
    /// Writes each of its lines.
    pub(super) fn fill(&self) {
        fill(self.start, self.size, self.mark);
    }

    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// A machine with all of `shared` mapped.
pub(super) fn machine<'a>(setup: brickyard_machine::Setup, shared: &[SharedPages]) -> Machine<'a> {
    SharedPages::machine(setup, shared)
}
