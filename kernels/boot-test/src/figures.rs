//! Counts of operations: of each worker alone, and summed up for all.

use core::fmt;
use core::ops::AddAssign;
use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! figures {
    ($($(#[doc = $what:literal])+ $name:ident: $text:literal,)+) => {
        /// Counts of what was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Figures {
            $($(#[doc = $what])+ pub $name: u64,)+
        }

        impl AddAssign for Figures {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }

        impl fmt::Display for Figures {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut before = "";
                $(if self.$name > 0 {
                    write!(f, concat!("{}{} ", $text), before, self.$name)?;
                    before = ", ";
                })+
                if before.is_empty() {
                    f.write_str("nothing")?;
                }
                Ok(())
            }
        }

        /// Figures that any number of CPUs, and interrupts on them, add to at once.
        #[derive(Debug, Default)]
        pub struct Totals {
            $($name: AtomicU64,)+
        }

        impl Totals {
            /// Returns totals of 0.
            #[must_use]
            pub const fn new() -> Self {
                Self { $($name: AtomicU64::new(0),)+ }
            }

            /// Adds what somebody has done.
            pub fn add(&self, figures: &Figures) {
                // Relaxed: counts, read when all have ended.
                $(if figures.$name > 0 {
                    self.$name.fetch_add(figures.$name, Ordering::Relaxed);
                })+
            }

            /// Returns the sums so far.
            #[must_use]
            pub fn get(&self) -> Figures {
                Figures { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

figures! {
    /// Blocks taken, each frame of a bulk request counted as one.
    takes: "takes",
    /// Of those: taken in interrupts.
    in_interrupts: "in interrupts",
    /// Of those: taken with interrupts masked, or by callers that may not sleep.
    atomic: "atomic",
    /// Of those: above order 0.
    above_order_0: "above order 0",
    /// Of those: one certain block.
    taken_at: "of a certain block",
    /// Frees of blocks, parts of blocks, and each frame of a bulk free.
    frees: "frees",
    /// Of those: a part of a larger block.
    parts: "of parts",
    /// Requests in bulk.
    bulk: "bulk requests",
    /// Blocks handed to another CPU, task or interrupt, which frees them.
    handed_over: "handed over",
    /// Requests refused.
    refused: "refused",
    /// Of those: single frames, by callers that may sleep.
    singles_refused: "single frames refused",
    /// Bad frees tried. Each was refused.
    bad_frees: "bad frees refused",
    /// Times that a task took all there was, until it was refused.
    floods: "floods",
    /// Frames taken in floods.
    flooded: "flooded frames",
    /// Drains of all caches.
    drains: "drains",
    /// Ranges removed, and added again.
    removed: "ranges removed and added",
    /// Ranges reserved, and freed again.
    reserved: "reserved",
    /// Ranges taken as a whole.
    contiguous: "taken whole",
    /// Changes of ranges that were refused because a frame was in use.
    busy: "refused as busy",
    /// Changes of ranges given up, because frames stayed in use.
    given_up: "given up",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn sums_and_text() {
        let totals = Totals::new();
        let figures = Figures {
            takes: 3,
            busy: 1,
            ..Figures::default()
        };
        totals.add(&figures);
        totals.add(&figures);
        assert_eq!(totals.get().to_string(), "6 takes, 2 refused as busy");
        assert_eq!(Figures::default().to_string(), "nothing");
    }
}
