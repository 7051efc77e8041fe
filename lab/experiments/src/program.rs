//! What a cell was run with: the build of the program, and the traces. Two builds of one version
//! may measure differently, other traces are other work, and the cells of a folder may come from
//! several of both.

use core::hash::Hasher as _;
use std::fs;
use std::hash::DefaultHasher;
use std::sync::OnceLock;

use super::catalog::uses_traces;
use super::cell::Cell;
use super::traces::Traces;

/// Returns the version, and a checksum of the executable if it can be read: `0.1.0
/// 91f3c2a07b5de846`.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        // On Linux this is the running file even if another has taken its name.
        let bytes =
            fs::read("/proc/self/exe").or_else(|_| std::env::current_exe().and_then(fs::read));
        bytes.map_or_else(
            |_| version.to_owned(),
            |bytes| {
                // Without a key, so that an executable has the same checksum everywhere.
                let mut sum = DefaultHasher::new();
                sum.write(&bytes);
                format!("{version} {:016x}", sum.finish())
            },
        )
    })
}

/// The separator between the build and the checksum of the traces.
const TRACES: &str = ", traces ";

/// Returns what is stored with the rows of a cell: the build, and the checksum of the traces if the
/// cell uses them.
///
/// # Errors
/// If the traces cannot be read.
pub(crate) fn of(cell: &Cell, traces: &Traces) -> anyhow::Result<String> {
    let build = build();
    Ok(if uses_traces(cell) {
        format!("{build}{TRACES}{}", traces.checksum()?)
    } else {
        build.to_owned()
    })
}

/// Returns why a cell that was run by `program` must be run again, if it must. If the traces cannot
/// be read now, they are taken to be the same.
pub(crate) fn outdated(program: &str, cell: &Cell, traces: &Traces) -> Option<&'static str> {
    let (of_build, of_traces) = parts(program);
    if of_build != build() {
        return Some("by another build of the program");
    }
    let now = uses_traces(cell).then(|| traces.checksum());
    let is_other = match (now, of_traces) {
        (Some(Ok(now)), then) => then != Some(now),
        (Some(Err(_)) | None, _) => false,
    };
    is_other.then_some("with other traces")
}

/// Splits it into the build and the checksum of the traces, if there is one.
pub(crate) fn parts(program: &str) -> (&str, Option<&str>) {
    match program.split_once(TRACES) {
        Some((build, traces)) => (build, Some(traces)),
        None => (program, None),
    }
}
