//! A run of the protocol: boot, the pass under load, and the pass at rest.

use brickyard::node::Nodes;
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;

use super::load::Load;
use super::programs::all_begun;
use super::{PAUSE, Protocol, Result};
use crate::kernel::{Kernel, WRITE_NANOSECONDS};
use crate::machine::Machine;
use crate::pages::{Block, PageId, Role, mark};
use crate::processor::Processor;
use crate::replay::{Watcher, possible};
use crate::view::View;

/// A run of the protocol.
pub(super) struct Stage<'a, 's, 'z, Z: LabZone> {
    pub(super) machine: &'a Machine,
    pub(super) protocol: &'a Protocol<'s>,
    pub(super) kernel: &'a Kernel<'z, Z>,
    pub(super) nodes: &'a Nodes<'z, Z, &'a Kernel<'z, Z>>,
    pub(super) plain: &'a Nodes<'z, Z>,
    pub(super) processor: &'a Processor,
    pub(super) load: Load<'s>,
    pub(super) next_sample: u64,
    pub(super) now: u64,
    pub(super) held: Vec<Frame>,
    pub(super) result: Result,
}

impl<Z: LabZone> Stage<'_, '_, '_, Z> {
    /// Takes what the kernel takes at boot: the lowest memory.
    pub(super) fn boot(&self) {
        let wanted = (self.protocol.boot / self.machine.frame_bytes as u64) as usize;
        let Some(zone) = self.plain.zones().next() else {
            return;
        };
        let order = zone.max_order();
        let request = Request::new(Order::ZERO, Mobility::Unmovable);
        let mut at = zone.span().start;
        let end = at.plus(wanted.min(zone.span().len() / 2));
        while at < end {
            let fits =
                |&order: &Order| at.align_down(order) == at && at.plus(order.frames()) <= end;
            let order = Order::ZERO.up_to(order).rfind(fits);
            let order = order.unwrap_or(Order::ZERO);
            let request = Request { order, ..request };
            if zone.alloc_at(at, &request).is_ok() {
                self.kernel.own(at, order, Role::Pinned, 0, PageId::NONE);
            }
            at = at.plus(order.frames());
        }
    }

    /// Runs the pass under load. Returns false if the watcher ended it.
    pub(super) fn under_load(&mut self, watcher: &mut impl Watcher) -> bool {
        let begins = all_begun(self.protocol) + self.protocol.settle;
        if !self.run_to(begins, watcher) {
            return false;
        }
        self.result.load_possible = possible(self.plain, self.kernel, self.machine.huge_order);
        let tries = self.protocol.tries.unwrap_or(self.result.all);
        for _ in 0..tries {
            self.result.load.tries += 1;
            self.result.load.got += usize::from(self.take_huge_page());
            let next = self.now + PAUSE;
            if !self.run_to(next, watcher) {
                return false;
            }
        }
        self.result.served = self.load.served();
        self.result.moved_under_load = self.kernel.pressure().moved;
        true
    }

    pub(super) fn at_rest(&mut self, watcher: &mut impl Watcher) {
        self.release_held();
        self.end_everything();
        self.stream_file();
        self.sample(watcher);
        // As many as memory has: the passes of 2007 request all of it.
        for _ in 0..self.result.all {
            self.result.rest.tries += 1;
            self.result.rest.got += usize::from(self.take_huge_page());
            self.now += PAUSE;
            self.kernel.idle_until(self.now);
        }
        // Held pages count as clear; slabs freed during the pass no longer block a huge page.
        self.result.rest_possible = possible(self.plain, self.kernel, self.machine.huge_order);
        self.sample(watcher);
    }

    /// Runs the load up to the time `until`, with samples. Returns false if the watcher ended it.
    pub(super) fn run_to(&mut self, until: u64, watcher: &mut impl Watcher) -> bool {
        while self.now < until {
            let next = until.min(self.next_sample.max(self.now + 1));
            let cpus = self.machine.cpus;
            self.load
                .run(next, self.kernel, self.nodes, self.processor, cpus);
            self.now = next;
            if self.now >= self.next_sample {
                self.next_sample = self.now + self.protocol.sample_every.max(1);
                self.sample(watcher);
            }
            if !watcher.progress(self.load.served().steps) {
                return false;
            }
        }
        true
    }

    /// Requests a huge page and holds it. Returns false if there is none.
    pub(super) fn take_huge_page(&mut self) -> bool {
        let request = Request::new(self.machine.huge_order, Mobility::Movable);
        let held = self
            .kernel
            .take(self.nodes, 0, &request, Role::Held, 0, PageId::NONE);
        if let Ok(frame) = held {
            self.held.push(frame);
        }
        if self.kernel.is_woken() {
            self.kernel.run_background();
        }
        held.is_ok()
    }

    pub(super) fn release_held(&mut self) {
        for frame in self.held.drain(..) {
            self.kernel.release(frame);
        }
    }

    /// Ends the processes and deletes the trees. Unmovable slabs stay, slabs that are not empty, and
    /// what the walk has read: nobody deletes its files.
    fn end_everything(&self) {
        let goes = |block: &Block| match block.role {
            Role::Anonymous | Role::PageTable | Role::Kernel => true,
            Role::File => !self.load.has_read(block.page, self.protocol.walk),
            Role::SlabReclaimable => {
                !self.load.has_read(block.page, self.protocol.walk) && !holds_others(block)
            }
            _ => false,
        };
        self.kernel.end(goes);
    }

    /// Writes a file as large as memory through the page cache, reads it, and deletes it, as the
    /// posting of 2005 has it, to evict all else. When a page of it is read, reclaim has long taken
    /// the one that was written: the oldest go first, and what is cached of the file is its end.
    fn stream_file(&mut self) {
        for marks in [mark::DIRTY, 0] {
            self.stream(marks);
        }
        self.kernel
            .end(|block| block.role == Role::File && block.page == PageId::NONE);
    }

    /// Takes a page for each of a file as large as memory, at the disk's rate.
    fn stream(&mut self, marks: u8) {
        let request = Request::page(Mobility::Movable);
        for _ in 0..self.machine.frames() {
            let taken = self
                .kernel
                .take(self.nodes, 0, &request, Role::File, marks, PageId::NONE);
            if taken.is_err() {
                break;
            }
            if self.kernel.is_woken() {
                self.kernel.run_background();
            }
            self.now += WRITE_NANOSECONDS;
            self.kernel.set_time(self.now);
        }
    }

    pub(super) fn sample(&mut self, watcher: &mut impl Watcher) {
        let view = View::new(self.kernel, self.plain, self.now);
        let sample = view.sample(self.machine.huge_order);
        self.result.samples.push(sample);
        watcher.sample(&view);
    }
}

/// Returns true for a slab that stays when the trees are deleted. Most inodes of deleted files are
/// freed, but one slab in eight also holds another object. Which ones depends on the slab's own
/// number.
fn holds_others(slab: &Block) -> bool {
    let number = slab.page.0 >> slab.order.get();
    (number.wrapping_mul(0x9E37_79B1) >> 16).is_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slab of the trees, of this number.
    fn slab(number: u32) -> Block {
        Block {
            frame: Frame::new(0),
            order: Order::ZERO,
            role: Role::SlabReclaimable,
            marks: 0,
            page: PageId(number),
            zone: 0,
        }
    }

    #[test]
    fn one_slab_in_eight_stays_wherever_their_numbers_begin() {
        for first in [0, 7, 16, 52_428_800] {
            let stay = (first..first + 8000).filter(|&number| holds_others(&slab(number)));
            let count = stay.count();
            assert!((800..1200).contains(&count), "{count} of 8000 from {first}");
        }
        // The trees' slabs used to have the numbers of their last page: all 15 modulo 16.
        let numbers = (0..8000).map(|number| number * 16 + 15);
        let count = numbers
            .filter(|&number| holds_others(&slab(number)))
            .count();
        assert!((800..1200).contains(&count), "{count} of 8000");
    }
}
