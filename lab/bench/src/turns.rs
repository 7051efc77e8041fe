//! The order of turns. In every round each contestant has one turn, so that a change in the
//! machine's load affects them alike; the first one changes from round to round. If interrupted,
//! the complete rounds are kept.

use anyhow::bail;

use crate::progress::Progress;
use crate::stop;

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// To warm up: its result is discarded.
    WarmUp,
    /// To measure; the number of the round, from 0.
    Measured(usize),
}

/// So many rounds of turns.
#[derive(Debug)]
pub(crate) struct Turns<'n> {
    /// The contestants' names.
    pub(crate) names: &'n [&'n str],
    /// How many rounds are measured.
    pub(crate) samples: usize,
    /// How many steps of progress a measured turn has.
    pub(crate) steps: usize,
    /// Where progress is reported.
    pub(crate) progress: &'n dyn Progress,
}

impl Turns<'_> {
    /// Calls `turn` for every turn, with the number of the contestant, the round, and the function
    /// to call at each step. Returns a vector for each contestant, with a result per round.
    pub(crate) fn take<T>(
        &self,
        turn: impl Fn(usize, Round, &dyn Fn()) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Vec<T>>> {
        let contestants = self.names.len();
        let mut taken: Vec<Vec<T>> = (0..contestants).map(|_| Vec::new()).collect();
        let progress = self.progress;
        progress.begin((self.samples * contestants * self.steps) as u64);
        let rounds = (0..self.samples).map(Round::Measured);
        'rounds: for (count, round) in [Round::WarmUp].into_iter().chain(rounds).enumerate() {
            let mut of_round = Vec::new();
            for place in 0..contestants {
                let whose = (place + count) % contestants;
                progress.at(self.names[whose]);
                let out = turn(whose, round, &|| {
                    if round != Round::WarmUp {
                        progress.advance(1);
                    }
                })?;
                if stop::asked() {
                    break 'rounds;
                }
                of_round.push((whose, out));
            }
            if round != Round::WarmUp {
                for (whose, out) in of_round {
                    taken[whose].push(out);
                }
            }
        }
        progress.end();
        if stop::asked() {
            let done = taken.first().map_or(0, Vec::len);
            if done == 0 {
                bail!("interrupted before the first round was complete");
            }
            let all = self.samples;
            progress.say(&format!("interrupted: {done} of {all} rounds are complete"));
        }
        Ok(taken)
    }
}
