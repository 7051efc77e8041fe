//! The directory: for each line, which CPUs have it in their private caches, which one owns it, and
//! until when it is busy.
//!
//! Invariant `owner-alone`: a line has an owner, which is its only holder (MESI's exclusive and
//! modified, which differ only in a write-back that no access waits for), or any number of holders
//! and no owner (shared), or no holder (invalid everywhere).

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

#[cfg(test)]
mod tests {
    use super::*;

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
