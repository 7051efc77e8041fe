//! The document as CSV: one line a row, for spreadsheets and data frames.
//!
//! A statistic that the samples do not define is an empty field. Of the samples, CSV has only the
//! last, which is the state at the end if the samples follow a run; JSON has all. What is to be
//! known of the figures stands above the header, in lines that begin with `# `.

use crate::comparison::ComparedRow;
use crate::listing::Field;
use crate::{Against, Comparison, Listing, Results, Row};

/// Columns of rows that are compared.
type Fields<'f, 'a, const N: usize> = [Field<'f, ComparedRow<'a>>; N];

/// Returns the columns: those of a row, of which `ci95` is half the width of the mean's 95 %
/// confidence interval, then those of what it is compared with.
pub(crate) fn fields<'f, 'a: 'f>() -> (Fields<'f, 'a, 13>, Fields<'f, 'a, 6>) {
    let row: Fields<'f, 'a, 13> = [
        ("config", &|of| of.row.config().into()),
        ("workload", &|of| of.row.workload().into()),
        ("metric", &|of| of.row.metric().name.into()),
        ("unit", &|of| of.row.metric().unit.into()),
        ("better", &|of| of.row.metric().better.name().into()),
        ("n", &|of| of.row.summary().n().into()),
        ("mean", &|of| of.row.summary().mean().into()),
        ("stddev", &|of| of.row.summary().stddev().into()),
        ("ci95", &|of| of.row.summary().ci95().into()),
        ("median", &|of| of.row.summary().median().into()),
        ("min", &|of| of.row.summary().min().into()),
        ("max", &|of| of.row.summary().max().into()),
        ("last", &|of| of.row.samples().last().copied().into()),
    ];
    let step: Fields<'f, 'a, 6> = [
        ("interval95", &|of| of.interval95().into()),
        ("before", &|of| of.base.map(Row::config).into()),
        ("speedup", &|of| of.speedup().into()),
        ("p", &|of| of.signed_rank().map(|test| test.p).into()),
        ("pairs", &|of| {
            of.signed_rank().map(|test| test.pairs).into()
        }),
        ("significant", &|of| {
            of.signed_rank().map(|_| of.has_star()).into()
        }),
    ];
    (row, step)
}

/// Returns `results` as CSV: a header, then one line per row in the order of the rows. Where each
/// configuration is compared with the one before, there are columns for that.
pub(crate) fn csv(results: &Results, against: Against) -> String {
    let (row, step) = fields();
    let fields = match against {
        Against::First => row.to_vec(),
        Against::Before => [&row[..], &step].concat(),
    };
    let rows = Comparison::new(results, against).in_order_of(results);
    comments(results) + &Listing::of(rows, &fields).csv()
}

/// Returns what is to be known of the figures.
fn comments(results: &Results) -> String {
    let interrupted = results
        .is_interrupted()
        .then_some("interrupted: the figures are of what was done until then");
    let texts = results.about().iter().chain(results.notes());
    let texts = texts.map(String::as_str).chain(interrupted);
    // Some readers end a line at any of the two.
    let lines = texts.flat_map(|text| text.split(['\r', '\n']));
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| format!("# {line}\n")).collect()
}
