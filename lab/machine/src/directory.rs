//! The directory: for each line, who has it in its private caches, who owns it, and until when it
//! is busy.
//!
//! Invariant `owner-alone`: a line has an owner, who alone has it (MESI's exclusive and modified,
//! which differ only in a write-back that nobody waits for), or any number of holders and no owner
//! (shared), or nobody (invalid everywhere).

/// CPUs of a machine, at most.
pub const MOST_CPUS: usize = 256;

/// No CPU's number.
const NOBODY: u16 = u16::MAX;

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

    /// Is any CPU in here that is not in `others`?
    pub(crate) fn any_outside(&self, others: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&others.0);
        pairs.any(|(mine, theirs)| mine & !theirs != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; MOST_CPUS / 64]
    }

    /// The CPUs, in order. Takes as long as there are CPUs in it.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(at, mut word)| {
            core::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                // Where the word is 0 there is no bit left.
                word &= word.checked_sub(1)?;
                Some(at * 64 + bit)
            })
        })
    }
}

/// What the directory knows of one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The next request for this line begins then at the earliest.
    pub(crate) busy_until: u64,
    holders: CpuSet,
    owner: u16,
}

impl Entry {
    /// A line that nobody has.
    pub(crate) const UNUSED: Self = Self {
        busy_until: 0,
        holders: CpuSet([0; MOST_CPUS / 64]),
        owner: NOBODY,
    };

    /// Who may write it without asking.
    #[inline]
    pub(crate) fn owner(&self) -> Option<usize> {
        (self.owner != NOBODY).then_some(usize::from(self.owner))
    }

    #[inline]
    pub(crate) fn is_owner(&self, cpu: usize) -> bool {
        usize::from(self.owner) == cpu
    }

    /// Who has it, the owner among them.
    #[inline]
    pub(crate) fn holders(&self) -> CpuSet {
        self.holders
    }

    /// `cpu` has it, alone; gives those who had it beside `cpu`.
    pub(crate) fn own(&mut self, cpu: usize) -> CpuSet {
        let mut others = self.holders;
        others.remove(cpu);
        self.holders = CpuSet::default();
        self.holders.insert(cpu);
        // Fits: a CPU's number is below 256.
        self.owner = cpu as u16;
        others
    }

    /// `cpu` has it beside those who do, and nobody owns it.
    pub(crate) fn share(&mut self, cpu: usize) {
        self.holders.insert(cpu);
        self.owner = NOBODY;
    }

    /// `cpu` has it no longer.
    pub(crate) fn forget(&mut self, cpu: usize) {
        self.holders.remove(cpu);
        if self.is_owner(cpu) {
            self.owner = NOBODY;
        }
    }

    /// Does `owner-alone` hold?
    pub(crate) fn owner_is_alone(&self) -> bool {
        self.owner()
            .is_none_or(|owner| self.holders.iter().eq([owner]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_cpus_in_order() {
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
