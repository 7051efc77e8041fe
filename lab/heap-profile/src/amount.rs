//! Objects and bytes.

use core::ops::AddAssign;

/// A number of objects, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// The number of objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// Returns the amount that these samples stand for, if one was taken in `period` bytes on
    /// average: a sample of objects of `s` bytes stands for `1 / (1 - exp(-s / period))` objects.
    /// Rounded down, as pprof does.
    ///
    /// ```
    /// use brickyard_heap_profile::Amount;
    ///
    /// let samples = Amount { objects: 1, bytes: 1 << 20 };
    /// // Of such large objects most are sampled.
    /// assert_eq!(samples.estimate(1 << 19), Amount { objects: 1, bytes: 1_212_696 });
    /// ```
    #[must_use]
    pub fn estimate(self, period: u64) -> Self {
        if self.objects == 0 || self.bytes == 0 {
            return Self::default();
        }
        if period <= 1 {
            return self;
        }
        let (objects, bytes) = (self.objects as f64, self.bytes as f64);
        let scale = 1.0 / (1.0 - (-(bytes / objects) / period as f64).exp());
        // A cast saturates.
        Self {
            objects: (objects * scale) as u64,
            bytes: (bytes * scale) as u64,
        }
    }

    /// Returns true if it is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.objects == 0 && self.bytes == 0
    }
}

/// Saturates: a file may claim any numbers.
impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl core::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |mut sum, amount| {
            sum += amount;
            sum
        })
    }
}
