//! Files of a run appear when they are complete.

use std::io::{self, Write};
use std::path::Path;

use brickyard_trace::table;

use super::error::WriteError;

/// As [`table::appear`].
///
/// # Errors
/// [`WriteError`], with the path.
pub fn appear(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<(), WriteError> {
    table::appear(path, fill).map_err(|error| WriteError::io(path, error))
}
