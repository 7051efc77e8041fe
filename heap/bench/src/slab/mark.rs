//! How a process that is measured from outside reports its state: it prints a line on its standard
//! output, and waits for an answer on its standard input. While it waits, none of its threads runs.

use std::io::{self, Read, Write};

use anyhow::Context;

/// The start of a line that requests a measurement at once.
pub(crate) const NOW: &str = "now";

/// The start of a line that requests to be watched while idle.
pub(crate) const AT_REST: &str = "at-rest";

/// Waits until the parent has measured this process.
pub(crate) fn mark(name: &str) -> anyhow::Result<()> {
    ask(NOW, name)
}

/// Waits until the parent has watched this idle process for a while.
pub(crate) fn mark_at_rest(name: &str) -> anyhow::Result<()> {
    ask(AT_REST, name)
}

fn ask(what: &str, name: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{what} {name}")?;
    out.flush()?;
    // A closed input is an answer too: the parent has stopped watching.
    let mut answer = [0];
    io::stdin()
        .lock()
        .read(&mut answer)
        .context("no answer from the parent process")?;
    Ok(())
}
