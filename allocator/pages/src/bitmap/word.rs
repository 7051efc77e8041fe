//! Runs of free frames inside one 64-bit word: pure arithmetic, no memory.
//!
//! A run of order n is 2^n set bits, the first at a multiple of 2^n. The same arithmetic finds runs
//! of words in a mask of words, and runs of blocks in a mask of blocks.

/// The order of a whole word.
pub(super) const WORD_ORDER: u8 = 6;

/// The number of frames in a word.
pub(super) const WORD_FRAMES: usize = 1 << WORD_ORDER;

/// For each order, the bits at multiples of 2^order.
const ALIGNED: [u64; WORD_ORDER as usize + 1] = [
    !0,
    0x5555_5555_5555_5555,
    0x1111_1111_1111_1111,
    0x0101_0101_0101_0101,
    0x0001_0001_0001_0001,
    0x0000_0001_0000_0001,
    1,
];

/// Returns the bits at which a run of `order` starts. `order` is at most 6.
#[inline]
pub(super) const fn starts(free: u64, order: u8) -> u64 {
    let mut runs = free;
    let mut half = 0;
    while half < order {
        runs &= runs >> (1_u32 << half);
        half += 1;
    }
    runs & ALIGNED[order as usize]
}

/// Returns the bits at which a run of `order` + 1 starts, if those of `order` start at `runs`.
/// `order` is at most 5.
#[inline]
pub(super) const fn doubled(runs: u64, order: u8) -> u64 {
    runs & (runs >> (1_u32 << order)) & ALIGNED[order as usize + 1]
}

/// Returns 2^order set bits, from bit 0 on. `order` is at most 6.
#[inline]
pub(super) const fn run(order: u8) -> u64 {
    !0 >> (64 - (1_u32 << order))
}

/// Returns the bits of the runs of `order` that start at these bits. `order` is at most 6.
#[inline]
pub(super) const fn runs_from(starts: u64, order: u8) -> u64 {
    // The runs do not overlap, so nothing is carried.
    starts.wrapping_mul(run(order))
}

/// Returns the order of the largest run, if it is above `known`; else `known`.
#[inline]
pub(super) const fn largest(free: u64, known: u8) -> u8 {
    let mut order = known;
    while order < WORD_ORDER && starts(free, order + 1) != 0 {
        order += 1;
    }
    order
}

/// Returns the bit to take a run of `order` from: the start of the smallest run that contains one,
/// so that larger runs stay whole.
#[inline]
pub(super) const fn best_fit(free: u64, order: u8) -> Option<u32> {
    let mut runs = starts(free, order);
    if runs == 0 {
        return None;
    }
    let mut size = order;
    while size < WORD_ORDER {
        let half = 1_u32 << size;
        let larger = doubled(runs, size);
        let alone = runs & !(larger | larger << half);
        if alone != 0 {
            return Some(alone.trailing_zeros());
        }
        runs = larger;
        size += 1;
    }
    Some(runs.trailing_zeros())
}

/// Returns the lowest `count` set bits of `free`, which must have more.
pub(super) const fn lowest(free: u64, count: u32) -> u64 {
    if free == !0 {
        return !(!0 << count);
    }
    let mut rest = free;
    let mut taken = 0;
    while taken < count {
        rest &= rest - 1;
        taken += 1;
    }
    free & !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of [`starts`], bit by bit.
    fn starts_slowly(free: u64, order: u8) -> u64 {
        let frames = 1 << order;
        let is_free = |bit: usize| free >> bit & 1 == 1;
        (0..64)
            .step_by(frames)
            .filter(|&first| (first..first + frames).all(is_free))
            .fold(0, |found, first| found | 1 << first)
    }

    /// Returns words of every density.
    fn words() -> impl Iterator<Item = u64> {
        let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
        let mut roll = move || {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice
        };
        let sparse = (0..500).map(move |i| match i % 4 {
            0 => roll(),
            1 => roll() & roll() & roll(),
            2 => roll() | roll() | roll(),
            _ => roll() | roll() | roll() | roll() | roll() | roll(),
        });
        [0, !0, 1, 1 << 63, 0xffff_ffff, !1]
            .into_iter()
            .chain(sparse)
    }

    #[test]
    fn runs_are_found_where_the_definition_finds_them() {
        for free in words() {
            for order in 0..=WORD_ORDER {
                assert_eq!(starts(free, order), starts_slowly(free, order), "{free:#x}");
            }
            let largest_slowly = (0..=WORD_ORDER)
                .rev()
                .find(|&o| starts_slowly(free, o) != 0);
            assert_eq!(largest(free, 0), largest_slowly.unwrap_or(0), "{free:#x}");
        }
    }

    #[test]
    fn the_smallest_run_is_broken() {
        for free in words() {
            for order in 0..=WORD_ORDER {
                let Some(bit) = best_fit(free, order) else {
                    assert_eq!(starts_slowly(free, order), 0);
                    continue;
                };
                assert_eq!(starts_slowly(free, order) >> bit & 1, 1);
                // The order of the largest run around a position.
                let around = |bit: u32| {
                    let holds = |&o: &u8| starts_slowly(free, o) >> (bit >> o << o) & 1 == 1;
                    (0..=WORD_ORDER).rev().find(holds)
                };
                let best = (0..64)
                    .filter(|&other| starts_slowly(free, order) >> other & 1 == 1)
                    .map(around)
                    .min();
                assert_eq!(Some(around(bit)), best, "{free:#x} order {order}");
            }
        }
    }

    #[test]
    fn masks_of_runs_and_of_the_lowest_bits() {
        assert_eq!([run(0), run(3), run(6)], [1, 0xff, !0]);
        assert_eq!(lowest(0b1011_0100, 2), 0b0001_0100);
        assert_eq!(lowest(!0, 0), 0);
        assert_eq!(lowest(!0, 63), !0 >> 1);
    }
}
