//! The five source documents reproduced: what they printed, what was measured for each figure,
//! whether the directions agree, and the report page.
//!
//! | module | what it holds |
//! |---|---|
//! | [`raw`] | a measured value with its key; the rows of a cell |
//! | [`data`] | all rows, indexed by key |
//! | [`document`] | the parts of a document's section in the report |
//! | [`experiment`], [`settings`], [`catalog`] | an experiment as a value; what a run of it was told; all of them |
//! | `locks`, `pagealloc`, `pft`, `kernbench`, `two_kinds`, `slab`, `mobility`, `storm`, `scarce`, `fragmentation`, `gigabytes` | one experiment each: cells, and the document as data |
//! | [`documents`] | all documents; what they share |
//! | [`judge`] | a figure's value, its interval, and how its direction compares |
//! | [`expect`] | whether a run reproduces an earlier one |
//! | [`directions`] | how many directions are reproduced |
//! | `finding` | findings as sentences |
//! | `numbers` | numbers formatted for display |
//! | [`figures`] | all figures of all tables as CSV |
//! | [`page`] | the report as one HTML page |
//! | [`store`] | the folder of a run: Parquet and CSV |
//! | [`cell`], `cells` | the smallest piece that is run by itself; what those of several experiments share |
//! | [`plan`] | which cells are run |
//! | [`antifrag`], [`filming`] | the protocol of 2005 and 2007 on a machine; pictures of a run |
//! | [`traces`] | the recorded traces, each read once |
//! | [`finished`] | which cells a folder already has, and which of these count |
//! | [`running`], `panics` | running the cells; a panic in one of them |
//! | [`lock`] | one run in a folder, one timed cell on a host |
//! | `program` | which build of the program runs the cells, and with which traces |
//! | [`pages`] | the pages with a player, beside the rows |
//! | [`warnings`], [`summary`] | what a reader must know first; a run in a few lines |
//! | [`results`] | rows as a results document |
//! | [`refusal`] | requests that a run cannot carry out |

#![forbid(unsafe_code)]

/// The page of the book on how to add an experiment, whose example must compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/adding.md")]
mod adding {}
pub mod antifrag;
pub mod apart;
pub mod catalog;
pub mod cell;
mod cells;
pub mod data;
pub mod directions;
pub mod document;
pub mod documents;
pub mod expect;
pub mod experiment;
pub mod figures;
pub mod filming;
mod finding;
pub mod finished;
mod forecast;
mod fragmentation;
mod gigabytes;
pub mod judge;
mod kernbench;
pub mod lock;
mod locks;
mod mobility;
mod numbers;
pub mod page;
mod pagealloc;
pub mod pages;
mod panics;
mod pft;
pub mod plan;
mod program;
pub mod raw;
pub mod record;
pub mod refusal;
pub mod results;
pub mod running;
mod scarce;
pub mod settings;
mod slab;
pub mod store;
mod storm;
pub mod summary;
pub mod traces;
mod two_kinds;
pub mod warnings;
pub mod winner;
