//! What the commands of the lab and of the heap have in common.
//!
//! | file | contents |
//! |---|---|
//! | [`output`] | how results are printed: as a table, CSV or JSON |
//! | [`misuse`] | wrong usage that clap cannot detect option by option |
//! | [`choice`] | options with named values |

pub mod choice;
pub mod misuse;
pub mod output;

use std::io::{self, Write as _};
use std::process::ExitCode;

/// Returns the exit code of a command: its own, 2 for wrong usage, else 1. Failures are told under
/// the name of the program. A closed pipe on standard output is none.
pub fn exit_code(program: &str, done: anyhow::Result<u8>) -> ExitCode {
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, only the exit code reports the failure.
            let _ = writeln!(io::stderr(), "{program}: {error:#}");
            match error.is::<misuse::Misuse>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
