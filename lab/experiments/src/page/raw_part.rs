//! The last part: where all rows are, how to read them, and how to make them again.

use core::fmt::Write as _;

use super::Report;
use super::markup::Escaped;

/// What reads the files, and how.
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

/// The part as HTML. Writing to a string cannot fail.
pub(super) fn of(report: &Report<'_>) -> String {
    let mut out = String::new();
    out.push_str(
        "<section class=\"part\" id=\"raw\" aria-labelledby=\"raw-title\"><h2 id=\"raw-title\">Raw rows, and how to repeat them</h2>\
        <p>Every measured figure of this page is computed from the rows of one run, and nothing else. The rows lie beside this page: <a href=\"rows.csv\"><code>rows.csv</code></a> and <a href=\"rows.parquet\"><code>rows.parquet</code></a> have all of them, \
        <code>raw/experiment=NAME/CELL.parquet</code> those of one cell, <a href=\"figures.csv\"><code>figures.csv</code></a> all figures of all tables with their intervals and p, and <code>results.json</code> is what <code>brickyard compare</code> reads.</p>\
        <p>A row says: the cell that gave it, how it came about (simulated, replayed, timed), the seed, machine, workload, configuration, metric, unit, which way is better, the run, the place along a series in seconds, and the value. \
        Rows of the same run under two configurations are a pair: the same seed, or the same round. Simulated and replayed cells give the same rows on every host; timed ones do not.</p>\
        <noscript><p>Without JavaScript a figure does not show its rows here. They are the lines of <a href=\"rows.csv\"><code>rows.csv</code></a> that the figure's <code>data-rows</code> counts, from 0 below the head.</p></noscript>",
    );
    out.push_str("<h3>The whole run again</h3>");
    write_code(&report.command, &mut out);
    out.push_str("<p>One cell by itself; all cells are listed by <code>brickyard reproduce --full --list-cells</code>:</p>");
    if let Some(cell) = report.data.cells().first() {
        write_code(&(report.cell_command)(&cell.cell), &mut out);
    }
    out.push_str("<h3>With other programs</h3>");
    for (name, code) in READERS {
        let _ = write!(out, "<h4>{}</h4>", Escaped(name));
        write_code(code, &mut out);
    }
    out.push_str("</section>");
    out
}

/// A piece of code, which the script gives a button to copy it.
fn write_code(code: &str, out: &mut String) {
    let _ = write!(
        out,
        "<div class=\"code\"><pre tabindex=\"0\"><code>{}</code></pre></div>",
        Escaped(code)
    );
}
