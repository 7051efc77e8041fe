//! What is timed on this host: cells of which each is a round. All that is compared takes its turn
//! in it, so that the host's mood hits them alike, in an order that is drawn
//! ([`order`](super::order)).

use core::fmt;

use anyhow::{Context as _, bail};

use crate::raw::{Method, Raw};

use super::order::order;
use super::rows::{HOST, Of};
use crate::cell::{Cell, Context, Scale};

/// Rounds of all that is timed.
const ROUNDS: u32 = 15;

/// Rounds of a quick run: what a signed-rank test needs to say anything.
pub(super) const FEW: u32 = 6;

/// The cells of something that is timed: a cell a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    /// Their names without the number of the round, such as `slab.host.heaps`.
    pub(super) name: &'static str,
    /// How many rounds are quick.
    pub(super) quick: u32,
    /// How long one takes on a core of today, in seconds, roughly.
    pub(super) seconds: f64,
    /// A round: its rows.
    pub(super) work: fn(Round<'_>) -> anyhow::Result<Vec<Raw>>,
}

impl Timed {
    pub(super) fn cells(self) -> Vec<Cell> {
        (1..=ROUNDS).map(|round| self.cell(round)).collect()
    }

    fn cell(self, number: u32) -> Cell {
        let Self { name, work, .. } = self;
        Cell {
            name: format!("{name}.{number}"),
            kind: Method::Timed,
            scale: Scale::quick_if(number <= self.quick),
            seconds: self.seconds,
            work: Box::new(move |context| {
                let round = Round {
                    cell: name,
                    number,
                    context,
                };
                Ok(work(round)?.into())
            }),
        }
    }
}

/// A round under way.
pub(super) struct Round<'a> {
    cell: &'static str,
    number: u32,
    context: Context<'a>,
}

impl Round<'_> {
    /// Its seed.
    pub(super) const fn seed(&self) -> u64 {
        self.context.seed_of(self.number)
    }

    /// Lets each of those compared have `turns` at `what`, in an order of this round's own. What
    /// came of each turn, in that order.
    ///
    /// Before that the last of the order has one that does not count. Whoever is first then comes
    /// after somebody, as the others do, and finds CPUs that are awake, and in caches and memory
    /// what the others find.
    ///
    /// # Errors
    /// The first of a turn, and where the user has ended it.
    pub(super) fn turns<T: Copy + PartialEq + fmt::Display, D>(
        &mut self,
        what: &str,
        turns: usize,
        compared: &[T],
        mut turn: impl FnMut(T) -> anyhow::Result<D>,
    ) -> anyhow::Result<Taken<T, D>> {
        let order = self.order(what, turns, compared);
        let mut taken = Vec::new();
        for (place, &one) in order.last().into_iter().chain(&order).enumerate() {
            if !self.context.follow.goes_on(0) {
                bail!("interrupted");
            }
            let came = turn(one).with_context(|| format!("{one}, {what}"))?;
            if place > 0 {
                taken.push((one, came));
            }
        }
        Ok(Taken(taken))
    }

    /// In which order they have their turns: all of them once, and so `turns` times, each time in
    /// another order.
    fn order<T: Copy>(&self, what: &str, turns: usize, compared: &[T]) -> Vec<T> {
        let what = format!("{} {what}", self.cell);
        let first = (self.number as usize - 1) * turns;
        (first..first + turns)
            .flat_map(|number| order(compared.len(), self.context.seed, &what, number))
            .map(|place| compared[place])
            .collect()
    }

    /// Of whom the rows that come next are.
    pub(super) const fn of<'w>(&self, workload: &'w str, config: &'w str) -> Of<'w> {
        Of {
            machine: HOST,
            workload,
            config,
            run: self.number,
        }
    }
}

/// Turns that were taken: whose, and what came of each, in their order.
#[derive(Debug)]
pub(super) struct Taken<T, D>(Vec<(T, D)>);

impl<T: Copy + PartialEq, D> Taken<T, D> {
    /// What came of the turns of each, whoever was first being first.
    pub(super) fn of_each(self) -> Vec<(T, Vec<D>)> {
        let mut all: Vec<(T, Vec<D>)> = Vec::new();
        for (one, came) in self.0 {
            match all.iter_mut().find(|(other, _)| *other == one) {
                Some((_, of_one)) => of_one.push(came),
                None => all.push((one, vec![came])),
            }
        }
        all
    }
}

impl<T, D> IntoIterator for Taken<T, D> {
    type Item = (T, D);
    type IntoIter = std::vec::IntoIter<(T, D)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Cells in the order in which they are run: those that are timed first, round by round, so that a
/// change of the host's mood within minutes is in all experiments and in no one's rounds alone.
pub(crate) fn by_rounds(cells: &mut [Cell]) {
    cells.sort_by_key(|cell| match cell.kind {
        Method::Timed => (0, cell.run()),
        _ => (1, None),
    });
}

#[cfg(test)]
mod tests {
    use brickyard_report::Metric;

    use super::super::of;
    use super::super::testing::{found, rows_of};
    use super::*;
    use crate::cell::Experiment;

    const NUMBER: Metric<'static> = Metric::lower("number", "turns");

    /// Whose turn came as which, from 0.
    fn numbered(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
        let mut turns = 0_u32..;
        let taken = round.turns("counting", 2, &["a", "b", "c"], |_| Ok(turns.next()))?;
        let rows = taken.into_iter().map(|(one, turn)| {
            let of = round.of("counting", one);
            of.row(&NUMBER, turn.unwrap_or_default().into())
        });
        Ok(rows.collect())
    }

    #[test]
    fn all_have_their_turns_after_one_that_does_not_count() {
        let timed = Timed {
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
    fn the_turns_of_each_are_put_together() {
        let taken = Taken(vec![("b", 1), ("a", 2), ("a", 3), ("b", 4)]);
        assert_eq!(taken.of_each(), [("b", vec![1, 4]), ("a", vec![2, 3])]);
    }

    #[test]
    fn rounds_of_different_experiments_take_turns() {
        let mut cells: Vec<Cell> = Experiment::ALL.into_iter().flat_map(of).collect();
        let before: Vec<String> = exact(&cells);
        by_rounds(&mut cells);
        assert_eq!(exact(&cells), before, "the others stay as they are");
        let timed: Vec<&str> = cells
            .iter()
            .take_while(|cell| cell.kind == Method::Timed)
            .map(|cell| &*cell.name)
            .collect();
        let of_a_round = timed.len() / ROUNDS as usize;
        assert!(of_a_round > 4, "{timed:?}");
        for (number, round) in (1..).zip(timed.chunks(of_a_round)) {
            let end = format!(".{number}");
            assert!(round.iter().all(|name| name.ends_with(&end)), "{round:?}");
        }
    }

    fn exact(cells: &[Cell]) -> Vec<String> {
        let exact = cells.iter().filter(|cell| cell.kind != Method::Timed);
        exact.map(|cell| cell.name.clone()).collect()
    }
}
