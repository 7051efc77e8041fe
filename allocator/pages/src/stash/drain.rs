//! How stashes are emptied: by their owner, by a visitor, or by a task that runs on their CPU.

use brickyard_sync::{Inside, Slot, SlotAccess};

use super::{Backing, CpuStash, Stash};
use crate::Platform;
use crate::patience::{Drained, Patience, Reach};
use crate::platform::PinGuard;

impl<A: SlotAccess> Stash<'_, A> {
    /// Returns every frame within `reach` to the store. Waits for other CPUs while there is
    /// `patience`.
    pub(crate) fn drain<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        reach: Reach,
        patience: &Patience,
    ) -> Drained {
        self.slots
            .iter()
            .enumerate()
            .map(|(cpu, slot)| self.drain_slot(backing, cpu, slot, reach, patience))
            .sum()
    }

    /// Empties a stash that the caller is inside of. Returns the number of frames.
    fn drain_inside<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        inside: &Inside<'_, A, CpuStash>,
    ) -> usize {
        let store = &backing.store;
        let huge = store.page_block_order();
        inside.blocks.iter().for_each(|blocks| blocks.let_go(store));
        let frames = inside.frames(huge);
        let _transit = (frames > 0).then(|| backing.moves.begin(backing.platform.cpu()));
        // Empty arrays become small, too.
        inside.each(huge, |array| {
            backing.give(array, array.stack.len(), &inside.sorter, &mut ());
            array.stack.reset();
        });
        frames
    }

    /// Empties the slot of `cpu` from any CPU, if it is within the caller's reach.
    fn drain_slot<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        cpu: usize,
        slot: &Slot<A, CpuStash>,
        reach: Reach,
        patience: &Patience,
    ) -> Drained {
        if reach == Reach::Own {
            // The interrupted task may be in the middle of its stash.
            return Drained::default();
        }
        let platform = &backing.platform;
        let huge = backing.store.page_block_order();
        let holds_nothing = || slot.outside().frames(huge) == 0;
        let empty = |inside: Option<Inside<'_, A, CpuStash>>| match inside {
            Some(inside) => Drained::of(self.drain_inside(backing, &inside)),
            None if holds_nothing() => Drained::default(),
            None => Drained::LEFT_OUT,
        };
        let mut drained = Drained::default();
        let mut drain_here = || {
            // The same holds if a platform runs this in an interrupt.
            if platform.in_interrupt() {
                return;
            }
            // Also where this runs for another CPU: a task that is preempted inside keeps others out.
            let _pinned = PinGuard::new(platform);
            drained = empty(patience.wait_for(cpu, platform, |waits, relax| {
                slot.enter_within(waits, relax)
            }));
        };
        let own = {
            let pinned = PinGuard::new(platform);
            let own = pinned.cpu == cpu;
            if own {
                drain_here();
            }
            own
        };
        // A CPU that holds nothing is not disturbed.
        if own || holds_nothing() {
            return drained;
        }
        if A::LENDS {
            let _pinned = PinGuard::new(platform);
            return empty(patience.wait_for(cpu, platform, |waits, relax| {
                slot.visit_within(waits, relax)
            }));
        }
        if reach == Reach::All {
            patience.run_on(cpu, platform, &mut drain_here);
        }
        drained
    }
}
