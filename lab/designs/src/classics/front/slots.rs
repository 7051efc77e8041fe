//! Slots of CPUs, as the fronts with one for each CPU use them: a CPU enters its own with
//! interrupts masked, so that interrupts may use it too.
//!
//! To fetch frames from another CPU's slot, a drainer takes the slot's lock
//! ([`Shared`](brickyard::sync::Shared) slots), or has the platform run it on that CPU
//! ([`Exclusive`](brickyard::sync::Exclusive) slots; only on CPUs that hold frames).

use brickyard::Platform;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::platform::{MaskGuard, PinGuard};
use brickyard::sync::{Inside, Slot, SlotAccess};

/// How long a CPU waits for a visitor of its own slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all: it does without the slot (Linux since 6.0).
    Never,
    /// In an interrupt not at all, else a bounded time.
    ABit,
}

/// Calls `with` inside the caller's own slot, interrupts masked; `None` on a CPU without one, or if
/// another CPU is in it.
#[inline]
pub(crate) fn with_own<P: Platform, A: SlotAccess, T, R>(
    slots: &[Slot<A, T>],
    platform: &P,
    wait: Wait,
    with: impl FnOnce(&T) -> R,
) -> Option<R> {
    let pinned = PinGuard::new(platform);
    let slot = slots.get(pinned.cpu)?;
    {
        let _masked = MaskGuard::new(platform);
        if let Some(own) = slot.try_enter() {
            return Some(with(&own));
        }
    }
    // Called with nothing masked: a platform may recognize an interrupt by its mask. An interrupt
    // does not wait.
    if wait == Wait::Never || platform.in_interrupt() {
        return None;
    }
    let _masked = MaskGuard::new(platform);
    let own = slot.enter(|| platform.relax())?;
    Some(with(&own))
}

/// Empties every slot within `reach` by `empty`, which returns the number of frames, except those
/// of which `holds_nothing` is true.
pub(crate) fn drain<P: Platform, A: SlotAccess, T>(
    slots: &[Slot<A, T>],
    platform: &P,
    reach: Reach,
    patience: &Patience,
    holds_nothing: impl Fn(&T) -> bool,
    empty: impl Fn(&T) -> usize,
) -> Drained {
    slots
        .iter()
        .enumerate()
        .map(|(cpu, slot)| {
            let holds_nothing = || holds_nothing(slot.outside());
            drain_slot(slot, cpu, platform, reach, patience, holds_nothing, &empty)
        })
        .sum()
}

/// Empties the slot of `cpu` from wherever the caller runs, if that is within its reach.
fn drain_slot<P: Platform, A: SlotAccess, T>(
    slot: &Slot<A, T>,
    cpu: usize,
    platform: &P,
    reach: Reach,
    patience: &Patience,
    holds_nothing: impl Fn() -> bool,
    empty: &impl Fn(&T) -> usize,
) -> Drained {
    let empty = |inside: Option<Inside<'_, A, T>>| match inside {
        Some(inside) => Drained::of(empty(&inside)),
        None if holds_nothing() => Drained::default(),
        None => Drained::LEFT_OUT,
    };
    let mut drained = Drained::default();
    let mut drain_here = || {
        let _masked = MaskGuard::new(platform);
        drained = empty(match reach {
            Reach::Own => slot.try_enter(),
            Reach::Locks | Reach::All => patience.wait_for(cpu, platform, |waits, relax| {
                slot.enter_within(waits, relax)
            }),
        });
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
    if own || reach == Reach::Own || holds_nothing() {
        return drained;
    }
    if A::LENDS {
        let _masked = MaskGuard::new(platform);
        return empty(patience.wait_for(cpu, platform, |waits, relax| {
            slot.visit_within(waits, relax)
        }));
    }
    if reach == Reach::All {
        patience.run_on(cpu, platform, &mut drain_here);
    }
    drained
}
