//! A pass over the two lists of a zone: which pages leave the active list, and which of the
//! inactive ones are freed, written or kept.

use brickyard::{FrameRange, Order};
use brickyard_designs::classics::LabZone;

use super::super::reclaim::{CLUSTER, MOST_WRITES, was_reused};
use super::super::{Kernel, Swap};
use super::{Done, Pass};
use crate::pages::{Age, Block, Role, mark};

/// Linux's default of `swappiness`.
const SWAPPINESS: u64 = 60;

impl<Z: LabZone> Kernel<'_, Z> {
    /// Scans both lists of a zone once.
    pub(super) fn pass_over(&self, place: usize, pass: Pass) -> Done {
        let frames_on = |age| self.look(|pages| pages.frames_on(place, age)) as usize;
        let (mut active, mut inactive) = {
            let share = |frames: usize| (frames >> pass.priority) + 1;
            let (active, inactive) = (frames_on(Age::ActiveFile), frames_on(Age::InactiveFile));
            let saved = &mut self.of_2007.borrow_mut().zones[place];
            saved.active += share(active);
            saved.inactive += share(inactive);
            let all_of = |saved: &mut usize| match *saved >= CLUSTER {
                true => core::mem::take(saved),
                false => 0,
            };
            (all_of(&mut saved.active), all_of(&mut saved.inactive))
        };
        let mut done = Done::default();
        while active > 0 || inactive > 0 {
            if active > 0 {
                let batch = active.min(CLUSTER);
                active -= batch;
                self.age(place, batch, pass);
            }
            if inactive > 0 {
                let batch = inactive.min(CLUSTER);
                inactive -= batch;
                let one = self.free_inactive(place, batch, pass);
                done.freed += one.freed;
                done.scanned += one.scanned;
            }
        }
        done
    }

    /// Scans a batch of the active list.
    fn age(&self, place: usize, batch: usize, pass: Pass) {
        let of_processes = self.are_processes_reclaimed(place, pass.priority);
        let (blocks, scanned) = self.isolate(place, batch, Age::ActiveFile, pass.order);
        self.of_2007.borrow_mut().zones[place].in_vain += scanned;
        for block in blocks {
            let used = block.marks & mark::REFERENCED == 0 && was_reused(&block);
            let stays = block.role == Role::Anonymous && (!of_processes || used);
            self.change(|pages| match stays {
                true if of_processes => {
                    pages.mark(block.frame, mark::REFERENCED, mark::ISOLATED);
                }
                true => pages.mark(block.frame, 0, mark::ISOLATED),
                false => pages.mark(block.frame, 0, mark::ISOLATED | mark::ACTIVE),
            });
        }
    }

    /// Returns true if the pages of processes leave the active list too.
    fn are_processes_reclaimed(&self, place: usize, priority: u32) -> bool {
        if self.rules.swap == Swap::Off {
            return false;
        }
        let before = self.of_2007.borrow().zones[place].priority;
        let distress = 100 >> priority.min(before);
        let all = self.frames().max(1) as u64;
        let mapped = self.look(|pages| pages.used(Role::Anonymous)) * 100 / all;
        mapped / 2 + distress + SWAPPINESS >= 100
    }

    /// Scans a batch of the inactive list.
    fn free_inactive(&self, place: usize, batch: usize, pass: Pass) -> Done {
        let mut done = Done::default();
        while done.scanned < batch {
            let (blocks, scanned) = self.isolate(place, CLUSTER, Age::InactiveFile, pass.order);
            if scanned == 0 {
                break;
            }
            done.scanned += scanned;
            self.of_2007.borrow_mut().zones[place].in_vain += scanned;
            self.state.borrow_mut().scanned += blocks.len() as u64;
            let freed = blocks.iter().map(|block| self.free_page(block, pass));
            done.freed += freed.sum::<usize>();
        }
        done
    }

    /// Takes pages off the old end of a list, and with `order` what is around them. Returns them,
    /// and the number of frames scanned.
    fn isolate(&self, place: usize, batch: usize, age: Age, order: Order) -> (Vec<Block>, usize) {
        let (mut taken, mut scanned) = (Vec::new(), 0);
        let mut state = self.state.borrow_mut();
        let active = if age == Age::ActiveFile {
            mark::ACTIVE
        } else {
            0
        };
        while scanned < batch {
            let Some(tag) = state.pages.oldest(place, age) else {
                break;
            };
            state.pages.mark(tag.frame, mark::ISOLATED, 0);
            taken.push(tag);
            scanned += tag.order.frames();
            if order == Order::ZERO {
                continue;
            }
            let zone = self.zones[place].0;
            let lump = FrameRange::of_block(tag.frame.align_down(order), order);
            for frame in lump
                .intersection(zone)
                .frames()
                .filter(|&at| at != tag.frame)
            {
                scanned += 1;
                let block = state.pages.block(frame);
                let fits = |block: &Block| {
                    state.pages.is_on_lru(block.frame) && block.marks & mark::ACTIVE == active
                };
                if let Some(block) = block.filter(fits) {
                    state.pages.mark(frame, mark::ISOLATED, 0);
                    taken.push(block);
                }
            }
        }
        (taken, scanned)
    }

    /// Frees an isolated inactive page, if that is possible now. Returns the frames freed.
    fn free_page(&self, block: &Block, pass: Pass) -> usize {
        let frame = block.frame;
        let of_process = block.role == Role::Anonymous;
        let used = block.marks & mark::REFERENCED == 0 && was_reused(block);
        if used || of_process && self.rules.swap == Swap::Off {
            let set = mark::ACTIVE | mark::REFERENCED;
            self.change(|pages| pages.mark(frame, set, mark::ISOLATED));
            return 0;
        }
        if of_process || block.marks & mark::DIRTY != 0 {
            if self.state.borrow().writes.len() >= MOST_WRITES {
                self.change(|pages| pages.mark(frame, 0, mark::ISOLATED));
            } else {
                self.begin_write(block, pass.now);
            }
            return 0;
        }
        self.take_away(frame, pass.by)
    }
}
