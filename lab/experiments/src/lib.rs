//! The five source documents, repeated: what they printed, what was measured for each figure,
//! whether the directions agree, and the page that shows it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`raw`] | a measured value with all that says what it is; a cell's rows |
//! | [`data`] | all rows, found by what they are |
//! | [`document`] | what a document's part of the report is made of |
//! | [`documents`] | the five, as data |
//! | [`judge`] | a figure's number, its interval, and how its direction compares |
//! | [`expect`] | is a run as an earlier one was? |
//! | [`directions`] | how many directions come out |
//! | `finding` | findings in plain words |
//! | `shown` | a number as a reader sees it |
//! | [`figures`] | all figures of all tables as CSV |
//! | [`page`] | the report as one HTML page |
//! | [`store`] | the folder of a run: Parquet and CSV |
//!
//! | [`cell`], `cells` | the smallest piece that is run by itself; those of each experiment |
//! | [`plan`] | which of them are run |
//! | [`antifrag`], [`filming`] | the protocol of 2005 and 2007 on a machine; pictures of a run |
//! | [`traces`] | the recorded traces, each read once |
//! | [`kept`] | which of them a folder has already, and which of these count |
//! | [`running`], `panics` | running them; a panic in one of them |
//! | [`lock`] | one run in a folder, one timed cell on a host |
//! | `program` | which build of the program runs them, and by which traces |
//! | [`pages`] | the pages with a player, beside the rows |
//! | [`warnings`], [`summary`] | what a reader has to know first; a run in a few lines |
//! | [`results`] | rows as a document of results |
//! | [`refusal`] | what a run is asked for and cannot be |

#![forbid(unsafe_code)]

pub mod antifrag;
pub mod cell;
mod cells;
pub mod data;
pub mod directions;
pub mod document;
pub mod documents;
pub mod expect;
pub mod figures;
pub mod filming;
mod finding;
pub mod judge;
pub mod kept;
pub mod lock;
pub mod page;
pub mod pages;
mod panics;
pub mod plan;
mod program;
pub mod raw;
pub mod refusal;
pub mod results;
pub mod running;
mod shown;
pub mod store;
pub mod summary;
pub mod traces;
pub mod warnings;
