//! The naive model: where each object is and who owns it; simple and slow.

use core::alloc::Layout;
use std::collections::BTreeMap;

use brickyard_measure::objects::in_hand::{InHand, Pattern};

/// Where an object was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The cache in a slot of the driver.
    Slot(usize),
    /// A general size.
    General(Layout),
}

/// An object in use.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) from: Origin,
    pub(super) object: InHand,
}

/// All objects in use, by address.
#[derive(Debug, Default)]
pub(super) struct Model {
    live: BTreeMap<usize, Live>,
    owners: u64,
    bytes: usize,
}

impl Model {
    /// Adds an object in use; its owner fills every byte of it.
    ///
    /// # Panics
    /// If it overlaps another one.
    pub(super) fn add(&mut self, from: Origin, mut object: InHand) {
        self.check_room(&object);
        self.owners += 1;
        object.fill(Pattern::of(self.owners));
        self.bytes += object.bytes();
        self.live.insert(object.address(), Live { from, object });
    }

    fn check_room(&self, object: &InHand) {
        let (start, end) = (object.address(), object.address() + object.bytes());
        let before = self.live.range(..=start).next_back();
        if let Some((_, live)) = before {
            let ends = live.object.address() + live.object.bytes();
            assert!(
                ends <= start,
                "{object:?} is allocated, but {live:?} is in use"
            );
        }
        if let Some((&next, live)) = self.live.range(start..).next() {
            assert!(
                end <= next,
                "{object:?} is allocated, but {live:?} is in use"
            );
        }
    }

    /// Takes the `n`-th object in use of those that `which` accepts, and checks every byte of it.
    pub(super) fn take(&mut self, n: usize, which: impl Fn(Origin) -> bool) -> Option<Live> {
        let many = self.count(&which);
        let mut ours = self.live.iter().filter(|(_, live)| which(live.from));
        let (&address, _) = ours.nth(n.checked_rem(many)?)?;
        let live = self.live.remove(&address)?;
        live.object.check();
        self.bytes -= live.object.bytes();
        Some(live)
    }

    /// Adds an object again that was taken but not freed.
    pub(super) fn put_back(&mut self, live: Live) {
        self.bytes += live.object.bytes();
        self.live.insert(live.object.address(), live);
    }

    /// Returns the `n`-th object in use of those that `which` accepts.
    pub(super) fn nth(&self, n: usize, which: impl Fn(Origin) -> bool) -> Option<&Live> {
        let many = self.count(&which);
        let mut ours = self.live.values().filter(|live| which(live.from));
        ours.nth(n.checked_rem(many)?)
    }

    /// Returns how many objects `which` accepts.
    pub(super) fn count(&self, which: impl Fn(Origin) -> bool) -> usize {
        self.live.values().filter(|live| which(live.from)).count()
    }

    /// Returns the addresses of a slot's objects, ascending.
    pub(super) fn addresses(&self, slot: usize) -> Vec<usize> {
        let ours = |live: &&Live| live.from == Origin::Slot(slot);
        let ours = self.live.values().filter(ours);
        ours.map(|live| live.object.address()).collect()
    }

    /// Returns the total bytes of all objects in use.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks every byte of every object.
    pub(super) fn check(&self) {
        for live in self.live.values() {
            live.object.check();
        }
    }
}
