//! Who has seen what: vector clocks of the simulated CPUs, and races of guarded words.
//!
//! The rules are those of C++20, which are Rust's. A release store or exchange publishes all that
//! its CPU has done and seen so far at that word; who acquires from the word has then seen it too.
//! The *release sequence* that a release begins goes on through exchanges of any ordering and ends
//! at the next store that is none: a relaxed store publishes nothing, not even what its own CPU
//! published there before. `SeqCst` counts as `AcqRel`: the total order of such accesses is the
//! order in which the machine makes them.
//!
//! A guarded word is private to whoever holds what guards it, so any two accesses of which one
//! writes must be ordered. For each the last write is kept as an *epoch* (a CPU and its clock
//! then), and the reads since as an epoch too, or as a vector where several CPUs read that had not
//! seen each other (Flanagan and Freund, FastTrack, 2009). An access that has not seen the last
//! conflicting one is a [`Race`].
//!
//! What ran on one CPU is ordered, whichever tasks and interrupts it were: the scheduler that
//! switched them is not part of what is watched. A task that wakes or goes on elsewhere takes along
//! what its old CPU had seen: [`HappensBefore::handover`]. What was written before the machine ran,
//! everybody has seen.

use core::fmt;
use core::sync::atomic::Ordering;

/// What two accesses of a guarded word did that nothing ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The word was written, and is read now.
    WriteThenRead,
    /// The word was written, and is written now.
    WriteThenWrite,
    /// The word was read, and is written now.
    ReadThenWrite,
}

/// Two accesses of a guarded word that nothing ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// The CPU whose access it is.
    pub cpu: usize,
    /// The CPU whose earlier access it has not seen.
    pub other: usize,
    /// The word, as it was named.
    pub word: u64,
    /// What the two did.
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

/// Which row of a table of clocks; row 0 is nobody's.
type Row = u32;

/// A moment of one CPU: its number and its own clock. Clock 0 is before all, so an epoch of zeros
/// stands for no access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Epoch {
    cpu: u16,
    clock: u32,
}

/// What an atomic word has published, besides its clock.
#[derive(Debug, Clone, Copy, Default)]
struct Published {
    // Whoever has seen this epoch has seen the whole clock; without one that must be compared.
    head: Epoch,
    // Is a release sequence going on?
    live: bool,
}

/// The accesses of a guarded word.
#[derive(Debug, Clone, Copy, Default)]
struct Accesses {
    written: Epoch,
    // The only read since, or the last of them: each has seen those before.
    read: Epoch,
    // The reads since, by CPU, where one does not do.
    readers: Row,
}

/// The clocks of all CPUs and of all words that they share.
///
/// A word is named by its address: four bytes and aligned at least for guarded words, any for
/// atomic ones. Costs: an acquire of what was seen already a few loads, else one pass over a clock
/// (a `u32` a CPU); a release one pass; a guarded access a few loads. Memory: 4 KiB of addresses
/// take 16 KiB for their atomic words and 20 KiB for their guarded ones once one is used, and each
/// word that was released to a clock.
#[derive(Debug)]
pub struct HappensBefore {
    // What each CPU has seen.
    seen: Clocks,
    // Which row an atomic word has, once it has been released to.
    rows: Paged<Row>,
    published: Vec<Published>,
    clocks: Clocks,
    guarded: Paged<Accesses>,
    readers: Clocks,
    // Rows of `readers` that nobody uses.
    spare: Vec<Row>,
}

impl HappensBefore {
    /// So many CPUs, of which nobody has done anything yet.
    ///
    /// # Panics
    /// For no CPU, and above 65,536.
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

    /// `cpu` has loaded an atomic word.
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

    /// `cpu` has read and written an atomic word as one. An exchange that was refused is a
    /// [load](HappensBefore::load).
    #[inline]
    pub fn exchange(&mut self, cpu: usize, word: u64, order: Ordering) {
        if acquires(order) {
            let row = *self.rows.at(word);
            self.acquire(cpu, row);
        }
        if !releases(order) {
            // A release sequence that goes on, goes on.
            return;
        }
        let row = self.row_of(word);
        let published = self.published[row as usize];
        if !published.live || acquires(order) || self.knows(cpu, published) {
            // All that was published is seen here, so one's own clock says it all.
            self.publish(cpu, row);
        } else {
            self.publish_too(cpu, row);
        }
    }

    /// `cpu` reads a guarded word.
    ///
    /// # Errors
    /// The last write was another CPU's, and has not been seen.
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

    /// `cpu` writes a guarded word.
    ///
    /// # Errors
    /// The last write, or a read since, was another CPU's and has not been seen.
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
            self.look_at_readers(cpu, word, readers)?;
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

    /// From now on `to` has seen all that `from` has: a task moves, one wakes another, an interrupt
    /// is sent and taken.
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

    /// Has `cpu` certainly seen all that was published?
    fn knows(&self, cpu: usize, published: Published) -> bool {
        published.head != Epoch::default() && self.has_seen(cpu, published.head)
    }

    /// What `cpu` does from here on, nobody has seen yet. A clock that can rise no further misses
    /// races, and reports none that is not there.
    fn tick(&mut self, cpu: usize) {
        let clock = &mut self.seen.of_mut(cpu as Row)[cpu];
        *clock = clock.saturating_add(1);
    }

    /// The row of an atomic word; a new one, where nothing is published, if it has none.
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
        if published.live && !self.knows(cpu, published) {
            join(self.seen.of_mut(cpu as Row), self.clocks.of(row));
        }
    }

    /// The word says what `cpu` has seen, and no more.
    fn publish(&mut self, cpu: usize, row: Row) {
        let seen = self.seen.of(cpu as Row);
        self.clocks.of_mut(row).copy_from_slice(seen);
        self.published[row as usize] = Published {
            head: self.now(cpu),
            live: true,
        };
        self.tick(cpu);
    }

    /// The word says what `cpu` has seen besides what it said before: two release sequences go on
    /// as one.
    fn publish_too(&mut self, cpu: usize, row: Row) {
        join(self.clocks.of_mut(row), self.seen.of(cpu as Row));
        self.published[row as usize].head = Epoch::default();
        self.tick(cpu);
    }

    fn look_at_readers(&self, cpu: usize, word: u64, readers: Row) -> Result<(), Race> {
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

/// Clocks, each a `u32` a CPU, one after the other.
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

    /// One more, of zeros.
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

    /// One to read and another one to write.
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

/// Of each pair the later, into the first.
fn join(into: &mut [u32], other: &[u32]) {
    for (own, &other) in into.iter_mut().zip(other) {
        *own = (*own).max(other);
    }
}

/// Addresses of a page of this table.
const PAGE_SHIFT: u32 = 12;

/// A value for each `1 << grain` bytes of a dense space of addresses, made page by page when first
/// asked for.
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
