//! Invariant `whole-or-absent`: a file appears when it is complete. It is written under a temporary
//! name in the same folder and synced to disk before it takes its own name.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Writes a file with `fill`, which appears as `path` when it is complete, and creates the folders
/// above it. An older file stays until then. Even after a crash of the host the file is complete or
/// what it was before. Waits for the disk.
///
/// # Errors
/// The error of `fill`, or of the system. Then no file appears, and the temporary one is removed.
pub fn appear(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let file = unfinished(folder)?;
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    // Otherwise the name could reach the disk before the bytes do.
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a temporary file in a folder.
pub(crate) fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(UNFINISHED.0).suffix(UNFINISHED.1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666)); // minus the umask
    }
    builder.tempfile_in(folder)
}

/// What the temporary names that [`appear`] uses begin and end with. A process that is killed
/// leaves such a file.
pub const UNFINISHED: (&str, &str) = (".brickyard-", ".unfinished");
