//! Slabs: objects smaller than pages, out of pages.
//!
//! Two designs of the same caches. [`Sheafed`], the default, keeps free objects in arrays per CPU; `Slqb2008` is Piggin's queued slab allocator of
//! 2008 as it was designed, with lists that run through the objects. Both take pages from a [`PageSource`], of which the page allocator is one ([`ZonePages`]), and reach what is a
//! CPU's own through [`Local`].
//!
//! | file | what it holds |
//! |---|---|
//! | `source.rs`, `pages.rs` | where pages come from; what is known of each |
//! | `local.rs`, `counted.rs` | a CPU's own words; who uses a cache; the same with hits counted |
//! | `geometry.rs`, `sizes.rs` | the shape of slabs; general sizes |
//! | `kind.rs`, `ground.rs`, `queues.rs`, `design.rs` | a cache's rules; what all designs stand on, what they answer, their parts |
//! | `owned.rs`, `counts.rs` | what both designs keep behind a list's lock: slabs with free objects; counters |
//! | `sheaf/` | the default |
//! | `slqb/` | `slqb-2008` |
//! | `cache.rs`, `typed.rs`, `general.rs`, `reserve.rs` | caches as their users see them |
//! | `debug/` | what is checked on request |
//! | `stats.rs` | counts, and the text of slabinfo |
//!
//! **Bootstrap**: all that slabs need lies in memory that the embedder gives to [`Slabs::new`]: rows of words for the CPUs, the tables of pages, room for as many caches as planned.
//! The one cache that slabs themselves need (of sheaves) is made there first, and served past all queues. There are no phases: when `new` returns, everything works.
//! Memory grows linearly with CPUs, with nodes and with caches.
//!
//! ```
//! use brickyard_slab::{CacheSpec, Sheafed, SlabPlan, Slabs, TaskOnly};
//! # use brickyard_slab::{Pinned, Tables};
//! # use brickyard::OneCpu;
//! # mod support { include!("../tests/support/pages.rs"); }
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let source = support::TestPages::new(64, 1);
//! # let plan = SlabPlan::new(8, 1);
//! # let mut memory = vec![core::mem::MaybeUninit::uninit(); Slabs::<Sheafed<&support::TestPages, Pinned<OneCpu>>>::bytes(&plan, 1)];
//! # let mut tables = vec![core::mem::MaybeUninit::uninit(); Tables::bytes(64)];
//! // `source` gives pages; `memory` and `tables` are the embedder's.
//! // SAFETY: one thread uses these slabs.
//! let cpus = unsafe { Pinned::new(OneCpu) };
//! let slabs = Slabs::<Sheafed<_, _>>::new(plan, &source, cpus, &mut memory, Tables::Any(&mut tables))?;
//! let inodes = slabs.cache::<TaskOnly>(CacheSpec::new("inode", 600).reclaimable())?;
//! let object = inodes.alloc()?;
//! // SAFETY: the object came from this cache, and is not used any more.
//! unsafe { inodes.free(object)? };
//! # Ok(()) }
//! ```

#![no_std]

#[cfg(test)]
extern crate std;

mod cache;
mod counted;
mod counts;
pub mod debug;
mod design;
mod error;
mod general;
pub mod geometry;
mod ground;
mod kind;
mod local;
mod owned;
mod pages;
mod queues;
mod reserve;
pub mod sheaf;
pub mod sizes;
pub mod slqb;
mod source;
mod stats;
mod typed;

use core::error::Error;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use brickyard_sync::{Lease, OnceSlot, PATIENCE, place};

pub use cache::{Leak, RawCache, Remains};
pub use counted::{Counted, Hits};
pub use debug::{Checks, DebugRule, Finding, RuleText, Rules, Track};
pub use design::{Sheafed, SlabDesign, Slqb2008};
pub use error::{CacheError, FreeFault, SlabError};
pub use general::General;
pub use ground::Ground;
pub use kind::{CacheSpec, Constructor, Kind};
pub use local::{Caller, Everywhere, Local, Pinned, Pushed, Rows, TaskOnly};
pub use pages::{CacheId, MAX_PAGES, Pages, SlabRecord, Tables, Zeroed};
pub use queues::{Queues, Whereabouts};
pub use reserve::Reserve;
pub use slqb::FreePointers;
pub use source::{PageAsk, PageSource, ZonePages};
pub use stats::{CacheNumbers, SlabInfo, Waste};
pub use typed::{Cache, Object};

use geometry::Geometry;
use kind::Callers;
use pages::PAGE_SHIFTS;

/// The most caches of one system: their numbers are bytes, 0 is none, and the first is the cache of sheaves.
pub const MAX_CACHES: usize = 254;

/// The cache that slabs need themselves.
pub(crate) const BOOT_CACHE: CacheId = 1;

/// The values that a system of slabs is built with.
#[derive(Debug, Clone, Copy)]
pub struct SlabPlan {
    /// How many caches there can be at a time, at most [`MAX_CACHES`]. [`Slabs::general`] needs 40 (15 in `slqb-2008`).
    pub caches: usize,
    /// How many CPUs have queues of their own.
    pub cpus: usize,
    /// What is checked in which caches, beside what their specifications ask for.
    pub rules: Rules,
    /// Who is told of what checks find. It must not use the cache that the finding is about.
    /// It should not panic: then the objects and pages that the caller has in hand are lost, and what was lost before by
    /// a broken link may not be counted.
    pub report: fn(&Finding),
    /// How `slqb-2008` writes the links of free objects.
    pub free_pointers: FreePointers,
    /// Random bits, if there are some, for a secret that links are encoded with.
    pub secret: usize,
}

impl SlabPlan {
    /// A plan without rules, whose findings nobody is told of.
    #[must_use]
    pub const fn new(caches: usize, cpus: usize) -> Self {
        Self {
            caches,
            cpus,
            rules: Rules::NONE,
            report: |_| {},
            free_pointers: FreePointers::Encoded,
            secret: 0,
        }
    }

    /// The same, with these checks, and findings told to `report`.
    #[must_use]
    pub const fn debug(self, rules: &'static [DebugRule], report: fn(&Finding)) -> Self {
        Self {
            rules: Rules::List(rules),
            report,
            ..self
        }
    }

    /// The same, with the checks of a text from outside, and findings told to `report`.
    #[must_use]
    pub const fn debug_text(self, rules: RuleText, report: fn(&Finding)) -> Self {
        Self {
            rules: Rules::Text(rules),
            report,
            ..self
        }
    }

    /// All caches, the one of the slabs themselves included.
    const fn numbers(&self) -> usize {
        self.caches.saturating_add(2)
    }
}

/// Why a system of slabs could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildError {
    /// More caches than there are numbers.
    TooManyCaches {
        /// So many were planned.
        planned: usize,
    },
    /// The memory is too small.
    Memory {
        /// What is needed, in bytes, alignment included.
        needed: usize,
    },
    /// The memory for the tables of pages is too small.
    Tables {
        /// What is needed, in bytes, alignment included.
        needed: usize,
    },
    /// [`Slqb2008`] needs a platform that keeps callers on their CPU.
    Unpinned,
    /// The source has more pages than slabs can number ([`MAX_PAGES`]).
    TooManyPages {
        /// So many it has.
        pages: usize,
    },
    /// The source's pages are smaller or larger than slabs can be made of.
    PageSize {
        /// log2 of their bytes.
        page_shift: u32,
    },
    /// Rows of one's own are too small.
    Rows {
        /// The bytes that each must have, rounded up to a power of two.
        needed: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyCaches { planned } => {
                write!(f, "{planned} caches planned: at most {MAX_CACHES} can be")
            }
            Self::Memory { needed: usize::MAX } => {
                f.write_str("slabs for this plan need more memory than can be: plan fewer CPUs")
            }
            Self::Memory { needed } => write!(f, "slabs need {needed} bytes of memory"),
            Self::Tables { needed } => write!(f, "the tables of pages need {needed} bytes"),
            Self::TooManyPages { pages } => write!(
                f,
                "the source has {pages} pages, and slabs can number {MAX_PAGES}: give it a shorter \
                 span, or larger pages, or build slabs over each of several sources"
            ),
            Self::PageSize { page_shift } => write!(
                f,
                "the source's pages have 2^{page_shift} bytes: slabs are made of pages of 1 KiB to \
                 64 KiB"
            ),
            Self::Rows { needed } => write!(
                f,
                "a CPU's row needs {needed} bytes: make each as long, a power of two"
            ),
            Self::Unpinned => {
                f.write_str("slqb-2008 needs a platform that keeps callers on their CPU")
            }
        }
    }
}

impl Error for BuildError {}

/// All caches over one source of pages. See the [crate](self).
pub struct Slabs<'m, D: SlabDesign<'m>> {
    pub(crate) ground: Ground<'m, D>,
    pub(crate) queues: D::Queues,
    pub(crate) plan: SlabPlan,
}

impl<'m, D: SlabDesign<'m>> fmt::Debug for Slabs<'m, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slabs")
            .field("design", &<D::Queues as Queues<'m, D>>::NAME)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// Bytes of memory that [`Slabs::new`] needs, beside the tables of pages ([`Tables::bytes`]).
    /// `usize::MAX` if they are more than can be.
    #[must_use]
    pub fn bytes(plan: &SlabPlan, nodes: usize) -> usize {
        let kinds = plan
            .numbers()
            .saturating_mul(size_of::<OnceSlot<Kind>>())
            .saturating_add(align_of::<OnceSlot<Kind>>());
        kinds.saturating_add(D::Queues::bytes(plan, nodes))
    }

    /// Bytes of memory that [`Slabs::with_rows`] needs, beside the rows and the tables of pages.
    #[must_use]
    pub fn bytes_beside_rows(plan: &SlabPlan, nodes: usize) -> usize {
        match Self::bytes(plan, nodes) {
            usize::MAX => usize::MAX,
            bytes => bytes - plan.cpus * Self::row_bytes(plan, nodes),
        }
    }

    /// Bytes that a CPU's row must have, a power of two; 0 in a design without rows.
    #[must_use]
    pub fn row_bytes(plan: &SlabPlan, nodes: usize) -> usize {
        D::Queues::row_bytes(plan, nodes)
    }

    /// Slabs over `source`.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        memory: &'m mut [MaybeUninit<u8>],
        tables: Tables<'m>,
    ) -> Result<Self, BuildError> {
        let needed = Self::bytes(&plan, source.nodes());
        Self::build(plan, source, local, (None, memory, needed), tables)
    }

    /// The same with rows of the caller's making, one for each CPU, for who needs them a certain
    /// distance apart: they are these slabs' from now on. A design without rows (`slqb-2008`) has
    /// no use for them.
    ///
    /// ```
    /// # use brickyard_slab::{Pinned, Sheafed, SlabPlan, Slabs, Tables};
    /// # use brickyard::OneCpu;
    /// # mod support { include!("../tests/support/pages.rs"); }
    /// # use support::TestPages;
    /// use brickyard_slab::Rows;
    /// use brickyard::sync::AtomicUsize;
    /// # fn main() -> Result<(), brickyard_slab::BuildError> {
    /// type Design<'s> = Sheafed<'s, &'s TestPages, Pinned<OneCpu>>;
    /// # let source = TestPages::new(64, 1);
    /// # let plan = SlabPlan::new(8, 1);
    /// # let bytes = Slabs::<Design<'_>>::bytes_beside_rows(&plan, 1);
    /// # let mut memory = vec![core::mem::MaybeUninit::uninit(); bytes];
    /// # let mut tables = vec![core::mem::MaybeUninit::uninit(); Tables::bytes(64)];
    /// # let tables = Tables::Any(&mut tables);
    /// # // SAFETY: one thread uses these slabs.
    /// # let cpus = unsafe { Pinned::new(OneCpu) };
    /// let mut words: Vec<AtomicUsize> = (0..512).map(|_| AtomicUsize::new(0)).collect();
    /// let rows = Rows::new(&mut words, 12)?;
    /// let memory = &mut memory;
    /// let slabs = Slabs::<Design<'_>>::with_rows(plan, &source, cpus, rows, memory, tables)?;
    /// assert_eq!(slabs.queues().rows().row_shift(), 12);
    /// # Ok(()) }
    /// ```
    ///
    /// Rows are one system's. The second of two does not compile:
    /// ```compile_fail,E0382
    /// # use brickyard_slab::{Rows, SlabDesign, SlabPlan, Slabs, Tables};
    /// # use core::mem::MaybeUninit;
    /// fn two<'m, D: SlabDesign<'m>>(
    ///     plan: SlabPlan,
    ///     [one, two]: [D::Source; 2],
    ///     [here, there]: [D::Local; 2],
    ///     rows: Rows<'m>,
    ///     [near, far]: [&'m mut [MaybeUninit<u8>]; 2],
    ///     [these, those]: [Tables<'m>; 2],
    /// ) {
    ///     let first = Slabs::<D>::with_rows(plan, one, here, rows, near, these);
    ///     let second = Slabs::<D>::with_rows(plan, two, there, rows, far, those);
    /// }
    /// ```
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn with_rows(
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        rows: Rows<'m>,
        memory: &'m mut [MaybeUninit<u8>],
        tables: Tables<'m>,
    ) -> Result<Self, BuildError> {
        let needed = Self::bytes_beside_rows(&plan, source.nodes());
        Self::build(plan, source, local, (Some(rows), memory, needed), tables)
    }

    fn build(
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        (rows, memory, needed): (Option<Rows<'m>>, &'m mut [MaybeUninit<u8>], usize),
        tables: Tables<'m>,
    ) -> Result<Self, BuildError> {
        if plan.caches > MAX_CACHES {
            return Err(BuildError::TooManyCaches {
                planned: plan.caches,
            });
        }
        if <D::Queues as Queues<'m, D>>::NEEDS_PIN && !<D::Local as Local>::PINS {
            return Err(BuildError::Unpinned);
        }
        if let Some(rows) = &rows {
            let needed = Self::row_bytes(&plan, source.nodes());
            if 1 << rows.row_shift() < needed {
                return Err(BuildError::Rows { needed });
            }
        }
        let (pages, page_shift) = (source.pages(), source.page_shift());
        if pages > MAX_PAGES {
            return Err(BuildError::TooManyPages { pages });
        }
        if !PAGE_SHIFTS.contains(&page_shift) {
            return Err(BuildError::PageSize { page_shift });
        }
        let short = BuildError::Memory { needed };
        // No product or sum below can be too large, then.
        if needed == usize::MAX {
            return Err(short);
        }
        let (kinds, rest) = place(memory, plan.numbers(), OnceSlot::new).ok_or(short)?;
        let queues = D::Queues::new(&plan, source.nodes(), rows, rest).ok_or(short)?;
        let pages = Pages::new(&source, tables).ok_or(BuildError::Tables {
            needed: Tables::bytes(pages),
        })?;
        let slabs = Self {
            ground: Ground {
                source,
                local,
                pages,
                kinds,
                report: plan.report,
                of: PhantomData,
            },
            queues,
            plan,
        };
        let sheaves = CacheSpec::new("sheaf", sheaf::SHEAF_BYTES).align(sheaf::SHEAF_BYTES);
        // Every slow path comes to it, whatever it masks.
        let boot = slabs.make::<Everywhere>(sheaves, BOOT_CACHE..=BOOT_CACHE);
        debug_assert!(boot.is_ok(), "the first cache: {boot:?}");
        Ok(slabs)
    }

    /// Makes a cache under the first free of these numbers.
    fn make<C: Caller>(
        &self,
        mut spec: CacheSpec,
        ids: core::ops::RangeInclusive<CacheId>,
    ) -> Result<&'m Kind, CacheError> {
        if ids.start() > &BOOT_CACHE {
            spec.checks = spec.checks.with(self.plan.rules.checks_of(spec.name));
        }
        let shape = <D::Queues as Queues<'m, D>>::SHAPE;
        let place = debug::Place::of(shape, &spec);
        let page_bytes = 1 << self.ground.source.page_shift();
        let geometry = Geometry::new(shape, place.bytes, place.align, page_bytes)?;
        for id in ids {
            let kind = Kind {
                id,
                spec,
                callers: Callers::of::<C>(),
                geometry,
                before: place.before,
                link: place.link,
            };
            if let Ok(kind) = self.ground.kinds[usize::from(id)].set(kind) {
                self.queues.open(&self.ground, kind);
                return Ok(kind);
            }
        }
        Err(CacheError::TooMany {
            planned: self.plan.caches,
            wanted: 1,
        })
    }

    /// Takes a cache back that nobody has been given. A trim may just have come by, and is waited for [`PATIENCE`] times;
    /// where it stands still so long, also because it was interrupted, the number stays taken, by an empty cache that
    /// nobody can use. It comes to this only where general sizes meet a number that is taken already.
    fn unmake(&self, id: CacheId) {
        let slot = &self.ground.kinds[usize::from(id)];
        let closed = (0..PATIENCE).any(|_| {
            let closed = slot.close();
            if !closed {
                self.ground.relax();
            }
            closed
        });
        if closed {
            // SAFETY: `one-handle`: there is no handle yet, and the slot is closed.
            unsafe { slot.clear() };
        }
    }

    /// The numbers that users' caches have.
    fn user_ids(&self) -> core::ops::RangeInclusive<CacheId> {
        let first = BOOT_CACHE + 1;
        first..=(usize::from(BOOT_CACHE) + self.plan.caches) as CacheId
    }

    /// Makes a cache, for callers of kind `C`. It lives until [`RawCache::destroy`], or as long as these slabs do.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn cache<C: Caller>(&self, spec: CacheSpec) -> Result<RawCache<'_, 'm, D, C>, CacheError> {
        let kind = self.make::<C>(spec, self.user_ids())?;
        Ok(RawCache::of(self, kind))
    }

    /// Makes a cache of values of type `T`.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn typed<T, C: Caller>(
        &self,
        name: &'static str,
    ) -> Result<Cache<'_, 'm, T, D, C>, CacheError> {
        let spec = CacheSpec::new(name, size_of::<T>().max(1)).align(align_of::<T>());
        Ok(Cache::of(self.cache(spec)?))
    }

    /// Makes a cache for each general size.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn general<C: Caller>(&self) -> Result<General<'_, 'm, D, C>, CacheError> {
        General::new(self)
    }

    /// What the tables know of pages.
    #[must_use]
    pub const fn pages(&self) -> &Pages<'m> {
        &self.ground.pages
    }

    /// The design's own state, for a fast path of one's own.
    #[must_use]
    pub const fn queues(&self) -> &D::Queues {
        &self.queues
    }

    /// Where pages come from.
    #[must_use]
    pub const fn source(&self) -> &D::Source {
        &self.ground.source
    }

    /// How a CPU reaches what is its own.
    #[must_use]
    pub const fn local(&self) -> &D::Local {
        &self.ground.local
    }

    /// The caches that the caller may come to: an interrupt leaves caches for tasks alone. None of them is destroyed while it is looked at.
    fn kinds(&self) -> impl Iterator<Item = Lease<'m, Kind>> {
        let leases = self.ground.kinds.iter().filter_map(OnceSlot::lease);
        leases.filter(|kind| self.ground.may_touch(kind))
    }

    /// Calls `work` for each cache that the caller may come to, as the cache's own callers would.
    fn each_kind(&self, work: impl Fn(&Kind, Callers)) {
        for kind in self.kinds() {
            work(&kind, kind.callers);
        }
    }

    /// Gives back some of what has lain unused on this CPU since the last call, cache by cache. To be called on every CPU every few seconds; SLQB did every 3 s. An interrupt leaves caches for tasks alone.
    pub fn trim(&self) {
        let Self { ground, queues, .. } = self;
        self.each_kind(|kind, callers| match callers {
            Callers::Tasks => queues.trim::<TaskOnly>(ground, kind),
            Callers::All => queues.trim::<Everywhere>(ground, kind),
        });
    }

    /// Gives back all that lies in this CPU's queues. An interrupt leaves caches for tasks alone.
    pub fn drain(&self) {
        let Self { ground, queues, .. } = self;
        self.each_kind(|kind, callers| match callers {
            Callers::Tasks => queues.drain::<TaskOnly>(ground, kind),
            Callers::All => queues.drain::<Everywhere>(ground, kind),
        });
    }

    /// Gives back all that lies in queues which CPUs share. An interrupt leaves caches for tasks alone.
    pub fn shrink(&self) {
        let Self { ground, queues, .. } = self;
        self.each_kind(|kind, callers| match callers {
            Callers::Tasks => queues.shrink::<TaskOnly>(ground, kind),
            Callers::All => queues.shrink::<Everywhere>(ground, kind),
        });
    }

    /// Statistics of every cache, in the order of their numbers; the slabs' own is the first. An interrupt leaves caches for tasks alone, whose locks it may have
    /// interrupted.
    pub fn numbers(&self) -> impl Iterator<Item = CacheNumbers> {
        self.kinds().map(|kind| self.numbers_of(&kind))
    }

    pub(crate) fn numbers_of(&self, kind: &Kind) -> CacheNumbers {
        let page_bytes = 1 << self.ground.source.page_shift();
        let mut numbers = CacheNumbers::of(kind, page_bytes);
        if self.ground.may_touch(kind) {
            self.queues.numbers(&self.ground, kind, &mut numbers);
        }
        numbers
    }
}
