//! What computing displaces from a CPU's caches.
//!
//! Computing accesses memory of its own, which the machine does not simulate access by access: that
//! would take a million times as long. What matters to shared lines is only that they are evicted
//! meanwhile. With LRU replacement, and a program whose lines are spread evenly over the sets, a
//! line is evicted when the CPU has since touched as many other lines as the cache has. A
//! [`Footprint`] says after how many instructions of computing that is.
//!
//! So each CPU counts the instructions that it has computed, and for each line the count at its
//! last access. Nothing happens until the line is accessed again, by that CPU or, while that CPU is
//! its owner, by another one: then it is removed from the caches that it would have been evicted
//! from. That costs O(1) an access, and nothing while a CPU computes. Until then a line without an
//! owner is still listed as held. An invalidation takes as long for many copies as for one. But a
//! CPU that fetches the line meanwhile shares it with such holders, where it could own it, and so
//! its first write is an upgrade; and a holder on another node makes an invalidation leave the
//! node.

/// After how much computing a line that was not accessed meanwhile has left a CPU's caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Footprint {
    /// The instructions in which a program touches as many lines as the first level has.
    pub l1_instructions: u64,
    /// The same for the second level; at least as many.
    pub l2_instructions: u64,
}

/// Where a line still is, of the caches in which it was last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Computing has displaced it from no cache.
    Everywhere,
    /// From the first level.
    InL2,
    /// From both.
    Nowhere,
}

/// The computing of one CPU, and when it last accessed each line.
#[derive(Debug, Clone)]
pub(crate) struct Displacement {
    footprint: Footprint,
    computed: u64,
    /// `computed` at the last access to each line.
    accessed: Vec<u64>,
}

impl Displacement {
    pub(crate) const fn new(footprint: Footprint) -> Self {
        Self {
            footprint,
            computed: 0,
            accessed: Vec::new(),
        }
    }

    /// Makes room for this many lines.
    pub(crate) fn grow(&mut self, lines: usize) {
        self.accessed.resize(lines, 0);
    }

    pub(crate) fn compute(&mut self, instructions: u64) {
        self.computed += instructions;
    }

    /// Returns where the line still is.
    pub(crate) fn kept(&self, line: u32) -> Kept {
        let since = self.computed - self.accessed[line as usize];
        if since < self.footprint.l1_instructions {
            Kept::Everywhere
        } else if since < self.footprint.l2_instructions {
            Kept::InL2
        } else {
            Kept::Nowhere
        }
    }

    /// Returns where the line still is, and notes that it is accessed now.
    pub(crate) fn access(&mut self, line: u32) -> Kept {
        let kept = self.kept(line);
        self.accessed[line as usize] = self.computed;
        kept
    }
}
