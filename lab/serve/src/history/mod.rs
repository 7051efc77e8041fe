//! The history: samples in Parquet files of bounded size.
//!
//! A folder has three folders, one a table. The files of a table, of one host or of many, are one
//! data set: every row names its host and its time, and the names of files do not collide.
//!
//! | table | a row | |
//! |---|---|---|
//! | `hosts` | a sample | [`figures`] |
//! | `zones` | an order of a zone in a sample | [`zones`] |
//! | `blocks` | page blocks of one kind side by side, in a pass over all frames | [`blocks`] |
//!
//! | module | contents |
//! |---|---|
//! | [`name`] | the names of files, which have host and time |
//! | [`store`] | writing, and removing what is oldest |
//! | [`read`] | reading, for the page and for `brickyard history` |
//! | [`spans`] | samples put together in spans of time |

pub mod blocks;
mod error;
pub mod figures;
pub mod name;
pub mod read;
pub mod spans;
pub mod store;
pub mod zones;

use core::time::Duration;
use std::time::SystemTime;

pub use error::HistoryError;
pub use store::Store;

/// The folders of the tables.
pub const TABLES: [&str; 3] = [figures::TABLE, zones::TABLE, blocks::TABLE];

/// Returns the milliseconds since 1970; 0 before.
#[must_use]
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Returns the time of so many milliseconds since 1970; those after the year 9999 count as its end.
#[must_use]
pub fn time_of(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.min(253_402_300_799_999))
}
