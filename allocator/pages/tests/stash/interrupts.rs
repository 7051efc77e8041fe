//! No interrupt ever meets a stash.

use super::*;

#[test]
fn an_interrupt_touches_no_stash_takes_no_lock_and_waits_for_nothing() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = zone_on(8192, cpus);
        for order in [0, 1, 2, 3, 9] {
            // Something lies in the stash already.
            use_one(&zone, &request(order, Mobility::Movable));
            let (free_before, cached) = (zone.free_frames(), zone.cached_frames());
            let masks = cpus.masks();
            in_interrupt(cpus, || {
                let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
                let size = 1 << order;
                assert_eq!(zone.free_frames(), free_before - size);
                assert_eq!(zone.cached_frames(), cached);
                free(&zone, at, order);
                let some = take_bulk(&zone, &MOVABLE, 10);
                assert_eq!(zone.cached_frames(), cached);
                assert_eq!(zone.free_bulk(&some), Ok(()));
                assert_eq!(zone.drain(), 0);
            });
            let after = (zone.free_frames(), zone.cached_frames());
            assert_eq!(after, (free_before, cached));
            assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
        }
        sound(&zone);
    }
    holds::<Exclusive>();
    holds::<Shared>();
}

#[test]
fn an_interrupt_frees_what_was_taken_outside_and_the_other_way_round() {
    let cpus = Cpus::new();
    let zone: Own = zone_on(8192, cpus);
    let held = take(&zone, 50, Mobility::Movable);
    let free_before = zone.free_frames();
    in_interrupt(cpus, || give(&zone, &held));
    assert_eq!(zone.free_frames(), free_before + 50);
    let held = take_past(&zone, cpus, 50);
    give(&zone, &held);
    assert_eq!(sound(&zone).allocated, 0);
}

pub(super) type Hook = Box<dyn FnMut()>;

thread_local! {
    // What comes as an interrupt whenever somebody goes into a slot or out of it.
    pub(super) static INTERRUPT: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn interrupt() {
    // None while it runs: the interrupt itself is not interrupted.
    let hook = INTERRUPT.with(|hook| hook.borrow_mut().take());
    if let Some(mut hook) = hook {
        hook();
        INTERRUPT.with(|place| place.replace(Some(hook)));
    }
}

/// Slots that only their owner reaches, and is interrupted in.
#[derive(Debug)]
pub(super) struct Interrupted;

// SAFETY: `try_visit` never lets anyone in, and two `try_enter`s of one slot cannot overlap by the
// trait's own condition.
unsafe impl SlotAccess for Interrupted {
    const EMPTY: Self = Self;
    const LENDS: bool = false;

    fn try_enter(&self) -> bool {
        interrupt();
        true
    }

    fn try_visit(&self) -> bool {
        false
    }

    unsafe fn leave(&self) {
        interrupt();
    }
}

/// Slots that anybody reaches, and is interrupted in. It hangs where anybody waits for a slot.
#[derive(Debug)]
struct LentAndInterrupted(Shared);

// SAFETY: each call is passed on to slots that keep the contract.
unsafe impl SlotAccess for LentAndInterrupted {
    const EMPTY: Self = Self(Shared::EMPTY);
    const LENDS: bool = true;

    fn try_enter(&self) -> bool {
        self.0.try_enter() && {
            interrupt();
            true
        }
    }

    fn try_visit(&self) -> bool {
        self.0.try_visit() && {
            interrupt();
            true
        }
    }

    unsafe fn leave(&self) {
        interrupt();
        // SAFETY: the caller is inside, and the slot inside is the same one.
        unsafe { self.0.leave() }
    }
}

/// Random work on four CPUs, in which an interrupt that takes and frees comes whenever somebody has
/// gone into a slot or is about to leave it.
fn works_with_interrupts_in_the_middle<A: SlotAccess + 'static>(seed: u64) {
    let cpus = Cpus::new();
    let zone: &'static Bricks<A> = Box::leak(Box::new(zone_on(4096, cpus)));
    let owned = std::rc::Rc::new(RefCell::new(Owned::none_of(zone.span())));
    let orders = [0, 0, 0, 1, 2, 3, 5, 9];
    let hook: Hook = {
        let owned = owned.clone();
        let mut dice = Dice::new(seed + 1000);
        let mut held: Vec<(Frame, u8)> = Vec::new();
        Box::new(move || {
            cpus.set_interrupt(true);
            let cached = zone.cached_frames();
            let order = dice.one_of(&orders);
            if held.len() < 10 {
                let wanted = request(order, dice.one_of(&Mobility::ALL));
                if let Ok(at) = zone.alloc(&wanted.in_context(Context::Interrupt)) {
                    owned.borrow_mut().take(at, order);
                    held.push((at, order));
                }
            } else {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                owned.borrow_mut().give(at, order);
                free(zone, at, order);
            }
            if dice.below(10) == 0 {
                assert_eq!(zone.drain(), 0);
            }
            assert_eq!(zone.cached_frames(), cached, "an interrupt met a stash");
            cpus.set_interrupt(false);
        })
    };
    INTERRUPT.with(|place| place.replace(Some(hook)));
    let mut dice = Dice::new(seed);
    let mut held: Vec<(Frame, u8)> = Vec::new();
    for _ in 0..3000 {
        cpus.switch_to(dice.below(4));
        let order = dice.one_of(&orders);
        match dice.below(20) {
            0..10 => {
                let wanted = request(order, dice.one_of(&Mobility::ALL));
                if let Ok(at) = zone.alloc(&wanted) {
                    owned.borrow_mut().take(at, order);
                    held.push((at, order));
                }
            }
            10 => {
                let mut some = vec![Frame::new(0); dice.one_of(&[5, 40, 200])];
                let taken = zone.alloc_bulk(&UNMOVABLE, &mut some).unwrap_or(0);
                some.truncate(taken);
                some.iter().for_each(|&at| owned.borrow_mut().take(at, 0));
                some.iter().for_each(|&at| owned.borrow_mut().give(at, 0));
                assert_eq!(zone.free_bulk(&some), Ok(()));
            }
            11 if dice.below(10) == 0 => drop(zone.drain()),
            _ if !held.is_empty() => {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                owned.borrow_mut().give(at, order);
                free(zone, at, order);
            }
            _ => {}
        }
    }
    INTERRUPT.with(|place| place.replace(None));
    let census = sound(zone);
    assert_eq!(census.allocated, owned.borrow().count());
    assert_eq!(cpus.waits(), 0);
}

#[test]
fn an_interrupt_in_the_middle_of_a_stash_harms_nothing() {
    for seed in 0..4 {
        works_with_interrupts_in_the_middle::<Interrupted>(seed);
        works_with_interrupts_in_the_middle::<LentAndInterrupted>(seed);
    }
}

#[test]
fn requests_and_frees_never_mask_interrupts_or_take_the_zones_lock() {
    fn holds<A: SlotAccess + 'static>() {
        let cpus = Cpus::new();
        let zone: Bricks<A> = zone_on(16 * 512, cpus);
        let masks = cpus.masks();
        let mut dice = Dice::new(77);
        let mut held = Vec::new();
        for _ in 0..5000 {
            cpus.switch_to(dice.below(4));
            let order = dice.one_of(&[0, 0, 0, 0, 1, 3, 4, 9, 10]);
            let wanted = request(order, dice.one_of(&Mobility::ALL));
            if dice.below(2) == 0 {
                held.extend(zone.alloc(&wanted).map(|at| (at, order)));
            } else if let Some((at, order)) = held.pop() {
                free(&zone, at, order);
            }
        }
        for mobility in Mobility::ALL {
            let mut some = vec![Frame::new(0); 600];
            let page = Request::page(mobility);
            let taken = zone.alloc_bulk(&page, &mut some).unwrap_or(0);
            assert_eq!(zone.free_bulk(&some[..taken]), Ok(()));
        }
        // Up to the last frame, refusals and drains.
        take_all(&zone, Mobility::Movable);
        assert!(zone.alloc(&UNMOVABLE).is_err());
        assert!(zone.free(frame(1 << 30), Order::ZERO).is_err());
        zone.drain();
        // Whoever administers has interrupts masked.
        assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
        assert!(cpus.is_at_rest());
        sound(&zone);
    }
    holds::<Exclusive>();
    holds::<Shared>();
}
