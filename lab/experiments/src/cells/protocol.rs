//! The protocol of 2005 and 2007 as cells run it: with the default settings of `brickyard
//! antifrag`, so that the figures are the documented ones.

use anyhow::bail;
use brickyard_pictures::pagetypes::Film;
use brickyard_workload::antifrag;

use crate::antifrag::{AntifragRun, Filmed, Load, Settings};
use crate::cell::Context;

/// The traces that it replays.
const COMPILE: &str = "kernel";
const WALK: &str = "walk";

/// Percent of memory open to kernel allocations, where there is a zone for movable pages; the
/// builds of the same experiments use it too.
pub(crate) const KERNEL_CORE: u8 = Settings::DEFAULT.kernelcore;

/// Runs the protocol once, with these settings.
///
/// # Errors
/// If a trace is missing, the machine cannot be built, or the user has interrupted it.
pub(crate) fn run(
    run: &AntifragRun,
    settings: &Settings,
    filmed: Filmed,
    context: &Context<'_>,
) -> anyhow::Result<(antifrag::Result, Option<Film>)> {
    let (compile, walk) = (
        context.traces.script(COMPILE)?,
        context.traces.script(WALK)?,
    );
    let load = Load {
        compile: &compile,
        walk: &walk,
    };
    let done = run.run(settings, &load, filmed, context.follow.quiet())?;
    if done.0.interrupted {
        bail!("interrupted");
    }
    Ok(done)
}
