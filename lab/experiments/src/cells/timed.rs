//! Timed cells, each a round on this host. Every contestant has its turn in a round, so that
//! disturbances of the host affect all of them alike, in an order drawn at random
//! ([`order`](super::order)).

use core::fmt;

use anyhow::{Context as _, bail};

use crate::raw::{Method, Raw, SITTING};

use super::order::order;
use super::rows::{HOST, RowTemplate};
use crate::cell::{Cell, Context, Scale};

/// Rounds of every timed experiment: two sittings.
const ROUNDS: u32 = 2 * SITTING;

/// Rounds of a quick run: the fewest with which a signed-rank test can find significance.
pub(crate) const MIN_ROUNDS: u32 = 6;

/// A timed experiment, which has a cell for each round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedExperiment<W> {
    /// Their names without the number of the round, such as `slab.host.heaps`.
    pub(crate) name: &'static str,
    /// How many rounds a quick run has.
    pub(crate) quick: u32,
    /// Roughly how many seconds a round takes on a core of today.
    pub(crate) seconds: f64,
    /// Runs a round; returns its rows.
    pub(crate) work: W,
}

impl<W> TimedExperiment<W>
where
    W: Fn(Round<'_>) -> anyhow::Result<Vec<Raw>> + Clone + Send + Sync + 'static,
{
    /// Returns the rounds of the reproduction.
    pub(crate) fn cells(self) -> Vec<Cell> {
        self.rounds(ROUNDS)
    }

    /// Returns so many rounds.
    pub(crate) fn rounds(self, rounds: u32) -> Vec<Cell> {
        (1..=rounds).map(|round| self.cell(round)).collect()
    }

    fn cell(&self, number: u32) -> Cell {
        let (cell, work) = (self.name, self.work.clone());
        Cell {
            name: format!("{cell}.{number}"),
            kind: Method::Timed,
            scale: Scale::quick_if(number <= self.quick),
            seconds: self.seconds,
            work: Box::new(move |context| {
                let round = Round {
                    cell,
                    number,
                    context,
                };
                Ok(work(round)?.into())
            }),
        }
    }
}

/// A round under way.
pub(crate) struct Round<'a> {
    cell: &'static str,
    number: u32,
    context: Context<'a>,
}

impl Round<'_> {
    /// Returns the seed of this round.
    pub(crate) const fn seed(&self) -> u64 {
        self.context.seed_of(self.number)
    }

    /// Returns true in the first round.
    pub(crate) const fn is_first(&self) -> bool {
        self.number == 1
    }

    /// Gives each of `compared` its `turns` at `what`, in an order of this round's own; returns
    /// their results in that order.
    ///
    /// Before the first turn the last contestant of the order has one that does not count. So the
    /// first turn that counts follows another one, as all others do, and finds the CPUs awake and
    /// caches and memory in the same state as they do.
    ///
    /// # Errors
    /// The first error of a turn; also if the user has interrupted the run.
    pub(crate) fn turns<T: Copy + PartialEq + fmt::Display, D>(
        &mut self,
        what: &str,
        turns: usize,
        compared: &[T],
        mut turn: impl FnMut(T) -> anyhow::Result<D>,
    ) -> anyhow::Result<TurnResults<T, D>> {
        let order = self.order(what, turns, compared);
        let mut taken = Vec::new();
        for (place, &one) in order.last().into_iter().chain(&order).enumerate() {
            if !self.context.follow.goes_on(0) {
                bail!("interrupted");
            }
            let result = turn(one).with_context(|| format!("{one}, {what}"))?;
            if place > 0 {
                taken.push((one, result));
            }
        }
        Ok(TurnResults(taken))
    }

    /// Returns the order of the turns: all contestants once, repeated `turns` times, each time in
    /// another order.
    fn order<T: Copy>(&self, what: &str, turns: usize, compared: &[T]) -> Vec<T> {
        let what = format!("{} {what}", self.cell);
        let first = (self.number as usize - 1) * turns;
        (first..first + turns)
            .flat_map(|number| order(compared.len(), self.context.seed, &what, number))
            .map(|place| compared[place])
            .collect()
    }

    /// Returns the template of this round's rows for a workload and a configuration.
    pub(crate) const fn template<'w>(&self, workload: &'w str, config: &'w str) -> RowTemplate<'w> {
        RowTemplate {
            machine: HOST,
            workload,
            config,
            run: self.number,
        }
    }
}

/// The turns taken, in their order: the contestant and its result.
#[derive(Debug)]
pub(crate) struct TurnResults<T, D>(Vec<(T, D)>);

impl<T: Copy + PartialEq, D> TurnResults<T, D> {
    /// Returns the results in the order of the contestants' list, not of their turns.
    pub(crate) fn in_order_of(self, compared: &[T]) -> Vec<(T, D)> {
        let mut taken = self.0;
        taken.sort_by_key(|(one, _)| compared.iter().position(|other| other == one));
        taken
    }

    /// Groups the results by contestant; contestants are in the order of their first turns.
    pub(crate) fn by_contestant(self) -> Vec<(T, Vec<D>)> {
        let mut all: Vec<(T, Vec<D>)> = Vec::new();
        for (one, result) in self.0 {
            match all.iter_mut().find(|(other, _)| *other == one) {
                Some((_, of_one)) => of_one.push(result),
                None => all.push((one, vec![result])),
            }
        }
        all
    }
}

impl<T, D> IntoIterator for TurnResults<T, D> {
    type Item = (T, D);
    type IntoIter = std::vec::IntoIter<(T, D)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use brickyard_results::Metric;

    use super::*;
    use crate::cells::testing::{found, rows_of};

    const NUMBER: Metric<'static> = Metric::lower("number", "turns");

    /// A round whose values are the numbers of the turns; the one that does not count is 0.
    fn numbered(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
        let mut turns = 0_u32..;
        let taken = round.turns("counting", 2, &["a", "b", "c"], |_| Ok(turns.next()))?;
        let rows = taken.into_iter().map(|(one, turn)| {
            let template = round.template("counting", one);
            template.row(&NUMBER, turn.unwrap_or_default().into())
        });
        Ok(rows.collect())
    }

    #[test]
    fn all_have_their_turns_after_one_that_does_not_count() {
        let timed = TimedExperiment {
            name: "slab.host.counting",
            quick: 2,
            seconds: 0.1,
            work: numbered,
        };
        let cells = timed.cells();
        assert_eq!(cells.len(), ROUNDS as usize);
        let quick = cells.iter().filter(|cell| cell.scale == Scale::Quick);
        assert_eq!(quick.count(), 2);
        let rows = rows_of(found(&cells, "slab.host.counting.3"));
        let numbers: Vec<f64> = rows.iter().map(|row| row.value).collect();
        assert_eq!(numbers, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for of_pass in rows.chunks(3) {
            let mut configs: Vec<&str> = of_pass.iter().map(|row| &*row.config).collect();
            configs.sort_unstable();
            assert_eq!(configs, ["a", "b", "c"]);
        }
        assert!(rows.iter().all(|row| row.run == 3 && row.machine == HOST));
    }

    #[test]
    fn the_turns_of_each_contestant_are_grouped() {
        let taken = TurnResults(vec![("b", 1), ("a", 2), ("a", 3), ("b", 4)]);
        assert_eq!(
            taken.by_contestant(),
            [("b", vec![1, 4]), ("a", vec![2, 3])]
        );
    }
}
