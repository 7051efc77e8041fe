//! The order of turns. In every round each contestant has one turn, so that a change in the
//! machine's load affects them alike. The order is drawn anew for each round, the same in every
//! run: what a contestant finds, such as free huge pages, depends on who was there before, and in
//! one order or in turns that would be the same contestant each time. If interrupted, the complete
//! rounds are kept.

use core::time::Duration;
use std::time::Instant;

use anyhow::bail;

use brickyard_run::Random;
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To warm up: its result is discarded.
    WarmUp,
    /// To measure; the number of the round, from 0.
    Measured(usize),
}

/// Short turns are repeated so many times as often at most.
const AT_MOST: usize = 4;

/// So many rounds of turns.
#[derive(Debug)]
pub struct Turns<'n> {
    /// The contestants' names.
    pub names: &'n [&'n str],
    /// How many rounds are measured.
    pub samples: usize,
    /// More are, up to four times as many, until each contestant has been measured for so
    /// long, by the time that the first round takes.
    pub lasting: Duration,
    /// How many steps of progress a measured turn has.
    pub steps: usize,
    /// Where progress is reported.
    pub progress: &'n dyn Progress,
}

impl Turns<'_> {
    /// Calls `turn` for every turn, with the number of the contestant, the round, and the function
    /// to call at each step. Returns a vector for each contestant, with a result per round.
    pub fn take<T>(
        &self,
        turn: impl Fn(usize, Round, &dyn Fn()) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Vec<T>>> {
        let contestants = self.names.len();
        let mut taken: Vec<Vec<T>> = (0..contestants).map(|_| Vec::new()).collect();
        let progress = self.progress;
        progress.begin((self.samples * contestants * self.steps) as u64);
        let mut rounds = self.samples;
        // The first one warms up.
        let mut count = 0;
        'rounds: while count <= rounds {
            let round = match count.checked_sub(1) {
                None => Round::WarmUp,
                Some(number) => Round::Measured(number),
            };
            let begun = Instant::now();
            let mut of_round = Vec::new();
            for whose in order(contestants, count) {
                progress.at(self.names[whose]);
                let out = turn(whose, round, &|| {
                    if round != Round::WarmUp {
                        progress.advance(1);
                    }
                })?;
                if interrupt::asked() {
                    break 'rounds;
                }
                of_round.push((whose, out));
            }
            if round != Round::WarmUp {
                for (whose, out) in of_round {
                    taken[whose].push(out);
                }
            }
            if round == Round::Measured(0) {
                rounds = self.rounds(begun.elapsed());
                let more = (rounds - self.samples) * contestants * self.steps;
                progress.more(more as u64);
            }
            count += 1;
        }
        progress.end();
        if interrupt::asked() {
            let done = taken.first().map_or(0, Vec::len);
            if done == 0 {
                bail!("interrupted before the first round was complete");
            }
            let all = rounds;
            progress.say(&format!("interrupted: {done} of {all} rounds are complete"));
        }
        Ok(taken)
    }

    /// Returns how many rounds are measured, where one takes so long.
    fn rounds(&self, one: Duration) -> usize {
        let turn = one.as_secs_f64() / self.names.len() as f64;
        let wanted = self.lasting.as_secs_f64() / turn;
        let most = self.samples.saturating_mul(AT_MOST);
        (wanted.ceil() as usize).clamp(self.samples, most)
    }
}

/// Returns the order of `contestants` in a round.
fn order(contestants: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contestants).collect();
    Random::new(round as u64).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_run::progress::Silent;

    fn turns(lasting: Duration) -> Turns<'static> {
        Turns {
            names: &["one", "other"],
            samples: 3,
            lasting,
            steps: 1,
            progress: &Silent,
        }
    }

    #[test]
    fn short_turns_are_repeated_within_limits() {
        let one = Duration::from_secs(2);
        for (lasting, rounds) in [(0, 3), (1, 3), (4, 4), (11, 11), (13, 12), (u64::MAX, 12)] {
            let turns = turns(Duration::from_secs(lasting));
            assert_eq!(turns.rounds(one), rounds, "{lasting} s");
        }
        // Where no time can be seen.
        assert_eq!(turns(Duration::ZERO).rounds(Duration::ZERO), 3);
        assert_eq!(turns(one).rounds(Duration::ZERO), 12);
    }

    #[test]
    fn every_contestant_has_a_turn_in_each_round() {
        for (lasting, rounds) in [(Duration::ZERO, 3), (Duration::MAX, 12)] {
            let taken = turns(lasting).take(|whose, round, _| Ok((whose, round)));
            for (whose, taken) in taken.unwrap().into_iter().enumerate() {
                let expected = (0..rounds).map(|number| (whose, Round::Measured(number)));
                assert!(taken.into_iter().eq(expected));
            }
        }
    }

    /// In a hundred rounds each is first, and behind each other one, about as often.
    #[test]
    fn nobody_follows_the_same_one_each_time() {
        const MANY: usize = 4;
        let (mut first, mut behind) = ([0; MANY], [[0; MANY]; MANY]);
        for round in 0..100 {
            let order = order(MANY, round);
            first[order[0]] += 1;
            for pair in order.windows(2) {
                behind[pair[0]][pair[1]] += 1;
            }
        }
        assert!(
            first.iter().all(|times| (15..35).contains(times)),
            "{first:?}"
        );
        for (one, behind) in behind.iter().enumerate() {
            let others = behind.iter().enumerate().filter(|(other, _)| *other != one);
            let is_fair = |(_, times): (usize, &i32)| (15..35).contains(times);
            assert!(
                others.clone().count() == 3 && others.into_iter().all(is_fair),
                "{behind:?}"
            );
        }
    }
}
