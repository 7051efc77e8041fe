//! The default design: free objects wait in arrays of their addresses, so that a hit touches no
//! object.
//!
//! A **sheaf** is 128 words. First come a link and the sheaf's top, which is stored there while no
//! row holds it. Then come unused words, a word of 0 (the sentinel), and the entries up to the
//! sheaf's end. The end is a multiple of the sheaf's size. The position of the sentinel sets the
//! cache's capacity.
//!
//! ```text
//! word   0      1                sentinel   entries                                        127
//!       [link] [top while apart] ... [ 0 ] [object] [object] [object] ... free entries ... [    ]
//!                                                             ^ top
//! ```
//!
//! Each CPU has two words per cache. `main` is the top of the sheaf in use; `spare` is the top of
//! another one, or 0. (With several nodes, or with [`Homes`](crate::Homes), there is a third:
//! `away` is the top of a sheaf of objects that should not be used on this CPU.) To take an object,
//! a CPU reads what the top points at (0: none left) and stores the top less a word. To put one
//! back, it writes behind the top (a multiple of the size: full) and stores the top plus a word.
//! One word decides, so only one store must not be torn. A CPU without a sheaf, and every CPU of a
//! cache that is checked, has the top of a sheaf that is empty and full at once ([`closed`]). So
//! both ways miss, and the fast path needs no case for either.
//!
//! Where `main` is empty and the spare is full, `main` gets a few of its objects; exchanged, they
//! would be exchanged back by the next frees, again and again, where a program comes and goes over
//! the end of a sheaf.
//!
//! Behind them, per cache and node, is a depot. It has full and empty sheaves (the barn) and slabs
//! with free objects (the partial list). Both are behind one lock, which is taken once for as many
//! objects as a sheaf holds. A sheaf changes hands as a whole. Where one CPU only allocates and
//! another only frees, each takes the lock once per sheaf, and no list is walked.
//!
//! | file | what it holds |
//! |---|---|
//! | `purpose.rs` | what differs between a kernel's slabs and those of a heap |
//! | `words.rs` | a sheaf in hand: entries, links; the closed one |
//! | `depot.rs`, `partial.rs` | the barn; slabs with free objects, bitmaps |
//! | `state.rs` | the design's state: rows and depots |
//! | `rows.rs` | sheaves in and out of a CPU's row |
//! | `singles.rs` | one object at a time, without sheaves; slabs out of pages |
//! | `flush.rs`, `refill.rs` | the work of a miss: from sheaves into slabs, from slabs into sheaves |
//! | `mod.rs` | the two fast paths, and what they do on a miss |
//!
//! - Invariant `top-in-sheaf`: a row's `main` is the top of [`closed`] or of a sheaf that no other
//!   row, list or caller has.
//! - Invariant `sheaf-in-one-place`: a sheaf is in one row, in one list of a depot, or in the hands
//!   of one caller.
//! - Invariant `sheaf-words`: a sheaf is 128 words of shared memory from when it is made until it
//!   is given back. It was exposed when it was made.
//! - Invariant `object-in-one-place`: an object is in use, in one sheaf, or free in its slab's
//!   bitmap.

mod depot;
mod flush;
mod partial;
mod purpose;
mod refill;
mod rows;
mod singles;
mod state;
mod words;

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard_sync::{AtomicUsize, Locked, Ordering, RawLock, place};
use depot::Depot;
use state::{AWAY, Guarded, MAIN, SPARE};
use words::Sheaf;

use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::caller::{Caller, Everywhere};
use crate::design::{SlabDesign, Whereabouts};
use crate::error::FreeFault;
use crate::geometry::{Geometry, ShapeError};
use crate::layout::{BOOT_CACHE, CacheId};
use crate::local::{Local, Pushed};
use crate::plan::{Footprint, SlabPlan};
use crate::rows::Rows;
use crate::source::PageSource;
use crate::statistics::CacheNumbers;

pub use crate::layout::{MAX_CAPACITY, SHEAF_BYTES, SHEAF_WORDS, WORD_BYTES};
pub use purpose::{Kernel, Process, Purpose};
pub use state::Sheafed;
pub use words::closed;

// SAFETY: `object-in-one-place`: what a sheaf or the partial list gives out is in neither from then
// on. It came there as an object of the cache, out of its slab or from the caller that freed it.
// `on-the-partial-list`: pages go back with the last object, and the depot's lock is held where a
// slab ends and while `look` looks. `is_clear` looks at every row; the depots' sheaves are emptied
// before it is called.
unsafe impl<'m, S, L, K, P> SlabDesign<'m> for Sheafed<'m, S, L, K, P>
where
    S: PageSource + 'm,
    L: Local + 'm,
    K: RawLock,
    P: Purpose,
{
    type Source = S;
    type Local = L;

    const NAME: &'static str = "brickyard";

    const SIZES: &'static [u32] = P::SIZES;

    const FOOTPRINT: Footprint = Footprint {
        cpu: WORD_BYTES,
        node: size_of::<Guarded<K>>(),
        row: [SPARE + 1, AWAY + 1],
        align: 2 * align_of::<Guarded<K>>(),
    };

    fn new(
        plan: &SlabPlan,
        rows: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self> {
        let footprint = Self::FOOTPRINT;
        let guarded = || Guarded(Locked::new(Depot::default()));
        let (depots, rest) = place(memory, plan.numbers().checked_mul(plan.nodes)?, guarded)?;
        let seen = plan.numbers().checked_mul(plan.cpus)?;
        let (rows, rest) = match rows {
            Some(rows) => (rows, rest),
            None => {
                let row_shift = footprint.row_bytes(plan).trailing_zeros();
                let words = plan.cpus.checked_mul(1 << row_shift)? / WORD_BYTES;
                // A cache line begins behind the depots.
                let (words, rest) = place(rest, words, || AtomicUsize::new(0))?;
                (Rows::new(words, row_shift).ok()?, rest)
            }
        };
        if (1 << rows.row_shift()) / WORD_BYTES < footprint.row_words(plan) {
            return None;
        }
        let (seen, _) = place(rest, seen, || AtomicUsize::new(0))?;
        for cpu in 0..rows.rows() {
            for column in 0..footprint.row_words(plan) {
                let is_spare = column / plan.numbers() == SPARE;
                // Relaxed: nobody else knows of the rows yet.
                rows.word(cpu, column)?
                    .store(if is_spare { 0 } else { closed() }, Ordering::Relaxed);
            }
        }
        Some(Self {
            rows,
            seen,
            numbers: plan.numbers(),
            depots,
            nodes: plan.nodes,
            parts: footprint.row_words(plan) / plan.numbers(),
            over: PhantomData,
        })
    }

    #[inline]
    fn class_of(layout: Layout) -> Option<usize> {
        P::class_of(layout)
    }

    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        P::shape(size, align, page_bytes)
    }

    fn open(&self, backend: &Backend<'m, S, L>, info: &CacheInfo) {
        let _inside = backend.inside::<Everywhere>();
        for node in 0..self.nodes {
            self.depot(backend, info.id, node).begin();
        }
        for part in [MAIN, AWAY].into_iter().filter(|&part| part < self.parts) {
            backend.local.forget_hits(self.column(info.id, part));
        }
    }

    #[inline(always)]
    fn handle(&self, cache: CacheId) -> usize {
        self.column(cache, MAIN)
    }

    #[inline(always)]
    fn hit<C: Caller>(&self, backend: &Backend<'m, S, L>, handle: usize) -> Option<NonNull<u8>> {
        // SAFETY: `top-in-sheaf`: the handle is the column of the cache's `main`.
        unsafe { backend.local.pop::<C>(&self.rows, handle) }
    }

    #[inline(always)]
    unsafe fn put<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        let mut column = handle;
        if self.parts > AWAY && self.is_away(backend, handle, object) {
            column = self.column(handle as CacheId, AWAY);
        }
        // SAFETY: as in `hit`, and by the caller's promise.
        unsafe { backend.local.push::<C>(&self.rows, column, object) == Pushed::Done }
    }

    fn miss<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
    ) -> Option<NonNull<u8>> {
        if info.is_checked() || info.id == BOOT_CACHE {
            return self.single::<C>(backend, info);
        }
        let column = self.column(info.id, MAIN);
        let (cpu, top) = backend.local.read::<C>(&self.rows, column);
        let empty = words::sentinel(info.geometry.capacity as usize);
        if cpu >= self.rows.rows() {
            return self.single::<C>(backend, info);
        }
        if top != closed() && top % SHEAF_BYTES != empty {
            // This is another CPU's row by now, or somebody else has filled it.
            // SAFETY: as in `hit`.
            if let Some(object) = unsafe { backend.local.pop::<C>(&self.rows, column) } {
                return Some(object);
            }
        }
        let spare = self.take_spare::<C>(backend, info);
        let was_spare = spare.as_ref().is_some_and(|spare| !spare.is_empty());
        let full = match spare {
            Some(spare) if was_spare => Some(spare),
            spare => self.full_sheaf::<C>(backend, info, spare, cpu),
        };
        let Some(full) = full else {
            return self.single::<C>(backend, info);
        };
        let shares = was_spare && full.is_full();
        let object = full.pop()?;
        if top != closed() && top % SHEAF_BYTES != empty {
            self.to_barn::<C>(backend, info, full, false);
        } else if shares && top != closed() {
            self.share::<C>(backend, info, (cpu, top), full);
        } else if self.detach::<C>(backend, cpu, column, top, full.top()) {
            // SAFETY: taken out of the row just now.
            if let Some(old) = unsafe { Sheaf::of_row(top) } {
                self.keep_as_spare::<C>(backend, info, old);
            }
        } else {
            self.to_barn::<C>(backend, info, full, false);
        }
        Some(backend.pointer(object))
    }

    fn miss_on<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        node: usize,
    ) -> Option<NonNull<u8>> {
        // The sheaves are skipped: they hold the nearest node's objects.
        self.single_on::<C>(backend, info, node.min(self.nodes - 1))
    }

    unsafe fn overflow<C: Caller>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        if info.is_checked() || info.id == BOOT_CACHE {
            return self.give_single::<C>(backend, info, object);
        }
        self.fetch_depot(info.id, backend.node_here());
        // The slow path has time to check that it is an object at all.
        backend.find(info, object)?;
        let column = self.column(info.id, MAIN);
        let (cpu, top) = backend.local.read::<C>(&self.rows, column);
        if cpu >= self.rows.rows() {
            return self.give_single::<C>(backend, info, object);
        }
        let node = backend.node_of(object);
        if self.parts > AWAY && self.is_away(backend, column, object) {
            return self.put_away::<C>(backend, info, object);
        }
        let is_full = top % SHEAF_BYTES == SHEAF_BYTES - WORD_BYTES;
        // Tried again even where it was full: `put` has not told why it refused.
        // SAFETY: as in `put`.
        match unsafe { backend.local.push::<C>(&self.rows, column, object) } {
            Pushed::Done => return Ok(()),
            Pushed::Twice => return Err(FreeFault::DoubleFree),
            Pushed::Full => {}
        }
        let spare = self.take_spare::<C>(backend, info);
        // What this CPU freed last may be in its slab by now: a trim takes the sheaf away.
        let check = || self.is_out(backend, info, object);
        let fresh = self.empty_sheaf::<C>(backend, info, node, spare, check)?;
        let Some(fresh) = fresh else {
            return self.give_single::<C>(backend, info, object);
        };
        fresh.push(object.as_ptr().expose_provenance());
        if is_full && self.detach::<C>(backend, cpu, column, top, fresh.top()) {
            // SAFETY: taken out of the row just now.
            if let Some(old) = unsafe { Sheaf::of_row(top) } {
                self.keep_as_spare::<C>(backend, info, old);
            }
        } else {
            self.to_barn::<C>(backend, info, fresh, false);
        }
        Ok(())
    }

    fn trim<C: Caller>(&self, backend: &Backend<'m, S, L>, info: &CacheInfo) {
        let column = self.column(info.id, MAIN);
        let (cpu, top) = backend.local.read::<C>(&self.rows, column);
        let rows = self.rows.rows();
        let seen = (cpu < rows)
            .then(|| self.seen.get(usize::from(info.id) * rows + cpu))
            .flatten();
        // Relaxed: a hint. The word is this CPU's own, except for callers that have moved on.
        let idle = seen.is_some_and(|seen| seen.swap(top, Ordering::Relaxed) == top);
        if idle && top != closed() && self.detach::<C>(backend, cpu, column, top, closed()) {
            // Nothing has changed since the last time: nobody uses the cache here.
            // SAFETY: taken out of the row just now.
            if let Some(main) = unsafe { Sheaf::of_row(top) } {
                self.give_up::<C>(backend, info, main);
            }
        }
        // The spare is what has been left over.
        if let Some(spare) = self.take_spare::<C>(backend, info) {
            self.give_up::<C>(backend, info, spare);
        }
        self.send_away::<C>(backend, info);
        self.shrink::<C>(backend, info);
    }

    fn drain<C: Caller>(&self, backend: &Backend<'m, S, L>, info: &CacheInfo) {
        let main = self.close::<C>(backend, self.column(info.id, MAIN));
        let spare = self.take_spare::<C>(backend, info);
        for sheaf in [main, spare].into_iter().flatten() {
            self.give_up::<C>(backend, info, sheaf);
        }
        self.send_away::<C>(backend, info);
    }

    fn shrink<C: Caller>(&self, backend: &Backend<'m, S, L>, info: &CacheInfo) {
        for node in 0..self.nodes {
            // As many as there were at first, whatever other CPUs put there meanwhile.
            let mut left = u32::MAX;
            while left > 0 {
                let sheaf = {
                    let _inside = backend.inside::<C>();
                    let depot = self.depot(backend, info.id, node);
                    left = left.min(depot.sheaves());
                    depot.take_full(|_| true).or_else(|| depot.take_empty())
                };
                let Some(sheaf) = sheaf else { break };
                self.give_up::<C>(backend, info, sheaf);
                left -= 1;
            }
            let mut untouched = {
                let _inside = backend.inside::<C>();
                partial::take_untouched(&self.depot(backend, info.id, node), &backend.pages, info)
            };
            untouched.each(&backend.pages, |head| backend.give_pages(info, head));
        }
    }

    fn is_clear(&self, info: &CacheInfo) -> bool {
        self.held(info).next().is_none()
    }

    fn numbers(&self, backend: &Backend<'m, S, L>, info: &CacheInfo, numbers: &mut CacheNumbers) {
        for node in 0..self.nodes {
            let _inside = backend.inside::<Everywhere>();
            self.depot(backend, info.id, node).add_to(info, numbers);
        }
        numbers.queued += self.queued(info);
        let hits = |part| backend.local.hits(self.column(info.id, part));
        let away = match self.parts > AWAY {
            true => hits(AWAY).map_or(0, |hits| hits.frees),
            false => 0,
        };
        numbers.hits = hits(MAIN).map(|hits| hits.allocs);
        numbers.free_hits = hits(MAIN).map(|hits| hits.frees + away);
    }

    fn look<R>(
        &self,
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R> {
        let address = backend.pages.address_of(head);
        let _inside = backend.inside::<Everywhere>();
        // A page's node never changes, so this is the depot that has its slab, if there is one.
        let _depot = self.depot(backend, info.id, backend.node_of(backend.pointer(address)));
        if !backend.pages.begins(head, info.id) {
            return None;
        }
        let whereabouts = if partial::is_free(&backend.pages, head, index) {
            Whereabouts::InSlab
        } else {
            Whereabouts::Out
        };
        Some(look(backend.place_of(info, head, index), whereabouts))
    }
}
