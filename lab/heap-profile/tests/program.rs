//! A program in C that writes a profile of itself.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use brickyard_heap_profile::Profile;
use tempfile::TempDir;

/// A built program, and the profile that it wrote.
pub(crate) struct Program {
    /// Its folder, which is removed with this value.
    pub(crate) folder: TempDir,
    pub(crate) text: Vec<u8>,
}

impl Program {
    /// Builds and runs it; `None`, with the reason printed, if there is no compiler.
    pub(crate) fn built(flags: &[&str]) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
        let program = folder.path().join("program");
        let built = Command::new("cc")
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status();
        let Ok(built) = built else {
            println!("skipped: there is no C compiler");
            return None;
        };
        assert!(built.success(), "the program is built");
        let run = Command::new(&program).output().unwrap();
        assert!(run.status.success(), "the program writes a profile");
        fs::write(folder.path().join("program.heap"), &run.stdout).unwrap();
        Some(Self {
            folder,
            text: run.stdout,
        })
    }

    pub(crate) fn profile(&self) -> Profile {
        Profile::read(&self.text).unwrap()
    }
}
