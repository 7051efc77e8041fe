//! Runs: any number of pages up to 2 MiB, in one piece. A run takes pages that have memory, if
//! there are enough side by side (`warm.rs`, `reuse.rs`). Otherwise it takes the smallest block
//! that holds it, and the tail is freed again at once. Its length stands in a word of its first
//! page.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, Ordering};

use brickyard::{Context, Frame, FrameRange, Mobility, Order};

use brickyard_arena::Release;

use super::warm::WarmKind;
use super::{Contents, RUN_BYTES_MAX, Span};

impl Span {
    /// Takes a run of `pages` pages, or some more. Also returns what is in them. `None` if there is
    /// none, or if `pages` is 0 or more than [`RUN_BYTES_MAX`].
    #[must_use]
    pub fn take_run(&self, pages: usize) -> Option<(NonNull<u8>, Contents)> {
        self.take_run_at(pages, 1)
    }

    /// Takes a run of pages in one piece, aligned to the next power of two of pages: see
    /// [`Span::take_run`].
    #[must_use]
    pub fn take_aligned_run(&self, pages: usize) -> Option<(NonNull<u8>, Contents)> {
        self.take_run_at(pages, pages.checked_next_power_of_two()?)
    }

    /// Takes a run for `bytes` bytes at a multiple of `align` bytes, a power of two: no more pages
    /// than they take, whatever the alignment. As [`Span::take_run`]; `None` also for an alignment
    /// above [`RUN_BYTES_MAX`].
    #[must_use]
    pub fn take_run_for(&self, bytes: usize, align: usize) -> Option<(NonNull<u8>, Contents)> {
        let pages = bytes.div_ceil(self.page_bytes());
        if align <= self.page_bytes() {
            return self.take_run(pages);
        }
        // An aligned run is so to the power of two that holds it.
        let aligned = pages.max(align.div_ceil(self.page_bytes()));
        let (run, contents) = self.take_aligned_run(aligned)?;
        if aligned > pages {
            // SAFETY: just taken; nobody uses the tail.
            unsafe { self.cut_run(run, pages) };
        }
        Some((run, contents))
    }

    /// Takes a run that begins at a multiple of `align` pages, a power of two, no larger than the
    /// smallest that holds the run.
    fn take_run_at(&self, pages: usize, align: usize) -> Option<(NonNull<u8>, Contents)> {
        if pages == 0 || pages > RUN_BYTES_MAX >> self.layout.page_shift {
            return None;
        }
        let may_be_used = self.guard.is_none();
        if may_be_used && let Some((page, pages)) = self.take_warm(WarmKind::Run, pages, align) {
            // Nothing else changes: it counted as in use.
            return Some(self.begin_warm_run(page, pages));
        }
        let used = (may_be_used && align == 1).then(|| self.take_used_run(pages));
        let run = match used.flatten() {
            Some(run) => run,
            None => {
                let block = pages.next_power_of_two();
                let order = Order::new(block.trailing_zeros() as u8);
                // Movable, to keep runs away from the slabs of small objects, which stay longer.
                let request = Self::request(order, Mobility::Movable, Context::MaySleep);
                self.begin_run(self.find(&request)?, block, pages)
            }
        };
        self.release_in_passing(pages, run.1);
        Some(run)
    }

    /// Takes a run of pages that have been in use, wherever they begin: free ones side by side, but a
    /// part of a longer warm run rather than such as have no memory.
    fn take_used_run(&self, pages: usize) -> Option<(NonNull<u8>, Contents)> {
        let place = self.best_place(pages);
        if place.is_none_or(|place| !place.is_idle)
            && let Some((page, pages)) = self.split_warm(pages)
        {
            return Some(self.begin_warm_run(page, pages));
        }
        let page = self.take_place(place?, pages)?;
        Some(self.begin_run(page, pages, pages))
    }

    fn begin_warm_run(&self, page: usize, pages: usize) -> (NonNull<u8>, Contents) {
        (self.now_run(page, pages), Contents::Anything)
    }

    /// Takes an aligned run without a lock, and so only from zones that are built: no thread that
    /// stands still can keep it waiting.
    #[must_use]
    pub fn take_run_without_locks(&self, pages: usize) -> Option<(NonNull<u8>, Contents)> {
        if pages == 0 || pages > RUN_BYTES_MAX >> self.layout.page_shift {
            return None;
        }
        let block = pages.next_power_of_two();
        let order = Order::new(block.trailing_zeros() as u8);
        let request = Self::request(order, Mobility::Movable, Context::Atomic);
        let mut zones = 0..self.zones();
        let frame = zones.find_map(|index| self.zone(index).alloc(&request).ok())?;
        let page = frame.number();
        self.free_tail(page, block, pages);
        let contents = self.now_in_use(page, pages);
        Some((self.now_run(page, pages), contents))
    }

    /// Makes a run of the first pages of a block that has just been taken, and frees the tail.
    pub(super) fn begin_run(
        &self,
        page: usize,
        block: usize,
        pages: usize,
    ) -> (NonNull<u8>, Contents) {
        self.free_tail(page, block, pages);
        let contents = self.now_in_use(page, pages);
        (self.now_run(page, pages), contents)
    }

    /// Frees what a block that has just been taken has more than so many pages.
    fn free_tail(&self, page: usize, block: usize, pages: usize) {
        if block > pages {
            let tail = FrameRange::at(Frame::new(page + pages), block - pages);
            self.mark_free(page + pages, block - pages);
            let freed = self.zone_of(page).free_range(tail);
            debug_assert!(freed.is_ok(), "part of a block just taken: {freed:?}");
        }
    }

    /// Notes how many pages the run has that begins at a page, and returns its address.
    fn now_run(&self, page: usize, pages: usize) -> NonNull<u8> {
        // Relaxed, here and below: the run's owner hands its address on in ways that carry this
        // store along.
        self.run_length(page).store(pages as u16, Ordering::Relaxed);
        self.address_of(page)
    }

    /// Returns how many pages the run has that begins at `first`; `None` if none begins there.
    #[inline]
    #[must_use]
    pub fn run_at(&self, first: NonNull<u8>) -> Option<usize> {
        if !self.contains(first.as_ptr()) || !first.addr().get().is_multiple_of(self.page_bytes()) {
            return None;
        }
        let length = self.run_length(self.page_of(first)).load(Ordering::Relaxed);
        (length != 0).then_some(usize::from(length))
    }

    fn run_length(&self, page: usize) -> &AtomicU16 {
        let word = self.tables.at(self.layout.runs_at).cast::<AtomicU16>();
        // SAFETY: the tables have such a word for each page, initially zero.
        unsafe { word.add(page).as_ref() }
    }

    /// Takes a run back. False, and nothing has changed, if none begins there.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    pub unsafe fn give_run(&self, first: NonNull<u8>) -> bool {
        let Some((page, pages)) = self.end_run(first) else {
            return false;
        };
        if self.guard.is_some() || !self.keep_warm(WarmKind::Run, page, pages) {
            self.give_pages_of_run(page, pages);
            self.release_surplus(pages);
        }
        true
    }

    /// Takes a run back without a lock, and so gives nothing back to the system. False if no run
    /// begins there.
    ///
    /// # Safety
    /// The conditions of [`Span::give_run`].
    pub unsafe fn give_run_without_locks(&self, first: NonNull<u8>) -> bool {
        self.end_run(first)
            .map(|(page, pages)| self.give_pages_of_run(page, pages))
            .is_some()
    }

    /// Ends a run, and returns its first page and its pages. They are the caller's.
    fn end_run(&self, first: NonNull<u8>) -> Option<(usize, usize)> {
        // Also since what the tables hold of pages that were never in use can only be read.
        self.run_at(first)?;
        let page = self.page_of(first);
        // Of two callers that free the same run, only one finds it.
        let pages = usize::from(self.run_length(page).swap(0, Ordering::Relaxed));
        (pages > 0).then_some((page, pages))
    }

    pub(super) fn give_pages_of_run(&self, page: usize, pages: usize) {
        self.now_idle(page, pages);
        let freed = self
            .zone_of(page)
            .free_range(FrameRange::at(Frame::new(page), pages));
        debug_assert!(freed.is_ok(), "a run: {freed:?}");
    }

    /// Gives the memory of a run back to the system, but not its addresses: it is zero afterwards.
    /// False, and nothing has changed, if the system refuses (locked memory), or if no run begins
    /// there.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    pub unsafe fn empty_run(&self, first: NonNull<u8>) -> bool {
        self.run_at(first).is_some_and(|pages| {
            let (page, shift) = (self.page_of(first), self.layout.page_shift);
            let part = page << shift..(page + pages) << shift;
            // SAFETY: passed on.
            unsafe { self.region.release(part, Release::Now) }.is_ok()
        })
    }

    /// Gives the tail of a run back, so that it has `pages` pages from now on. False, and nothing
    /// has changed, if no run begins there, or if it is not longer.
    ///
    /// # Safety
    /// If one begins there, nobody uses the tail any more.
    pub unsafe fn cut_run(&self, first: NonNull<u8>, pages: usize) -> bool {
        match self.run_at(first) {
            Some(length) if pages > 0 && pages < length => {
                let page = self.page_of(first);
                self.run_length(page).store(pages as u16, Ordering::Relaxed);
                self.now_idle(page + pages, length - pages);
                let tail = FrameRange::at(Frame::new(page + pages), length - pages);
                let freed = self.zone_of(page).free_range(tail);
                debug_assert!(freed.is_ok(), "the tail of a run: {freed:?}");
                self.release_surplus(length - pages);
                true
            }
            _ => false,
        }
    }
}
