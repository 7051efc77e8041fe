//! The last section: where all rows are, how to read them, and how to measure them again.

use core::fmt::Write as _;

use super::markup::Escaped;
use super::report::Report;

/// Programs that read the files, and their commands.
const READERS: [(&str, &str); 3] = [
    (
        "DuckDB",
        "SELECT config, workload, avg(value), stddev(value), count(*)\nFROM 'rows.parquet'\nWHERE experiment = 'pagealloc' AND metric = 'total'\nGROUP BY ALL ORDER BY ALL;",
    ),
    (
        "DuckDB, the cells' own files",
        "SELECT *\nFROM read_parquet('raw/*/*.parquet', hive_partitioning = true)\nWHERE experiment = 'locks';",
    ),
    (
        "pandas",
        "import pandas\nrows = pandas.read_parquet(\"rows.parquet\")\nrows[rows.metric == \"total\"].pivot_table(index=\"workload\", columns=\"config\", values=\"value\")",
    ),
];

/// Returns the section as HTML. Writing to a string cannot fail.
pub(super) fn of(report: &Report<'_>) -> String {
    let mut out = String::new();
    out.push_str(
        "<section class=\"part\" id=\"raw\" aria-labelledby=\"raw-title\"><h2 id=\"raw-title\">Raw rows, and how to measure them again</h2>\
        <p>Every measured figure of this page is computed from the rows of one run, and nothing else. The rows are in files beside this page: <a href=\"rows.csv\"><code>rows.csv</code></a> and <a href=\"rows.parquet\"><code>rows.parquet</code></a> have all of them, \
        <code>raw/experiment=NAME/CELL.parquet</code> those of one cell, <a href=\"figures.csv\"><code>figures.csv</code></a> all figures of all tables with their intervals and p, and <code>results.json</code> is what <code>brickyard compare</code> reads.</p>\
        <p>A row has its cell, how it was obtained (simulated, replayed, timed), the seed, machine, workload, configuration, metric, unit, which way is better, the run, the time in seconds if it is a point of a series, and the value. \
        Rows of the same run under two configurations are a pair: they have the same seed, or are of the same round. Simulated and replayed cells give the same rows on every host; timed ones do not.</p>\
        <noscript><p>Without JavaScript a figure does not show its rows here. The attribute <code>data-rows</code> of a figure has their line numbers in <a href=\"rows.csv\"><code>rows.csv</code></a>, counted from 0 below the head.</p></noscript>",
    );
    out.push_str("<h3>Repeat the whole run</h3>");
    write_code(&report.command, &mut out);
    out.push_str("<p>Repeat a single cell (<code>brickyard reproduce --full --list-cells</code> lists all of them):</p>");
    if let Some(cell) = report.data.cells().first() {
        write_code(&(report.cell_command)(&cell.cell), &mut out);
    }
    out.push_str("<h3>Read the rows with other programs</h3>");
    for (name, code) in READERS {
        let _ = write!(out, "<h4>{}</h4>", Escaped(name));
        write_code(code, &mut out);
    }
    out.push_str("</section>");
    out
}

/// Writes a piece of code, to which the script adds a button to copy it.
fn write_code(code: &str, out: &mut String) {
    let _ = write!(
        out,
        "<div class=\"code\"><pre tabindex=\"0\"><code>{}</code></pre></div>",
        Escaped(code)
    );
}
