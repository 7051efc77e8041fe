//! The comparison for programs. CSV and JSON have the same figures of a row under the same names.

use brickyard_results::judge::{Judged, Judgements, Timed, Verdict};
use brickyard_results::{Listing, SampleKind};
use serde_json::{Map, Value, json};

use super::sides::Sides;

/// Returns a row for each pair. Unknown values are `null`, or an empty field.
pub(super) fn rows(comparison: &Judgements<'_>) -> Listing {
    Listing::of(
        &comparison.rows,
        &[
            ("config_a", &|of| of.pair.a.config().into()),
            ("config_b", &|of| of.pair.b.config().into()),
            ("workload", &|of| of.pair.a.workload().into()),
            ("metric", &|of| of.pair.a.metric().name.into()),
            ("unit", &|of| of.pair.a.metric().unit.into()),
            ("better", &|of| of.pair.a.metric().better.name().into()),
            ("n_a", &|of| of.pair.a.summary().n().into()),
            ("mean_a", &|of| of.pair.a.summary().mean().into()),
            ("stddev_a", &|of| of.pair.a.summary().stddev().into()),
            ("n_b", &|of| of.pair.b.summary().n().into()),
            ("mean_b", &|of| of.pair.b.summary().mean().into()),
            ("stddev_b", &|of| of.pair.b.summary().stddev().into()),
            ("gain_percent", &|of| of.gain_percent.into()),
            ("ratio", &|of| ratio(of).into()),
            ("ratio_low", &|of| {
                of.ratio().map(|found| found.ends.low).into()
            }),
            ("ratio_high", &|of| {
                of.ratio().map(|found| found.ends.high).into()
            }),
            ("ratio_by", &|of| {
                of.ratio().map(|found| found.method.name()).into()
            }),
            ("kind", &|of| of.pair.kind.map(SampleKind::name).into()),
            ("test", &|of| test(of).into()),
            ("p", &|of| of.test.map(|(test, _)| test.p).into()),
            ("p_holm", &|of| of.test.map(|(_, p_holm)| p_holm).into()),
            ("p_rank_sum", &|of| of.p_rank_sum().into()),
            ("significant", &|of| of.significant.into()),
            ("verdict", &|of| of.verdict.name().into()),
        ],
    )
}

fn ratio(of: &Judged<'_>) -> Option<f64> {
    let [a, b] = [&of.pair.a, &of.pair.b].map(|side| side.summary().mean());
    Some(b? / a?).filter(|ratio| ratio.is_finite())
}

fn test(of: &Judged<'_>) -> &'static str {
    match of.test {
        Some((test, _)) => test.by,
        None if of.is_exact() => "exact",
        None => "none",
    }
}

/// Returns the whole comparison as JSON.
pub(super) fn document(sides: &Sides<'_>, comparison: &Judgements<'_>, notes: &[String]) -> Value {
    let side = |at: usize| {
        let more = sides.files()[at][1..].iter();
        json!({
            "file": sides.paths()[at].display().to_string(),
            "more_files": more.map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "experiment": sides.experiments()[at],
            "config": sides.configs()[at],
            "host": sides.hosts()[at],
        })
    };
    let rules = comparison.rules;
    let counts = Verdict::ALL.map(|of| (of.name().to_owned(), comparison.count(of).into()));
    let gmean = comparison.gmean.map(|gmean| {
        json!({
            "better": gmean.better.name(),
            "ratio": gmean.ratio,
            "gain_percent": gmean.gain_percent,
            "rows": gmean.lines,
        })
    });
    json!({
        "a": side(0),
        "b": side(1),
        "alpha": rules.alpha,
        "threshold_percent": rules.threshold_percent,
        "timed_threshold_percent": match rules.timed {
            Timed::Rounds { threshold_percent } => threshold_percent,
            Timed::Runs => rules.threshold_percent,
        },
        "tests": comparison.tests,
        "counts": Map::from_iter(counts),
        "gmean": gmean,
        "rows": rows(comparison),
        "only_in_a": sides.matched.alone[0],
        "only_in_b": sides.matched.alone[1],
        "notes": notes,
    })
}
