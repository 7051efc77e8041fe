//! Random numbers from a seed: the same on every host, in debug and release.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): one
//! word of state, integers only. It passes the usual test batteries, and every seed is a good one,
//! 0 too.

/// The increment of the state: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A random number generator that is determined by its seed.
///
/// A clone gives the same numbers again; [`split`](Self::split) gives an independent generator.
///
/// ```
/// use brickyard_run::Dice;
///
/// let mut dice = Dice::new(7);
/// let mut same = Dice::new(7);
/// assert_eq!(dice.next(), same.next());
/// assert!(dice.below(6) < 6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Draws a number; each of the 2^64 is equally likely.
    #[inline]
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `n`; 0 where `n` is 0.
    ///
    /// The top word of a product, not a remainder: no number is favoured by more than `n` in 2^64.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// Draws true once in `one_in` times; always where `one_in` is 1, never where it is 0.
    #[inline]
    pub const fn chance(&mut self, one_in: u64) -> bool {
        // Drawn in any case, so that what follows does not depend on `one_in`.
        let drawn = self.below(one_in);
        one_in != 0 && drawn == 0
    }

    /// Draws a generator for a part of the work. What that part draws does not change the numbers
    /// of this one.
    pub const fn split(&mut self) -> Self {
        Self::new(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_numbers() {
        // The first numbers of SplitMix64 with seed 1234567, as its reference implementation prints
        // them.
        let mut dice = Dice::new(1_234_567);
        let first = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, core::array::from_fn(|_| dice.next()));
    }

    #[test]
    fn below_stays_below_its_bound_and_draws_every_number() {
        let mut dice = Dice::new(0);
        let mut seen = [0_u32; 6];
        for _ in 0..6000 {
            seen[usize::try_from(dice.below(6)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(dice.below(1), 0);
        assert_eq!(dice.below(0), 0);
        assert!(dice.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn chance_is_true_as_often_as_requested() {
        let mut dice = Dice::new(1);
        let hits = (0..10_000).filter(|_| dice.chance(10)).count();
        assert!((850..1150).contains(&hits), "{hits}");
        assert!((0..100).all(|_| dice.chance(1)));
        assert!((0..100).all(|_| !dice.chance(0)));
    }

    #[test]
    fn split_dice_draw_different_numbers() {
        let mut dice = Dice::new(2);
        let mut one = dice.split();
        let mut other = dice.split();
        let draws = |dice: &mut Dice| -> [u64; 8] { core::array::from_fn(|_| dice.next()) };
        assert_ne!(draws(&mut one), draws(&mut other));
        assert_ne!(draws(&mut one), draws(&mut dice));
    }
}
