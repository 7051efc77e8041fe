//! What an operator can do for larger blocks. None of it loses data; dropping caches makes later
//! reads slow, and compaction takes a CPU for seconds.

use std::fs;
use std::path::Path;

use crate::trial::TrialError;

fn write(path: &str, text: &str) -> Result<(), TrialError> {
    let path = Path::new(path);
    fs::write(path, text).map_err(|source| TrialError::of(path, source))
}

/// Compacts all zones; returns when that is done.
///
/// # Errors
/// For users other than root, and kernels without compaction.
pub fn compact() -> Result<(), TrialError> {
    write("/proc/sys/vm/compact_memory", "1")
}

/// Writes modified files, and drops clean page cache, dentries and inodes.
///
/// # Errors
/// For users other than root.
pub fn sync_and_drop() -> Result<(), TrialError> {
    rustix::fs::sync();
    write("/proc/sys/vm/drop_caches", "3")
}
