//! Objects of slabs over the zone: each is filled with a value that only its owner knows, and
//! checked before it is freed. Objects change hands between tasks and interrupts, too.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use brickyard::sync::SlotAccess;
use brickyard_boot_test::Dice;
use brickyard_slab::{
    CacheSpec, Caller, Everywhere, Pinned, RawCache, Sheafed, SlabPlan, Slabs, TaskOnly,
};

use crate::fail;
use crate::platform::Machine;
use crate::slab_pages::OwnedPages;

/// The most caches.
const CACHES: usize = 8;
/// The objects that one task holds.
const HELD: usize = 48;

/// Sheaves over the zone's pages.
type Design<A> = Sheafed<'static, OwnedPages<A>, Pinned<Machine>>;
/// All slabs of a round.
pub type System<A> = Slabs<'static, Design<A>>;
type Cache<A, C> = RawCache<'static, 'static, Design<A>, C>;

/// Returns the plan of slabs over so many pages.
pub fn plan(cpus: usize, pages: usize) -> SlabPlan {
    SlabPlan::new(CACHES, cpus).pages(pages)
}

/// What was done with objects.
pub struct Counts {
    /// Objects taken.
    pub taken: AtomicU64,
    /// Of those: in interrupts.
    pub in_interrupts: AtomicU64,
    /// Requests refused.
    pub refused: AtomicU64,
}

/// The caches of a round.
pub struct Caches<A: SlotAccess + 'static> {
    small: Cache<A, TaskOnly>,
    large: Cache<A, TaskOnly>,
    anywhere: Cache<A, Everywhere>,
    /// Objects of `anywhere` that change hands, by address; 0 is none.
    exchange: [AtomicUsize; 16],
    /// What was done.
    pub counts: Counts,
}

/// The number that the words of an object begin with.
fn stamp(object: NonNull<u8>, word: usize, who: u64) -> u64 {
    Dice::new(who ^ object.addr().get() as u64 ^ (word as u64) << 56).draw()
}

/// An object and its owner's number.
type OwnedObject = (NonNull<u8>, u64);

/// Fills an object: its first word says who owns it, all others follow from that.
///
/// # Safety
/// The caller alone owns it, and it has `bytes` bytes.
unsafe fn fill(object: NonNull<u8>, bytes: usize, who: u64) {
    let words = object.cast::<u64>();
    // SAFETY: within the object, which is aligned to 8 bytes at least.
    unsafe { words.write_volatile(who) };
    for word in 1..bytes / 8 {
        // SAFETY: as above.
        unsafe { words.add(word).write_volatile(stamp(object, word, who)) };
    }
}

/// Checks that an object is as its owner has filled it, and ruins it for whoever still uses it.
///
/// # Safety
/// The conditions of [`fill`].
unsafe fn check(object: NonNull<u8>, bytes: usize, who: u64, name: impl fmt::Display) {
    let words = object.cast::<u64>();
    for word in 0..bytes / 8 {
        let expected = match word {
            0 => who,
            word => stamp(object, word, who),
        };
        // SAFETY: as in `fill`.
        let found = unsafe { words.add(word).read_volatile() };
        if found != expected {
            fail(format_args!(
                "object {object:p} of {name}: word {word} is {found:#x}, not {expected:#x}"
            ));
        }
        // SAFETY: as in `fill`.
        unsafe { words.add(word).write_volatile(!found) };
    }
}

impl<A: SlotAccess> Caches<A> {
    /// Makes the caches.
    pub fn new(slabs: &'static System<A>) -> Self {
        fn make<A: SlotAccess, C: Caller>(
            slabs: &'static System<A>,
            name: &'static str,
            bytes: usize,
        ) -> Cache<A, C> {
            match slabs.cache::<C>(CacheSpec::new(name, bytes).align(8)) {
                Ok(cache) => cache,
                Err(why) => fail(format_args!("cache {name}: {why}")),
            }
        }
        Self {
            small: make(slabs, "small", 64),
            large: make(slabs, "large", 2000),
            anywhere: make(slabs, "anywhere", 200),
            exchange: [const { AtomicUsize::new(0) }; 16],
            counts: Counts {
                taken: AtomicU64::new(0),
                in_interrupts: AtomicU64::new(0),
                refused: AtomicU64::new(0),
            },
        }
    }

    fn take<C: Caller>(&self, cache: &Cache<A, C>, who: u64) -> Option<OwnedObject> {
        match cache.alloc() {
            Ok(object) => {
                // SAFETY: it was just handed out, with so many bytes.
                unsafe { fill(object, cache.size(), who) };
                // Relaxed, here and below: counts.
                self.counts.taken.fetch_add(1, Ordering::Relaxed);
                Some((object, who))
            }
            Err(_) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn give<C: Caller>(&self, cache: &Cache<A, C>, (object, who): OwnedObject) {
        // SAFETY: the caller holds it. It does not use it any more.
        let freed = unsafe {
            check(object, cache.size(), who, cache.name());
            cache.free(object)
        };
        if let Err(fault) = freed {
            fail(format_args!(
                "free of an object of {}: {fault}",
                cache.name()
            ));
        }
    }

    /// Leaves an object where others find it, and frees the one that lay there.
    fn hand_over(&self, place: u64, object: Option<OwnedObject>) {
        let word = object.map_or(0, |(object, _)| object.as_ptr().expose_provenance());
        // Acquire and release: whoever takes it out sees what its owner wrote.
        let place = &self.exchange[place as usize % self.exchange.len()];
        let found = place.swap(word, Ordering::AcqRel);
        if let Some(object) = NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(found)) {
            // SAFETY: it belongs to whoever has taken it out; its first word says who filled it.
            let who = unsafe { object.cast::<u64>().read_volatile() };
            self.give(&self.anywhere, (object, who));
        }
    }

    /// What an interrupt does with objects.
    pub fn interrupt(&self, number: u64) {
        if let Some(held) = self.take(&self.anywhere, number) {
            self.counts.in_interrupts.fetch_add(1, Ordering::Relaxed);
            match number & 1 {
                0 => self.give(&self.anywhere, held),
                _ => self.hand_over(number >> 1, Some(held)),
            }
        }
    }

    /// Takes and frees objects for so many steps, as a task.
    pub fn work(&self, seed: u64, steps: u64, mut between: impl FnMut() -> bool) {
        let mut dice = Dice::new(seed);
        let mut held: [Option<(u64, OwnedObject)>; HELD] = [None; HELD];
        for _ in 0..steps {
            let place = &mut held[dice.below(HELD as u64) as usize];
            match place.take() {
                Some((kind, object)) => self.give_kind(kind, object, &mut dice),
                None => {
                    let (kind, who) = (dice.below(3), dice.draw());
                    *place = self.take_kind(kind, who).map(|object| (kind, object));
                }
            }
            if !between() {
                break;
            }
        }
        for (kind, object) in held.into_iter().flatten() {
            self.give_kind(kind, object, &mut dice);
        }
    }

    fn take_kind(&self, kind: u64, who: u64) -> Option<OwnedObject> {
        match kind {
            0 => self.take(&self.small, who),
            1 => self.take(&self.large, who),
            _ => self.take(&self.anywhere, who),
        }
    }

    fn give_kind(&self, kind: u64, object: OwnedObject, dice: &mut Dice) {
        match kind {
            0 => self.give(&self.small, object),
            1 => self.give(&self.large, object),
            _ if dice.one_in(2) => self.hand_over(dice.draw(), Some(object)),
            _ => self.give(&self.anywhere, object),
        }
    }

    /// Frees what lies between tasks, and gives all pages back to the zone. Nothing may be in use.
    pub fn conclude(&self, slabs: &System<A>) {
        for place in 0..self.exchange.len() as u64 {
            self.hand_over(place, None);
        }
        self.small.shrink();
        self.large.shrink();
        self.anywhere.shrink();
        slabs.drain();
        slabs.shrink();
        for numbers in slabs.numbers() {
            if numbers.out != 0 || numbers.refused != 0 {
                fail(format_args!(
                    "cache {}: {} objects out, {} refused late",
                    numbers.name, numbers.out, numbers.refused
                ));
            }
        }
    }
}
