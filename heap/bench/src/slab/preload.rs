//! Libraries with a malloc family of their own that are loaded before the system's (`LD_PRELOAD`):
//! where they are, and whether the loader has loaded them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The names of the known libraries.
pub const KNOWN: [&str; 4] = ["brickyard", "jemalloc", "tcmalloc", "mimalloc"];

/// Returns the file names of a library, preferred first, and how to install it.
fn files_of(name: &str) -> (&'static [&'static str], &'static str) {
    match name {
        "brickyard" => (
            &["libbrickyard_malloc.so"],
            "build it: cargo build --release -p brickyard-malloc",
        ),
        "jemalloc" => (&["libjemalloc.so.2"], "Debian has it in libjemalloc2"),
        "tcmalloc" => (
            &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
            "Debian has it in libtcmalloc-minimal4",
        ),
        "mimalloc" => (
            &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"],
            "Debian has it in libmimalloc2.0",
        ),
        _ => (&[], "write NAME=PATH"),
    }
}

/// Returns the path of a known library, or why it is not found.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let (files, fix) = files_of(name);
    let folders = folders();
    let all = files
        .iter()
        .flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
    all.into_iter()
        .find_map(|path| fs::canonicalize(path).ok())
        .ok_or_else(|| {
            let files = files.join(" or ");
            format!("{files} is not installed; {fix}")
        })
}

/// Returns the folders to search: beside this program, those of `LD_LIBRARY_PATH`, and the
/// system's.
fn folders() -> Vec<PathBuf> {
    let beside = env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let given = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let machine = format!("{}-linux-gnu", env::consts::ARCH);
    let system = [
        format!("/usr/lib/{machine}"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
        "/usr/local/lib".into(),
    ];
    let given: Vec<PathBuf> = env::split_paths(&given).collect();
    let system = system.into_iter().map(PathBuf::from);
    beside.into_iter().chain(given).chain(system).collect()
}

/// Fails if this process has not loaded the library. The loader continues without a library that it
/// cannot load, so the process itself must check.
pub fn is_loaded(library: &Path) -> anyhow::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps").context("cannot read /proc/self/maps")?;
    let library = library.display().to_string();
    if !maps.lines().any(|line| line.ends_with(&library)) {
        bail!("the loader did not load {library}; is it a shared library for this machine?");
    }
    Ok(())
}
