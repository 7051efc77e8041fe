//! A flat Parquet table, as all files of the lab are: what stores rows column by column, and what
//! reads them back and believes nothing. What the columns mean is their owners' affair.
//!
//! | file | what it tells |
//! |---|---|
//! | `group` | [`Group`]: columns of a row group, written in the order of the schema |
//! | `column` | [`Column`]: one of them, read batch by batch |
//! | `pages` | [`check_claims`]: how large does each page claim to be? |

mod column;
mod group;
mod pages;

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::SerializedFileReader;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use thiserror::Error;

pub use column::{Column, RowGroup};
pub use group::Group;
pub use pages::check_claims;

/// Why a table could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// It is a table of somebody else.
    #[error("it has no `{0}`")]
    Foreign(String),
    /// It makes no sense.
    #[error("{0}")]
    Damaged(String),
}

impl Fault {
    pub(crate) fn contradicts() -> Self {
        Self::Damaged("its parts contradict each other".to_owned())
    }
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Opens what these bytes are. Before a page is read, [`check_claims`] should have looked.
///
/// # Errors
/// [`Fault::Damaged`].
pub fn open(bytes: &Bytes) -> Result<SerializedFileReader<Bytes>, Fault> {
    Ok(SerializedFileReader::new(bytes.clone())?)
}

/// What `parse` gives. The Parquet crate has assertions that a damaged file can break: they are no
/// danger, but they are panics.
///
/// # Errors
/// Those of `parse`, and [`Fault::Damaged`] where it panics.
pub fn guarded<T, E: From<Fault>>(parse: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let parsed = catch_unwind(AssertUnwindSafe(parse));
    parsed.unwrap_or_else(|_| Err(Fault::contradicts().into()))
}

/// What the first pair with this key says.
pub fn said<'p>(pairs: &'p [KeyValue], key: &str) -> Option<&'p str> {
    let mut pairs = pairs.iter().filter(|pair| pair.key == key);
    pairs.find_map(|pair| pair.value.as_deref())
}

/// The schema that this message type is.
///
/// # Errors
/// Where it is none.
pub fn schema(message: &str) -> Result<TypePtr, ParquetError> {
    Ok(Arc::new(parse_message_type(message)?))
}

/// How tables are stored, unless more is said.
///
/// # Errors
/// None: zstd has this level.
pub fn properties() -> Result<WriterPropertiesBuilder, ParquetError> {
    Ok(WriterProperties::builder()
        .set_created_by(concat!("brickyard ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_offset_index_disabled(true))
}
