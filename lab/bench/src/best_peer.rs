//! For each row of `pagealloc`, the peer that is best in it, compared with the first column.

use core::fmt::Write as _;

use brickyard_results::{Better, Results, Row};

/// The best peer of a row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BestPeer {
    /// The row, as the table names it.
    pub row: String,
    /// Its name.
    pub name: String,
    /// How many times better the first column is than it: above 1, the first column is ahead.
    pub ratio: f64,
}

/// Returns the best of `peers` in each row of `results` that the column `first` and a peer have, in
/// the order of the rows. `label` makes a row's name from its workload and metric. Metrics of which
/// more is better are left out: `pagealloc` has none.
#[must_use]
pub fn best_peers(
    results: &Results,
    first: &str,
    peers: &[&str],
    label: &dyn Fn(&str, &str) -> String,
) -> Vec<BestPeer> {
    let same = |one: &Row, other: &Row| {
        one.workload() == other.workload() && one.metric() == other.metric()
    };
    let of_peers = |row: &&Row| peers.contains(&row.config());
    let ours = results.rows().iter().filter(|row| row.config() == first);
    ours.filter(|row| row.metric().better == Better::Lower)
        .filter_map(|row| {
            let mean = row.summary().mean().filter(|mean| *mean > 0.0)?;
            let others = results.rows().iter().filter(of_peers);
            let (theirs, name) = others
                .filter(|other| same(row, other))
                .filter_map(|other| Some((other.summary().mean()?, other.config())))
                .min_by(|(one, _), (other, _)| one.total_cmp(other))?;
            Some(BestPeer {
                row: label(row.workload(), row.metric().name),
                name: name.to_owned(),
                ratio: theirs / mean,
            })
        })
        .collect()
}

/// Returns them as text: a line for each row, and the least ratio below. Empty if there are none.
#[must_use]
pub fn text(first: &str, best: &[BestPeer]) -> String {
    let least = best
        .iter()
        .min_by(|one, other| one.ratio.total_cmp(&other.ratio));
    let Some(least) = least else {
        return String::new();
    };
    let width = |of: &dyn Fn(&BestPeer) -> usize| best.iter().map(of).max().unwrap_or(0);
    let rows = width(&|best| best.row.len());
    let names = width(&|best| best.name.len());
    let mut out =
        format!("\nThe best peer of each row, and its time divided by that of {first}:\n");
    for BestPeer { row, name, ratio } in best {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{row:rows$}  {name:names$}  {ratio:7.2}");
    }
    let ahead = best.iter().filter(|row| row.ratio >= 2.0).count();
    let _ = writeln!(
        out,
        "{first} is at least twice as fast in {ahead} of {} rows; the least ratio is {:.2} ({}, {}).",
        best.len(),
        least.ratio,
        least.row,
        least.name,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_results::{Host, Metric};

    fn label(workload: &str, metric: &str) -> String {
        format!("{workload} {metric}")
    }

    fn results(rows: &[(&str, &str, f64)]) -> Results {
        let mut results = Results::new("pagealloc", Host::default());
        let metric = Metric::new("total", "ns/page", Better::Lower);
        for &(config, workload, mean) in rows {
            let row = Row::new(config, workload, metric, vec![mean]).unwrap();
            results.push(row.timed()).unwrap();
        }
        results
    }

    #[test]
    fn the_fastest_peer_of_each_row_is_found() {
        let results = results(&[
            ("brickyard", "order-0", 5.0),
            ("fetch-add", "order-0", 1.0),
            ("talc", "order-0", 20.0),
            ("depot", "order-0", 8.0),
            ("brickyard", "order-9", 20.0),
            ("talc", "order-9", 15.0),
            ("brickyard", "order-1", 5.0),
            ("talc", "order-2", 5.0),
        ]);
        let best = best_peers(&results, "brickyard", &["talc", "depot"], &label);
        let found: Vec<_> = best
            .iter()
            .map(|best| (best.row.as_str(), best.name.as_str(), best.ratio))
            .collect();
        assert_eq!(
            found,
            [
                ("order-0 total", "depot", 1.6),
                ("order-9 total", "talc", 0.75)
            ]
        );
        assert_eq!(
            text("brickyard", &best),
            "\nThe best peer of each row, and its time divided by that of brickyard:\n\
             order-0 total  depot     1.60\n\
             order-9 total  talc      0.75\n\
             brickyard is at least twice as fast in 0 of 2 rows; the least ratio is 0.75 \
             (order-9 total, talc).\n"
        );
    }

    #[test]
    fn without_peers_there_is_nothing_to_say() {
        let results = results(&[("brickyard", "order-0", 5.0)]);
        assert_eq!(best_peers(&results, "brickyard", &["talc"], &label), []);
        assert_eq!(text("brickyard", &[]), "");
    }
}
