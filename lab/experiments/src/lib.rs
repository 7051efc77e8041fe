//! The five source documents, repeated: what they printed, what was measured for each figure, whether the directions agree, and the page that shows it.
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
//! Who runs the cells is the command (`brickyard reproduce`); nothing here measures.

#![forbid(unsafe_code)]

pub mod data;
pub mod directions;
pub mod document;
pub mod documents;
pub mod expect;
pub mod figures;
mod finding;
pub mod judge;
pub mod page;
pub mod raw;
mod shown;
pub mod store;
