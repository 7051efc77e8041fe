//! Hooks that own all movable pages of a zone, and move them.

use super::*;
use std::collections::BTreeMap;

use core::cell::RefCell;

/// The owner of all movable pages of a zone. It moves them, or returns another result where a test
/// sets one.
pub(crate) struct Owner<'z, Z: AnyZone> {
    zone: &'z Z,
    pub(crate) pages: RefCell<BTreeMap<Frame, Order>>,
    answer: Option<Migration>,
    pub(crate) moves: RefCell<Vec<(Frame, Frame)>>,
    pub(crate) reclaims: Cell<usize>,
}

impl<'z, Z: AnyZone<Platform = &'static Cpus>> Owner<'z, Z> {
    /// Makes the owner of every movable block in use.
    pub(crate) fn of(zone: &'z Z) -> Self {
        let mut pages = BTreeMap::new();
        for at in zone.span().frames() {
            let block = zone.block_of(at).filter(|(first, _)| *first == at);
            if let Some((first, state)) = block
                && state.usage == Use::Allocated
                && state.kind == Mobility::Movable.into()
            {
                pages.insert(first, state.order);
            }
        }
        Self {
            zone,
            pages: RefCell::new(pages),
            answer: None,
            moves: RefCell::new(Vec::new()),
            reclaims: Cell::new(0),
        }
    }

    /// Makes an owner that always returns `answer` and moves nothing.
    pub(crate) fn returning(zone: &'z Z, answer: Migration) -> Self {
        Self {
            answer: Some(answer),
            ..Self::of(zone)
        }
    }

    /// Returns how often `migrate` was called.
    pub(crate) fn asked(&self) -> usize {
        self.moves.borrow().len()
    }

    /// Checks that each of its pages is in use where it recorded it.
    pub(crate) fn has_what_it_has(&self) {
        for (&at, &order) in &*self.pages.borrow() {
            assert_in_use(self.zone, at, order.get());
        }
        sound(self.zone);
    }

    /// Checks that each of its pages is in use where it recorded it, and no other movable block is.
    pub(crate) fn owns_what_is_in_use(&self) {
        sound(self.zone);
        let now = Self::of(self.zone);
        assert_eq!(*self.pages.borrow(), *now.pages.borrow());
    }
}

/// Checks that the hook's caller holds no lock and has masked nothing.
pub(crate) fn assert_nothing_held<Z: AnyZone<Platform = &'static Cpus>>(zone: &Z) {
    assert_no_lock_held();
    assert!(zone.platform().is_at_rest(), "masked or pinned in a hook");
}

impl<Z: AnyZone<Platform = &'static Cpus>> Migrate for Owner<'_, Z> {
    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        assert_nothing_held(self.zone);
        self.moves.borrow_mut().push((from, to));
        // The new place is allocated already.
        let place = state(self.zone, to);
        assert_eq!((place.usage, place.order), (Use::Allocated, order));
        if let Some(answer) = self.answer {
            return answer;
        }
        let mut pages = self.pages.borrow_mut();
        match pages.remove(&from) {
            Some(own) => {
                assert_eq!(own, order);
                pages.insert(to, order);
                Migration::Moved
            }
            None => Migration::Unknown,
        }
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>> Reclaim for Owner<'_, Z> {
    fn reclaim(&self, _: &Need) -> usize {
        assert_nothing_held(self.zone);
        self.reclaims.set(self.reclaims.get() + 1);
        0
    }
}
