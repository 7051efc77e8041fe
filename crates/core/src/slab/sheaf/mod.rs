//! The default: free objects wait in arrays of their addresses, so that a hit touches no object.
//!
//! A **sheaf** is 128 words: a link, its top while nobody's row holds it, then unused words, a word of 0 (the sentinel), and the entries up to its end, which is
//! a multiple of its size. Where the sentinel stands is the cache's capacity.
//!
//! ```text
//! word   0      1                sentinel   entries                                        127
//!       [link] [top while apart] ... [ 0 ] [object] [object] [object] ... free entries ... [    ]
//!                                                             ^ top
//! ```
//!
//! Each CPU has two words a cache: `main`, the top of the sheaf in use, and `spare`, the address of another one, or 0. To take an object is to read what the top points at (0: none
//! left) and to store the top less a word; to put one is to write behind the top (a multiple of the size: full) and to store the top plus a word. One word decides, so one store
//! is all that must not be torn. A CPU without a sheaf, and every CPU of a cache that is checked, has the top of a sheaf that is empty and full at once
//! ([`CLOSED`]); so both ways miss, and the fast path knows of neither.
//!
//! Behind them, per cache and node, is a [`Depot`]: full and empty sheaves (the barn), and slabs with free objects (the shelf), behind one lock that is taken once for as many objects
//! as a sheaf holds. A sheaf changes hands as a whole: where one CPU only allocates and another only frees, each takes the lock once a sheaf, and no list is walked.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the two ways, and what they do on a miss |
//! | `words.rs` | a sheaf in hand: entries, links |
//! | `depot.rs` | the barn |
//! | `shelf.rs` | slabs with free objects, bitmaps |
//!
//! Invariants: `top-in-sheaf`: a row's `main` is the top of [`CLOSED`] or of a sheaf that no other row, list or caller has. `sheaf-in-one-place`: a sheaf is in one row, in one list of a
//! depot, or in the hands of one caller. `object-in-one-place`: an object is in use, in one sheaf, or free in its slab's bitmap.

mod depot;
mod shelf;
mod words;

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard_sync::{AtomicUsize, Held, Locked, Ordering, RawLock, place};

use super::design::SlabDesign;
use super::error::FreeFault;
use super::geometry::Shape;
use super::ground::Ground;
use super::kind::Kind;
use super::local::{Caller, Everywhere, Local, Rows};
use super::pages::CacheId;
use super::queues::Queues;
use super::sizes::Sizes;
use super::stats::CacheNumbers;
use super::{BOOT_CACHE, SlabPlan};
use depot::Depot;
use words::Sheaf;

/// The bytes of a word.
pub const WORD_BYTES: usize = size_of::<usize>();
/// The words of a sheaf.
pub const SHEAF_WORDS: usize = 128;
/// The bytes of a sheaf, and what its address is a multiple of.
pub const SHEAF_BYTES: usize = SHEAF_WORDS * WORD_BYTES;
/// The most objects that a sheaf holds: all words but the link, the top and the sentinel.
pub const MAX_CAPACITY: usize = SHEAF_WORDS - 3;

#[repr(C, align(1024))]
struct Closed([AtomicUsize; SHEAF_WORDS]);

#[cfg(target_pointer_width = "64")]
const _: () = assert!(SHEAF_BYTES == 1024);

static CLOSED_SHEAF: Closed = Closed([const { AtomicUsize::new(0) }; SHEAF_WORDS]);

/// The top of a sheaf that is empty and full at once: its last word, which is 0.
#[must_use]
pub fn closed() -> usize {
    CLOSED_SHEAF.0.as_ptr().expose_provenance() + SHEAF_BYTES - WORD_BYTES
}

/// What a row has of a cache. (A cache's words lie side by side, in one line.)
const MAIN: usize = 0;
const SPARE: usize = 1;
/// Objects of other nodes; with more than one node only.
const AWAY: usize = 2;

/// A depot, its lock, and nothing else, in lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Guarded<K>(Locked<K, Depot>);

/// The state of the design, in the caller's memory.
#[derive(Debug)]
pub struct Sheaves<'m, K> {
    rows: Rows<'m>,
    /// Words a cache: 2, or 4 with more than one node. As a shift.
    columns_shift: u32,
    /// A cache's depots, node by node.
    depots: &'m [Guarded<K>],
    nodes: usize,
}

impl<'m, K: RawLock> Sheaves<'m, K> {
    const fn columns_shift(nodes: usize) -> u32 {
        if nodes > 1 { 2 } else { 1 }
    }

    /// log2 of the bytes of a row: a line at least.
    const fn row_shift(plan: &SlabPlan, nodes: usize) -> u32 {
        let words = (plan.caches + 1) << Self::columns_shift(nodes);
        let bytes = (words * WORD_BYTES).next_power_of_two();
        if bytes < 128 {
            7
        } else {
            bytes.trailing_zeros()
        }
    }

    /// All CPUs' rows, for a fast path of one's own: a cache's first word is its number times 2 (on one node).
    #[must_use]
    pub const fn rows(&self) -> Rows<'m> {
        self.rows
    }

    #[inline(always)]
    fn column(&self, cache: CacheId, which: usize) -> usize {
        (usize::from(cache) << self.columns_shift) + which
    }

    #[inline]
    fn depot<D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        cache: CacheId,
        node: usize,
    ) -> Held<'_, K, Depot> {
        let index = usize::from(cache) * self.nodes + node;
        self.depots[index].0.lock(|| ground.relax())
    }

    /// Memory for a sheaf of `kind`: from the cache of sheaves, which has no queues itself, so that the two never need each other.
    fn new_sheaf<D: SlabDesign<'m>>(&self, ground: &Ground<'m, D>, kind: &Kind) -> Option<Sheaf> {
        let boot = ground.kind(BOOT_CACHE)?;
        let memory = self.single::<Everywhere, D>(ground, boot)?;
        // SAFETY: an object of the cache of sheaves has a sheaf's size and alignment, and is this caller's.
        Some(unsafe { Sheaf::make(memory, kind.geometry.capacity as usize) })
    }

    /// The memory of an empty sheaf goes back.
    fn drop_sheaf<D: SlabDesign<'m>>(&self, ground: &Ground<'m, D>, sheaf: Sheaf) {
        if let Some(boot) = ground.kind(BOOT_CACHE) {
            let memory = ground.pointer(sheaf.address());
            let given = self.give_single::<Everywhere, D>(ground, boot, memory);
            debug_assert!(given.is_ok(), "a sheaf: {given:?}");
        }
    }

    /// One object out of a slab, past all sheaves.
    fn single<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
    ) -> Option<NonNull<u8>> {
        let node = ground.node_here();
        loop {
            {
                let _masked = ground.masked::<C>();
                let depot = self.depot(ground, kind.id, node);
                if let Some(object) = shelf::take_one(&depot, &ground.pages, kind) {
                    return Some(ground.pointer(object));
                }
            }
            if !self.grow::<C, D>(ground, kind, node) {
                return self.from_elsewhere::<C, D>(ground, kind, node);
            }
        }
    }

    /// One object out of a slab of another node.
    fn from_elsewhere<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        not: usize,
    ) -> Option<NonNull<u8>> {
        let _masked = ground.masked::<C>();
        (0..self.nodes)
            .filter(|&node| node != not)
            .find_map(|node| {
                let depot = self.depot(ground, kind.id, node);
                // What lies in the barn is free too.
                if let Some(sheaf) = depot.take_full() {
                    let object = sheaf.pop();
                    if sheaf.is_empty() {
                        depot.put_empty(sheaf);
                    } else {
                        depot.put_full(sheaf);
                    }
                    return object.map(|object| ground.pointer(object));
                }
                let object = shelf::take_one(&depot, &ground.pages, kind)?;
                Some(ground.pointer(object))
            })
    }

    /// One object into its slab, past all sheaves.
    fn give_single<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        let (head, index) = ground.find(kind, object)?;
        let empty = {
            let _masked = ground.masked::<C>();
            let depot = self.depot(ground, kind.id, ground.node_of(object));
            shelf::give_one(&depot, &ground.pages, kind, head, index)?
        };
        if let Some(head) = empty {
            ground.give_pages(kind, head);
        }
        Ok(())
    }

    /// Another slab for the depot of `node`, or that of the node whose memory it is.
    fn grow<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        node: usize,
    ) -> bool {
        let Some(head) = ground.take_pages::<C>(kind, node) else {
            return false;
        };
        let first = ground.pages.address_of(head);
        let owner = ground.node_of(ground.pointer(first));
        let colour = {
            let _masked = ground.masked::<C>();
            self.depot(ground, kind.id, owner)
                .next_colour(kind.geometry.colours)
        };
        let colour = colour * kind.geometry.colour_step;
        if let Some(constructor) = kind.spec.constructor {
            for index in 0..kind.geometry.objects {
                let at = first + (colour + index * kind.geometry.stride) as usize + kind.before;
                constructor(ground.pointer(at));
            }
        }
        super::debug::new_slab(ground, kind, first + colour as usize);
        let _masked = ground.masked::<C>();
        let depot = self.depot(ground, kind.id, owner);
        shelf::begin(&depot, &ground.pages, kind, head, colour);
        owner == node
    }

    /// Fills `sheaf` from the shelf of `node`, growing it where it has too little. True if it has something.
    fn fill<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        node: usize,
        sheaf: &Sheaf,
    ) -> bool {
        // A large cache grows by an eighth at a time, a small one by a slab.
        let mut budget = None;
        loop {
            let slabs = {
                let _masked = ground.masked::<C>();
                let depot = self.depot(ground, kind.id, node);
                shelf::fill(&depot, &ground.pages, kind, sheaf);
                depot.slabs()
            };
            let left = budget.unwrap_or(slabs / 8);
            if sheaf.is_full() || (left == 0 && !sheaf.is_empty()) {
                return true;
            }
            if !self.grow::<C, D>(ground, kind, node) {
                return !sheaf.is_empty();
            }
            budget = Some(left.saturating_sub(1));
        }
    }

    /// Takes what `column` of this CPU's row holds, if that is `expected`, for itself.
    fn detach<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool {
        ground
            .local
            .replace::<C>(self.rows, cpu, column, expected, new)
    }

    /// The spare sheaf of this CPU, taken out of the row.
    fn take_spare<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
    ) -> Option<Sheaf> {
        let column = self.column(kind.id, SPARE);
        let (cpu, spare) = ground.local.read::<C>(self.rows, column);
        if spare == 0 || !self.detach::<C, D>(ground, cpu, column, spare, 0) {
            return None;
        }
        // SAFETY: `sheaf-in-one-place`: it was in the row, and this caller took it out.
        Some(unsafe { Sheaf::at(spare) })
    }

    /// Puts a sheaf where this CPU's spare was, or else into the barn.
    fn keep_as_spare<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        sheaf: Sheaf,
    ) {
        let column = self.column(kind.id, SPARE);
        let (cpu, spare) = ground.local.read::<C>(self.rows, column);
        if spare == 0 && self.detach::<C, D>(ground, cpu, column, 0, sheaf.address()) {
            return;
        }
        self.to_barn::<C, D>(ground, kind, sheaf);
    }

    /// Puts a sheaf into the barn of the nearest node, and from there what is too much into the slabs.
    fn to_barn<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        sheaf: Sheaf,
    ) {
        let surplus = {
            let _masked = ground.masked::<C>();
            let depot = self.depot(ground, kind.id, ground.node_here());
            if sheaf.is_empty() {
                depot.put_empty(sheaf);
                depot.surplus_empty()
            } else if depot.has_room(kind) {
                depot.put_full(sheaf);
                None
            } else {
                Some(sheaf)
            }
        };
        if let Some(sheaf) = surplus {
            self.empty_out::<C, D>(ground, kind, &sheaf);
            self.drop_sheaf(ground, sheaf);
        }
    }

    /// Puts all that a sheaf holds back into slabs.
    fn empty_out<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        sheaf: &Sheaf,
    ) {
        while let Some(first) = sheaf.pop() {
            let node = ground.node_of(ground.pointer(first));
            let mut gone = shelf::Gone::default();
            {
                let _masked = ground.masked::<C>();
                let depot = self.depot(ground, kind.id, node);
                depot.count_flush();
                let mut object = Some(first);
                while let Some(address) = object.take() {
                    let pointer = ground.pointer(address);
                    if ground.node_of(pointer) != node {
                        // The next round's.
                        sheaf.push(address);
                        break;
                    }
                    match ground.find(kind, pointer) {
                        Ok((head, index)) => {
                            shelf::give(&depot, &ground.pages, kind, head, index, &mut gone);
                        }
                        Err(_) => depot.count_refused(),
                    }
                    object = sheaf.pop();
                }
            }
            gone.each(&ground.pages, |head| ground.give_pages(kind, head));
        }
    }

    /// A full sheaf in exchange for an empty one, or an empty one filled.
    fn full_sheaf<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        empty: Option<Sheaf>,
    ) -> Option<Sheaf> {
        let node = ground.node_here();
        let empty = {
            let _masked = ground.masked::<C>();
            let depot = self.depot(ground, kind.id, node);
            if let Some(full) = depot.take_full() {
                if let Some(empty) = empty {
                    depot.put_empty(empty);
                }
                return Some(full);
            }
            empty.or_else(|| depot.take_empty())
        };
        let sheaf = match empty {
            Some(sheaf) => sheaf,
            None => self.new_sheaf(ground, kind)?,
        };
        if self.fill::<C, D>(ground, kind, node, &sheaf) {
            return Some(sheaf);
        }
        self.to_barn::<C, D>(ground, kind, sheaf);
        None
    }

    /// An empty sheaf in exchange for a cold full one.
    fn empty_sheaf<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        cold: Option<Sheaf>,
    ) -> Option<Sheaf> {
        let (empty, surplus) = {
            let _masked = ground.masked::<C>();
            let depot = self.depot(ground, kind.id, ground.node_here());
            let surplus = match cold {
                Some(cold) if depot.has_room(kind) => {
                    depot.put_full(cold);
                    None
                }
                cold => cold,
            };
            match surplus {
                // Emptied below, it serves as the empty one.
                Some(cold) => (None, Some(cold)),
                None => (depot.take_empty(), None),
            }
        };
        if let Some(cold) = surplus {
            self.empty_out::<C, D>(ground, kind, &cold);
            return Some(cold);
        }
        empty.or_else(|| self.new_sheaf(ground, kind))
    }

    /// Objects of another node: gathered in a sheaf of their own, and put into their slabs when it is full.
    fn put_away<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        let column = self.column(kind.id, AWAY);
        if ground.local.push::<C>(self.rows, column, object) {
            return Ok(());
        }
        let (cpu, top) = ground.local.read::<C>(self.rows, column);
        let fresh = self.empty_sheaf::<C, D>(ground, kind, None);
        let Some(fresh) = fresh else {
            return self.give_single::<C, D>(ground, kind, object);
        };
        fresh.push(object.as_ptr().expose_provenance());
        if self.detach::<C, D>(ground, cpu, column, top, fresh.top()) {
            if let Some(full) = Sheaf::of_row(top) {
                self.empty_out::<C, D>(ground, kind, &full);
                self.to_barn::<C, D>(ground, kind, full);
            }
        } else {
            self.empty_out::<C, D>(ground, kind, &fresh);
            self.to_barn::<C, D>(ground, kind, fresh);
        }
        Ok(())
    }

    /// Takes the sheaf out of `column` of this CPU's row and leaves it closed.
    fn close<C: Caller, D: SlabDesign<'m>>(
        &self,
        ground: &Ground<'m, D>,
        column: usize,
    ) -> Option<Sheaf> {
        loop {
            let (cpu, top) = ground.local.read::<C>(self.rows, column);
            if top == 0 || top == closed() {
                return None;
            }
            if self.detach::<C, D>(ground, cpu, column, top, closed()) {
                return Sheaf::of_row(top);
            }
        }
    }
}

impl<'m, K, D> Queues<'m, D> for Sheaves<'m, K>
where
    K: RawLock,
    D: SlabDesign<'m>,
{
    const SHAPE: Shape = Shape::Bitmap;
    const SIZES: Sizes = Sizes::Fine;
    const NAME: &'static str = "brickyard";

    fn bytes(plan: &SlabPlan, nodes: usize) -> usize {
        let rows = plan.cpus << Self::row_shift(plan, nodes);
        let depots = (plan.caches + 1) * nodes * size_of::<Guarded<K>>();
        // A row begins with a line.
        rows + depots + 2 * align_of::<Guarded<K>>()
    }

    fn new(plan: &SlabPlan, nodes: usize, memory: &'m mut [MaybeUninit<u8>]) -> Option<Self> {
        let row_shift = Self::row_shift(plan, nodes);
        let depots = (plan.caches + 1) * nodes;
        let guarded = || Guarded(Locked::new(Depot::new()));
        let (depots, rest) = place(memory, depots, guarded)?;
        let words = (plan.cpus << row_shift) / WORD_BYTES;
        // Behind the depots a line begins.
        let (words, _) = place(rest, words, || AtomicUsize::new(0))?;
        let columns_shift = Self::columns_shift(nodes);
        for (i, word) in words.iter().enumerate() {
            if i & ((1 << columns_shift) - 1) != SPARE {
                // Relaxed: nobody knows of it yet.
                word.store(closed(), Ordering::Relaxed);
            }
        }
        Some(Self {
            rows: Rows::new(words, row_shift),
            columns_shift,
            depots,
            nodes,
        })
    }

    fn open(&self, ground: &Ground<'m, D>, kind: &Kind) {
        for node in 0..self.nodes {
            self.depot(ground, kind.id, node).begin();
        }
    }

    #[inline(always)]
    fn handle(&self, cache: CacheId) -> usize {
        self.column(cache, MAIN)
    }

    #[inline(always)]
    fn hit<C: Caller>(&self, ground: &Ground<'m, D>, handle: usize) -> Option<NonNull<u8>> {
        ground.local.pop::<C>(self.rows, handle)
    }

    #[inline(always)]
    unsafe fn put<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        if self.nodes > 1 && ground.node_of(object) != ground.node_here() {
            return false;
        }
        ground.local.push::<C>(self.rows, handle, object)
    }

    fn miss<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind) -> Option<NonNull<u8>> {
        if kind.is_checked() || kind.id == BOOT_CACHE {
            return self.single::<C, D>(ground, kind);
        }
        let column = self.column(kind.id, MAIN);
        let (cpu, top) = ground.local.read::<C>(self.rows, column);
        let empty = words::sentinel(kind.geometry.capacity as usize);
        if cpu >= self.rows.rows() {
            return self.single::<C, D>(ground, kind);
        }
        if top != closed() && top % SHEAF_BYTES != empty {
            // Another CPU's row by now, or somebody else has filled it.
            if let Some(object) = ground.local.pop::<C>(self.rows, column) {
                return Some(object);
            }
        }
        let full = match self.take_spare::<C, D>(ground, kind) {
            Some(spare) if !spare.is_empty() => Some(spare),
            spare => self.full_sheaf::<C, D>(ground, kind, spare),
        };
        let Some(full) = full else {
            return self.single::<C, D>(ground, kind);
        };
        let object = full.pop()?;
        if (top == closed() || top % SHEAF_BYTES == empty)
            && self.detach::<C, D>(ground, cpu, column, top, full.top())
        {
            if let Some(old) = Sheaf::of_row(top) {
                self.keep_as_spare::<C, D>(ground, kind, old);
            }
        } else {
            self.to_barn::<C, D>(ground, kind, full);
        }
        Some(ground.pointer(object))
    }

    unsafe fn overflow<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        if kind.is_checked() || kind.id == BOOT_CACHE {
            return self.give_single::<C, D>(ground, kind, object);
        }
        // On the slow path there is time to look whether it is an object at all.
        ground.find(kind, object)?;
        let column = self.column(kind.id, MAIN);
        let (cpu, top) = ground.local.read::<C>(self.rows, column);
        if cpu >= self.rows.rows() {
            return self.give_single::<C, D>(ground, kind, object);
        }
        if self.nodes > 1 && ground.node_of(object) != ground.node_here() {
            return self.put_away::<C, D>(ground, kind, object);
        }
        let is_full = top % SHEAF_BYTES == SHEAF_BYTES - WORD_BYTES;
        if !is_full && ground.local.push::<C>(self.rows, column, object) {
            return Ok(());
        }
        let fresh = match self.take_spare::<C, D>(ground, kind) {
            Some(spare) if spare.is_empty() => Some(spare),
            cold => self.empty_sheaf::<C, D>(ground, kind, cold),
        };
        let Some(fresh) = fresh else {
            return self.give_single::<C, D>(ground, kind, object);
        };
        fresh.push(object.as_ptr().expose_provenance());
        if is_full && self.detach::<C, D>(ground, cpu, column, top, fresh.top()) {
            if let Some(old) = Sheaf::of_row(top) {
                self.keep_as_spare::<C, D>(ground, kind, old);
            }
        } else {
            self.to_barn::<C, D>(ground, kind, fresh);
        }
        Ok(())
    }

    fn trim<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind) {
        // The spare is what has been left over since the last time.
        if let Some(spare) = self.take_spare::<C, D>(ground, kind) {
            self.empty_out::<C, D>(ground, kind, &spare);
            self.drop_sheaf(ground, spare);
        }
        self.shrink::<C>(ground, kind);
    }

    fn drain<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind) {
        let away = (self.nodes > 1).then(|| self.column(kind.id, AWAY));
        let sheaves = [
            self.close::<C, D>(ground, self.column(kind.id, MAIN)),
            self.take_spare::<C, D>(ground, kind),
            away.and_then(|away| self.close::<C, D>(ground, away)),
        ];
        for sheaf in sheaves.into_iter().flatten() {
            self.empty_out::<C, D>(ground, kind, &sheaf);
            self.drop_sheaf(ground, sheaf);
        }
    }

    fn shrink<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind) {
        for node in 0..self.nodes {
            loop {
                let sheaf = {
                    let _masked = ground.masked::<C>();
                    let depot = self.depot(ground, kind.id, node);
                    depot.take_full().or_else(|| depot.take_empty())
                };
                let Some(sheaf) = sheaf else { break };
                self.empty_out::<C, D>(ground, kind, &sheaf);
                self.drop_sheaf(ground, sheaf);
            }
        }
    }

    fn numbers(&self, ground: &Ground<'m, D>, kind: &Kind, numbers: &mut CacheNumbers) {
        for node in 0..self.nodes {
            let _masked = ground.masked::<Everywhere>();
            self.depot(ground, kind.id, node).add_to(numbers);
        }
    }

    fn in_slab(&self, ground: &Ground<'m, D>, kind: &Kind, head: usize, index: usize) -> bool {
        let address = ground.pages.address_of(head);
        let _masked = ground.masked::<Everywhere>();
        let _depot = self.depot(ground, kind.id, ground.node_of(ground.pointer(address)));
        shelf::is_free(&ground.pages, head, index)
    }
}

/// Rows and depots are words; what they point at is memory of the source.
#[allow(dead_code, reason = "asserts what the compiler derives")]
const fn is_sync<K: RawLock>(_: PhantomData<Sheaves<'_, K>>) {
    const fn sync<T: Sync>() {}
    sync::<Guarded<K>>();
}
