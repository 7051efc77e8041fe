//! How soon computing evicts a line of the allocator from a CPU's caches.
//!
//! Measured: how many different lines of 64 bytes a program touches within so many instructions,
//! its own code and data together, in the mean over consecutive windows. Lackey (of valgrind) lists
//! every access of a program in user mode; `traces/footprint.c` counts.
//!
//! | within instructions | `cc1 -O2` | `objdump -d -l` | `grep -l` | `dash` |
//! |---|---|---|---|---|
//! | 1,000 | 106 | 135 | 99 | 112 |
//! | 3,000 | 196 | 239 | 199 | 230 |
//! | 10,000 | 367 | 480 | 396 | 452 |
//! | 30,000 | 657 | 652 | 687 | 546 |
//! | 100,000 | 1,187 | 763 | 1,081 | 550 |
//! | 300,000 | 1,994 | 876 | 1,786 | 562 |
//! | 1,000,000 | 3,813 | 1,064 | 3,892 | 598 |
//! | 3,000,000 | 7,387 | 1,232 | 7,649 | 702 |
//! | 10,000,000 | 16,244 | 1,538 | | 1,067 |
//! | 30,000,000 | 34,934 | 2,070 | | 2,109 |
//!
//! (`cc1`: `traces/dpunish.c`, 120 million instructions after the first 10; `objdump`: of
//! `/usr/bin/perl`, 60 after the first 30; `grep`: through the files of `find`, all 3.4; `dash`: a
//! loop of assignments and a pattern, 60.)
//!
//! All workloads are charged the compiler's footprint, the largest: most of them are compiles, or
//! scripts that run compilers. The kernel's own code and data come on top and are not counted. Code
//! does not displace data in a first level for data alone, and is counted. Between the measured
//! points, and beyond the last, the number of lines grows by a power of the instructions.

use brickyard_machine::{CacheShape, Footprint, Profile};

/// Instructions, and the lines that a compiler touches within them.
const TOUCHED: [(f64, f64); 10] = [
    (1e3, 106.0),
    (3e3, 196.0),
    (1e4, 367.0),
    (3e4, 657.0),
    (1e5, 1_187.0),
    (3e5, 1_994.0),
    (1e6, 3_813.0),
    (3e6, 7_387.0),
    (1e7, 16_244.0),
    (3e7, 34_934.0),
];

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
