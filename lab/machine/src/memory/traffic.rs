//! The memory traffic of a CPU, as counts.

use core::ops::{AddAssign, Sub};

/// Defines a struct of counts that can be added and subtracted.
macro_rules! counts {
    ($(#[$about:meta])+ pub struct $counts:ident { $($(#[$count_is:meta])+ $count:ident,)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $counts {
            $($(#[$count_is])+ pub $count: u64,)+
        }

        impl AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$count += other.$count;)+
            }
        }

        impl Sub for $counts {
            type Output = Self;

            fn sub(self, before: Self) -> Self {
                Self { $($count: self.$count - before.$count,)+ }
            }
        }
    };
}

counts! {
    /// The memory traffic of a CPU.
    ///
    /// Each access is counted once: `accesses` is the sum of `l1_hits`, `l2_hits`, `upgrades`,
    /// `llc_hits`, `memory` and `transfers`.
    pub struct Traffic {
        /// Accesses in all.
        accesses,
        /// Found in the first level.
        l1_hits,
        /// Found in the second level.
        l2_hits,
        /// Found in the CPU's own caches, but shared, and made exclusive for a write.
        upgrades,
        /// Fetched from a last level.
        llc_hits,
        /// Fetched from memory.
        memory,
        /// Fetched from another CPU, which owned it.
        transfers,
        /// Of all accesses, those that took the line from another CPU or ended its copy there: a
        /// transfer, or a write to a line of which others have copies, whether the writer has one
        /// too (an upgrade) or not (a fetch). A hardware counter of snoops that hit has the same. A
        /// read of a line that others only share takes nothing from them, and is not among these.
        bounced,
        /// Lines of this CPU that other CPUs' writes invalidated.
        invalidated,
        /// Cycles waited for lines that were busy with other requests.
        waited_cycles,
    }
}

impl Traffic {
    /// Returns how many lines were moved to this CPU.
    #[must_use]
    pub const fn moved(&self) -> u64 {
        self.llc_hits + self.memory + self.transfers
    }
}
