//! What a design keeps when nothing is in use any more, by the number of CPUs and nodes.
//!
//! Every CPU allocates [`OBJECTS`] of each of a socket's objects; then each frees those of the CPU
//! before it, so that some are freed on another node. Then every CPU trims [`TRIMS`] times, as it
//! does every two (SLAB) or three seconds (SLQB); SLUB has nothing to do then.

use core::cell::Cell;

use brickyard_machine::{Affinity, Failure};
use brickyard_slab::Slabs;

use super::design::{Objects, Room, SOCKET, Simulates, SlabJob, machine};
use super::{SlabFailed, SlabSetting};
use crate::SharedPages;
use crate::barrier::Barrier;
use crate::ring::Ring;

/// Objects of each size that each CPU has in use.
pub const OBJECTS: usize = 1000;

/// Trims of each CPU.
pub const TRIMS: usize = 10;

/// Pages of a machine, for each CPU.
const PAGES: usize = 2048;

/// CPUs of a node.
pub const CPUS_PER_NODE: usize = 4;

/// The result, for all caches together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct SlabMemory {
    /// Bytes of queues and lists, without what they queue.
    pub metadata: u64,
    /// Bytes of slabs when nothing is in use.
    pub kept: u64,
    /// Free objects in queues at that moment.
    pub queued: u64,
    /// Bytes of slabs after the trims.
    pub trimmed: u64,
}

/// Runs it on so many nodes.
///
/// # Errors
/// [`SlabFailed`].
pub fn run(setting: &SlabSetting, nodes: usize) -> Result<SlabMemory, SlabFailed> {
    let room = Room {
        pages: PAGES * setting.cpus,
        nodes,
        cpus: setting.cpus,
    };
    let run = MemoryRun {
        setting: *setting,
        nodes,
    };
    let output = setting.design.with(room, run);
    output.map_err(|failure| setting.failed(failure))
}

struct MemoryRun {
    setting: SlabSetting,
    nodes: usize,
}

impl SlabJob for MemoryRun {
    type Output = Result<SlabMemory, Failure>;

    fn run<'m, D: Simulates<'m>>(self, slabs: &Slabs<'m, D>, _: &[SharedPages]) -> Self::Output {
        let caches = SOCKET.map(|size| Objects::of(slabs, size, self.setting.purpose));
        let cpus = self.setting.cpus;
        let (ring, barrier) = (Ring::new(cpus), Barrier::new(cpus));
        let measured = Cell::new(SlabMemory {
            metadata: D::metadata(cpus, self.nodes, &SOCKET) as u64,
            ..SlabMemory::default()
        });
        // Nothing is mapped: only counts matter, and accesses then cost less of the host's time.
        let mut machine = machine(self.setting.machine(), &[]);
        for cpu in 0..cpus {
            let (caches, ring, barrier, measured) = (&caches, &ring, &barrier, &measured);
            machine.task(format!("objects on {cpu}"), Affinity::Cpu(cpu), move || {
                let burst = || -> Vec<_> {
                    let each = caches.iter().enumerate();
                    each.flat_map(|(which, cache)| (0..OBJECTS).map(move |_| (which, cache.take())))
                        .collect()
                };
                ring.send(ring.after(cpu), burst());
                barrier.wait(|| ());
                for (which, object) in ring.receive(cpu).into_iter().flatten() {
                    caches[which].give(object);
                }
                barrier.wait(|| {
                    let (kept, queued) = held(slabs);
                    measured.set(SlabMemory {
                        kept,
                        queued,
                        ..measured.get()
                    });
                });
                for _ in 0..TRIMS {
                    slabs.trim();
                    barrier.wait(|| ());
                }
                barrier.wait(|| {
                    measured.set(SlabMemory {
                        trimmed: held(slabs).0,
                        ..measured.get()
                    });
                });
            });
        }
        machine.run()?;
        Ok(measured.get())
    }
}

/// Returns the bytes of all slabs, and the free objects in queues.
fn held<'m, D: Simulates<'m>>(slabs: &Slabs<'m, D>) -> (u64, u64) {
    slabs.numbers().fold((0, 0), |(bytes, queued), numbers| {
        (bytes + numbers.bytes(), queued + numbers.queued)
    })
}
