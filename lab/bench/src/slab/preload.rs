//! Libraries with a malloc family of their own that are loaded before the system's (`LD_PRELOAD`):
//! where they lie, and whether the loader took them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The names by which libraries are found.
pub const KNOWN: [&str; 4] = ["brickyard", "jemalloc", "tcmalloc", "mimalloc"];

/// The files that a library may be in, best first, and how to get it.
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

/// Where a known library lies, or why it is not there.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let (files, way_out) = files_of(name);
    let folders = folders();
    let all = files
        .iter()
        .flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
    all.into_iter()
        .find_map(|path| fs::canonicalize(path).ok())
        .ok_or_else(|| {
            let files = files.join(" or ");
            format!("there is no {files} here; {way_out}")
        })
}

/// Where libraries lie: beside this program, where the user says, and where the system has them.
fn folders() -> Vec<PathBuf> {
    let beside = env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let said = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let machine = format!("{}-linux-gnu", env::consts::ARCH);
    let system = [
        format!("/usr/lib/{machine}"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
        "/usr/local/lib".into(),
    ];
    let said: Vec<PathBuf> = env::split_paths(&said).collect();
    let system = system.into_iter().map(PathBuf::from);
    beside.into_iter().chain(said).chain(system).collect()
}

/// The loader goes on without a library that it cannot load. So the process that was to have it
/// looks.
pub fn is_loaded(library: &Path) -> anyhow::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps").context("cannot see what is loaded")?;
    let library = library.display().to_string();
    if !maps.lines().any(|line| line.ends_with(&library)) {
        bail!("the loader did not take {library}; is it a shared library for this machine?");
    }
    Ok(())
}
