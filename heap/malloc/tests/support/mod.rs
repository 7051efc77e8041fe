//! What the tests that run other programs on the library have in common.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, which cargo builds beside the tests.
pub(crate) fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let beside = tests.parent().unwrap().join("libbrickyard_malloc.so");
    let above = tests.parent().unwrap().join("../libbrickyard_malloc.so");
    let library = if beside.exists() { beside } else { above };
    library.canonicalize().unwrap()
}

/// Compiles a source of the tests' directory by the compiler that `variable` names (`CC`, `CXX`);
/// `None` without it, which is said.
pub(crate) fn compiled_by(
    variable: &str,
    source: &str,
    name: &str,
    words: &[&str],
    last: &[&str],
) -> Option<PathBuf> {
    let usual = if variable == "CC" { "cc" } else { "g++" };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let done = Command::new(&compiler)
        .args(["-O1", "-fno-builtin", "-Wall", "-Werror", "-pthread"])
        .args(words)
        .arg("-o")
        .arg(&program)
        .arg(tests.join(source))
        .args(last)
        .arg("-ldl")
        .status();
    match done {
        Ok(status) => {
            assert!(status.success(), "{source} does not compile");
            Some(program)
        }
        Err(error) => {
            println!("skipped: no {compiler}: {error}");
            None
        }
    }
}
