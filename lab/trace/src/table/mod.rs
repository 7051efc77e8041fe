//! A flat Parquet table, the form of every file of the lab: rows are written column by column, and
//! read back with every value checked. The callers define the columns and their meaning.
//!
//! | file | contents |
//! |---|---|
//! | `group` | [`write()`] writes a table; [`Group`] the columns of a row group, in the order of the schema |
//! | `column` | [`Column`] reads one column batch by batch; [`columns!`](crate::columns) declares several |
//! | `appear` | [`appear`]: a file appears when it is complete |
//! | `input` | [`Input`]: the file, or its bytes in memory |
//! | `pages` | [`check_claims`] checks the sizes that pages declare before they are unpacked |

mod appear;
mod column;
mod group;
mod input;
mod pages;

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::SerializedFileReader;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use thiserror::Error;

pub(crate) use appear::unfinished;
pub use appear::{UNFINISHED, appear};
pub use column::{Column, RowGroup, same};
pub use group::{Group, write};
pub use input::Input;
pub use pages::{check_claims, check_claims_of};

/// Why a table could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The table lacks something that ours have.
    #[error("it has no `{0}`")]
    Foreign(String),
    /// The file is inconsistent.
    #[error("{0}")]
    Damaged(String),
}

impl Fault {
    /// Two parts of the file disagree.
    #[must_use]
    pub fn contradicts() -> Self {
        Self::Damaged("parts of it contradict each other".to_owned())
    }
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Opens a Parquet file. Call [`check_claims`] before any page is read.
///
/// # Errors
/// [`Fault::Damaged`].
pub fn open(input: &Input) -> Result<SerializedFileReader<Input>, Fault> {
    Ok(SerializedFileReader::new(input.clone())?)
}

/// Calls `parse` and turns a panic into an error: the Parquet crate has assertions that a damaged
/// file can trip.
///
/// # Errors
/// Those of `parse`, and [`Fault::Damaged`] if it panics.
pub fn guarded<T, E: From<Fault>>(parse: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let parsed = catch_unwind(AssertUnwindSafe(parse));
    parsed.unwrap_or_else(|_| Err(Fault::contradicts().into()))
}

/// Returns the value of the first pair with this key that has one.
pub fn value<'p>(pairs: &'p [KeyValue], key: &str) -> Option<&'p str> {
    let mut pairs = pairs.iter().filter(|pair| pair.key == key);
    pairs.find_map(|pair| pair.value.as_deref())
}

/// Parses a Parquet message type.
///
/// # Errors
/// If `message` is not one.
pub fn schema(message: &str) -> Result<TypePtr, ParquetError> {
    Ok(Arc::new(parse_message_type(message)?))
}

/// Returns the properties that all tables are written with; the caller may add its own.
///
/// # Errors
/// None: zstd has this level.
pub fn properties() -> Result<WriterPropertiesBuilder, ParquetError> {
    Ok(WriterProperties::builder()
        .set_created_by(concat!("brickyard ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_offset_index_disabled(true))
}
