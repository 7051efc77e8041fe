//! Direct reclaim: a request that found no block frees pages itself, and sleeps while they are
//! written.

use brickyard::node::Lumpy;
use brickyard::pressure::Need;
use brickyard::{Order, ZoneKind};
use brickyard_designs::classics::LabZone;

use super::super::reclaim::{CLUSTER, Reclaimer};
use super::super::{Kernel, Of2007};
use super::{FIRST_PRIORITY, HASTY, NAP, Pass};

impl<Z: LabZone> Kernel<'_, Z> {
    /// Frees pages for a request that found none, from the time `now` on. Returns the number of
    /// frames, and the time at which it is done.
    pub(in crate::kernel) fn try_to_free(
        &self,
        rules: &Of2007,
        need: &Need,
        mut now: u64,
    ) -> (usize, u64) {
        self.state.borrow_mut().pressure.direct_calls += 1;
        let (order, by) = match (rules.lumpy, need.order) {
            (Lumpy::Off, _) | (_, Order::ZERO) => (Order::ZERO, Reclaimer::Direct),
            (Lumpy::On, order) => (order, Reclaimer::Lump),
        };
        let of_request = |kind: ZoneKind| kind <= need.highest;
        let places: Vec<usize> = (0..self.zones.len())
            .rev()
            .filter(|&place| of_request(self.zones[place].1))
            .collect();
        let (mut freed, mut all_scanned) = (0, 0);
        let mut reached = FIRST_PRIORITY;
        for priority in (0..=FIRST_PRIORITY).rev() {
            reached = priority;
            let pass = Pass {
                by,
                order,
                priority,
                now,
            };
            let mut scanned = 0;
            for &place in &places {
                if self.is_left_out(place, priority) {
                    continue;
                }
                let done = self.pass_over(place, pass);
                freed += done.freed + self.shrink_slabs(place, Reclaimer::Direct);
                scanned += done.scanned;
            }
            if freed >= CLUSTER {
                break;
            }
            all_scanned += scanned;
            if all_scanned > CLUSTER + CLUSTER / 2 {
                self.wake_flusher(all_scanned);
            }
            if scanned > 0 && priority < HASTY {
                freed += self.sleep(now, now + NAP);
                now += NAP;
            }
        }
        let mut memory = self.of_2007.borrow_mut();
        places
            .iter()
            .for_each(|&place| memory.zones[place].priority = reached);
        (freed, now)
    }

    /// Lets a request sleep from `from` to `until`, while the time of the load stands still: frees
    /// what is written by then, and lets the flusher write in what is left of the disk's time.
    /// Returns the number of frames freed.
    pub(in crate::kernel) fn sleep(&self, from: u64, until: u64) -> usize {
        let busy_until = self.state.borrow().writes.until();
        let freed = self.finish_writes(until, Reclaimer::Direct);
        self.flush_asleep(from.max(busy_until), until);
        self.state.borrow_mut().pressure.waited += until - from;
        freed
    }
}
