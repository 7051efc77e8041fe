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
//! | `row.rs` | [`Row`]: samples with their names, and the statistics computed from them; [`SampleKind`] |
//! | `metric.rs` | [`Metric`] and [`Better`]: what is measured, in which unit, and which direction is better |
//! | `host.rs` | [`Host`]: the machine the samples were taken on |
//! | `results.rs` | [`Results`]: the document, and the rules that keep its rows comparable |
//! | `comparison.rs` | [`Comparison`]: rows in lines and columns, each against the first column or the one before |
//! | `gmean.rs` | [`Gmean`]: one number for a whole configuration |
//! | `format.rs`, `table.rs`, `csv.rs`, `json.rs` | [`Results::text`]: as a table, CSV or JSON; [`read_json`] reads it back |
//! | `listing.rs` | [`Listing`]: rows with named columns, for people, as CSV and as JSON |
//! | `noise.rs` | [`noise_warning`]: a warning when the samples vary too much to be trusted |
//! | `columns.rs`, `amount.rs` | [`Columns`]: aligned columns of text; [`bytes_text`], [`bytes_of`], [`counted`]: amounts of memory, numbers with their noun |
//! | `statistics` | tests and intervals |
//! | [`judge`] | two sides compared: their difference, its interval and test, and the verdict of `brickyard compare` |
//!
//! ```
//! use brickyard_results::{Better, Format, Host, Metric, Results, Row, TableOptions};
//!
//! const ALLOC: Metric = Metric { name: "alloc", unit: "cycles", better: Better::Lower };
//!
//! let mut results = Results::new("pagealloc", Host::unknown());
//! results.push(Row::new("vanilla", "order-0 batch-1", ALLOC, vec![671.0, 669.0, 673.0])?)?;
//! results.push(Row::new("magazine", "order-0 batch-1", ALLOC, vec![734.0, 733.0, 735.0])?)?;
//!
//! let text = results.text(Format::Table, &TableOptions::default());
//! assert!(text.contains("671.00 (   0.00%)       734.00 *  -9.39%*"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod amount;
mod columns;
mod comparison;
mod csv;
mod format;
mod gmean;
mod host;
mod json;
pub mod judge;
mod listing;
mod metric;
mod noise;
mod results;
mod row;
mod statistics;
mod table;

pub use amount::{NoAmount, bytes_of, bytes_text, counted, noun};
pub use columns::{Column, Columns};
pub use comparison::{Against, ComparedMetric, ComparedRow, Comparison, gain_percent};
pub use format::Format;
pub use gmean::Gmean;
pub use host::Host;
pub use json::{ReadError, parse_json, read_json};
pub use listing::{Cell, Field, Listing, printable};
pub use metric::{Better, Metric};
pub use noise::noise_warning;
pub use results::{Results, ResultsError};
pub use row::{Row, RowError, SampleKind};
pub use statistics::{
    BOOTSTRAP_LEAST, Distribution, EXACT_SMALLER_MAX, INTERVAL_DEVIATIONS, Interval,
    IntervalMethod, MedianInterval, NotFinite, RankSum, RatioInterval, Runs, SIGNIFICANT_P,
    SignedRank, Student, Summary, bootstrap_each, bootstrap_paired_ratio, bootstrap_ratio,
    difference95, holm, ratio_interval, smallest_p,
};
pub use table::{Deviation, TableOptions, fixed, plain_label};
