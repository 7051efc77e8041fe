//! The protocol of 2005 and 2007 as cells have it: by the settings that `brickyard antifrag` has
//! where the user gives none, so that the figures are the documented ones.

use anyhow::bail;
use brickyard_report::pagetypes::Film;
use brickyard_workload::antifrag;

use crate::antifrag::{AntifragRun, Filmed, Load, Settings};
use crate::cell::Context;

/// The traces that it runs by.
const COMPILE: &str = "compile";
const WALK: &str = "walk";

/// Per cent of memory that is for the kernel too, where there is a zone for movable pages; also of
/// the builds beside it.
pub(super) const KERNEL_CORE: u8 = Settings::USUAL.kernelcore;

/// Runs it once.
///
/// # Errors
/// Where a trace is missing, the machine cannot be built, or the user has ended it.
pub(super) fn run(
    run: &AntifragRun,
    filmed: Filmed,
    context: &Context<'_>,
) -> anyhow::Result<(antifrag::Result, Option<Film>)> {
    let (compile, walk) = (
        context.traces.script(COMPILE)?,
        context.traces.script(WALK)?,
    );
    let load = Load {
        compile: &compile.script,
        recorded: compile.cpus,
        walk: &walk.script,
    };
    let done = run.run(&Settings::USUAL, &load, filmed, context.follow.quiet())?;
    if done.0.interrupted {
        bail!("interrupted");
    }
    Ok(done)
}
