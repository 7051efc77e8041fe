//! `brickyard help completions`: a script with which a shell completes commands and options.

use std::io::{self, Write};

use clap::Args;
use clap_complete::Shell;

/// The options of `brickyard help completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell to print the script for.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "brickyard", &mut script);
        io::stdout().lock().write_all(&script)?;
        Ok(())
    }
}
