//! Objects: caches over the second zone, who holds which object, and that nobody else writes to it.

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::sync::SlotAccess;
use brickyard_slab::{
    CacheSpec, Everywhere, General, Pinned, RawCache, Sheafed, SlabError, SlabPlan, Slabs,
    TaskOnly, ZonePages,
};

use crate::calls::Call;
use crate::machine::{Cpus, FRAME_SHIFT, PARTIES, back, observe, party};
use crate::world::{SPAN, TheZone, World};

type Design<'w, A> = Sheafed<'w, ZonePages<'w, TheZone<'w, A>>, Pinned<Cpus>>;
pub(crate) type TheSlabs<'w, A> = Slabs<'w, Design<'w, A>>;

const PLAN: SlabPlan = SlabPlan::new(50, 2).pages(SPAN.len());
const LARGE: Layout = Layout::new::<[u64; 400]>();

/// Which cache an object is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Tasks,
    All,
    General,
}

/// An object that a party holds: its words, each of which has this value.
#[derive(Debug, Clone, Copy)]
struct HeldObject {
    object: NonNull<u64>,
    words: usize,
    value: u64,
    of: Of,
}

pub(crate) struct Objects<'w, A: SlotAccess> {
    slabs: &'w TheSlabs<'w, A>,
    tasks: RawCache<'w, 'w, Design<'w, A>, TaskOnly>,
    all: RawCache<'w, 'w, Design<'w, A>, Everywhere>,
    general: General<'w, 'w, Design<'w, A>, Everywhere>,
    held: Vec<RefCell<Vec<HeldObject>>>,
    value: Cell<u64>,
}

/// Returns what the slabs need, and slabs over a zone in it.
pub(crate) fn room<A: SlotAccess>() -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); TheSlabs::<A>::bytes(&PLAN)]
}

pub(crate) fn over<'w, A: SlotAccess>(
    zone: &'w TheZone<'w, A>,
    room: &'w mut [MaybeUninit<u8>],
) -> TheSlabs<'w, A> {
    back(SPAN.end.number());
    // SAFETY: the memory of all frames is mapped from frame 0 on, aligned to the largest block
    // (`direct-map`). The parties free only what was handed to them, and touch no frame that the
    // slabs have (`frames-of-the-source`).
    let source = unsafe { ZonePages::shared(zone, FRAME_SHIFT) }.expect("frames have addresses");
    // SAFETY: the machine keeps the contract of a platform, on one thread.
    let local = unsafe { Pinned::new(Cpus) };
    Slabs::new(PLAN, source, local, room).expect("memory enough")
}

impl<'w, A: SlotAccess> Objects<'w, A> {
    /// Makes the caches; each of the first two parties holds some objects.
    pub(crate) fn new(slabs: &'w TheSlabs<'w, A>) -> Self {
        let objects = Self {
            slabs,
            tasks: slabs.cache(CacheSpec::new("tasks", 200)).expect("room"),
            all: slabs.cache(CacheSpec::new("all", 64)).expect("room"),
            general: slabs.general().expect("room"),
            held: vec![RefCell::default(); PARTIES],
            value: Cell::new(0),
        };
        for holder in 0..2 {
            observe(holder);
            for (of, count) in [(Of::Tasks, 70), (Of::All, 5), (Of::General, 3)] {
                for _ in 0..count {
                    objects.take_for(holder, of);
                }
            }
        }
        observe(0);
        objects
    }

    fn take(&self, of: Of) {
        self.take_for(party(), of);
    }

    fn take_for(&self, holder: usize, of: Of) {
        let (object, words) = match of {
            Of::Tasks => (self.tasks.alloc(), 25),
            Of::All => (self.all.alloc(), 8),
            Of::General => (self.general.alloc(LARGE), 400),
        };
        let object = match object {
            Ok(object) => object.cast(),
            Err(SlabError::Exhausted) => return,
            Err(why) => panic!("{of:?}: {why}"),
        };
        let value = self.value.get() + 1;
        self.value.set(value);
        for word in 0..words {
            // SAFETY: the object is this party's, and has so many words.
            unsafe { object.add(word).write(value) };
        }
        let held = HeldObject {
            object,
            words,
            value,
            of,
        };
        self.held[holder].borrow_mut().push(held);
    }

    fn give(&self, of: Of, count: usize) {
        for _ in 0..count {
            let held = {
                let mut held = self.held[party()].borrow_mut();
                let place = held.iter().position(|held| held.of == of);
                place.map(|place| held.remove(place))
            };
            held.into_iter().for_each(|held| self.free(held));
        }
    }

    fn free(&self, held: HeldObject) {
        held.check();
        let object = held.object.cast();
        // SAFETY: the party holds it, and has forgotten it.
        let freed = unsafe {
            match held.of {
                Of::Tasks => self.tasks.free(object),
                Of::All => self.all.free(object),
                Of::General => self.general.free(object, LARGE),
            }
        };
        assert_eq!(freed, Ok(()), "{held:?}");
    }

    /// Makes a cache, takes and frees an object, and destroys the cache.
    fn short_lived(&self) {
        let Ok(cache) = self.slabs.cache::<TaskOnly>(CacheSpec::new("short", 300)) else {
            return;
        };
        if let Ok(object) = cache.alloc() {
            // SAFETY: it was just taken, and nobody has it.
            assert_eq!(unsafe { cache.free(object) }, Ok(()));
        }
        // Another party may be counting it.
        let _ = cache.destroy();
    }

    /// Makes a typed cache, and drops a value in it.
    fn typed(&self) {
        let Ok(cache) = self.slabs.typed::<Vec<u8>, TaskOnly>("typed") else {
            return;
        };
        drop(cache.alloc(vec![1]));
        let _ = cache.destroy();
    }

    fn text(&self) {
        let mut text = String::new();
        write!(text, "{}", self.slabs.slab_info()).expect("a string takes any text");
    }

    /// Checks the content of all objects that are held, and that they are all counted. Returns the
    /// pages of all slabs.
    pub(crate) fn check(&self) -> usize {
        let all = self.held.iter().flat_map(|held| held.borrow().clone());
        let all: Vec<HeldObject> = all.collect();
        all.iter().for_each(HeldObject::check);
        for (of, numbers) in [
            (Of::Tasks, self.tasks.numbers()),
            (Of::All, self.all.numbers()),
        ] {
            let held = all.iter().filter(|held| held.of == of).count() as u64;
            assert_eq!(numbers.out - numbers.queued, held, "objects in use: {of:?}");
            assert_eq!(numbers.refused, 0, "refused: {of:?}");
        }
        self.pages()
    }

    fn pages(&self) -> usize {
        let pages = self
            .slabs
            .numbers()
            .map(|cache| cache.slabs * cache.pages_per_slab);
        pages.sum::<u64>() as usize
    }

    /// Frees all objects, and gives every page back.
    pub(crate) fn end(&self) {
        for held in &self.held {
            held.take().into_iter().for_each(|held| self.free(held));
        }
        for cpu in [1, 0] {
            observe(cpu);
            self.slabs.drain();
        }
        self.slabs.shrink();
        assert_eq!(self.pages(), 0, "pages of slabs after all was freed");
    }
}

impl HeldObject {
    fn check(&self) {
        for word in 0..self.words {
            // SAFETY: the object is held, and has so many words.
            let found = unsafe { self.object.add(word).read() };
            assert_eq!(found, self.value, "another's value in {self:?}");
        }
    }
}

/// A row of the table of calls.
const fn call<A: SlotAccess>(
    name: &'static str,
    anywhere: bool,
    make: fn(&World<'_, A>),
) -> Call<A> {
    Call {
        name,
        in_hand: 0,
        requests: 1,
        anywhere,
        slabs: true,
        make,
    }
}

fn on<A: SlotAccess>(world: &World<'_, A>, work: impl Fn(&Objects<'_, A>)) {
    world.objects.iter().for_each(work);
}

pub(crate) fn calls<A: SlotAccess>() -> Vec<Call<A>> {
    vec![
        call("slabs: alloc", false, |w| {
            on(w, |objects| objects.take(Of::Tasks))
        }),
        call("slabs: alloc 70", false, |w| {
            on(w, |objects| (0..70).for_each(|_| objects.take(Of::Tasks)));
        }),
        call("slabs: free", false, |w| {
            on(w, |objects| objects.give(Of::Tasks, 1))
        }),
        call("slabs: free 70", false, |w| {
            on(w, |objects| objects.give(Of::Tasks, 70))
        }),
        call("slabs: alloc everywhere", true, |w| {
            on(w, |objects| objects.take(Of::All))
        }),
        call("slabs: free everywhere", true, |w| {
            on(w, |objects| objects.give(Of::All, 5))
        }),
        call("slabs: alloc 3200 bytes", true, |w| {
            on(w, |objects| objects.take(Of::General))
        }),
        call("slabs: free 3200 bytes", true, |w| {
            on(w, |objects| objects.give(Of::General, 3))
        }),
        call("slabs: shrink a cache", false, |w| {
            on(w, |objects| objects.tasks.shrink())
        }),
        call("slabs: a cache", false, |w| {
            on(w, |objects| objects.short_lived())
        }),
        call("slabs: a typed cache", false, |w| {
            on(w, |objects| objects.typed())
        }),
        call("slabs: drain", false, |w| {
            on(w, |objects| objects.slabs.drain())
        }),
        call("slabs: trim", false, |w| {
            on(w, |objects| objects.slabs.trim())
        }),
        call("slabs: shrink", false, |w| {
            on(w, |objects| objects.slabs.shrink())
        }),
        call("slabs: text", true, |w| on(w, |objects| objects.text())),
    ]
}
