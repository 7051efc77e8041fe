//! Ctrl-C stops long work at the next safe point and keeps what is done. A second Ctrl-C ends the
//! process at once.

use anyhow::Context;
use brickyard_bench::stop;

/// Installs the handler. The first Ctrl-C then only sets a flag: see [`stop::asked`].
pub(crate) fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if stop::ask() {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}
