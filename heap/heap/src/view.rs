//! The heap as another process sees it: where the words lie that
//! [`statistics`](crate::statistics()) reads, and the reader that computes the same numbers from
//! copies of them.
//!
//! The process does nothing for its reader. Building the heap writes the places once, into a static
//! that begins with a mark, among the initialised variables of the program or library that has the
//! heap. A reader looks for the mark there ([`candidates`]): so it needs no symbol table, which a
//! stripped program has not. The static also holds its own address, which no copy of it has right.
//!
//! Nothing is locked. While the process allocates, words that belong together are read at different
//! times, so the numbers are estimates then, as those of the process itself.
//!
//! Invariant `places-stay`: what the places name is there until the process ends, since a heap has
//! no end.

use core::cell::UnsafeCell;
use core::convert::Infallible;
use core::fmt;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::from_ref;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard_arena::rows::ROW_SHIFT;
use brickyard_slab::CacheNumbers;
use brickyard_slab::sheaf::{CachePlaces, MAX_CAPACITY, closed};
use brickyard_slab::sizes::process::{MAX_GENERAL, SIZES};

use crate::build::{HeapSlabs, INSTANCE, ROW_WORDS};
use crate::large::LargePlaces;
use crate::sampled::Sampled;
use crate::span::{Span, WarmPlaces};
use crate::statistics::Statistics;

/// What a view begins with.
const MARK: [u8; 16] = *b"\xb5brickyard view\n";

/// Changes whenever a reader of before would compute something else from the same words.
const VERSION: usize = 4;

/// Views lie at multiples of this.
const ALIGN: usize = 64;

/// The cache of sheaves, and one for each size.
const CACHES: usize = SIZES.len() + 1;

/// Where a process' words lie: addresses, unless something else is said.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Places {
    /// The view itself.
    view: usize,
    /// Bytes, not an address.
    span_bytes: usize,
    /// log2 of a page's bytes.
    page_shift: usize,
    /// Warm ones too.
    pages_in_use: usize,
    pages_idle: usize,
    pages_usable: usize,
    /// The first word of warm pages, which are idle too; how far they are apart, and how many.
    pages_warm: WarmPlaces,
    /// 0 if nothing is guarded.
    pages_guarded: usize,
    large: LargePlaces,
    rows: usize,
    /// The number of rows.
    row_count: usize,
    /// The top of a row without a sheaf.
    closed: usize,
    caches: [CachePlace; CACHES],
}

/// A cache's depot, and what stays the same.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct CachePlace {
    depot: usize,
    capacity: usize,
    size: usize,
    per_slab: usize,
    pages_per_slab: usize,
    columns: [usize; 3],
}

/// What a reader looks for. Its parts never move within it, whatever the version.
#[repr(C, align(64))]
struct View {
    mark: [u8; 16],
    version: usize,
    /// 1 once the places are written.
    built: AtomicUsize,
    places: UnsafeCell<MaybeUninit<Places>>,
}

// SAFETY: the places are written once, by the one thread that builds the heap (`built-once`). In
// this process nobody reads them.
unsafe impl Sync for View {}

static VIEW: View = View {
    mark: MARK,
    version: VERSION,
    built: AtomicUsize::new(0),
    places: UnsafeCell::new(MaybeUninit::zeroed()),
};

/// Writes down where the words of the heap lie. Called once, by the thread that builds it.
pub(super) fn publish(span: &Span, slabs: &HeapSlabs, sampled: Option<&Sampled>) {
    // SAFETY: `built-once`: no other thread builds. They are numbers, and zero so far.
    let Places {
        view,
        span_bytes,
        page_shift,
        pages_in_use,
        pages_idle,
        pages_usable,
        pages_warm,
        pages_guarded,
        large,
        rows,
        row_count,
        closed: closed_at,
        caches,
    } = unsafe { (*VIEW.places.get()).assume_init_mut() };
    *view = from_ref(&VIEW).addr();
    *span_bytes = span.bytes();
    *page_shift = span.page_bytes().trailing_zeros() as usize;
    ([*pages_in_use, *pages_idle, *pages_usable], *pages_warm) = span.places();
    *pages_guarded = sampled.map_or(0, Sampled::guarded_count);
    *large = INSTANCE.large.places();
    let all = slabs.queues().rows();
    (*rows, *row_count, *closed_at) = (all.start().addr(), all.rows(), closed());
    for (place, of) in caches.iter_mut().zip(slabs.places()) {
        *place = CachePlace {
            depot: of.depot,
            capacity: of.capacity,
            size: of.numbers.size as usize,
            per_slab: of.numbers.per_slab as usize,
            pages_per_slab: of.numbers.pages_per_slab as usize,
            columns: of.columns,
        };
    }
    // Release: whoever copies the memory of this process and finds a 1 finds the places too.
    VIEW.built.store(1, Ordering::Release);
}

/// Why there are no numbers of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewError<E = Infallible> {
    /// Its memory cannot be read.
    Memory(E),
    /// There is no view at this address.
    NoView,
    /// It is of another version of this crate.
    Version {
        /// Its version.
        theirs: usize,
        /// What this crate reads.
        ours: usize,
    },
    /// The process has not used its heap yet.
    Unused,
}

impl<E> From<E> for ViewError<E> {
    fn from(error: E) -> Self {
        Self::Memory(error)
    }
}

impl<E: fmt::Display> fmt::Display for ViewError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => write!(f, "its memory cannot be read: {error}"),
            Self::NoView => f.write_str("there is no heap at this address"),
            Self::Version { theirs, ours } => write!(
                f,
                "its heap is of version {theirs}, and this program reads version {ours}"
            ),
            Self::Unused => f.write_str("it has not used its heap yet"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for ViewError<E> {}

/// Returns where in a piece of another process' memory a view may begin, in bytes. The piece begins
/// at a multiple of a page. Any of them may still be none: [`Statistics::of_view`] tells.
pub fn candidates(piece: &[u8]) -> impl Iterator<Item = usize> {
    let places = piece.chunks(ALIGN).enumerate();
    places.filter_map(|(index, chunk)| chunk.starts_with(&MARK).then_some(index * ALIGN))
}

impl Statistics {
    /// Returns statistics of the heap of another process, which has a view at the address `view`.
    /// `read` copies memory of that process from an address. It is called some hundred times, and
    /// once for each row of queues.
    ///
    /// # Errors
    /// [`ViewError`]; errors of `read` are passed on.
    pub fn of_view<E>(
        view: usize,
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Self, ViewError<E>> {
        let mut mark = [0; MARK.len()];
        read(view, &mut mark)?;
        if mark != MARK {
            return Err(ViewError::NoView);
        }
        let theirs = word(&mut read, view + offset_of!(View, version))?;
        if theirs != VERSION {
            let ours = VERSION;
            return Err(ViewError::Version { theirs, ours });
        }
        if word(&mut read, view + offset_of!(View, built))? == 0 {
            return Err(ViewError::Unused);
        }
        let mut bytes = [0; size_of::<Places>()];
        read(view + offset_of!(View, places), &mut bytes)?;
        // SAFETY: so many bytes are there, and a place consists of words, whatever these hold.
        let places: Places = unsafe { bytes.as_ptr().cast::<Places>().read_unaligned() };
        if places.view != view || !places.make_sense() {
            return Err(ViewError::NoView);
        }
        Ok(places.statistics(&mut read)?)
    }
}

impl Places {
    /// Returns true if they can be those of a heap. A process may write anything there; with these
    /// limits no number of it overflows, and no loop is long.
    fn make_sense(&self) -> bool {
        let of_cache = |cache: &CachePlace| {
            cache.capacity <= MAX_CAPACITY
                && cache.size <= MAX_GENERAL
                && cache.per_slab <= 1 << 16
                && cache.pages_per_slab <= 1 << 10
        };
        (12..=16).contains(&self.page_shift)
            && self.row_count <= 1 << 16
            && self.span_bytes <= MOST
            && self.pages_warm[2] <= 64
            && self.caches.iter().all(of_cache)
    }

    fn statistics<E>(
        &self,
        read: &mut impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Statistics, E> {
        let pages = |count: usize| MOST.min(count << self.page_shift);
        let mut statistics = Statistics {
            usable: pages(word(read, self.pages_usable)?),
            span: self.span_bytes,
            large: word(read, self.large.bytes)?,
            large_most: word(read, self.large.most)?,
            large_blocks_most: word(read, self.large.most.wrapping_add(WORD_BYTES))?,
            ..Statistics::default()
        };
        let [first, apart, count] = self.pages_warm;
        let mut warm = 0;
        for index in 0..count {
            let place = first.wrapping_add(index.wrapping_mul(apart));
            warm = MOST.min(warm + word(read, place)?);
        }
        let idle = MOST.min(word(read, self.pages_idle)? + warm);
        statistics.idle = pages(idle).min(self.span_bytes) + word(read, self.large.idle)?;
        let queued = self.queued(read)?;
        let mut caches = [CacheNumbers::default(); CACHES];
        for ((numbers, place), queued) in caches.iter_mut().zip(&self.caches).zip(queued) {
            *numbers = place.numbers(read)?;
            numbers.queued = numbers.queued.saturating_add(queued);
            numbers.page_bytes = 1 << self.page_shift;
        }
        statistics.add_caches(caches.into_iter());
        statistics.large_blocks = word(read, self.large.listed)?;
        for index in 0..LargePlaces::BESIDE {
            let place = index * LargePlaces::BESIDE_BYTES;
            let address = word(read, self.large.beside.wrapping_add(place))?;
            statistics.large_blocks += usize::from(address != 0);
        }
        let in_use = word(read, self.pages_in_use)?.saturating_sub(warm);
        statistics.pages = pages(in_use).max(statistics.slabs);
        if self.pages_guarded != 0 {
            statistics.pages += pages(word(read, self.pages_guarded)?);
        }
        Ok(statistics)
    }

    /// Returns how many objects of each cache lie in the rows of all CPUs.
    fn queued<E>(
        &self,
        read: &mut impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<[u64; CACHES], E> {
        let mut queued = [0; CACHES];
        let mut row = [0; ROW_WORDS * WORD_BYTES];
        for cpu in 0..self.row_count {
            read(self.rows.wrapping_add(cpu << ROW_SHIFT), &mut row)?;
            let (words, _) = row.as_chunks::<WORD_BYTES>();
            for (queued, cache) in queued.iter_mut().zip(&self.caches) {
                for top in cache.columns.iter().filter_map(|&column| words.get(column)) {
                    let top = usize::from_ne_bytes(*top);
                    *queued += CachePlaces::in_sheaf(top, cache.capacity, self.closed);
                }
            }
        }
        Ok(queued)
    }
}

impl CachePlace {
    /// Returns what the depot tells.
    fn numbers<E>(
        &self,
        read: &mut impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<CacheNumbers, E> {
        let mut half = |offset: usize| {
            let mut bytes = [0; 4];
            read(self.depot.wrapping_add(offset), &mut bytes)?;
            Ok(u64::from(u32::from_ne_bytes(bytes)))
        };
        let fulls = half(CachePlaces::FULLS)?;
        let slabs = half(CachePlaces::SLABS)?;
        let mut long = |offset: usize| word(read, self.depot.wrapping_add(offset));
        let lacking = long(CachePlaces::LACKING)? as u64;
        let mut numbers = CacheNumbers::default();
        numbers.size = self.size as u64;
        numbers.per_slab = self.per_slab as u64;
        numbers.pages_per_slab = self.pages_per_slab as u64;
        numbers.slabs = slabs;
        numbers.out = (long(CachePlaces::OUT)? as u64).min(numbers.objects());
        numbers.queued = (fulls * self.capacity as u64).saturating_sub(lacking);
        Ok(numbers)
    }
}

const WORD_BYTES: usize = size_of::<usize>();

/// The most that anything is: a process has no more bytes.
const MOST: usize = 1 << 47;

/// Reads a word, of at most [`MOST`].
fn word<E>(
    read: &mut impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    address: usize,
) -> Result<usize, E> {
    let mut bytes = [0; WORD_BYTES];
    read(address, &mut bytes)?;
    Ok(usize::from_ne_bytes(bytes).min(MOST))
}
