//! `brickyard help man`: manual pages, generated from the text of `--help`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};

use brickyard_measure::command::misuse::Misuse;

/// The options of `brickyard help man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  brickyard help man replay | man -l -
  brickyard help man --output ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The command whose page is printed, such as `replay`. [default: brickyard itself]
    command: Vec<String>,
    /// Write the pages of all commands to this folder instead.
    #[arg(
        long,
        short,
        value_name = "FOLDER",
        conflicts_with = "command",
        value_hint = clap::ValueHint::DirPath
    )]
    output: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut all = crate::command().disable_help_subcommand(true);
        all.build();
        if let Some(folder) = &self.output {
            let written =
                fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(all, folder));
            return written
                .with_context(|| format!("cannot write the pages to {}", folder.display()));
        }
        let found = find(&all, &self.command)?;
        let mut page = Vec::new();
        clap_mangen::Man::new(found.clone()).render(&mut page)?;
        io::stdout().lock().write_all(&page)?;
        Ok(())
    }
}

/// Returns the command that these words name.
///
/// # Errors
/// If there is none, with the names there are.
pub(crate) fn find<'c>(all: &'c Command, words: &[String]) -> Result<&'c Command, Misuse> {
    words.iter().try_fold(all, |found, name| {
        let next = found.find_subcommand(name);
        next.ok_or_else(|| unknown(found, name))
    })
}

/// Returns the error for a `name` that is not a subcommand of `above`, with the names there are.
fn unknown(above: &Command, name: &str) -> Misuse {
    let shown = above.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<_> = shown.map(Command::get_name).collect();
    let known = match names.is_empty() {
        true => "it has none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    let above = above.get_bin_name().unwrap_or(above.get_name());
    Misuse::new(format!("`{above}` has no command `{name}`: {known}"))
}
