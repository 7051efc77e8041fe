//! The directory: for each line, which CPUs have it in their private caches, which one owns it, and
//! until when it is busy.
//!
//! Invariant `owner-alone`: a line has an owner, which is its only holder (MESI's exclusive and
//! modified, which differ only in a write-back that no access waits for), or any number of holders
//! and no owner (shared), or no holder (invalid everywhere).
//!
//! The entries of a run of lines are allocated when the first of them is written, since most of a
//! machine's memory may never be accessed ([`Machine::reserve`](crate::Machine::reserve)).

use core::ops::{Index, IndexMut};

/// The most CPUs that a machine can have.
pub const MOST_CPUS: usize = 256;

/// The owner of a line without an owner: no CPU has this number.
const NO_OWNER: u16 = u16::MAX;

/// A set of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuSet([u64; MOST_CPUS / 64]);

impl CpuSet {
    #[inline]
    pub(crate) fn insert(&mut self, cpu: usize) {
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, cpu: usize) {
        self.0[cpu / 64] &= !(1 << (cpu % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.0[cpu / 64] & (1 << (cpu % 64)) != 0
    }

    /// Whether it contains any CPU that is not in `others`.
    pub(crate) fn any_outside(&self, others: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&others.0);
        pairs.any(|(mine, theirs)| mine & !theirs != 0)
    }

    /// Whether it contains any CPU but `cpu`.
    pub(crate) fn any_besides(&self, cpu: usize) -> bool {
        let mut others = *self;
        others.remove(cpu);
        !others.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; MOST_CPUS / 64]
    }

    /// Returns the CPUs in order. O(CPUs in the set).
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(at, mut word)| {
            core::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                // A word of 0 has no bit left, and ends the iteration.
                word &= word.checked_sub(1)?;
                Some(at * 64 + bit)
            })
        })
    }
}

/// The directory's entry for one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The earliest time at which the next request for this line can begin.
    pub(crate) busy_until: u64,
    holders: CpuSet,
    owner: u16,
}

impl Entry {
    /// A line that no CPU has.
    pub(crate) const UNUSED: Self = Self {
        busy_until: 0,
        holders: CpuSet([0; MOST_CPUS / 64]),
        owner: NO_OWNER,
    };

    /// Returns the CPU that may write it without a request.
    #[inline]
    pub(crate) fn owner(&self) -> Option<usize> {
        (self.owner != NO_OWNER).then_some(usize::from(self.owner))
    }

    #[inline]
    pub(crate) fn is_owner(&self, cpu: usize) -> bool {
        usize::from(self.owner) == cpu
    }

    /// Returns the CPUs that have it, the owner included.
    #[inline]
    pub(crate) fn holders(&self) -> CpuSet {
        self.holders
    }

    /// Makes `cpu` the owner and only holder; returns the other CPUs that had the line.
    pub(crate) fn own(&mut self, cpu: usize) -> CpuSet {
        let mut others = self.holders;
        others.remove(cpu);
        self.holders = CpuSet::default();
        self.holders.insert(cpu);
        // Fits: a CPU's number is below 256.
        self.owner = cpu as u16;
        others
    }

    /// Adds `cpu` to the holders; the line then has no owner.
    pub(crate) fn share(&mut self, cpu: usize) {
        self.holders.insert(cpu);
        self.owner = NO_OWNER;
    }

    /// Removes `cpu` from the holders, and as the owner.
    pub(crate) fn forget(&mut self, cpu: usize) {
        self.holders.remove(cpu);
        if self.is_owner(cpu) {
            self.owner = NO_OWNER;
        }
    }

    /// Whether `owner-alone` holds.
    pub(crate) fn owner_is_alone(&self) -> bool {
        self.owner()
            .is_none_or(|owner| self.holders.iter().eq([owner]))
    }
}

/// Lines whose entries are allocated together: those of 256 KiB where a line has 64 bytes.
const RUN: usize = 4096;

/// The entries of all lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directory {
    /// `None` for a run of lines that no CPU has had.
    runs: Vec<Option<Box<[Entry]>>>,
    lines: usize,
}

impl Directory {
    /// Returns the number of lines.
    pub(crate) const fn lines(&self) -> usize {
        self.lines
    }

    /// Makes place for at least so many lines.
    pub(crate) fn grow(&mut self, lines: usize) {
        self.lines = self.lines.max(lines);
        self.runs.resize(self.lines.div_ceil(RUN), None);
    }

    /// Returns the entries that are allocated, with their lines.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let runs = self.runs.iter().enumerate();
        let runs = runs.filter_map(|(number, run)| Some((number * RUN, run.as_ref()?)));
        // Fits: a line's number does.
        runs.flat_map(|(first, run)| (first as u32..).zip(run))
    }
}

impl Index<u32> for Directory {
    type Output = Entry;

    #[inline]
    fn index(&self, line: u32) -> &Entry {
        let line = line as usize;
        assert!(line < self.lines, "there is no line {line}");
        match &self.runs[line / RUN] {
            Some(run) => &run[line % RUN],
            None => &Entry::UNUSED,
        }
    }
}

impl IndexMut<u32> for Directory {
    #[inline]
    fn index_mut(&mut self, line: u32) -> &mut Entry {
        let line = line as usize;
        assert!(line < self.lines, "there is no line {line}");
        let run = &mut self.runs[line / RUN];
        let run = run.get_or_insert_with(|| vec![Entry::UNUSED; RUN].into());
        &mut run[line % RUN]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_were_written_take_memory() {
        let mut directory = Directory::default();
        directory.grow(1 << 30);
        assert!(directory[(1 << 30) - 1].holders().is_empty());
        assert_eq!(directory.entries().count(), 0);
        directory[7 * RUN as u32 + 1].own(3);
        assert!(directory[7 * RUN as u32 + 1].is_owner(3));
        assert!(directory[7 * RUN as u32].owner().is_none());
        let mut owned = directory.entries().filter(|(_, entry)| entry.is_owner(3));
        assert_eq!(owned.next().map(|(line, _)| line), Some(7 * RUN as u32 + 1));
        assert!(owned.next().is_none());
        assert_eq!(directory.entries().count(), RUN);
    }

    #[test]
    fn a_set_iterates_over_its_cpus_in_order() {
        let mut set = CpuSet::default();
        for cpu in [255, 0, 63, 64, 130] {
            set.insert(cpu);
        }
        set.remove(130);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert!(set.contains(64) && !set.contains(65) && !set.is_empty());
        let mut others = set;
        assert!(!set.any_outside(&others));
        others.remove(255);
        assert!(set.any_outside(&others));
        assert!(set.any_besides(0) && set.any_besides(1));
        let mut alone = CpuSet::default();
        alone.insert(200);
        assert!(alone.any_besides(0) && !alone.any_besides(200));
    }

    #[test]
    fn an_owner_is_alone() {
        let mut entry = Entry::UNUSED;
        assert_eq!((entry.owner(), entry.holders().is_empty()), (None, true));
        assert!(entry.own(3).is_empty());
        assert_eq!(entry.owner(), Some(3));
        entry.share(5);
        assert_eq!(entry.owner(), None);
        assert!(entry.owner_is_alone());
        assert_eq!(entry.own(5).iter().collect::<Vec<_>>(), [3]);
        assert!(entry.is_owner(5) && entry.owner_is_alone());
        entry.forget(5);
        assert_eq!((entry.owner(), entry.holders().is_empty()), (None, true));
    }
}
