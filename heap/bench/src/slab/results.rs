//! Makes the rows of the table from the results of the processes.

use brickyard_results::{Host, Results, Row};

use super::contestant::Contestant;
use super::cpu_distance::NEAR_NS;
use super::process::Output;
use super::work::{SlabWork, Workload};

/// The result of one workload in one turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TurnResult {
    /// How far apart the threads were; empty where they do not exchange objects.
    way: &'static str,
    /// The workload's metrics, in their order; `None` where this machine cannot measure one.
    values: Vec<Option<f64>>,
}

/// The distances of threads in a turn, in the order of their rows.
const WAYS: [&str; 4] = ["", NEAR, FAR, CHANGING];
const NEAR: &str = " near";
const FAR: &str = " far";
const CHANGING: &str = " changing";

const MIB: f64 = (1 << 20) as f64;

impl TurnResult {
    pub(crate) fn of(workload: Workload, output: &Output) -> Self {
        let value = |name: &str| output.values.get(name).copied();
        let is_near = |name| value(name).map(|ns| ns < NEAR_NS);
        let way = match (is_near("link-before"), is_near("link-after")) {
            (Some(true), Some(true)) => NEAR,
            (Some(false), Some(false)) => FAR,
            (Some(_), Some(_)) => CHANGING,
            _ => "",
        };
        let metrics = workload.metrics().iter();
        let values = metrics
            .map(|metric| value(metric.name).or_else(|| seen(workload, metric.name, output)))
            .collect();
        Self { way, values }
    }
}

/// Returns a metric that is computed from the resident memory of a process.
fn seen(workload: Workload, metric: &str, output: &Output) -> Option<f64> {
    let before = output.looks.get("before")?;
    let more = |now: u64| now.saturating_sub(before.now) as f64;
    match (workload, metric) {
        (Workload::Producers, "peak") => {
            let most = output.looks.get("after")?.most;
            Some(most.saturating_sub(before.whole) as f64 / MIB)
        }
        (Workload::Refill, _) => Some(more(output.looks.get(metric)?.now) / MIB),
        (Workload::Giveback, _) => {
            let live = more(output.looks.get("live")?.now);
            let looks = if metric == "at-once" {
                &output.looks
            } else {
                &output.rested
            };
            let freed = more(looks.get("freed")?.now);
            (live > 0.0).then(|| (1.0 - freed / live) * 100.0)
        }
        _ => None,
    }
}

/// Returns all rows. `taken` has, for each workload that was measured, each contestant's rounds;
/// `None` where it takes no part.
pub(crate) fn results(
    contestants: &[Contestant],
    works: &[SlabWork],
    taken: &[Vec<Vec<Option<TurnResult>>>],
) -> anyhow::Result<Results> {
    let mut results = Results::new("slab", Host::read());
    for (work, taken) in works.iter().zip(taken) {
        for way in WAYS {
            for (which, metric) in work.workload.metrics().iter().enumerate() {
                for (contestant, rounds) in contestants.iter().zip(taken) {
                    let turns = rounds.iter().flatten();
                    let values: Vec<f64> = turns
                        .filter(|turn| turn.way == way)
                        .filter_map(|turn| turn.values[which])
                        .collect();
                    if !values.is_empty() {
                        let name = format!("{work}{way}");
                        let row = Row::new(&contestant.name, name, *metric, values)?;
                        results.push(row.timed())?;
                    }
                }
            }
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_measure::resident::Resident;

    fn resident(mib: u64) -> Resident {
        let bytes = mib << 20;
        Resident {
            now: bytes,
            whole: bytes + 1000,
            most: bytes + 1000,
        }
    }

    fn output(looks: &[(&str, u64)]) -> Output {
        let mut output = Output::default();
        for &(name, mib) in looks {
            output.looks.insert(name.into(), resident(mib));
        }
        output
    }

    #[test]
    fn memory_is_what_was_added_since_the_beginning() {
        let output = output(&[
            ("before", 5),
            ("killed", 405),
            ("refilled", 605),
            ("after", 196),
        ]);
        let refill = TurnResult::of(Workload::Refill, &output);
        assert_eq!(refill.values, [Some(400.0), Some(600.0)]);
        assert_eq!(
            TurnResult::of(Workload::Producers, &output).values,
            [Some(191.0), None]
        );
    }

    #[test]
    fn returned_memory_is_a_share_of_live_memory() {
        let mut output = output(&[("before", 10), ("live", 110), ("freed", 60)]);
        output.rested.insert("freed".into(), resident(13));
        let giveback = TurnResult::of(Workload::Giveback, &output);
        assert_eq!(giveback.values, [Some(50.0), Some(97.0)]);
    }

    #[test]
    fn a_row_says_how_far_apart_the_threads_were() {
        let mut output = Output::default();
        output.values.insert("object".into(), 12.5);
        for (before, after, way) in [
            (15.0, 16.0, NEAR),
            (105.0, 99.0, FAR),
            (15.0, 105.0, CHANGING),
        ] {
            output.values.insert("link-before".into(), before);
            output.values.insert("link-after".into(), after);
            let measured = TurnResult::of(Workload::Remote, &output);
            assert_eq!((measured.way, measured.values), (way, vec![Some(12.5)]));
        }
    }
}
