//! Runs operations on slabs and on the model, and compares every result, every byte and every
//! count.
//!
//! While an operation runs, events happen wherever the platform allows them
//! ([`Cpus::with_events`]): interrupts that use caches, other tasks on this CPU or another, moves
//! to another CPU. So no part of the model is borrowed while slabs are called, and an object in
//! transit from or to a cache is not in the model.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use brickyard_slab::{
    CacheError, CacheSpec, Checks, Constructor, FreeFault, SlabDesign, SlabError, Slabs,
};

use super::caches::{AnyCache, AnyGeneral, Users};
use super::case::Driven;
use super::constructed::{CONSTRUCTED, construct};
use super::cpus::{Cpus, Moment};
use super::model::{Model, Origin};
use super::operation::{Make, Operation, SLOTS};
use super::pages::Pages;
use super::{SlabCase, SlabDriven};
use crate::Bytes;
use brickyard_measure::objects::in_hand::InHand;

/// With more live objects or bytes than this, allocations free instead, so that a case is quick.
const MANY: usize = 1200;
const MANY_BYTES: usize = 300 << 10;

/// The constructors, with the sizes of their objects.
const CONSTRUCTORS: [(usize, Constructor); 4] = [
    (24, Constructor::Plain(construct::<24>)),
    (200, Constructor::Plain(construct::<200>)),
    (1000, Constructor::Plain(construct::<1000>)),
    (5000, Constructor::Plain(construct::<5000>)),
];

/// A cache, and the driver's record of it.
pub(super) struct Slot<'s, 'm, D: SlabDesign<'m>> {
    pub(super) cache: AnyCache<'s, 'm, D>,
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) constructed: bool,
    pub(super) reclaimable: bool,
    pub(super) checks: Checks,
}

/// Runs operations on slabs and on the model.
pub(super) struct Driver<'s, 'm, D: SlabDesign<'m>> {
    pub(super) slabs: &'s Slabs<'m, D>,
    pub(super) case: SlabCase,
    pub(super) pages: &'m Pages<'m>,
    pub(super) cpus: &'m Cpus,
    pub(super) general: AnyGeneral<'s, 'm, D>,
    pub(super) slots: RefCell<Vec<Option<Rc<Slot<'s, 'm, D>>>>>,
    pub(super) model: RefCell<Model>,
    pub(super) dice: Cell<u64>,
    /// Number of nested events.
    pub(super) depth: Cell<u32>,
    /// While true, no event happens.
    pub(super) quiet: Cell<bool>,
    pub(super) driven: Cell<SlabDriven>,
}

impl<'s, 'm, D> Driver<'s, 'm, D>
where
    D: Driven<'m>,
{
    pub(super) fn new(
        slabs: &'s Slabs<'m, D>,
        case: SlabCase,
        pages: &'m Pages<'m>,
        cpus: &'m Cpus,
    ) -> Result<Self, CacheError> {
        Ok(Self {
            slabs,
            case,
            pages,
            cpus,
            general: AnyGeneral::new(slabs, case.general)?,
            slots: RefCell::new((0..SLOTS).map(|_| None).collect()),
            model: RefCell::default(),
            dice: Cell::new(case.seed | 1 << 40),
            depth: Cell::new(0),
            quiet: Cell::new(false),
            driven: Cell::default(),
        })
    }

    pub(super) fn run(&self, mut bytes: Bytes<'_>) -> SlabDriven {
        let events = |moment: Moment| self.event(moment);
        Cpus::with_events(&events, || {
            while !bytes.is_empty() {
                let operation = Operation::read(&mut bytes);
                self.cpus.begin_operation();
                self.step(&operation);
                self.count(|driven| &mut driven.operations);
                self.compare_as_a_task();
            }
        });
        self.finish();
        SlabDriven {
            peak_pages: self.pages.peak(),
            ..self.driven.get()
        }
    }

    fn step(&self, operation: &Operation) {
        let in_interrupt = self.cpus.is_in_interrupt();
        match *operation {
            Operation::SwitchTo(cpu) => {
                // An interrupt ends on the CPU where it began.
                self.cpus.set_interrupt(false);
                self.cpus.switch_to(cpu);
            }
            Operation::Interrupt(on) => self.cpus.set_interrupt(on),
            Operation::Make(make) => self.make(make),
            Operation::Alloc(slot) => self.alloc(slot),
            Operation::AllocOn(slot, node) => self.alloc_on(slot, node % self.case.nodes),
            Operation::AllocZeroed(slot) => self.alloc_zeroed(slot),
            Operation::AllocBulk(slot, many) => self.alloc_bulk(slot, many),
            Operation::Free(n) => self.free(n),
            Operation::FreeBulk(slot, many, bad) => self.free_bulk(slot, many, bad),
            Operation::FreeBad(n, bad) => self.quietly(|| self.free_bad(n, bad)),
            Operation::AllocGeneral(layout) => self.alloc_general(layout),
            Operation::Reserve(slot, want) => self.reserve(slot, want),
            Operation::Allow(more) => self.pages.allow(more),
            Operation::Check => self.model.borrow().check(),
            Operation::FreeAll(slot) => self.free_all(slot),
            // The rest may sleep.
            _ if in_interrupt => {}
            Operation::ShrinkCache(slot) => self.quietly(|| self.shrink_cache(slot)),
            Operation::Trim => self.slabs.trim(),
            Operation::Drain => self.slabs.drain(),
            Operation::Shrink => self.slabs.shrink(),
            Operation::Destroy(slot) => self.destroy(slot),
        }
    }

    // ---- the driver's state ----

    pub(super) fn count(&self, which: impl FnOnce(&mut SlabDriven) -> &mut usize) {
        let mut driven = self.driven.get();
        *which(&mut driven) += 1;
        self.driven.set(driven);
    }

    /// Runs `work` without events.
    pub(super) fn quietly<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = self.quiet.replace(true);
        let done = work();
        self.quiet.set(before);
        done
    }

    pub(super) fn slot(&self, slot: usize) -> Option<Rc<Slot<'s, 'm, D>>> {
        self.slots.borrow()[slot].clone()
    }

    /// Returns true if an object from there can be freed now: not while its cache is being
    /// destroyed.
    pub(super) fn is_there(&self, from: Origin) -> bool {
        match from {
            Origin::Slot(slot) => self.slots.borrow()[slot].is_some(),
            Origin::General(_) => true,
        }
    }

    /// Returns true if a cache for these users refuses the caller in its present context.
    pub(super) fn is_misplaced(&self, users: Users) -> bool {
        users == Users::Tasks && self.cpus.is_in_interrupt()
    }

    /// Returns how many objects of a slot are in use.
    pub(super) fn live(&self, slot: usize) -> usize {
        self.model.borrow().count(|from| from == Origin::Slot(slot))
    }

    fn is_crowded(&self) -> bool {
        let model = self.model.borrow();
        model.bytes() > MANY_BYTES || model.count(|_| true) > MANY
    }

    // ---- allocating ----

    fn make(&self, make: Make) {
        let Some(slot) = self.slots.borrow().iter().position(Option::is_none) else {
            return;
        };
        let constructor = make
            .constructor
            .map(|n| CONSTRUCTORS[n % CONSTRUCTORS.len()]);
        let size = constructor.map_or(make.size, |(size, _)| size);
        let name = if make.checked { "checked" } else { "plain" };
        let mut spec = CacheSpec::new(name, size).align(make.align);
        spec.constructor = constructor.map(|(_, constructor)| constructor);
        if make.reclaimable {
            spec = spec.reclaimable();
        }
        let users = match make.everywhere {
            true => Users::All,
            false => Users::Tasks,
        };
        let there = self.slots.borrow().iter().flatten().count();
        match AnyCache::new(self.slabs, users, spec) {
            Ok(cache) => {
                assert!(there < SLOTS - 1, "more caches than planned");
                assert_eq!(self.quietly(|| cache.numbers()).out, 0);
                self.slots.borrow_mut()[slot] = Some(Rc::new(Slot {
                    cache,
                    size,
                    align: make.align,
                    constructed: constructor.is_some(),
                    reclaimable: make.reclaimable,
                    checks: if make.checked {
                        self.case.checks
                    } else {
                        Checks::NONE
                    },
                }));
                self.count(|driven| &mut driven.made);
            }
            Err(CacheError::TooMany { .. }) => assert_eq!(there, SLOTS - 1),
            // The checks' additions make it too large.
            Err(CacheError::Shape(error)) => assert!(make.checked && size > 60_000, "{error}"),
            Err(error) => panic!("a refusal of another kind: {error}"),
        }
    }

    /// Checks an object just allocated from a slot, and adds it to the model.
    fn got(&self, slot: usize, of: &Slot<'s, 'm, D>, object: InHand) {
        assert!(object.address().is_multiple_of(of.align), "{object:?}");
        if of.constructed {
            object.check_against(CONSTRUCTED);
            self.count(|driven| &mut driven.constructed);
        }
        self.count(|driven| &mut driven.served);
        self.model.borrow_mut().add(Origin::Slot(slot), object);
    }

    /// Checks that a refusal is right. `refusals` is how often pages had been refused before the
    /// request.
    fn refused(&self, error: SlabError, users: Users, refusals: usize) {
        if error == SlabError::TaskOnly {
            assert!(
                self.is_misplaced(users),
                "a task was treated as an interrupt"
            );
            self.count(|driven| &mut driven.misplaced);
            return;
        }
        assert!(
            !self.is_misplaced(users),
            "a request in an interrupt was served"
        );
        assert!(
            self.pages.refused() > refusals,
            "exhausted, although no pages were refused"
        );
        self.count(|driven| &mut driven.refused);
    }

    pub(super) fn alloc(&self, slot: usize) {
        let Some(of) = self.slot(slot).filter(|_| !self.is_crowded()) else {
            return self.free(slot);
        };
        let (refusals, events) = (self.pages.refused(), self.driven.get().events);
        match of.cache.alloc() {
            Ok(object) => {
                assert!(
                    !self.is_misplaced(of.cache.users()),
                    "a request in an interrupt was served"
                );
                self.got(slot, &of, object);
            }
            Err(error) => {
                self.refused(error, of.cache.users(), refusals);
                let all_shared = self.case.shares_slabs() && events == self.driven.get().events;
                if error == SlabError::Exhausted && all_shared {
                    let numbers = self.quietly(|| of.cache.numbers());
                    let objects = numbers.slabs * numbers.per_slab;
                    assert_eq!(
                        numbers.out, objects,
                        "exhausted, but slabs have free objects"
                    );
                }
            }
        }
    }

    fn alloc_on(&self, slot: usize, node: usize) {
        let Some(of) = self.slot(slot).filter(|_| !self.is_crowded()) else {
            return self.free(slot);
        };
        let refusals = self.pages.refused();
        match of.cache.alloc_on(node) {
            Ok(object) => {
                // In another node's memory only if that node had none.
                let there = self.pages.node_at(object.address()) == node;
                assert!(there || self.pages.refused() > refusals, "{object:?}");
                self.count(|driven| &mut driven.on_a_node);
                self.got(slot, &of, object);
            }
            Err(error) => self.refused(error, of.cache.users(), refusals),
        }
    }

    fn alloc_zeroed(&self, slot: usize) {
        let Some(of) = self.slot(slot).filter(|_| !self.is_crowded()) else {
            return self.free(slot);
        };
        if of.constructed {
            return self.alloc(slot);
        }
        let refusals = self.pages.refused();
        match of.cache.alloc_zeroed() {
            Ok(object) => {
                object.check_zero(of.size);
                self.count(|driven| &mut driven.zeroed);
                self.got(slot, &of, object);
            }
            Err(error) => self.refused(error, of.cache.users(), refusals),
        }
    }

    fn alloc_bulk(&self, slot: usize, many: usize) {
        let Some(of) = self.slot(slot).filter(|_| !self.is_crowded()) else {
            return self.free(slot);
        };
        // Few, if the objects are large.
        let many = many.min(1 + MANY_BYTES / 4 / of.size);
        let refusals = self.pages.refused();
        match of.cache.alloc_bulk(many) {
            Ok(objects) => {
                assert!(objects.len() == many || self.pages.refused() > refusals);
                for object in objects {
                    self.got(slot, &of, object);
                }
                self.count(|driven| &mut driven.bulks);
            }
            Err(error) => self.refused(error, of.cache.users(), refusals),
        }
    }

    pub(super) fn alloc_general(&self, layout: core::alloc::Layout) {
        if self.is_crowded() {
            return self.free(layout.size());
        }
        let refusals = self.pages.refused();
        match self.general.alloc(layout) {
            Ok(object) => {
                assert!(self.general.serves(layout) && !self.is_misplaced(self.general.users()));
                let align = layout.align().min(4096);
                assert!(
                    object.address().is_multiple_of(align),
                    "{object:?} for {layout:?}"
                );
                self.count(|driven| &mut driven.general);
                self.model.borrow_mut().add(Origin::General(layout), object);
            }
            Err(SlabError::Exhausted) if !self.general.serves(layout) => {
                self.count(|driven| &mut driven.too_large);
            }
            Err(error) => self.refused(error, self.general.users(), refusals),
        }
    }

    fn reserve(&self, slot: usize, want: usize) {
        let Some(of) = self.slot(slot).filter(|_| !self.is_crowded()) else {
            return;
        };
        let refusals = self.pages.refused();
        match of.cache.reserve(want, || self.pages.allow(Some(0))) {
            Ok(objects) => {
                for object in objects {
                    self.got(slot, &of, object);
                }
                self.count(|driven| &mut driven.reserves);
            }
            Err(error) => self.refused(error, of.cache.users(), refusals),
        }
        self.pages.allow(None);
    }

    // ---- freeing ----

    pub(super) fn free(&self, n: usize) {
        let live = {
            let mut model = self.model.borrow_mut();
            model.take(n, |from| self.is_there(from))
        };
        let Some(mut live) = live else { return };
        let done = match live.from {
            Origin::Slot(slot) => {
                let Some(of) = self.slot(slot) else { return };
                if of.constructed {
                    live.object.fill(CONSTRUCTED);
                }
                if self.is_misplaced(of.cache.users()) {
                    let fault = of.cache.free_anything(live.object.start());
                    assert_eq!(fault, Err(FreeFault::TaskOnly));
                    return self.model.borrow_mut().put_back(live);
                }
                of.cache.free(live.object)
            }
            Origin::General(layout) => {
                if self.is_misplaced(self.general.users()) {
                    let fault = self.general.free_anything(live.object.start());
                    assert_eq!(fault, Err(FreeFault::TaskOnly));
                    return self.model.borrow_mut().put_back(live);
                }
                match n % 2 {
                    0 => self.general.free(live.object, layout),
                    _ => self.general.free_unsized(live.object),
                }
            }
        };
        assert_eq!(done, Ok(()), "a good free");
        self.count(|driven| &mut driven.freed);
    }

    /// Takes up to `many` objects of a slot out of the model, in the state in which they have to be
    /// freed.
    fn take_many(&self, slot: usize, of: &Slot<'s, 'm, D>, many: usize) -> Vec<InHand> {
        let mut model = self.model.borrow_mut();
        let taken = (0..many).map_while(|n| model.take(n * 7, |from| from == Origin::Slot(slot)));
        let mut objects: Vec<InHand> = taken.map(|live| live.object).collect();
        if of.constructed {
            for object in &mut objects {
                object.fill(CONSTRUCTED);
            }
        }
        objects
    }

    fn free_bulk(&self, slot: usize, many: usize, bad: bool) {
        let Some(of) = self.slot(slot) else { return };
        if self.is_misplaced(of.cache.users()) {
            return;
        }
        let objects = self.take_many(slot, &of, many);
        let many = objects.len();
        let bad = (bad && !of.checks.is_empty()).then(|| self.outside());
        let done = of.cache.free_bulk(objects, bad);
        match bad {
            Some(_) => {
                assert_eq!(done, Err((many, FreeFault::NotASlab)));
                self.count(|driven| &mut driven.bad_frees);
            }
            None => assert_eq!(done, Ok(())),
        }
        let mut driven = self.driven.get();
        driven.freed += many;
        self.driven.set(driven);
    }

    fn free_all(&self, slot: usize) {
        self.free_bulk(slot, usize::MAX, false);
    }
}
