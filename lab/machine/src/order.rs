//! Happens-before: vector clocks of the simulated CPUs, and data races on guarded words.
//!
//! The rules are those of C++20, which are Rust's. A release store or exchange publishes, at that
//! word, all that its CPU has done and seen so far; a CPU that acquires from the word has then seen
//! it too. The *release sequence* that a release begins continues through exchanges of any ordering
//! and ends at the next plain store: a relaxed store publishes nothing, and withdraws even what its
//! own CPU published there before. `SeqCst` counts as `AcqRel`: the total order of such accesses is
//! the order in which the machine makes them.
//!
//! A guarded word is private to the holder of its lock (or other guard), so any two accesses of
//! which one writes must be ordered. For each word the last write is kept as an *epoch* (a CPU and
//! its clock at that time), and the reads since as an epoch too, or as a vector where several CPUs
//! read without having seen each other (Flanagan and Freund, FastTrack, 2009). An access that has
//! not seen the last conflicting one is a [`Race`].
//!
//! Everything that ran on one CPU is ordered, across tasks and interrupts: the scheduler that
//! switched them is not checked. A task that is woken or continues on another CPU brings along what
//! its old CPU had seen: [`HappensBefore::handover`]. What was written before the machine ran, all
//! CPUs have seen.

use core::fmt;
use core::sync::atomic::Ordering;

/// The kinds of two unordered accesses to a guarded word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The word was written, and is read now.
    WriteThenRead,
    /// The word was written, and is written now.
    WriteThenWrite,
    /// The word was read, and is written now.
    ReadThenWrite,
}

/// Two accesses to a guarded word that nothing ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Race {
    /// The CPU that makes the later access.
    pub cpu: usize,
    /// The CPU whose earlier access it has not seen.
    pub other: usize,
    /// The word, as the caller identified it.
    pub word: u64,
    /// The kinds of the two accesses.
    pub conflict: Conflict,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu, other, word, ..
        } = self;
        let (now, before) = match self.conflict {
            Conflict::WriteThenRead => ("reads", "wrote"),
            Conflict::WriteThenWrite => ("writes", "wrote"),
            Conflict::ReadThenWrite => ("writes", "read"),
        };
        write!(
            f,
            "CPU {cpu} {now} the guarded word at {word:#x} and has not seen that CPU {other} {before} it"
        )
    }
}

impl core::error::Error for Race {}

/// A row of a table of clocks; row 0 is reserved for "none".
type Row = u32;

/// A moment on one CPU: its number and its own clock. Clock 0 is before everything, so an epoch of
/// zeros means no access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Epoch {
    cpu: u16,
    clock: u32,
}

/// What an atomic word has published, besides its clock.
#[derive(Debug, Clone, Copy, Default)]
struct Published {
    // A CPU that has seen this epoch has seen the whole clock; without one the clocks must be
    // compared.
    head: Epoch,
    // Whether a release sequence is in progress.
    live: bool,
}

/// The accesses of a guarded word.
#[derive(Debug, Clone, Copy, Default)]
struct Accesses {
    written: Epoch,
    // The only read since, or the last of them: each has seen those before.
    read: Epoch,
    // The reads since, by CPU, where one epoch cannot hold them.
    readers: Row,
}

/// The clocks of all CPUs and of all words that they share.
///
/// A word is identified by its address: a guarded word is aligned to four bytes or more, an atomic
/// one may have any address. Costs: an acquire of what was seen already takes a few loads, any
/// other one pass over a clock (a `u32` per CPU); a release one pass; a guarded access a few loads.
/// Memory: each 4 KiB of addresses takes 16 KiB once an atomic word in it is used, and 20 KiB once
/// a guarded one is; each word that was released to takes a clock.
#[derive(Debug)]
pub struct HappensBefore {
    // What each CPU has seen.
    seen: Clocks,
    // The row of an atomic word, once it has been released to.
    rows: Paged<Row>,
    published: Vec<Published>,
    clocks: Clocks,
    guarded: Paged<Accesses>,
    readers: Clocks,
    // Rows of `readers` that are free.
    spare: Vec<Row>,
}

impl HappensBefore {
    /// The clocks of `cpus` CPUs, none of which has done anything yet.
    ///
    /// # Panics
    /// If `cpus` is 0 or above 65,536.
    #[must_use]
    pub fn new(cpus: usize) -> Self {
        assert!((1..=1 << 16).contains(&cpus), "1 to 65536 CPUs");
        let mut seen = Clocks::new(cpus);
        for cpu in 0..cpus {
            seen.add_row();
            seen.of_mut(cpu as Row)[cpu] = 1;
        }
        let mut empty = Clocks::new(cpus);
        empty.add_row();
        Self {
            seen,
            rows: Paged::new(0),
            published: vec![Published::default()],
            clocks: empty.clone(),
            guarded: Paged::new(2),
            readers: empty,
            spare: Vec::new(),
        }
    }

    /// Records that `cpu` has loaded an atomic word.
    #[inline]
    pub fn load(&mut self, cpu: usize, word: u64, order: Ordering) {
        if acquires(order) {
            let row = *self.rows.at(word);
            self.acquire(cpu, row);
        }
    }

    /// `cpu` has stored to an atomic word.
    #[inline]
    pub fn store(&mut self, cpu: usize, word: u64, order: Ordering) {
        if releases(order) {
            let row = self.row_of(word);
            self.publish(cpu, row);
        } else {
            let row = *self.rows.at(word);
            self.published[row as usize].live = false;
        }
    }

    /// Records that `cpu` has read and written an atomic word in one step. An exchange that failed
    /// is a [load](HappensBefore::load).
    #[inline]
    pub fn exchange(&mut self, cpu: usize, word: u64, order: Ordering) {
        if acquires(order) {
            let row = *self.rows.at(word);
            self.acquire(cpu, row);
        }
        if !releases(order) {
            // A release sequence in progress continues.
            return;
        }
        let row = self.row_of(word);
        let published = self.published[row as usize];
        if !published.live || acquires(order) || self.has_seen_all(cpu, published) {
            // This CPU has seen all that was published, so its own clock covers it.
            self.publish(cpu, row);
        } else {
            self.publish_joined(cpu, row);
        }
    }

    /// Records that `cpu` reads a guarded word.
    ///
    /// # Errors
    /// The last write was another CPU's, which `cpu` has not seen.
    #[inline]
    pub fn guarded_read(&mut self, cpu: usize, word: u64) -> Result<(), Race> {
        let now = self.now(cpu);
        let known = self.guarded.at(word);
        if known.read == now && known.readers == 0 {
            return Ok(());
        }
        let Accesses {
            written,
            read,
            readers,
        } = *known;
        if !self.has_seen(cpu, written) {
            return Err(race(cpu, written, word, Conflict::WriteThenRead));
        }
        if readers != 0 {
            self.readers.of_mut(readers)[cpu] = now.clock;
        } else if self.has_seen(cpu, read) {
            self.guarded.at(word).read = now;
        } else {
            let readers = self.spare.pop().unwrap_or_else(|| self.readers.add_row());
            let vector = self.readers.of_mut(readers);
            vector.fill(0);
            vector[cpu] = now.clock;
            vector[usize::from(read.cpu)] = read.clock;
            self.guarded.at(word).readers = readers;
        }
        Ok(())
    }

    /// Records that `cpu` writes a guarded word.
    ///
    /// # Errors
    /// The last write, or a read since, was another CPU's, which `cpu` has not seen.
    #[inline]
    pub fn guarded_write(&mut self, cpu: usize, word: u64) -> Result<(), Race> {
        let now = self.now(cpu);
        let Accesses {
            written,
            read,
            readers,
        } = *self.guarded.at(word);
        if !self.has_seen(cpu, written) {
            return Err(race(cpu, written, word, Conflict::WriteThenWrite));
        }
        if readers != 0 {
            self.check_readers(cpu, word, readers)?;
            self.spare.push(readers);
        } else if !self.has_seen(cpu, read) {
            return Err(race(cpu, read, word, Conflict::ReadThenWrite));
        }
        *self.guarded.at(word) = Accesses {
            written: now,
            ..Accesses::default()
        };
        Ok(())
    }

    /// Records that `to` has now seen all that `from` has: a task moved between them, one woke a
    /// task on the other, or one sent the other an interrupt.
    pub fn handover(&mut self, from: usize, to: usize) {
        if from != to {
            let (from_row, to_row) = self.seen.two(from as Row, to as Row);
            join(to_row, from_row);
            self.tick(from);
        }
    }

    fn now(&self, cpu: usize) -> Epoch {
        Epoch {
            cpu: cpu as u16,
            clock: self.seen.of(cpu as Row)[cpu],
        }
    }

    fn has_seen(&self, cpu: usize, epoch: Epoch) -> bool {
        self.seen.of(cpu as Row)[usize::from(epoch.cpu)] >= epoch.clock
    }

    /// Returns true only if `cpu` has seen all that was published; may return false if it has.
    fn has_seen_all(&self, cpu: usize, published: Published) -> bool {
        published.head != Epoch::default() && self.has_seen(cpu, published.head)
    }

    /// Advances the clock of `cpu`: what it does from here on, no other CPU has seen yet. A
    /// saturated clock makes the check miss races, but never report a false one.
    fn tick(&mut self, cpu: usize) {
        let clock = &mut self.seen.of_mut(cpu as Row)[cpu];
        *clock = clock.saturating_add(1);
    }

    /// Returns the row of an atomic word; gives it a new, empty one if it has none.
    fn row_of(&mut self, word: u64) -> Row {
        let row = self.rows.at(word);
        if *row == 0 {
            *row = self.clocks.add_row();
            self.published.push(Published::default());
        }
        *row
    }

    fn acquire(&mut self, cpu: usize, row: Row) {
        let published = self.published[row as usize];
        if published.live && !self.has_seen_all(cpu, published) {
            join(self.seen.of_mut(cpu as Row), self.clocks.of(row));
        }
    }

    /// Makes the word publish what `cpu` has seen, and nothing else.
    fn publish(&mut self, cpu: usize, row: Row) {
        let seen = self.seen.of(cpu as Row);
        self.clocks.of_mut(row).copy_from_slice(seen);
        self.published[row as usize] = Published {
            head: self.now(cpu),
            live: true,
        };
        self.tick(cpu);
    }

    /// Makes the word publish what `cpu` has seen in addition to what it published before: two
    /// release sequences continue as one.
    fn publish_joined(&mut self, cpu: usize, row: Row) {
        join(self.clocks.of_mut(row), self.seen.of(cpu as Row));
        self.published[row as usize].head = Epoch::default();
        self.tick(cpu);
    }

    /// Returns the race with a read that `cpu` has not seen, if there is one.
    fn check_readers(&self, cpu: usize, word: u64, readers: Row) -> Result<(), Race> {
        let seen = self.seen.of(cpu as Row).iter();
        let mut reads = self.readers.of(readers).iter().zip(seen);
        match reads.position(|(read, seen)| read > seen) {
            None => Ok(()),
            Some(other) => Err(Race {
                cpu,
                other,
                word,
                conflict: Conflict::ReadThenWrite,
            }),
        }
    }
}

fn race(cpu: usize, unseen: Epoch, word: u64, conflict: Conflict) -> Race {
    Race {
        cpu,
        other: usize::from(unseen.cpu),
        word,
        conflict,
    }
}

/// Vector clocks, stored one after the other: each a `u32` per CPU.
#[derive(Debug, Clone)]
struct Clocks {
    cpus: usize,
    rows: Vec<u32>,
}

impl Clocks {
    const fn new(cpus: usize) -> Self {
        Self {
            cpus,
            rows: Vec::new(),
        }
    }

    /// Adds a clock of zeros; returns its row.
    fn add_row(&mut self) -> Row {
        let row = self.rows.len() / self.cpus;
        self.rows.resize(self.rows.len() + self.cpus, 0);
        row as Row
    }

    fn of(&self, row: Row) -> &[u32] {
        &self.rows[row as usize * self.cpus..][..self.cpus]
    }

    fn of_mut(&mut self, row: Row) -> &mut [u32] {
        &mut self.rows[row as usize * self.cpus..][..self.cpus]
    }

    /// Returns one row to read and another to write, which must differ.
    fn two(&mut self, read: Row, write: Row) -> (&[u32], &mut [u32]) {
        let (read, write) = (read as usize * self.cpus, write as usize * self.cpus);
        let (low, high) = self.rows.split_at_mut(read.max(write));
        let high = &mut high[..self.cpus];
        let low = &mut low[read.min(write)..][..self.cpus];
        if read < write {
            (low, high)
        } else {
            (high, low)
        }
    }
}

const fn acquires(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst
    )
}

const fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

/// Sets each clock of `into` to the later of the pair.
fn join(into: &mut [u32], other: &[u32]) {
    for (own, &other) in into.iter_mut().zip(other) {
        *own = (*own).max(other);
    }
}

/// Log2 of the addresses that a page of the table covers.
const PAGE_SHIFT: u32 = 12;

/// A table with a value for each `1 << grain` bytes of a dense address space, allocated page by
/// page on first use.
#[derive(Debug)]
struct Paged<T> {
    grain: u32,
    pages: Vec<Option<Box<[T]>>>,
}

impl<T: Copy + Default> Paged<T> {
    const fn new(grain: u32) -> Self {
        Self {
            grain,
            pages: Vec::new(),
        }
    }

    #[inline]
    fn at(&mut self, address: u64) -> &mut T {
        let page = (address >> PAGE_SHIFT) as usize;
        let within = ((address & ((1 << PAGE_SHIFT) - 1)) >> self.grain) as usize;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let grain = self.grain;
        let page = self.pages[page]
            .get_or_insert_with(|| vec![T::default(); 1 << (PAGE_SHIFT - grain)].into());
        &mut page[within]
    }
}
