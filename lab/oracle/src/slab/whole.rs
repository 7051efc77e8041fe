//! Checks of a whole cache, and of all caches together: leaks, counts, and pages given back.

use std::rc::Rc;

use super::case::Driven;
use super::drive::{Driver, Slot};
use super::operation::{CPUS, SLOTS};

impl<'m, D> Driver<'_, 'm, D>
where
    D: Driven<'m>,
{
    pub(super) fn shrink_cache(&self, slot: usize) {
        let Some(of) = self.slot(slot) else { return };
        of.cache.shrink();
        assert_eq!(of.cache.numbers().out as usize, self.live(slot));
        self.count(|driven| &mut driven.shrunk);
    }

    pub(super) fn destroy(&self, slot: usize) {
        let of = self.slots.borrow_mut()[slot].take();
        let Some(of) = of else { return };
        let of = Rc::into_inner(of).expect("events end before the operation that they interrupt");
        let live = self.live(slot);
        match of.cache.destroy() {
            Ok(()) => {
                assert_eq!(live, 0, "a cache was destroyed under its users");
                self.count(|driven| &mut driven.destroyed);
            }
            Err((cache, leak)) => {
                assert_eq!(leak.objects as usize, live, "objects still in use");
                let mut known = cache.in_use();
                known.sort_unstable();
                assert_eq!(known, self.model.borrow().addresses(slot));
                self.slots.borrow_mut()[slot] = Some(Rc::new(Slot { cache, ..of }));
                self.count(|driven| &mut driven.leaks);
            }
        }
    }

    /// Frees all objects and destroys all caches: nothing may be left.
    pub(super) fn finish(&self) {
        self.cpus.begin_operation();
        self.cpus.set_interrupt(false);
        self.pages.allow(None);
        self.model.borrow().check();
        while self.model.borrow().count(|_| true) > 0 {
            self.free(0);
        }
        for slot in 0..SLOTS {
            self.destroy(slot);
            assert!(
                self.slot(slot).is_none(),
                "an empty cache was not destroyed"
            );
        }
        for cpu in 0..CPUS {
            self.cpus.switch_to(cpu);
            self.slabs.drain();
        }
        self.slabs.shrink();
        self.compare();
        for numbers in self.slabs.numbers() {
            assert_eq!((numbers.out, numbers.slabs), (0, 0), "{numbers:?}");
        }
        assert_eq!(self.pages.taken(), 0, "pages are left");
    }

    /// Compares without events, and outside any interrupt: interrupts cannot read all counts.
    pub(super) fn compare_as_a_task(&self) {
        let interrupt = self.cpus.is_in_interrupt();
        self.cpus.set_interrupt(false);
        self.quietly(|| self.compare());
        self.cpus.set_interrupt(interrupt);
    }

    /// Checks that all counts are consistent, with each other, with the model and with the pages.
    fn compare(&self) {
        assert!(self.cpus.is_at_rest(), "a mask or a pin was not undone");
        let mut pages = 0;
        let mut out = 0;
        for numbers in self.slabs.numbers() {
            let objects = numbers.slabs * numbers.per_slab;
            assert!(numbers.out <= objects, "{numbers:?}");
            assert!(numbers.partial_slabs <= numbers.slabs, "{numbers:?}");
            if self.case.shares_slabs() {
                // Objects that `slqb-2008` flushes may go to other lists instead.
                assert_eq!(numbers.filled - numbers.flushed, numbers.out, "{numbers:?}");
            }
            assert_eq!(
                numbers.slabs_new - numbers.slabs_gone,
                numbers.slabs,
                "{numbers:?}"
            );
            pages += numbers.slabs * numbers.pages_per_slab;
            out += numbers.in_use() as usize;
        }
        assert_eq!(pages as usize, self.pages.taken(), "pages are in no slab");
        let live = self.model.borrow().count(|_| true);
        // Sheaves themselves are objects in use too.
        assert!(out >= live, "{live} objects in use, {out} counted");
        let mut reclaimable = 0;
        for (slot, of) in self.slots.borrow().iter().enumerate() {
            let Some(of) = of else { continue };
            let numbers = of.cache.numbers();
            assert_eq!(numbers.in_use() as usize, self.live(slot), "{numbers:?}");
            if of.reclaimable {
                reclaimable += numbers.slabs * numbers.pages_per_slab;
            }
        }
        let taken = self.pages.taken_for(brickyard::Mobility::Reclaimable);
        assert_eq!(taken, reclaimable as usize, "pages of reclaimable caches");
    }
}
