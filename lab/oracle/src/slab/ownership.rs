//! Threads that fill every object they get, hand objects to each other, and check every byte before
//! they free: an object with two owners, or allocated while in use, is detected by its owner.

use core::alloc::Layout;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use brickyard::Platform;
use brickyard_measure::threads::Threads;
use brickyard_slab::{Cache, CacheSpec, Object, Pinned, SlabDesign, SlabError, Slabs, TaskOnly};

use super::caches::{AnyCache, AnyGeneral, RESERVED, Users};
use super::constructed::{CONSTRUCTED, construct};
use crate::sanitizer::{MutexHeld, lock};
use crate::tally::{on_threads, tally};
use brickyard_measure::objects::in_hand::{InHand, Pattern};

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of threads.
    pub threads: usize,
    /// Allocations, frees and the rest of each thread.
    pub operations: u64,
    /// The most objects that a thread has. As many again may be in transit to it.
    pub held: usize,
    /// The largest size requested of the general sizes.
    pub largest: usize,
    /// Number of CPUs that the slabs were planned for.
    pub cpus: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

tally! {
    /// What the threads did.
    pub struct Outcome: u64 {
        /// Objects allocated.
        served,
        /// Requests refused for lack of pages.
        refused,
        /// Objects freed by another thread than the one that allocated them.
        freed_elsewhere,
        /// Trims, drains and shrinks.
        given_back,
    }
}

/// A value of a typed cache: words that its owner chooses.
#[derive(Debug)]
struct Words([u64; 27]);

impl Words {
    fn of(n: u64) -> Self {
        Self(core::array::from_fn(|i| n ^ (i as u64) << 56))
    }

    fn check(&self) {
        let first = self.0[0];
        let as_made = |(i, word): (usize, &u64)| *word == first ^ (i as u64) << 56;
        assert!(
            self.0.iter().enumerate().all(as_made),
            "a value was changed: {self:?}"
        );
    }
}

/// Object sizes of the raw caches: small, medium and large, the last with a constructor.
const SIZES: [usize; 3] = [48, 640, 1000];
const CONSTRUCTED_CACHE: usize = 2;

/// All caches of a run.
struct Caches<'s, 'm, D: SlabDesign<'m>> {
    slabs: &'s Slabs<'m, D>,
    general: AnyGeneral<'s, 'm, D>,
    raw: [AnyCache<'s, 'm, D>; SIZES.len()],
    typed: Cache<'s, 'm, Words, D, TaskOnly>,
}

/// An object that a thread owns.
enum Item<'c, 's, 'm, D: SlabDesign<'m>> {
    Raw(usize, InHand),
    General(Layout, InHand),
    Value(Object<'c, 's, 'm, Words, D, TaskOnly>),
}

/// An item, and the thread that allocated it.
type Owned<'c, 's, 'm, D> = (usize, Item<'c, 's, 'm, D>);

/// Items in transit to a thread.
type Mailbox<'c, 's, 'm, D> = Mutex<VecDeque<Owned<'c, 's, 'm, D>>>;

/// Runs threads on `slabs` that allocate in every way, hand objects to each other, free, trim,
/// drain and shrink.
///
/// At the end everything is freed, and no slab is left.
///
/// # Panics
/// If a byte of an object changes while it is in use, a good free is refused, or anything is left.
pub fn run<'m, D>(slabs: &Slabs<'m, D>, plan: &Plan) -> Outcome
where
    D: SlabDesign<'m, Local = Pinned<Threads>>,
    Slabs<'m, D>: Sync,
{
    let caches = match Caches::new(slabs) {
        Ok(caches) => caches,
        Err(error) => panic!("caches for a run: {error}"),
    };
    let outcome = caches.work(plan);
    caches.end(plan);
    outcome
}

impl<'s, 'm, D> Caches<'s, 'm, D>
where
    D: SlabDesign<'m, Local = Pinned<Threads>>,
    Slabs<'m, D>: Sync,
{
    fn new(slabs: &'s Slabs<'m, D>) -> Result<Self, brickyard_slab::CacheError> {
        let make = |spec| AnyCache::new(slabs, Users::Tasks, spec);
        Ok(Self {
            slabs,
            general: AnyGeneral::new(slabs, Users::Tasks)?,
            raw: [
                make(CacheSpec::new("small", SIZES[0]))?,
                make(CacheSpec::new("medium", SIZES[1]).align(64).reclaimable())?,
                make(CacheSpec::new("made", SIZES[2]).constructor(construct::<{ SIZES[2] }>))?,
            ],
            typed: slabs.typed("words")?,
        })
    }

    fn work(&self, plan: &Plan) -> Outcome {
        let mailboxes: Vec<Mailbox<'_, 's, 'm, D>> =
            (0..plan.threads).map(|_| Mutex::default()).collect();
        let outcome = on_threads(0..plan.threads as u32, |number| {
            let mut worker = Worker::new(self, &mailboxes, plan, number as usize);
            worker.work();
            worker.outcome
        });
        for mailbox in mailboxes {
            let mailbox = mailbox.into_inner().unwrap_or_else(PoisonError::into_inner);
            for (_, item) in mailbox {
                self.free(item);
            }
        }
        outcome
    }

    fn free(&self, item: Item<'_, 's, 'm, D>) {
        let freed = match item {
            Item::Raw(cache, mut object) => {
                object.check();
                if cache == CONSTRUCTED_CACHE {
                    object.fill(CONSTRUCTED);
                }
                self.raw[cache].free(object)
            }
            Item::General(layout, object) => {
                object.check();
                match layout.size() % 2 {
                    0 => self.general.free(object, layout),
                    _ => self.general.free_unsized(object),
                }
            }
            Item::Value(value) => {
                value.check();
                drop(value);
                Ok(())
            }
        };
        assert_eq!(freed, Ok(()), "a good free");
    }

    /// Destroys the caches and checks that no slab is left.
    fn end(self, plan: &Plan) {
        for cache in self.raw {
            if let Err((_, leak)) = cache.destroy() {
                panic!("{leak}");
            }
        }
        if let Err((_, leak)) = self.typed.destroy() {
            panic!("{leak}");
        }
        for cpu in 0..plan.cpus {
            Threads.run_on(cpu, &mut || self.slabs.drain());
        }
        self.slabs.drain();
        self.slabs.shrink();
        for numbers in self.slabs.numbers() {
            assert_eq!((numbers.out, numbers.slabs), (0, 0), "{numbers:?}");
            assert_eq!(numbers.refused, 0, "{numbers:?}");
        }
    }
}

/// One thread.
struct Worker<'b, 'c, 's, 'm, D: SlabDesign<'m>> {
    caches: &'c Caches<'s, 'm, D>,
    mailboxes: &'b [Mailbox<'c, 's, 'm, D>],
    plan: &'b Plan,
    number: usize,
    dice: u64,
    items: Vec<Owned<'c, 's, 'm, D>>,
    owned: u64,
    outcome: Outcome,
}

impl<'b, 'c, 's, 'm, D> Worker<'b, 'c, 's, 'm, D>
where
    D: SlabDesign<'m, Local = Pinned<Threads>>,
    Slabs<'m, D>: Sync,
{
    fn new(
        caches: &'c Caches<'s, 'm, D>,
        mailboxes: &'b [Mailbox<'c, 's, 'm, D>],
        plan: &'b Plan,
        number: usize,
    ) -> Self {
        Self {
            caches,
            mailboxes,
            plan,
            number,
            dice: plan.seed ^ ((number as u64 + 1) << 32 | 0x9e37_79b9),
            items: Vec::new(),
            owned: 0,
            outcome: Outcome::default(),
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as usize % sides
    }

    /// Returns a number that no other owner has.
    fn next_owner(&mut self) -> u64 {
        self.owned += 1;
        (self.number as u64) << 40 | self.owned
    }

    fn work(&mut self) {
        for _ in 0..self.plan.operations {
            match self.roll(1000) {
                0 => self.give_back(),
                1..=199 => self.hand_over(),
                200..=349 => self.take_over(),
                350..=359 => self.alloc_bulk(),
                360..=362 => self.free_bulk(),
                363..=364 => self.reserve(),
                _ if self.items.len() >= self.plan.held => self.free(),
                _ if self.roll(2) == 0 => self.alloc(),
                _ => self.free(),
            }
        }
        while !self.items.is_empty() {
            self.free();
        }
        self.caches.slabs.drain();
    }

    fn alloc(&mut self) {
        let owner = self.next_owner();
        let got = match self.roll(8) {
            0..=2 => {
                let cache = self.roll(SIZES.len());
                let object = self.caches.raw[cache].alloc();
                object.map(|object| self.raw(cache, object))
            }
            3 => {
                let object = self.caches.raw[0].alloc_zeroed();
                object.map(|object| {
                    object.check_zero(SIZES[0]);
                    self.raw(0, object)
                })
            }
            4 => self.caches.typed.alloc(Words::of(owner)).map(Item::Value),
            _ => {
                let layout = self.layout();
                let memory = self.caches.general.alloc(layout);
                memory.map(|mut memory| {
                    memory.fill(Pattern::of(owner));
                    Item::General(layout, memory)
                })
            }
        };
        self.keep(got);
    }

    /// Takes ownership of an object of a raw cache.
    fn raw(&mut self, cache: usize, mut object: InHand) -> Item<'c, 's, 'm, D> {
        if cache == CONSTRUCTED_CACHE {
            object.check_against(CONSTRUCTED);
        }
        object.fill(Pattern::of(self.next_owner()));
        Item::Raw(cache, object)
    }

    fn keep(&mut self, got: Result<Item<'c, 's, 'm, D>, SlabError>) {
        match got {
            Ok(item) => {
                self.outcome.served += 1;
                self.items.push((self.number, item));
            }
            Err(SlabError::Exhausted) => self.outcome.refused += 1,
            Err(error) => panic!("a task's request is refused: {error}"),
        }
    }

    /// Returns a random layout, mostly a small one.
    fn layout(&mut self) -> Layout {
        let most = if self.roll(8) == 0 {
            self.plan.largest
        } else {
            256
        };
        let align = 1 << self.roll(5);
        Layout::from_size_align(self.roll(most + 1), align).unwrap_or(Layout::new::<u64>())
    }

    fn pick(&mut self) -> Option<Owned<'c, 's, 'm, D>> {
        if self.items.is_empty() {
            return None;
        }
        let place = self.roll(self.items.len());
        Some(self.items.swap_remove(place))
    }

    fn release(&mut self, (owner, item): Owned<'c, 's, 'm, D>) {
        self.outcome.freed_elsewhere += u64::from(owner != self.number);
        self.caches.free(item);
    }

    fn free(&mut self) {
        if let Some(item) = self.pick() {
            self.release(item);
        }
    }

    fn mailbox(&self, of: usize) -> MutexHeld<'b, VecDeque<Owned<'c, 's, 'm, D>>> {
        lock(&self.mailboxes[of])
    }

    /// Puts an item into another thread's mailbox.
    fn hand_over(&mut self) {
        let Some(item) = self.pick() else { return };
        let to = self.roll(self.plan.threads);
        let mut mailbox = self.mailbox(to);
        if mailbox.len() < self.plan.held {
            mailbox.push_back(item);
        } else {
            drop(mailbox);
            self.release(item);
        }
    }

    /// Takes an item from its mailbox, and keeps it or frees it.
    fn take_over(&mut self) {
        let came = self.mailbox(self.number).pop_front();
        match came {
            Some(item) if self.roll(2) == 0 => self.items.push(item),
            Some(item) => self.release(item),
            None => {}
        }
    }

    fn alloc_bulk(&mut self) {
        let room = self.plan.held.saturating_sub(self.items.len());
        let (cache, many) = (self.roll(SIZES.len()), self.roll(200).min(room));
        if many == 0 {
            return;
        }
        match self.caches.raw[cache].alloc_bulk(many) {
            Ok(objects) => {
                for object in objects {
                    let item = self.raw(cache, object);
                    self.keep(Ok(item));
                }
            }
            Err(error) => self.keep(Err(error)),
        }
    }

    /// Frees all objects that it has of one cache.
    fn free_bulk(&mut self) {
        let cache = self.roll(SIZES.len() - 1);
        let all = core::mem::take(&mut self.items);
        let mut objects = Vec::new();
        for (owner, item) in all {
            match item {
                Item::Raw(of, object) if of == cache => {
                    object.check();
                    self.outcome.freed_elsewhere += u64::from(owner != self.number);
                    objects.push(object);
                }
                item => self.items.push((owner, item)),
            }
        }
        assert_eq!(self.caches.raw[cache].free_bulk(objects, None), Ok(()));
    }

    fn reserve(&mut self) {
        if self.items.len() + RESERVED > self.plan.held {
            return;
        }
        let (cache, want) = (self.roll(SIZES.len()), self.roll(RESERVED + 1));
        match self.caches.raw[cache].reserve(want, || {}) {
            Ok(objects) => {
                for object in objects {
                    let item = self.raw(cache, object);
                    self.keep(Ok(item));
                }
            }
            Err(error) => self.keep(Err(error)),
        }
    }

    fn give_back(&mut self) {
        self.outcome.given_back += 1;
        let slabs = self.caches.slabs;
        match self.roll(4) {
            0 => slabs.trim(),
            1 => slabs.drain(),
            2 => slabs.shrink(),
            _ => self.caches.raw[0].shrink(),
        }
    }
}
