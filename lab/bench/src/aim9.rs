//! Two tests of AIM9 (AIM Independent Resource Benchmark, suite IX), which Gorman ran in 2005: a
//! process moves its program break down by 16 pages and up again page by page.
//!
//! A turn has 17 operations, as the suite counts them: one move down and 16 up. The published rates
//! divide by it: 1700 operations per loop of `page_test`, 17000 of `brk_test`.
//!
//! - `page_test` touches each page that it gains. So a page is allocated, cleared, and entered in
//!   the process's table; on the way down it is freed.
//! - `brk_test` touches none, so no page is allocated. It measures nothing of an allocator, and is
//!   a control: its differences are noise.
//!
//! Only the memory's part is repeated here. There are no system calls, traps or kernel data
//! structures of the heap, so rates are far above those of a system. Time is CPU time of the
//! thread, which is equal to elapsed time on an otherwise idle host.

use core::hint::black_box;
use core::time::Duration;

use brickyard_designs::classics::LabZone;

use super::masking::MemoryPlatform;
use super::pages::{Page, Pages, Work};
use brickyard_measure::clock::cpu_of_this_thread;

/// Pages that the break goes down by.
const STEP: usize = 16;

/// Turns between two readings of the clock: a loop of `page_test`.
const TURNS: usize = 100;

/// Pages of the heap when it is largest.
const HEAP: usize = 256;

/// Pages of memory that a test needs, with ample room for caches.
pub const PAGES: usize = 16 * HEAP;

/// A test of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// New pages are touched.
    Page,
    /// They are not.
    Brk,
}

impl Test {
    /// Returns its name in the suite.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page_test",
            Self::Brk => "brk_test",
        }
    }
}

/// A test, and how long it runs.
#[derive(Debug, Clone, Copy)]
pub struct Aim9 {
    /// Which test.
    pub test: Test,
    /// The least time.
    pub least: Duration,
}

/// What was done, and in what time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Done {
    /// Moves of the break.
    pub operations: u64,
    /// Pages allocated meanwhile.
    pub taken: u64,
    /// Pages freed.
    pub given: u64,
    /// The CPU time.
    pub elapsed: Duration,
}

impl Done {
    /// Returns the operations per second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the sum of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            taken: self.taken + other.taken,
            given: self.given + other.given,
            elapsed: self.elapsed + other.elapsed,
        }
    }
}

impl Work for Aim9 {
    /// `None` if the memory was too small.
    type Output = Option<Done>;

    fn run<'a, Z: LabZone<Platform = MemoryPlatform<'a>>>(
        self,
        pages: &Pages<'_, 'a, Z>,
    ) -> Option<Done> {
        let mut heap = Heap::full(pages)?;
        heap.turns(self.test)?;
        let before = heap.done;
        let begun = cpu_of_this_thread();
        let mut elapsed = Duration::ZERO;
        while elapsed <= self.least {
            heap.turns(self.test)?;
            elapsed = cpu_of_this_thread().saturating_sub(begun);
        }
        let done = heap.done;
        heap.down(HEAP);
        Some(Done {
            operations: done.operations - before.operations,
            taken: done.taken - before.taken,
            given: done.given - before.given,
            elapsed,
        })
    }
}

/// The heap of a process.
struct Heap<'p, 'n, 'a, Z: LabZone> {
    pages: &'p Pages<'n, 'a, Z>,
    /// The table: the page at each index, if it was touched.
    table: Vec<Option<Page<'a>>>,
    /// The break: how many pages the heap has.
    end: usize,
    done: Done,
}

impl<'p, 'n, 'a, Z: LabZone<Platform = MemoryPlatform<'a>>> Heap<'p, 'n, 'a, Z> {
    /// Returns a heap of the largest size, with all pages touched.
    fn full(pages: &'p Pages<'n, 'a, Z>) -> Option<Self> {
        let mut heap = Self {
            pages,
            table: (0..HEAP).map(|_| None).collect(),
            end: 0,
            done: Done::default(),
        };
        for _ in 0..HEAP {
            heap.up();
            heap.touch()?;
        }
        Some(heap)
    }

    /// Runs a loop of the suite. `None` if no page is left.
    #[inline(never)]
    fn turns(&mut self, test: Test) -> Option<()> {
        for _ in 0..TURNS {
            self.down(STEP);
            for _ in 0..STEP {
                self.up();
                if test == Test::Page {
                    self.touch()?;
                }
            }
        }
        Some(())
    }

    /// Moves the break down by so many pages, and frees those that were touched.
    #[inline]
    fn down(&mut self, pages: usize) {
        self.end = black_box(self.end - pages);
        for entry in &mut self.table[self.end..][..pages] {
            if let Some(page) = entry.take() {
                self.pages.give(page);
                self.done.given += 1;
            }
        }
        self.done.operations += 1;
    }

    /// Moves the break up by a page.
    #[inline]
    fn up(&mut self) {
        self.end = black_box(self.end + 1);
        self.done.operations += 1;
    }

    /// Writes to the last page of the heap: a page is allocated, cleared and entered.
    #[inline]
    fn touch(&mut self) -> Option<()> {
        let mut page = self.pages.take()?;
        page.bytes().fill(0);
        self.done.taken += 1;
        self.table[self.end - 1] = Some(page);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use brickyard_designs::classics::Configuration;

    use super::*;
    use crate::masking::Masking;
    use crate::pages::PageMemory;

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn a_turn_has_17_operations_and_page_test_takes_16_pages() {
        let mut memory = PageMemory::new(PAGES).unwrap();
        for configuration in Configuration::ALL {
            let test = Aim9 {
                test: Test::Page,
                least: SHORT,
            };
            let done = memory
                .with(configuration, Masking::Flags, test)
                .unwrap()
                .unwrap();
            let turns = done.operations / 17;
            assert_eq!(done.operations, turns * 17, "{configuration}");
            assert_eq!((done.taken, done.given), (turns * 16, turns * 16));
            // Whole loops of the suite, 1700 operations each.
            assert!(turns > 0 && turns.is_multiple_of(TURNS as u64), "{turns}");
            assert!(done.elapsed >= SHORT && done.rate() > 0.0);
        }
    }

    #[test]
    fn brk_test_allocates_no_page() {
        let mut memory = PageMemory::new(PAGES).unwrap();
        for configuration in Configuration::ALL {
            let test = Aim9 {
                test: Test::Brk,
                least: SHORT,
            };
            let done = memory
                .with(configuration, Masking::Flags, test)
                .unwrap()
                .unwrap();
            assert_eq!((done.taken, done.given), (0, 0), "{configuration}");
            assert!(done.operations > 0 && done.operations.is_multiple_of(1700));
        }
    }

    #[test]
    fn every_page_is_freed() {
        // The runs allocate far more pages than there are.
        let mut memory = PageMemory::new(PAGES).unwrap();
        for _ in 0..40 {
            let test = Aim9 {
                test: Test::Page,
                least: Duration::ZERO,
            };
            assert!(
                memory
                    .with(Configuration::Vanilla, Masking::Nothing, test)
                    .unwrap()
                    .is_some()
            );
        }
    }
}
