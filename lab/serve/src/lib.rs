//! Watches the page allocator of a running Linux at a stated cost: metrics for Prometheus, history
//! in Parquet files, a live page.
//!
//! | module | contents |
//! |---|---|
//! | [`sample`], [`frames`] | what is known of the host at one time; maps of its memory |
//! | `reading` | what a complete pass over the frames says |
//! | [`budget`] | the share of a CPU that sampling keeps to |

#![forbid(unsafe_code)]

pub mod budget;
pub mod frames;
mod reading;
pub mod sample;
