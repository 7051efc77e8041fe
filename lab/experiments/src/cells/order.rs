//! The order in which the contestants take their turns in a round.
//!
//! A turn's time depends on its place: the first contestant finds the machine cold, and the second
//! finds the caches as the first has left them. So over the rounds each of N contestants has each
//! place equally often, and follows each of the others about equally often; and which order a round
//! has is drawn from the seed.
//!
//! Rounds come in blocks of N, each a Latin square after Williams (1949): the order 0, 1, N-1, 2,
//! N-2, … and its shifts. If N is even, each contestant follows each other one once in a block. If
//! it is odd, that takes a block and its mirror image, which follows it. Which contestant is 0, 1,
//! … is drawn for each square (with its mirror image), and so is the order of its rows. If the
//! rounds end within a block, the times that two contestants have had a place differ by at most
//! one.

use brickyard_run::Random;
use brickyard_run::fnv1a;

/// Returns the order of `count` contestants in a round, counted from 0, as indices into their list.
/// Orders drawn for different `what` are independent.
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

/// Returns an element of 0, 1, N-1, 2, N-2, …: the steps between neighbours all differ.
const fn zigzag(place: usize, count: usize) -> usize {
    if place.is_multiple_of(2) {
        (count - place / 2) % count
    } else {
        place.div_ceil(2)
    }
}

/// Returns 0 to `count`, shuffled by a random generator seeded for this draw alone.
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

    /// Counts how often each of `count` was at each place, and after each of the others.
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
    fn each_has_every_place_equally_often() {
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
    fn each_follows_every_other_equally_often() {
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
        // Which one is first in the first round depends on the seed.
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
