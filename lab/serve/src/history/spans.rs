//! Samples put together in spans of time: of each figure the least, the median and the most, and of
//! those that count since the host was booted how much they grew.

use std::collections::BTreeMap;

use super::figures::{FIGURES, HostRow, Unit};

/// A figure in a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least value; 0 of a total.
    pub least: f64,
    /// The median, the lower of two; of a total, how much it grew.
    pub median: f64,
    /// The most; as the median of a total.
    pub most: f64,
    /// The last.
    pub last: f64,
}

/// The samples of a span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// When it begins, in milliseconds since 1970.
    pub start: u64,
    /// How many samples it has, at least one.
    pub samples: usize,
    /// The figures, as many as were asked for, in that order.
    pub figures: Vec<Option<Range>>,
}

/// Puts the rows of one host, in order of time, together in spans of `every` milliseconds that
/// begin at multiples of it. `places` are those of the figures in [`FIGURES`]. Spans without
/// samples are left out.
#[must_use]
pub fn spans(rows: &[HostRow], every: u64, places: &[usize]) -> Vec<Span> {
    let every = every.max(1);
    let mut by_start: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (row, of) in rows.iter().enumerate() {
        by_start
            .entry(of.time / every * every)
            .or_default()
            .push(row);
    }
    let grown: Vec<Vec<Option<f64>>> = places.iter().map(|&place| grown(rows, place)).collect();
    let span = |(start, of): (u64, Vec<usize>)| Span {
        start,
        samples: of.len(),
        figures: places
            .iter()
            .zip(&grown)
            .map(|(&place, grown)| {
                if is_total(place) {
                    increase(of.iter().filter_map(|&row| grown[row]))
                } else {
                    range(of.iter().filter_map(|&row| value(&rows[row], place)))
                }
            })
            .collect(),
    };
    by_start.into_iter().map(span).collect()
}

/// Puts all rows together: the same as one long span.
#[must_use]
pub fn whole(rows: &[HostRow], places: &[usize]) -> Option<Span> {
    let mut whole = spans(rows, u64::MAX, places);
    whole.pop()
}

fn is_total(place: usize) -> bool {
    FIGURES
        .get(place)
        .is_some_and(|figure| figure.unit == Unit::Total)
}

fn value(row: &HostRow, place: usize) -> Option<f64> {
    let value = row.figures.get(place).copied().flatten();
    value.filter(|value| value.is_finite())
}

/// Returns how much a total grew before each row since the last that has it. Where it is less than
/// before, the host was booted, and it began at 0.
fn grown(rows: &[HostRow], place: usize) -> Vec<Option<f64>> {
    let mut last: Option<f64> = None;
    let of = |row: &HostRow| {
        let now = value(row, place)?;
        let before = last.replace(now).unwrap_or(now);
        Some(if now < before { now } else { now - before })
    };
    rows.iter().map(of).collect()
}

fn increase(parts: impl Iterator<Item = f64>) -> Option<Range> {
    let sum = parts.fold(None, |sum: Option<f64>, part| {
        Some(sum.unwrap_or(0.0) + part)
    })?;
    Some(Range {
        least: 0.0,
        median: sum,
        most: sum,
        last: sum,
    })
}

fn range(values: impl Iterator<Item = f64>) -> Option<Range> {
    let mut values: Vec<f64> = values.collect();
    let last = *values.last()?;
    values.sort_by(f64::total_cmp);
    Some(Range {
        least: *values.first()?,
        median: values[(values.len() - 1) / 2],
        most: *values.last()?,
        last,
    })
}

/// Returns a length of time in milliseconds, a round one, such that `time` milliseconds have at
/// most `most` spans of it.
#[must_use]
pub fn round_length(time: u64, most: u64) -> u64 {
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let lengths = [
        1000,
        MINUTE,
        2 * MINUTE,
        5 * MINUTE,
        10 * MINUTE,
        15 * MINUTE,
        30 * MINUTE,
        HOUR,
        2 * HOUR,
        3 * HOUR,
        6 * HOUR,
        12 * HOUR,
        DAY,
        2 * DAY,
        7 * DAY,
        28 * DAY,
    ];
    let least = time.div_ceil(most.max(1));
    let found = lengths.into_iter().find(|&length| length >= least);
    found.unwrap_or_else(|| least.div_ceil(DAY) * DAY)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::super::figures::place_of;
    use super::*;

    fn row(time: u64, free: Option<f64>, stalls: Option<f64>) -> HostRow {
        let mut figures = vec![None; FIGURES.len()];
        figures[place_of("huge_free").unwrap()] = free;
        figures[place_of("compaction_stalls").unwrap()] = stalls;
        HostRow {
            host: "web".to_owned(),
            kernel: String::new(),
            time,
            reading_time: None,
            figures,
        }
    }

    #[test]
    fn spans_have_least_median_and_most_and_totals_grow() {
        let rows = [
            row(1000, Some(5.0), Some(100.0)),
            row(1500, Some(1.0), Some(103.0)),
            row(1999, None, None),
            row(3000, Some(9.0), Some(110.0)),
            // Booted.
            row(3500, Some(7.0), Some(4.0)),
            row(9000, None, None),
        ];
        let places = ["huge_free", "compaction_stalls"].map(|name| place_of(name).unwrap());
        let spans = spans(&rows, 1000, &places);
        let range = |least, median, most, last| {
            Some(Range {
                least,
                median,
                most,
                last,
            })
        };
        let shown: Vec<_> = spans
            .iter()
            .map(|span| (span.start, span.samples, span.figures.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                (
                    1000,
                    3,
                    vec![range(1.0, 1.0, 5.0, 1.0), range(0.0, 3.0, 3.0, 3.0)]
                ),
                (
                    3000,
                    2,
                    vec![range(7.0, 7.0, 9.0, 7.0), range(0.0, 11.0, 11.0, 11.0)]
                ),
                (9000, 1, vec![None, None]),
            ]
        );
        let whole = whole(&rows, &places).unwrap();
        assert_eq!(
            whole.figures,
            [range(1.0, 5.0, 9.0, 7.0), range(0.0, 14.0, 14.0, 14.0)]
        );
        assert_eq!(super::whole(&[], &places), None);
    }

    #[test]
    fn lengths_are_round_and_enough() {
        assert_eq!(round_length(86_400_000, 24), 3_600_000);
        assert_eq!(round_length(86_400_001, 24), 7_200_000);
        assert_eq!(round_length(0, 24), 1000);
        let years = 10 * 365 * 86_400_000;
        assert!(round_length(years, 24) * 24 >= years);
        assert!(round_length(u64::MAX / 2, 0) >= u64::MAX / 2);
    }
}
