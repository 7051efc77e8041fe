//! In which order those compared take their turns in a round.
//!
//! A turn's time depends on its place: whoever is first finds the machine cold, and whoever comes
//! second finds what the first has left. So over the rounds each of N stands at each place equally
//! often, and comes after each of the others about as often; and which order comes in which round
//! is drawn from the seed.
//!
//! Rounds come in blocks of N, each a Latin square after Williams (1949): the order 0, 1, N-1, 2,
//! N-2, … and its shifts. Where N is even, each comes once after each other in a block. Where it is
//! odd, that takes a block and its mirror image, which come one after the other. Which of those
//! compared is 0, 1, … is drawn for each square (with its mirror image), and so is the order of its
//! rows. Where the rounds end within a block, nobody has had a place more than once more often than
//! another.

use brickyard_bench::random::Random;
use brickyard_machine::fnv1a;

/// The order of `count` in a round, counted from 0: their places in whatever list. `what` tells
/// apart orders that have nothing to do with each other.
pub(super) fn order(count: usize, seed: u64, what: &str, round: usize) -> Vec<usize> {
    if count == 0 {
        return Vec::new();
    }
    let (block, row) = (round / count, round % count);
    let even = count.is_multiple_of(2);
    let square = if even { block } else { block / 2 };
    let labels = shuffled(count, seed, what, ("labels", square));
    let rows = shuffled(count, seed, what, ("rows", block));
    let mut order: Vec<usize> = (0..count)
        .map(|place| labels[(zigzag(place, count) + rows[row]) % count])
        .collect();
    if !even && !block.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// 0, 1, N-1, 2, N-2, …: the steps from one to the next are all different.
const fn zigzag(place: usize, count: usize) -> usize {
    if place.is_multiple_of(2) {
        (count - place / 2) % count
    } else {
        place.div_ceil(2)
    }
}

/// 0 to `count`, shuffled by chance that is this draw's own.
fn shuffled(count: usize, seed: u64, what: &str, (of, number): (&str, usize)) -> Vec<usize> {
    let name = format!("{what} {of} {number}");
    let mut random = Random::new(seed ^ fnv1a(&name));
    let mut all: Vec<usize> = (0..count).collect();
    random.shuffle(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(count: usize, seed: u64, rounds: usize) -> Vec<Vec<usize>> {
        (0..rounds)
            .map(|round| order(count, seed, "slab.host.heaps", round))
            .collect()
    }

    /// How often each of `count` was at each place, and after each other.
    fn counted(orders: &[Vec<usize>], count: usize) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let (mut at, mut after) = (vec![vec![0; count]; count], vec![vec![0; count]; count]);
        for order in orders {
            for (place, &one) in order.iter().enumerate() {
                at[one][place] += 1;
            }
            for pair in order.windows(2) {
                after[pair[1]][pair[0]] += 1;
            }
        }
        (at, after)
    }

    #[test]
    fn all_stand_at_every_place_equally_often() {
        for count in 1..=9 {
            for rounds in [6, 11, 15, 2 * count] {
                for seed in 0..20 {
                    let (at, _) = counted(&orders(count, seed, rounds), count);
                    for times in at.iter().flatten() {
                        let least = (rounds / count) as u32;
                        let most = rounds.div_ceil(count) as u32;
                        assert!((least..=most).contains(times), "{count} in {rounds}");
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_always_comes_after_the_same_one() {
        for count in [4_usize, 5, 7] {
            let squares = if count.is_multiple_of(2) { 1 } else { 2 };
            for seed in 0..20 {
                let (_, after) = counted(&orders(count, seed, squares * count), count);
                for (one, times) in after.iter().enumerate() {
                    for (other, &times) in times.iter().enumerate() {
                        let expected = if one == other { 0 } else { squares as u32 };
                        assert_eq!(times, expected, "{count}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_seed_and_the_name_decide() {
        let all = orders(4, 1, 15);
        assert_eq!(orders(4, 1, 15), all);
        assert_ne!(orders(4, 2, 15), all);
        let of_another: Vec<_> = (0..15).map(|round| order(4, 1, "pft", round)).collect();
        assert_ne!(of_another, all);
        // Whoever is first in the first round is not always the same.
        let firsts: std::collections::BTreeSet<usize> =
            (0..50).map(|seed| orders(4, seed, 1)[0][0]).collect();
        assert_eq!(firsts.len(), 4);
    }

    #[test]
    fn one_alone_and_none_at_all_have_an_order() {
        assert_eq!(order(1, 7, "", 3), [0]);
        assert_eq!(order(0, 7, "", 3), Vec::<usize>::new());
    }
}
