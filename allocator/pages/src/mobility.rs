//! Mobility: what can be done with a page while it is in use, and the lists that follow from it.
//!
//! A *request* has one of three mobilities. A *list* of free pages, and a page block, has two more
//! types. One is kept for atomic requests of order 1 and up. The other is isolated, so that nothing
//! is handed out from it.

/// What the owner of a page allows later (Gorman 2007).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mobility {
    /// Stays in place until it is freed: page tables, kernel stacks, most slabs.
    #[default]
    Unmovable,
    /// Can be migrated or written out: anonymous memory, page cache.
    Movable,
    /// Cannot be moved, but can be reclaimed on request: caches of inodes and directory entries.
    Reclaimable,
}

impl Mobility {
    /// All three mobilities, in the order of Linux's numbers.
    pub const ALL: [Self; 3] = [Self::Unmovable, Self::Movable, Self::Reclaimable];
}

/// The type of a list of free pages and of a page block. The numbers are those of Linux since 4.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// For requests whose pages stay in place.
    Unmovable = 0,
    /// For requests whose pages can be moved.
    Movable = 1,
    /// For requests whose pages can be reclaimed.
    Reclaimable = 2,
    /// For atomic requests of order 1 and up.
    HighAtomic = 3,
    /// For no request: the range is about to be taken as a whole.
    Isolate = 4,
}

impl MigrateType {
    /// All types, by number.
    pub const ALL: [Self; 5] = [
        Self::Unmovable,
        Self::Movable,
        Self::Reclaimable,
        Self::HighAtomic,
        Self::Isolate,
    ];
    /// The number of types.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the type as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the type with this number.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Unmovable,
            1 => Self::Movable,
            2 => Self::Reclaimable,
            3 => Self::HighAtomic,
            _ => Self::Isolate,
        }
    }

    /// Returns the type's name in pagetypeinfo.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unmovable => "Unmovable",
            Self::Movable => "Movable",
            Self::Reclaimable => "Reclaimable",
            Self::HighAtomic => "HighAtomic",
            Self::Isolate => "Isolate",
        }
    }
}

impl From<Mobility> for MigrateType {
    fn from(mobility: Mobility) -> Self {
        match mobility {
            Mobility::Unmovable => Self::Unmovable,
            Mobility::Movable => Self::Movable,
            Mobility::Reclaimable => Self::Reclaimable,
        }
    }
}
