//! Invariant `whole-or-absent`: a file appears when it is whole. It grows under a temporary name
//! beside its own, is on the disk, and only then takes its name.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::WriteError;

/// Lets `fill` write a file that appears as `path` when it is whole, with the folders above it; one
/// that was there before stays until then. After a crash of the host, too, the file is whole or
/// what it was before. Costs a wait for the disk.
///
/// # Errors
/// [`WriteError`], with the path: that of `fill`, or of the system. Then nothing appears, and
/// nothing is left beside it.
pub fn appear(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<(), WriteError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let written = fs::create_dir_all(folder).and_then(|()| {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".brickyard-").suffix(".unfinished");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
        }
        let file = builder.tempfile_in(folder)?;
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        // Else the name may be on the disk before the bytes are.
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    });
    written.map_err(|error| WriteError::io(path, error))
}
