//! By what a cell is run: which build of the program, and which traces. Two builds of one version
//! may measure differently, other traces are other work, and cells of a folder may come from
//! several of either.

use core::hash::Hasher as _;
use std::fs;
use std::hash::DefaultHasher;
use std::sync::OnceLock;

use super::cell::Cell;
use super::traces::Traces;

/// The version, and a checksum of the executable where that can be read: `0.1.0 91f3c2a07b5de846`.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        // Linux gives the file that runs even where another has taken its name.
        let bytes =
            fs::read("/proc/self/exe").or_else(|_| std::env::current_exe().and_then(fs::read));
        bytes.map_or_else(
            |_| version.to_owned(),
            |bytes| {
                // Without a key, so that the same executable has the same sum everywhere.
                let mut sum = DefaultHasher::new();
                sum.write(&bytes);
                format!("{version} {:016x}", sum.finish())
            },
        )
    })
}

/// Between the build and the checksum of the traces.
const TRACES: &str = ", traces ";

/// What is kept beside the rows of a cell: the build, and of a cell that works by traces their
/// checksum.
///
/// # Errors
/// If the traces cannot be read.
pub(crate) fn of(cell: &Cell, traces: &Traces) -> anyhow::Result<String> {
    let build = build();
    Ok(if Traces::serve(cell) {
        format!("{build}{TRACES}{}", traces.checksum()?)
    } else {
        build.to_owned()
    })
}

/// Why a cell that was run by `program` is to be run again, if it is. Where there are no traces,
/// those of then are as good as any.
pub(crate) fn outdated(program: &str, cell: &Cell, traces: &Traces) -> Option<&'static str> {
    let (of_build, of_traces) = parts(program);
    if of_build != build() {
        return Some("by another build of the program");
    }
    let now = Traces::serve(cell).then(|| traces.checksum());
    let is_other = match (now, of_traces) {
        (Some(Ok(now)), then) => then != Some(now),
        (Some(Err(_)) | None, _) => false,
    };
    is_other.then_some("by other traces")
}

/// The build, and the checksum of the traces if there is one.
pub(crate) fn parts(program: &str) -> (&str, Option<&str>) {
    match program.split_once(TRACES) {
        Some((build, traces)) => (build, Some(traces)),
        None => (program, None),
    }
}
