//! How a process that is measured from outside says where it is: a line on its standard output, and
//! then it waits for an answer on its standard input. While it waits none of its threads runs.

use std::io::{self, Read, Write};

use anyhow::Context;

/// What a line begins with that asks for a look at once.
pub(crate) const NOW: &str = "now";

/// What a line begins with that asks to be watched at rest.
pub(crate) const AT_REST: &str = "at-rest";

/// Waits until somebody has looked at this process.
pub(crate) fn mark(name: &str) -> anyhow::Result<()> {
    ask(NOW, name)
}

/// Waits until somebody has watched this process for a while.
pub(crate) fn mark_at_rest(name: &str) -> anyhow::Result<()> {
    ask(AT_REST, name)
}

fn ask(what: &str, name: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{what} {name}")?;
    out.flush()?;
    // A closed input is an answer too: nobody watches any more.
    let mut answer = [0];
    io::stdin()
        .lock()
        .read(&mut answer)
        .context("nobody answers")?;
    Ok(())
}
