//! Random sizes, small ones more often than large ones.

use brickyard_run::Dice;

/// Draws a size from `least` to `most`.
pub(crate) fn uniform(dice: &mut Dice, least: usize, most: usize) -> usize {
    least + dice.below((most - least + 1) as u64) as usize
}

/// Draws a size from `least` to less than twice `most`, where each doubling is half as likely as
/// the one before: a Pareto distribution in steps. `most` is `least` times a power of two.
pub(crate) fn halving(dice: &mut Dice, least: usize, most: usize) -> usize {
    let doublings = (most / least).ilog2();
    let drawn = dice.next();
    let doubling = drawn.trailing_ones().min(doublings);
    let base = least << doubling;
    base + (drawn >> 32) as usize % base
}

/// Draws a size from `least` to `most`, each doubling equally likely.
pub(crate) fn logarithmic(dice: &mut Dice, least: usize, most: usize) -> usize {
    let ratio = (most as f64 / least as f64).ln();
    ((least as f64 * (unit(dice) * ratio).exp()) as usize).clamp(least, most)
}

/// Draws a size from `least` to `most` whose probability falls with its square.
pub(crate) fn inverse_square(dice: &mut Dice, least: usize, most: usize) -> usize {
    let (least_inverse, most_inverse) = (1.0 / least as f64, 1.0 / most as f64);
    let inverse = least_inverse - unit(dice) * (least_inverse - most_inverse);
    ((1.0 / inverse) as usize).clamp(least, most)
}

/// Draws a size from `least` to `most`, falling in steps of a straight line: of two draws the
/// smaller.
pub(crate) fn falling(dice: &mut Dice, least: usize, most: usize) -> usize {
    uniform(dice, least, most).min(uniform(dice, least, most))
}

/// Draws a number from 0 to 1.
fn unit(dice: &mut Dice) -> f64 {
    (dice.next() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    type Draw = fn(&mut Dice, usize, usize) -> usize;

    fn mean(draw: Draw, least: usize, most: usize) -> f64 {
        let mut dice = Dice::new(1);
        let draws = 100_000;
        let mut sum = 0;
        for _ in 0..draws {
            let size = draw(&mut dice, least, most);
            assert!(size >= least, "{size}");
            sum += size;
        }
        sum as f64 / f64::from(draws)
    }

    #[test]
    fn sizes_have_the_means_of_their_distributions() {
        let cases: [(Draw, usize, usize, f64); 5] = [
            (uniform, 1, 9, 5.0),
            // Half of the sizes are 11.5 in the mean, a quarter 23.5, a quarter 47.5.
            (halving, 8, 32, 23.5),
            (logarithmic, 16, 1024, 1008.0 / 64_f64.ln()),
            (inverse_square, 4, 32768, 4.0 * 8192_f64.ln()),
            (falling, 0, 900, 300.0),
        ];
        for (draw, least, most, expected) in cases {
            let mean = mean(draw, least, most);
            assert!((mean / expected - 1.0).abs() < 0.1, "{mean} {expected}");
        }
    }
}
