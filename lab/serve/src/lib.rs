//! Watches the page allocator of a running Linux at a stated cost: metrics for Prometheus, history
//! in Parquet files, a live page.
//!
//! | module | contents |
//! |---|---|
//! | [`sample`], [`frames`] | what is known of the host at one time; maps of its memory |
//! | `reading` | what a complete pass over the frames says |
//! | [`budget`] | the share of a CPU that sampling keeps to |
//! | [`sampler`] | takes samples: the lists at once, the frames in parts |
//! | [`history`] | samples in Parquet files of bounded size |
//! | `recording` | the thread that keeps them |
//! | [`board`] | the newest sample, between the thread that samples and those that answer |
//! | [`metrics`], `api` | a sample as OpenMetrics, and as JSON for the page |
//! | [`routes`], [`http`], `places` | what is asked to what is answered; the server and its limits |
//! | [`privileges`], `keeper` | giving up root, and what then still has to be undone |
//! | [`service`] | all of it |

#![forbid(unsafe_code)]

mod api;
pub mod board;
pub mod budget;
mod error;
pub mod frames;
pub mod history;
pub mod http;
mod keeper;
pub mod metrics;
mod places;
pub mod privileges;
mod process;
mod reading;
mod recording;
pub mod routes;
pub mod sample;
pub mod sampler;
pub mod service;
#[cfg(test)]
#[path = "../../host/tests/synthetic/mod.rs"]
mod synthetic;

pub use error::ServeError;
