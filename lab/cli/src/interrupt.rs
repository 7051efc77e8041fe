//! Ctrl-C ends long work at the next good place, and keeps what is done. A second one ends it at
//! once.

use anyhow::Context;
use brickyard_bench::stop;

/// From now on the first Ctrl-C is only noted: see [`stop::asked`].
pub(crate) fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if stop::ask() {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}
