//! Rows as a results document: of a reproduction, as `brickyard compare` reads it, and of one run, as
//! it is printed.

use std::collections::HashMap;

use brickyard_results::{Host, Metric, Results, Row, SampleKind};

use crate::data::{Data, Key};
use crate::experiment::On;
use crate::raw::{CellRows, Method, Raw};
use crate::settings::Settings;

/// Returns the samples of some keys as a document that `brickyard compare` reads, with their kind
/// and their runs, by which exact samples are paired.
///
/// # Errors
/// If two rows of the document would have the same key, or if a sample is not a number.
pub fn results(data: &Data, wanted: impl Fn(&Key, Method) -> bool) -> anyhow::Result<Results> {
    let host = data.cells().iter().find(|cell| cell.kind == Method::Timed);
    let host = host
        .or(data.cells().first())
        .map_or_else(Host::unknown, |cell| cell.host.clone());
    let mut results = Results::new("reproduce", host);
    for key in data.keys() {
        let samples = data.samples(key);
        let Some(samples) = samples.filter(|samples| wanted(key, samples.kind)) else {
            continue;
        };
        let metric = Metric::new(&key.metric, samples.unit, samples.better);
        let workload = format!("{} {} {}", key.experiment, key.machine, key.workload);
        let row = Row::new(&key.config, workload, metric, samples.values)?;
        let kind = if samples.kind.is_exact() {
            SampleKind::Exact
        } else {
            SampleKind::Timed
        };
        results.push(row.of_kind(kind).of_runs(samples.runs)?)?;
    }
    Ok(results)
}

/// Returns the rows of one run as a document: lines and columns in the order in which the cells name
/// them first, a sample for each run.
///
/// # Errors
/// If a sample is not a number, or a row has a run twice.
pub fn of_run(settings: &Settings<'_>, cells: &[CellRows]) -> anyhow::Result<Results> {
    let host = match settings.form().on {
        On::Host => Host::read(),
        // Nothing ran on the host's kernel.
        On::Simulated(_) | On::Replayed(_) => Host {
            kernel: "none (simulated)".into(),
            cpu: settings.machine.into(),
            ..Host::unknown()
        },
    };
    let mut results = Results::new(format!("{} {settings}", settings.experiment), host);
    let (mut lines, mut configs): (Vec<[&str; 2]>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut samples: HashMap<Name<'_>, Sampled<'_>> = HashMap::new();
    for cell in cells {
        let kind = match cell.kind {
            Method::Timed => SampleKind::Timed,
            Method::Simulated | Method::Replayed => SampleKind::Exact,
        };
        for raw in &cell.rows {
            let (line, config) = ([&*raw.workload, &raw.metric], &*raw.config);
            add(&mut lines, line);
            add(&mut configs, config);
            let of_name = samples.entry((line, config)).or_insert_with(|| Sampled {
                raw,
                kind,
                runs: Vec::new(),
                values: Vec::new(),
            });
            of_name.runs.push(raw.run);
            of_name.values.push(raw.value);
        }
    }
    let names = lines
        .iter()
        .flat_map(|line| configs.iter().map(move |config| (*line, *config)));
    for name in names {
        let Some(of_name) = samples.remove(&name) else {
            continue;
        };
        let Sampled {
            raw,
            kind,
            runs,
            values,
        } = of_name;
        let metric = Metric::new(&raw.metric, &raw.unit, raw.better);
        let row = Row::new(&raw.config, &raw.workload, metric, values)?;
        results.push(row.of_kind(kind).of_runs(runs)?)?;
    }
    Ok(results)
}

/// The samples of a row, with the first of them.
struct Sampled<'r> {
    raw: &'r Raw,
    kind: SampleKind,
    runs: Vec<u32>,
    values: Vec<f64>,
}

/// A line's workload and metric, and the configuration.
type Name<'r> = ([&'r str; 2], &'r str);

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use brickyard_results::Better;

    use super::*;
    use crate::raw::testing;

    fn cell(name: &str, kind: Method, run: u32, better: Better) -> CellRows {
        let raw = Raw {
            better,
            run,
            ..testing::row()
        };
        testing::cell(name, kind, vec![raw])
    }

    /// `brickyard compare` needs both to pair samples.
    #[test]
    fn a_row_has_its_kind_and_its_runs() -> anyhow::Result<()> {
        let data = Data::new(vec![
            cell("a.1", Method::Simulated, 1, Better::Lower),
            cell("a.3", Method::Simulated, 3, Better::Lower),
            cell("b.1", Method::Replayed, 1, Better::Neither),
            cell("c.1", Method::Timed, 1, Better::Higher),
        ])?;
        let results = results(&data, |_, _| true)?;
        let rows = results.rows().iter();
        let message: Vec<_> = rows
            .map(|row| {
                (
                    row.kind(),
                    row.runs().unwrap_or_default(),
                    row.metric().better,
                )
            })
            .collect();
        assert_eq!(
            message,
            [
                (Some(SampleKind::Exact), &[1, 3][..], Better::Lower),
                (Some(SampleKind::Exact), &[1][..], Better::Neither),
                (Some(SampleKind::Timed), &[1][..], Better::Higher),
            ]
        );
        Ok(())
    }
}
