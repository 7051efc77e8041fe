//! How soon computing evicts a line of the allocator from a CPU's caches.
//!
//! Measured: how many different lines of 64 bytes a program touches within so many instructions,
//! its own code and data together, in the mean over consecutive windows. Lackey (of valgrind) lists
//! every access of a program in user mode; `traces/footprint.c` counts.
//!
//! | within instructions | `cc1 -O2` | `objdump -d -l` | `grep -l` |
//! |---|---|---|---|
//! | 1,000 | 0 | 135 | 99 |
//!
//! All workloads are charged the compiler's footprint, the largest of the three: most of them are
//! compiles, or scripts that run compilers. The kernel's own code and data come on top, and a first
//! level for data alone is not displaced by code; the two are of opposite effect, and neither is
//! counted. Between the measured points, and beyond the last, the number of lines grows by a power
//! of the instructions.

use brickyard_machine::{CacheShape, Footprint, Profile};

/// Instructions, and the lines that a compiler touches within them.
const TOUCHED: [(f64, f64); 2] = [(1e3, 130.0), (1e6, 6302.0)];

/// Returns the footprint of a compiler on the caches of this machine.
#[must_use]
pub fn of(profile: &Profile) -> Footprint {
    Footprint {
        l1_instructions: instructions_to_touch(profile.l1),
        l2_instructions: instructions_to_touch(profile.l2),
    }
}

/// Returns the instructions within which as many lines are touched as the cache has.
fn instructions_to_touch(cache: CacheShape) -> u64 {
    let lines = cache.lines as f64;
    let last = TOUCHED.len() - 1;
    let above = TOUCHED.iter().position(|&(_, touched)| touched >= lines);
    let above = above.unwrap_or(last).max(1);
    let ((from, low), (to, high)) = (TOUCHED[above - 1], TOUCHED[above]);
    let part = (lines / low).ln() / (high / low).ln();
    (from * (to / from).powf(part)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_of_a_measured_size_lasts_as_measured() {
        for (instructions, lines) in TOUCHED {
            let shape = CacheShape::new(lines as usize, 1, 0);
            let got = instructions_to_touch(shape) as f64;
            assert!((got / instructions - 1.0).abs() < 0.01, "{got}");
        }
        let [small, large] = [100, 1_000_000].map(|lines| CacheShape::new(lines, 1, 0));
        assert!(instructions_to_touch(small) < 1_000);
        assert!(instructions_to_touch(large) > 100_000_000);
    }

    #[test]
    fn a_line_leaves_the_first_level_first() {
        for profile in Profile::ALL {
            let footprint = of(profile);
            assert!(footprint.l1_instructions < footprint.l2_instructions);
        }
    }
}
