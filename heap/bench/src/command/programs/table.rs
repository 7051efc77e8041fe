//! The table of `programs`: a part for each metric, in it a line for each task and a column
//! for each library. A cell has the median, its interval, and the ratio to the best of the line. At
//! the end of a part is the geometric mean of the ratios (`means.rs`).

use core::fmt::{self, Write};

use brickyard_results::{Column, Columns, MedianInterval, Results, Row, Summary, fixed};

use super::means::{Mean, TaskLine, fastest, means};

/// The metrics whose ratios have a geometric mean: of the others a value may be 0 or below.
const WITH_A_MEAN: [&str; 6] = ["time", "cpu", "peak", "settled", "start-time", "start-cpu"];

/// Of these, those that are times: what else runs on the machine only makes them longer.
const TIMES: [&str; 4] = ["time", "cpu", "start-time", "start-cpu"];

/// A cell.
#[derive(Debug, Clone, Copy)]
struct TableCell<'r> {
    median: f64,
    interval: MedianInterval,
    samples: &'r [f64],
}

/// Writes the table.
pub(super) fn write(results: &Results, out: &mut dyn Write) -> fmt::Result {
    let configs = results.configs();
    writeln!(out, "{}", results.experiment())?;
    for line in results.about() {
        writeln!(out, "{line}")?;
    }
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    for row in results.rows() {
        let metric = row.metric();
        if !metrics.contains(&(metric.name, metric.unit)) {
            metrics.push((metric.name, metric.unit));
        }
    }
    let mut runs = Runs::default();
    for (metric, unit) in metrics {
        writeln!(out)?;
        let mut labels = vec![format!("{metric}, {unit}")];
        // The texts of each line's cells.
        let mut lines: Vec<Vec<[String; 3]>> = Vec::new();
        let mut of_means: Vec<TaskLine<'_>> = Vec::new();
        for task in tasks(results, metric) {
            let cells: Vec<Option<TableCell<'_>>> = configs
                .iter()
                .map(|config| cell(results, config, task, metric))
                .collect();
            cells.iter().flatten().for_each(|cell| runs.note(cell));
            let of_line = of_the_best(&cells, WITH_A_MEAN.contains(&metric));
            labels.push(task.to_owned());
            let of_cells = cells.iter().zip(&of_line);
            lines.push(
                of_cells
                    .map(|(cell, ratio)| texts(cell.as_ref(), *ratio))
                    .collect(),
            );
            let samples: TaskLine<'_> = cells.iter().flatten().map(|cell| cell.samples).collect();
            // A single 0 has no ratio either.
            let has_zero = samples
                .iter()
                .copied()
                .flatten()
                .any(|&sample| sample <= 0.0);
            if of_line.iter().all(Option::is_some) && !has_zero {
                of_means.push(samples);
            }
        }
        if !of_means.is_empty() {
            labels.push("geometric mean".into());
            lines.push(means(&of_means).into_iter().map(mean_texts).collect());
            if TIMES.contains(&metric) && runs.most > 1 {
                labels.push("of the fastest".into());
                let of_fastest = fastest(&of_means).into_iter();
                let texts = of_fastest.map(|mean| [String::new(), String::new(), times(mean)]);
                lines.push(texts.collect());
            }
        }
        for line in aligned(&labels, &configs, &lines) {
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    legend(results, &runs, out)
}

/// How often rows were run.
#[derive(Debug, Default)]
struct Runs {
    least: usize,
    most: usize,
    /// There are intervals that hold the median with 95 %, and others, of too few runs.
    sure: bool,
    unsure: bool,
}

impl Runs {
    fn note(&mut self, cell: &TableCell<'_>) {
        let runs = cell.samples.len();
        let first = self.most == 0;
        self.least = if first { runs } else { self.least.min(runs) };
        self.most = self.most.max(runs);
        let is_sure = cell.interval.confidence_percent >= 95.0;
        self.sure |= is_sure;
        self.unsure |= !is_sure;
    }
}

fn legend(results: &Results, runs: &Runs, out: &mut dyn Write) -> fmt::Result {
    let (least, most) = (runs.least, runs.most);
    let figures = match most {
        0 | 1 => "One run".to_owned(),
        _ => {
            let interval = match (runs.sure, runs.unsure) {
                (true, false) => "the interval that holds it with 95 %",
                (true, true) => "what holds it with 95 %; the smallest and the largest of few runs",
                (false, _) => "the smallest and the largest",
            };
            let number = match least == most {
                true => most.to_string(),
                false => format!("{least} to {most}"),
            };
            format!("The median of {number} runs; in brackets {interval}")
        }
    };
    writeln!(
        out,
        "\n{figures}; x is the ratio to the best of the line.\n\
         Lower is better. geometric mean: of the ratios, over the lines that all columns have."
    )?;
    if most > 1 {
        writeln!(
            out,
            "In its brackets are 95 % of the means if rounds are drawn again (bootstrap). of the \
             fastest: of the\nfastest run of each cell instead of its median. What else runs on a \
             machine only makes runs slower."
        )?;
    }
    writeln!(out, "Host: {}.", results.host())
}

/// Returns the tasks that have this metric, in the order of their rows.
fn tasks<'r>(results: &'r Results, metric: &str) -> Vec<&'r str> {
    let mut tasks = Vec::new();
    for row in results
        .rows()
        .iter()
        .filter(|row| row.metric().name == metric)
    {
        if !tasks.contains(&row.workload()) {
            tasks.push(row.workload());
        }
    }
    tasks
}

fn cell<'r>(results: &'r Results, config: &str, task: &str, metric: &str) -> Option<TableCell<'r>> {
    let is_it = |row: &&Row| {
        row.config() == config && row.workload() == task && row.metric().name == metric
    };
    let samples = results.rows().iter().find(is_it)?.samples();
    Some(TableCell {
        median: Summary::of(samples).ok()?.median()?,
        interval: MedianInterval::of(samples)?,
        samples,
    })
}

/// Returns the ratio of each cell to the smallest; none where ratios mean nothing.
fn of_the_best(cells: &[Option<TableCell<'_>>], have_ratios: bool) -> Vec<Option<f64>> {
    let medians = cells.iter().flatten().map(|cell| cell.median);
    let best = medians.fold(f64::INFINITY, f64::min);
    let ratio = |cell: &TableCell<'_>| cell.median / best;
    let all = cells.iter().map(|cell| cell.as_ref().map(ratio));
    all.map(|ratio| ratio.filter(|_| have_ratios && best > 0.0))
        .collect()
}

/// Returns the texts of a cell: the median, the interval, the ratio.
fn texts(cell: Option<&TableCell<'_>>, ratio: Option<f64>) -> [String; 3] {
    let Some(cell) = cell else {
        return ["-".into(), String::new(), String::new()];
    };
    // Three digits.
    let decimals = match cell.median.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = |value| fixed(value, decimals);
    let (low, high) = (text(cell.interval.low), text(cell.interval.high));
    let interval = if cell.samples.len() > 1 {
        format!("[{low} {high}]")
    } else {
        String::new()
    };
    [
        text(cell.median),
        interval,
        ratio.map_or_else(String::new, times),
    ]
}

fn times(ratio: f64) -> String {
    format!("x{}", fixed(ratio, 2))
}

/// Returns the texts of a geometric mean's cell.
fn mean_texts(mean: Mean) -> [String; 3] {
    let interval = mean.interval.map_or_else(String::new, |interval| {
        format!("[{} {}]", fixed(interval.low, 2), fixed(interval.high, 2))
    });
    [String::new(), interval, times(mean.ratio)]
}

/// Formats the lines: first the labels, then the columns. The three texts of the cells of a column
/// are aligned, and its name is above all three.
fn aligned(labels: &[String], configs: &[&str], lines: &[Vec<[String; 3]>]) -> Vec<String> {
    let mut table: Vec<Vec<String>> = labels.iter().map(|label| vec![label.clone()]).collect();
    for (column, config) in configs.iter().enumerate() {
        let cells: Vec<&[String; 3]> = lines.iter().map(|line| &line[column]).collect();
        let parts = [
            Column::right(),
            Column::right().after(1),
            Column::right().after(1),
        ];
        let parts = Columns::new(parts).fitting(&cells);
        let cells = cells.into_iter().map(|cell| parts.line(cell));
        let texts = core::iter::once((*config).to_owned()).chain(cells);
        for (line, text) in table.iter_mut().zip(texts) {
            line.push(text);
        }
    }
    Columns::new([Column::left(), Column::right().after(3)]).lines(&table)
}

#[cfg(test)]
mod tests {
    use brickyard_results::{Host, Metric};

    use super::*;

    fn results() -> Results {
        let mut results = Results::new("programs", Host::unknown());
        results.about_line("ours: libours.so");
        let time = Metric::lower("time", "s");
        let peak = Metric::lower("peak", "MiB");
        let over = Metric::lower("over-live", "%");
        for (config, task, metric, samples) in [
            ("ours", "larson threads-2", time, [1.0, 1.25, 1.125]),
            ("glibc", "larson threads-2", time, [2.0, 2.5, 2.25]),
            ("ours", "refill", time, [8.0, 8.0, 8.0]),
            ("glibc", "refill", time, [1.0, 1.0, 1.0]),
            ("ours", "redis", time, [3.0, 3.5, 4.0]),
            ("ours", "refill", peak, [250.0, 250.0, 251.0]),
            ("glibc", "refill", peak, [1000.0, 1000.5, 1000.0]),
            ("ours", "cfrac", peak, [0.0, 1.0, 2.0]),
            ("glibc", "cfrac", peak, [1.0, 1.0, 1.0]),
            ("ours", "refill", over, [25.0, 25.0, 25.5]),
            ("glibc", "refill", over, [-1.0, 400.0, 400.0]),
        ] {
            let row = Row::new(config, task, metric, samples.to_vec()).unwrap();
            results.push(row).unwrap();
        }
        results
    }

    #[test]
    fn the_table_has_medians_intervals_ratios_and_means() {
        let mut text = String::new();
        write(&results(), &mut text).unwrap();
        let expected = "\
programs
ours: libours.so

time, s                              ours                    glibc
larson threads-2   1.12 [1.00 1.25] x1.00   2.25 [2.00 2.50] x2.00
refill             8.00 [8.00 8.00] x8.00   1.00 [1.00 1.00] x1.00
redis              3.50 [3.00 4.00] x1.00      -
geometric mean          [2.83 2.83] x2.83        [1.41 1.41] x1.41
of the fastest                      x2.83                    x1.41

peak, MiB                          ours                    glibc
refill            250   [250 251] x1.00   1000 [1000 1000] x4.00
cfrac            1.00 [0.00 2.00] x1.00   1.00 [1.00 1.00] x1.00
geometric mean        [1.00 1.00] x1.00        [3.98 4.00] x4.00

over-live, %                ours           glibc
refill         25.0 [25.0 25.5]    400 [-1 400]

The median of 3 runs; in brackets the smallest and the largest; x is the ratio to the best of the line.
Lower is better. geometric mean: of the ratios, over the lines that all columns have.
In its brackets are 95 % of the means if rounds are drawn again (bootstrap). of the fastest: of the
fastest run of each cell instead of its median. What else runs on a machine only makes runs slower.
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn six_runs_have_an_interval_with_95_percent() {
        let mut results = Results::new("programs", Host::unknown());
        let samples = (1..=6).map(f64::from).collect();
        let row = Row::new("ours", "cfrac", Metric::lower("time", "s"), samples);
        results.push(row.unwrap()).unwrap();
        let more = vec![1.0; 9];
        let row = Row::new("ours", "larson", Metric::lower("time", "s"), more);
        results.push(row.unwrap()).unwrap();
        let mut text = String::new();
        write(&results, &mut text).unwrap();
        assert!(text.contains("3.50 [1.00 6.00] x1.00"), "{text}");
        assert!(
            text.contains("6 to 9 runs; in brackets the interval that holds it with 95 %"),
            "{text}"
        );
    }
}
