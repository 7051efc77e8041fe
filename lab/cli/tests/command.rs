//! The command as a user runs it, and what it printed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The command with these arguments, in the root of the repository, where the traces are.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickyard"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.args(arguments).current_dir(root);
    command
}

pub(crate) fn brickyard(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Runs the command with `--set` before each word that has a `=`.
pub(crate) fn with_set(words: &[&str]) -> Output {
    let set = |word: &&str| word.contains('=').then_some("--set");
    let words = words
        .iter()
        .flat_map(|word| set(word).into_iter().chain([*word]));
    brickyard(&words.collect::<Vec<_>>())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the output of a run that must succeed.
pub(crate) fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the message of a run that must fail with this code.
pub(crate) fn refused(code: i32, output: &Output) -> String {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

/// Compares with a file of this folder; `BRICKYARD_BLESS=1` rewrites it.
pub(crate) fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name);
    if std::env::var_os("BRICKYARD_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} differs:\n{found}", path.display());
}
