//! The comparison for programs. CSV and JSON have the same figures of a row under the same names.

use brickyard_results::judge::{Judged, Judgements, Timed, Verdict};
use brickyard_results::{Host, Row, SampleKind};
use serde::Serialize;

use super::sides::Sides;

/// A pair of rows. Unknown values are `null`, or an empty field.
#[derive(Serialize)]
struct Record<'a> {
    config_a: &'a str,
    config_b: &'a str,
    workload: &'a str,
    metric: &'a str,
    unit: &'a str,
    better: &'a str,
    n_a: usize,
    mean_a: Option<f64>,
    stddev_a: Option<f64>,
    n_b: usize,
    mean_b: Option<f64>,
    stddev_b: Option<f64>,
    gain_percent: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    ratio_by: Option<&'a str>,
    kind: Option<SampleKind>,
    test: &'a str,
    p: Option<f64>,
    p_holm: Option<f64>,
    p_rank_sum: Option<f64>,
    significant: bool,
    verdict: &'a str,
}

impl<'a> Record<'a> {
    fn of(judged: &Judged<'a>) -> Self {
        let (a, b): (&'a Row, &'a Row) = (&judged.pair.a, &judged.pair.b);
        let (of_a, of_b, metric) = (a.summary(), b.summary(), a.metric());
        let interval = judged.ratio();
        let ratio = of_a.mean().zip(of_b.mean()).map(|(a, b)| b / a);
        Self {
            config_a: a.config(),
            config_b: b.config(),
            workload: a.workload(),
            metric: metric.name,
            unit: metric.unit,
            better: metric.better.name(),
            n_a: of_a.n(),
            mean_a: of_a.mean(),
            stddev_a: of_a.stddev(),
            n_b: of_b.n(),
            mean_b: of_b.mean(),
            stddev_b: of_b.stddev(),
            gain_percent: judged.gain_percent,
            ratio: ratio.filter(|ratio| ratio.is_finite()),
            ratio_low: interval.map(|found| found.ends.low),
            ratio_high: interval.map(|found| found.ends.high),
            ratio_by: interval.map(|found| found.method.name()),
            kind: judged.pair.kind,
            test: match judged.test {
                Some((test, _)) => test.by,
                None if judged.is_exact() => "exact",
                None => "none",
            },
            p: judged.test.map(|(test, _)| test.p),
            p_holm: judged.test.map(|(_, p_holm)| p_holm),
            p_rank_sum: judged.p_rank_sum(),
            significant: judged.significant,
            verdict: judged.verdict.name(),
        }
    }
}

/// One side.
#[derive(Serialize)]
struct Side<'a> {
    file: String,
    more_files: Vec<String>,
    experiment: &'a str,
    config: Option<&'a str>,
    host: &'a Host,
}

/// The geometric mean of the ratios B / A.
#[derive(Serialize)]
struct Gmean<'a> {
    better: &'a str,
    ratio: f64,
    gain_percent: f64,
    rows: usize,
}

/// The number of rows by verdict.
#[derive(Serialize)]
struct Counts {
    better: usize,
    worse: usize,
    changed: usize,
    same: usize,
    unclear: usize,
}

#[derive(Serialize)]
struct Document<'a> {
    a: Side<'a>,
    b: Side<'a>,
    alpha: f64,
    threshold_percent: f64,
    timed_threshold_percent: f64,
    tests: usize,
    counts: Counts,
    gmean: Option<Gmean<'a>>,
    rows: Vec<Record<'a>>,
    only_in_a: &'a [String],
    only_in_b: &'a [String],
    notes: &'a [String],
}

/// Returns the rows as CSV, with a header line.
pub(super) fn csv(comparison: &Judgements<'_>) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in &comparison.rows {
        writer.serialize(Record::of(row))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Returns the whole comparison as JSON.
pub(super) fn json(
    sides: &Sides<'_>,
    comparison: &Judgements<'_>,
    notes: &[String],
) -> anyhow::Result<String> {
    let side = |at: usize| Side {
        file: sides.paths()[at].display().to_string(),
        more_files: sides.files()[at][1..]
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        experiment: sides.experiments()[at],
        config: sides.configs()[at],
        host: sides.hosts()[at],
    };
    let document = Document {
        a: side(0),
        b: side(1),
        alpha: comparison.rules.alpha,
        threshold_percent: comparison.rules.threshold_percent,
        timed_threshold_percent: match comparison.rules.timed {
            Timed::Rounds { threshold_percent } => threshold_percent,
            Timed::Runs => comparison.rules.threshold_percent,
        },
        tests: comparison.tests,
        counts: Counts {
            better: comparison.count(Verdict::Better),
            worse: comparison.count(Verdict::Worse),
            changed: comparison.count(Verdict::Changed),
            same: comparison.count(Verdict::Same),
            unclear: comparison.count(Verdict::Unclear),
        },
        gmean: comparison.gmean.map(|gmean| Gmean {
            better: gmean.better.name(),
            ratio: gmean.ratio,
            gain_percent: gmean.gain_percent,
            rows: gmean.lines,
        }),
        rows: comparison.rows.iter().map(Record::of).collect(),
        only_in_a: &sides.matched.alone[0],
        only_in_b: &sides.matched.alone[1],
        notes,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
