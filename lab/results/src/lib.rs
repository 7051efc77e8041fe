//! Results of measurements: samples, their statistics, and tables against a baseline.
//!
//! Every experiment of the lab produces one document, [`Results`]: rows of samples, each with its
//! configuration, its workload and its [`Metric`]. All else here is a view of that document. The
//! rules are those of mmtests (`MMTests/Stat.pm` and `MMTests/Compare.pm`), the suite in which the
//! page allocator's tables have been published since 2013, so that tables can be compared side by
//! side; where the rules differ, the item's documentation says so.
//!
//! | file | what it holds |
//! |---|---|
//! | `summary.rs` | [`Summary`]: mean, deviation, confidence interval, percentiles of one row's samples |
//! | `host.rs` | [`Host`]: the machine the samples were taken on |
//! | `metric.rs` | [`Metric`] and [`Better`]: what is measured, in which unit, and which direction is better |
//! | `row.rs` | [`Row`]: samples with their names, and the statistics computed from them |
//! | `sample_kind.rs` | [`SampleKind`]: whether another run would give the same samples |
//! | `results.rs` | [`Results`]: the document, and the rules that keep its rows comparable |
//! | `grid.rs` | the rows in lines and columns |
//! | `compare.rs` | [`Comparison`]: gain and significance of each cell against the first configuration |
//! | `signed_rank.rs` | [`SignedRank`]: Wilcoxon's test of paired runs |
//! | `paired_t.rs` | [`PairedT`]: Student's test of paired runs, for few pairs |
//! | `rank_sum.rs`, `welch.rs` | [`RankSum`], [`Welch`]: tests of independent runs |
//! | `holm.rs` | [`holm()`]: p corrected for many tests at once |
//! | `effect.rs` | [`hedges_g`], [`cliffs_delta`]: how large a difference is |
//! | `bootstrap.rs` | [`Bootstrap`]: intervals of a mean, of a ratio of means, of any statistics |
//! | `median.rs` | [`MedianInterval`]: the interval of a median |
//! | `ratio_interval.rs` | [`ratio_interval`]: the interval of a ratio, by a method that suits the number of samples |
//! | `steps.rs`, `steps_table.rs` | [`Steps`], [`write_steps`]: each configuration against the one before it, as in 2007 |
//! | `gmean.rs` | [`Gmean`]: one number for a whole configuration |
//! | `columns.rs`, `amount.rs` | [`Columns`]: aligned columns of text; [`bytes_text`], [`bytes_of`], [`counted`]: amounts of memory, numbers with their noun |
//! | `table.rs`, `legend.rs` | [`write_table`]: the text table, and the lines under it that explain it |
//! | `csv.rs`, `json.rs` | [`write_csv`], [`write_json`], [`read_json`]: the document for other programs |
//! | `emit.rs` | [`Format`] and [`write()`]: writes any of these formats |
//! | `noise.rs` | [`noise_warning`]: a warning when the samples vary too much to be trusted |
//! | [`verdict`] | two documents compared row by row |
//!
//! ```
//! use brickyard_results::{Better, Format, Host, Metric, Results, Row, TableOptions, write};
//!
//! const ALLOC: Metric = Metric { name: "alloc", unit: "cycles", better: Better::Lower };
//!
//! let mut results = Results::new("pagealloc", Host::unknown());
//! results.push(Row::new("vanilla", "order-0 batch-1", ALLOC, vec![671.0, 669.0, 673.0])?)?;
//! results.push(Row::new("magazine", "order-0 batch-1", ALLOC, vec![734.0, 733.0, 735.0])?)?;
//!
//! let mut text = Vec::new();
//! write(&results, Format::Table, &TableOptions::default(), &mut text)?;
//! let text = String::from_utf8(text)?;
//! assert!(text.contains("671.00 (   0.00%)       734.00 *  -9.39%*"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod amount;
mod bootstrap;
mod columns;
mod compare;
mod csv;
mod effect;
mod emit;
mod gmean;
mod grid;
mod holm;
mod host;
mod json;
mod legend;
mod median;
mod metric;
mod noise;
mod paired_t;
mod rank_sum;
mod ratio_interval;
mod results;
mod row;
mod sample_kind;
mod signed_rank;
mod steps;
mod steps_table;
mod summary;
mod table;
pub mod verdict;
mod welch;

pub use amount::{NoAmount, bytes_of, bytes_text, counted, noun};
pub use bootstrap::{
    Bootstrap, Interval, RESAMPLES, bootstrap_each, bootstrap_mean, bootstrap_paired_ratio,
    bootstrap_ratio,
};
pub use columns::{Column, Columns};
pub use compare::{Cell, Comparison, INTERVAL_DEVIATIONS, Significance, gain_percent};
pub use csv::{write_csv, write_steps_csv};
pub use effect::{cliffs_delta, hedges_g};
pub use emit::{Format, UnknownFormat, write};
pub use gmean::{Gmean, GmeanCell};
pub use grid::{Grid, Line};
pub use holm::holm;
pub use host::Host;
pub use json::{ReadError, parse_json, read_json, write_json, write_steps_json};
pub use median::MedianInterval;
pub use metric::{Better, Metric};
pub use noise::{NOISE_LIMIT_PERCENT, Noisy, noise_warning, noisy_rows};
pub use paired_t::PairedT;
pub use rank_sum::{EXACT_LARGER_MAX, EXACT_SMALLER_MAX, RankSum};
pub use ratio_interval::{BOOTSTRAP_LEAST, IntervalMethod, RatioInterval, Runs, ratio_interval};
pub use results::{Results, ResultsError};
pub use row::{Row, RowError};
pub use sample_kind::SampleKind;
pub use signed_rank::{Distribution, EXACT_PAIRS_MAX, SignedRank, Unpaired, smallest_p};
pub use steps::{SIGNIFICANT_P, Step, StepCell, Steps};
pub use steps_table::write_steps;
pub use summary::{NotFinite, Summary};
pub use table::{Against, Deviation, TableOptions, fixed, plain_label, write_table};
pub use welch::Welch;
