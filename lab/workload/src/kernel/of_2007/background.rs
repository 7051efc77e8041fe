//! Background reclaim (Linux's `kswapd`): when it is woken, over which zones it passes, and when it
//! sleeps and ends.

use brickyard::Order;
use brickyard_designs::classics::LabZone;

use super::super::reclaim::{CLUSTER, MOST_WRITES, Reclaimer};
use super::super::{Kernel, Of2007};
use super::{Done, FIRST_PRIORITY, HASTY, Pass, ReclaimState, serves_above};
use crate::pages::Age;

/// The time in which background reclaim scans a page: half a microsecond today, and the CPUs of
/// 2007 took four times as long.
const SCAN_NANOSECONDS: u64 = 2_000;

/// The frames that background reclaim frees between two looks for a block above order 0. Linux
/// looks after each pass.
const LOOKS_AGAIN: usize = 512;

/// A zone is left out once so many times the pages of its lists were scanned, and nothing came
/// free.
const VAIN: usize = 4;

impl<Z: LabZone> Kernel<'_, Z> {
    /// Lets background reclaim do one pass, unless it sleeps.
    pub(in crate::kernel) fn pass_in_background(&self, rules: &Of2007) {
        let order = self.asked.get().map_or(Order::ZERO, |need| need.order);
        let now = self.now.get();
        let behind = self.state.borrow().writes.len() >= MOST_WRITES;
        if now < self.of_2007.borrow().rests_until || behind {
            return;
        }
        let known = self.of_2007.borrow().highest;
        let priority = self.of_2007.borrow().priority;
        let unbalanced = || self.highest_unbalanced(rules, order, priority);
        let Some(highest) = known.or_else(unbalanced) else {
            self.end_background();
            self.of_2007.borrow_mut().begin_again();
            return;
        };
        let pass = Pass {
            by: Reclaimer::Background,
            order: Order::ZERO,
            priority,
            now,
        };
        let mut done = Done::default();
        for place in 0..=highest {
            if self.is_left_out(place, priority) {
                continue;
            }
            let one = self.pass_over(place, pass);
            let slabs = self.shrink_slabs(place, Reclaimer::Background);
            done.freed += one.freed + slabs;
            done.scanned += one.scanned;
            self.leave_out_if_vain(place, slabs);
        }
        self.of_2007
            .borrow_mut()
            .go_on(now, rules.nap, order, highest, done);
    }

    /// Returns the highest zone, of those not left out at this priority, that could not serve this
    /// order above its high mark.
    fn highest_unbalanced(&self, rules: &Of2007, order: Order, priority: u32) -> Option<usize> {
        let unbalanced = |place: usize, zone: &Z| {
            !self.is_left_out(place, priority)
                && !serves_above(rules, zone, order, zone.high_mark(), 0)
        };
        let places = self.nodes.zones().enumerate();
        let places = places.filter(|&(place, zone)| unbalanced(place, zone));
        places.map(|(place, _)| place).last()
    }

    /// Leaves the zone out from now on, if no slab was freed and too much was scanned in vain.
    fn leave_out_if_vain(&self, place: usize, slabs: usize) {
        let on = |age| self.look(|pages| pages.frames_on(place, age)) as usize;
        let lists = on(Age::ActiveFile) + on(Age::InactiveFile);
        let zone = &mut self.of_2007.borrow_mut().zones[place];
        zone.unreclaimable |= slabs == 0 && zone.in_vain >= lists * VAIN;
    }

    /// The time at which background reclaim goes on.
    pub(in crate::kernel) fn rests_until(&self) -> u64 {
        self.of_2007.borrow().rests_until
    }
}

impl ReclaimState {
    fn begin_again(&mut self) {
        (self.priority, self.reclaimed, self.scanned) = (FIRST_PRIORITY, 0, 0);
    }

    /// Decides how background reclaim goes on after a pass.
    fn go_on(&mut self, now: u64, nap: u64, order: Order, highest: usize, done: Done) {
        self.since += done.freed;
        let look = order == Order::ZERO || done.freed == 0 || self.since >= LOOKS_AGAIN;
        (self.highest, self.since) = match look {
            true => (None, 0),
            false => (Some(highest), self.since),
        };
        let priority = self.priority;
        self.zones[..=highest]
            .iter_mut()
            .for_each(|zone| zone.priority = priority);
        self.reclaimed += done.freed;
        self.scanned += done.scanned;
        self.rests_until = now + done.scanned as u64 * SCAN_NANOSECONDS;
        if self.scanned > 0 && priority < HASTY {
            self.rests_until += nap;
        }
        if self.reclaimed >= CLUSTER || priority == 0 {
            self.begin_again();
            return;
        }
        self.priority -= 1;
    }
}
