//! A system of slabs: all caches over one source of pages. How it is built, and what is done for
//! all of its caches at once.

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::RangeInclusive;

use brickyard::{Platform, Zone};
use brickyard_sync::{Lease, OnceSlot, PATIENCE, SlotAccess, place};

use crate::backend::Backend;
use crate::cache_info::{CacheInfo, CacheSpec};
use crate::caller::{Caller, Callers, Everywhere, TaskOnly};
use crate::design::{BackendOf, SlabDesign};
use crate::error::{BuildError, CacheError};
use crate::homes::Homes;
use crate::layout::{BOOT_CACHE, CacheId, MAX_CACHES, MAX_PAGES, PAGE_SHIFTS, SHEAF_BYTES};
use crate::object_checks::ObjectLayout;
use crate::pages::{PageCaches, Pages, Tables};
use crate::plan::SlabPlan;
use crate::rows::Rows;
use crate::source::PageSource;
use crate::statistics::CacheNumbers;
use crate::zone::{DirectMap, DirectMapped, ZonePages};

/// The memory of slabs. Rows and tables may lie apart from the rest.
#[derive(Debug)]
pub struct Parts<'m> {
    /// Memory for everything that the other fields do not hold.
    pub memory: &'m mut [MaybeUninit<u8>],
    /// A row for each CPU, for embedders that need rows a certain distance apart. The rows belong
    /// to these slabs from now on. A design without rows does not use them. See
    /// [`Slabs::bytes_beside_rows`].
    pub rows: Option<Rows<'m>>,
    /// Memory of [`Tables::bytes`]. The rest then needs the bytes of a plan of no pages.
    pub tables: Option<Tables<'m>>,
    /// The home of each page, if the plan says so ([`SlabPlan::with_homes`]).
    pub homes: Option<Homes<'m>>,
}

impl<'m> Parts<'m> {
    /// All of it in one piece.
    pub const fn of(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self {
            memory,
            rows: None,
            tables: None,
            homes: None,
        }
    }
}

/// The type of a method that a design runs for a cache.
type CacheWork<'m, D> = fn(&D, &BackendOf<'m, D>, &CacheInfo);

/// The caches, the tables of pages, their homes, the design's state.
type SlabParts<'m, D> = (&'m [OnceSlot<CacheInfo>], Pages<'m>, Option<Homes<'m>>, D);

/// All caches over one source of pages. See the [crate].
pub struct Slabs<'m, D: SlabDesign<'m>> {
    pub(crate) backend: BackendOf<'m, D>,
    pub(crate) queues: D,
    pub(crate) plan: SlabPlan,
}

impl<'m, D: SlabDesign<'m>> fmt::Debug for Slabs<'m, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slabs")
            .field("design", &D::NAME)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// Returns the bytes of memory that [`Slabs::new`] needs for `plan`, which says how many pages
    /// and nodes there are. `usize::MAX` if the number is too large for a `usize`. A constant where
    /// the plan is one.
    #[must_use]
    pub const fn bytes(plan: &SlabPlan) -> usize {
        let caches = plan
            .numbers()
            .saturating_mul(size_of::<OnceSlot<CacheInfo>>())
            .saturating_add(align_of::<OnceSlot<CacheInfo>>());
        caches
            .saturating_add(D::FOOTPRINT.bytes(plan))
            .saturating_add(Tables::bytes(plan.pages))
    }

    /// Returns the bytes that [`Slabs::new`] needs without the CPUs' rows, for when these are
    /// [`Parts::rows`].
    #[must_use]
    pub const fn bytes_beside_rows(plan: &SlabPlan) -> usize {
        match Self::bytes(plan) {
            usize::MAX => usize::MAX,
            bytes => bytes - plan.cpus * Self::row_bytes(plan),
        }
    }

    /// Returns the bytes that a CPU's row must have, a power of two; 0 in a design without rows.
    #[must_use]
    pub const fn row_bytes(plan: &SlabPlan) -> usize {
        D::FOOTPRINT.row_bytes(plan)
    }

    /// Makes slabs over `source`, with all that they keep in one piece of memory of
    /// [`Slabs::bytes`].
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, BuildError> {
        Self::in_parts(plan, source, local, Parts::of(memory))
    }

    /// Makes slabs with some of their memory elsewhere: see [`Parts`].
    ///
    /// ```
    /// # use brickyard_slab::{Pinned, Parts, Sheafed, SlabPlan, Slabs};
    /// # use brickyard::OneCpu;
    /// # mod support { include!("../tests/support/pages.rs"); }
    /// # use support::TestPages;
    /// use brickyard_slab::Rows;
    /// use brickyard::sync::AtomicUsize;
    /// # fn main() -> Result<(), brickyard_slab::BuildError> {
    /// type Design<'s> = Sheafed<'s, &'s TestPages, Pinned<OneCpu>>;
    /// # let source = TestPages::new(64, 1);
    /// # let plan = SlabPlan::new(8, 1).pages(64);
    /// # let bytes = Slabs::<Design<'_>>::bytes_beside_rows(&plan);
    /// # let mut memory = vec![core::mem::MaybeUninit::uninit(); bytes];
    /// # // SAFETY: one thread uses these slabs.
    /// # let cpus = unsafe { Pinned::new(OneCpu) };
    /// let mut words: Vec<AtomicUsize> = (0..512).map(|_| AtomicUsize::new(0)).collect();
    /// let rows = Rows::new(&mut words, 12)?;
    /// let parts = Parts { rows: Some(rows), ..Parts::of(&mut memory) };
    /// let slabs = Slabs::<Design<'_>>::in_parts(plan, &source, cpus, parts)?;
    /// assert_eq!(slabs.queues().rows().row_shift(), 12);
    /// # Ok(()) }
    /// ```
    ///
    /// Rows belong to one system. The second system here does not compile:
    /// ```compile_fail,E0382
    /// # use brickyard_slab::{Parts, Rows, SlabDesign, SlabPlan, Slabs};
    /// # use core::mem::MaybeUninit;
    /// fn two<'m, D: SlabDesign<'m>>(
    ///     plan: SlabPlan,
    ///     [one, two]: [D::Source; 2],
    ///     [here, there]: [D::Local; 2],
    ///     rows: Rows<'m>,
    ///     [near, far]: [&'m mut [MaybeUninit<u8>]; 2],
    /// ) {
    ///     let near = Parts { rows: Some(rows), ..Parts::of(near) };
    ///     let first = Slabs::<D>::in_parts(plan, one, here, near);
    ///     let far = Parts { rows: Some(rows), ..Parts::of(far) };
    ///     let second = Slabs::<D>::in_parts(plan, two, there, far);
    /// }
    /// ```
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn in_parts(
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        parts: Parts<'m>,
    ) -> Result<Self, BuildError> {
        let plan = plan.over(&source);
        let made = Self::tables(&plan, &source, parts)?;
        let slabs = Self::of(plan, source, local, made);
        slabs.begin();
        Ok(slabs)
    }

    /// Makes slabs in `place`, so that they never lie on the stack. All else is as in
    /// [`Slabs::new`].
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new_in<'p>(
        place: &'p mut MaybeUninit<Self>,
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<&'p mut Self, BuildError> {
        let plan = plan.over(&source);
        let made = Self::tables(&plan, &source, Parts::of(memory))?;
        let slabs = place.write(Self::of(plan, source, local, made));
        slabs.begin();
        Ok(slabs)
    }

    /// Checks the plan, and makes what lies in the embedder's memory.
    #[inline(never)]
    fn tables(
        plan: &SlabPlan,
        source: &D::Source,
        parts: Parts<'m>,
    ) -> Result<SlabParts<'m, D>, BuildError> {
        if plan.caches > MAX_CACHES {
            return Err(BuildError::TooManyCaches {
                planned: plan.caches,
            });
        }
        let Parts {
            memory,
            rows,
            tables,
            homes,
        } = parts;
        let row_bytes = Self::row_bytes(plan);
        if rows
            .as_ref()
            .is_some_and(|rows| 1 << rows.row_shift() < row_bytes)
        {
            return Err(BuildError::Rows { needed: row_bytes });
        }
        let (pages, page_shift) = (plan.pages, source.page_shift());
        if pages > MAX_PAGES {
            return Err(BuildError::TooManyPages { pages });
        }
        if !PAGE_SHIFTS.contains(&page_shift) {
            return Err(BuildError::PageSize { page_shift });
        }
        let count = homes.as_ref().map(Homes::count);
        if plan.homes != count.is_some() || count.is_some_and(|count| count < pages) {
            let needed = if plan.homes { pages } else { 0 };
            return Err(BuildError::Homes { needed });
        }
        let here = plan.pages(if tables.is_some() { 0 } else { pages });
        let needed = match rows {
            Some(_) => Self::bytes_beside_rows(&here),
            None => Self::bytes(&here),
        };
        let short = BuildError::Memory { needed };
        // Past this check no product or sum below can overflow.
        if memory.len() < needed {
            return Err(short);
        }
        let (caches, rest) = place(memory, plan.numbers(), OnceSlot::new).ok_or(short)?;
        let (pages, rest) = match tables {
            None => Pages::in_memory(source, rest).ok_or(short)?,
            Some(tables) => {
                let needed = Tables::bytes(pages);
                let pages = Pages::in_tables(source, tables);
                (pages.ok_or(BuildError::Tables { needed })?, rest)
            }
        };
        let queues = D::new(plan, rows, rest).ok_or(short)?;
        Ok((caches, pages, homes, queues))
    }

    // Inlined, so that the slabs are made where they stay.
    #[inline(always)]
    fn of(
        plan: SlabPlan,
        source: D::Source,
        local: D::Local,
        (caches, pages, homes, queues): SlabParts<'m, D>,
    ) -> Self {
        Self {
            backend: Backend {
                source,
                local,
                pages,
                homes,
                caches,
                report: plan.report,
            },
            queues,
            plan,
        }
    }

    /// Makes the cache that every slow path uses, whatever it masks.
    fn begin(&self) {
        let sheaves = CacheSpec::new("sheaf", SHEAF_BYTES).align(SHEAF_BYTES);
        let boot = self.make_as::<Everywhere>(sheaves, BOOT_CACHE..=BOOT_CACHE);
        debug_assert!(boot.is_ok(), "the first cache: {boot:?}");
    }

    /// Makes a cache under the first free number of `ids`, with the plan's checks for its name.
    pub(crate) fn make<C: Caller>(
        &self,
        mut spec: CacheSpec,
        ids: RangeInclusive<CacheId>,
    ) -> Result<&'m CacheInfo, CacheError> {
        spec.checks = spec.checks.with(self.plan.rules.checks_of(spec.name));
        self.make_as::<C>(spec, ids)
    }

    /// Makes a cache with no other checks than its own.
    #[inline(never)]
    fn make_as<C: Caller>(
        &self,
        spec: CacheSpec,
        ids: RangeInclusive<CacheId>,
    ) -> Result<&'m CacheInfo, CacheError> {
        let layout = ObjectLayout::of(&spec, D::tail_of(&spec));
        let page_bytes = 1 << self.backend.source.page_shift();
        let mut geometry = D::shape(layout.bytes, layout.align, page_bytes)?;
        if layout.before > 0 {
            // An object may begin behind the first page.
            geometry.marked = geometry.pages;
        }
        for id in ids {
            let info = CacheInfo {
                id,
                spec,
                callers: Callers::of::<C>(),
                geometry,
                before: layout.before,
                tail: layout.tail,
            };
            let slot = &self.backend.caches[usize::from(id)];
            let open = |info: &CacheInfo| self.queues.open(&self.backend, info);
            if let Ok(info) = slot.set_prepared(info, open) {
                return Ok(info);
            }
        }
        Err(CacheError::TooMany {
            planned: self.plan.caches,
            wanted: 1,
        })
    }

    /// Takes back a cache that nobody has been given yet. A trim may hold a lease of it at this
    /// moment; the trim is waited for [`PATIENCE`] times. If it does not move on by then, for
    /// example because it was interrupted, the number stays taken by an empty cache that nobody can
    /// use. This happens only where the general sizes meet a number that is already taken.
    pub(crate) fn unmake(&self, id: CacheId) {
        let slot = &self.backend.caches[usize::from(id)];
        let closed = (0..PATIENCE).any(|_| {
            let closed = slot.close();
            if !closed {
                self.backend.relax();
            }
            closed
        });
        if closed {
            // SAFETY: `one-handle`: there is no handle yet, and the slot is closed.
            unsafe { slot.clear() };
        }
    }

    /// Returns the numbers that users' caches have.
    pub(crate) fn user_ids(&self) -> RangeInclusive<CacheId> {
        let first = BOOT_CACHE + 1;
        first..=(usize::from(BOOT_CACHE) + self.plan.caches) as CacheId
    }

    /// Returns the tables that say which cache each page belongs to.
    #[must_use]
    pub fn pages(&self) -> &PageCaches<'m> {
        &self.backend.pages
    }

    /// Returns the design's own state, for a custom fast path.
    #[must_use]
    pub const fn queues(&self) -> &D {
        &self.queues
    }

    /// Returns the source of pages.
    #[must_use]
    pub const fn source(&self) -> &D::Source {
        &self.backend.source
    }

    /// Returns the way in which a CPU reaches its own words.
    #[must_use]
    pub const fn local(&self) -> &D::Local {
        &self.backend.local
    }

    /// Returns the caches that the caller may use: an interrupt skips task-only caches. No cache is
    /// destroyed while the iterator yields it.
    pub(crate) fn caches(&self) -> impl Iterator<Item = Lease<'m, CacheInfo>> {
        let leases = self.backend.caches.iter().filter_map(OnceSlot::lease);
        leases.filter(|info| self.backend.may_touch(info))
    }

    /// Does work for each cache that the caller may use, as the cache's own kind of callers would.
    fn each_cache(&self, tasks: CacheWork<'m, D>, all: CacheWork<'m, D>) {
        for info in self.caches() {
            let work = match info.callers {
                Callers::Tasks => tasks,
                Callers::All => all,
            };
            work(&self.queues, &self.backend, &info);
        }
    }

    /// Gives back some of what has lain unused on this CPU since the last call, cache by cache, and
    /// what lies in queues that CPUs share. To be called on every CPU every few seconds. An
    /// interrupt skips task-only caches.
    pub fn trim(&self) {
        self.each_cache(D::trim::<TaskOnly>, D::trim::<Everywhere>);
    }

    /// Gives back all that lies in this CPU's queues. An interrupt skips task-only caches.
    pub fn drain(&self) {
        self.each_cache(D::drain::<TaskOnly>, D::drain::<Everywhere>);
    }

    /// Gives back all that lies in queues that CPUs share. An interrupt skips task-only caches.
    pub fn shrink(&self) {
        self.each_cache(D::shrink::<TaskOnly>, D::shrink::<Everywhere>);
    }

    /// Returns statistics of every cache, in the order of their numbers; the slabs' own cache comes
    /// first. An interrupt skips task-only caches, since it may have interrupted a holder of their
    /// locks. A cache may be destroyed as soon as it has been counted. Its name is there for good,
    /// unless `unsafe` code made it of memory that ends with the cache: see [`Slabs::slab_info`].
    pub fn numbers(&self) -> impl Iterator<Item = CacheNumbers> {
        self.caches().map(|info| self.numbers_of(&info))
    }

    pub(crate) fn numbers_of(&self, info: &CacheInfo) -> CacheNumbers {
        let mut numbers = CacheNumbers::of(info, 1 << self.backend.source.page_shift());
        if self.backend.may_touch(info) {
            self.queues.numbers(&self.backend, info, &mut numbers);
        }
        numbers
    }
}

impl<'m, 'z: 'm, P, A, D> Slabs<'m, D>
where
    P: Platform + 'z,
    A: SlotAccess + 'z,
    D: SlabDesign<'m, Source = ZonePages<'m, Zone<'z, DirectMap<P>, A>>>,
{
    /// Makes slabs that have a zone to themselves, with all that they keep in one piece of memory
    /// of [`Slabs::bytes`].
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn over_zone(
        plan: SlabPlan,
        zone: &'m mut DirectMapped<'z, P, A>,
        local: D::Local,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, BuildError> {
        Self::new(plan, ZonePages::new(zone)?, local, memory)
    }
}
