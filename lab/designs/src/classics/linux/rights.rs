//! What a request may do beyond taking a free block: go below marks, use what is set aside, wake
//! background reclaim.

use brickyard::{Context, Request};

/// A set of rights, which a request has or has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u8);

impl Rights {
    /// None.
    pub const NONE: Self = Self(0);
    /// It does not break page blocks of another type (`ALLOC_NOFRAGMENT`).
    pub const KEEPS_APART: Self = Self(1 << 0);
    /// It wakes background reclaim (`ALLOC_KSWAPD`).
    pub const WAKES: Self = Self(1 << 1);
    /// It may go below half of the min mark (`ALLOC_MIN_RESERVE`).
    pub const MIN_RESERVE: Self = Self(1 << 2);
    /// It cannot wait (`ALLOC_NON_BLOCK`): with `MIN_RESERVE`, it may use a quarter of the rest.
    pub const NON_BLOCK: Self = Self(1 << 3);
    /// It may use page blocks set aside, and sets more aside (`ALLOC_HIGHATOMIC`).
    pub const HIGH_ATOMIC: Self = Self(1 << 4);
    /// It is about to free its memory (`ALLOC_OOM`).
    pub const OOM: Self = Self(1 << 5);
    /// No mark holds it back (`ALLOC_NO_WATERMARKS`).
    pub const NO_MARKS: Self = Self(1 << 6);

    /// Those that let a request count frames set aside for atomic requests as free.
    const OF_RESERVES: Self =
        Self(Self::MIN_RESERVE.0 | Self::NON_BLOCK.0 | Self::HIGH_ATOMIC.0 | Self::OOM.0);

    /// Returns these and those.
    #[must_use]
    pub const fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Returns these, and those if `given`.
    #[must_use]
    pub const fn and_if(self, given: bool, more: Self) -> Self {
        if given { self.and(more) } else { self }
    }

    /// Returns these without those.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// Returns true if these include any of those.
    #[must_use]
    pub const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Returns true if frames set aside for atomic requests count as free for it.
    #[must_use]
    pub const fn counts_set_aside(self) -> bool {
        self.any(Self::OF_RESERVES)
    }

    /// Returns what a request in this context may do in the slow path.
    #[must_use]
    pub const fn of(request: &Request) -> Self {
        let atomic = !matches!(request.context, Context::MaySleep);
        Self::WAKES
            .and_if(atomic, Self::MIN_RESERVE.and(Self::NON_BLOCK))
            .and_if(request.is_high_atomic(), Self::HIGH_ATOMIC)
    }

    /// Returns what is left of the min mark for it. Each part that is taken off is rounded down.
    #[must_use]
    pub const fn lowered(self, mark: usize) -> usize {
        let mut left = mark;
        if self.any(Self::MIN_RESERVE) {
            left -= left / 2;
            if self.any(Self::NON_BLOCK) {
                left -= left / 4;
            }
        }
        if self.any(Self::OOM) {
            left -= left / 2;
        }
        left
    }
}
