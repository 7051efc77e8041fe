//! What experiments on simulated machines have in common: their parameters, the machine's memory,
//! and the check without which the times of a run mean nothing.

use anyhow::ensure;
use brickyard::FRAMES_MOST;
use brickyard_results::{bytes_text, counted};
use brickyard_simulate::Configuration;
use brickyard_simulate::setting::{FRAME_BYTES, whole_mib};
use brickyard_simulate::tasks::Counts;

use crate::experiment::Parameter;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The designs.
pub(crate) const CONFIG: Parameter = Parameter::new(
    "config",
    "vanilla,magazine-2013,brickyard",
    "designs, the first is the baseline; see `brickyard help designs`: vanilla is Linux 2.6 up to 2.6.23, what the documents of 2013 call vanilla, Linux 3.9, is list-2007 here",
);

/// The numbers of CPUs.
pub(crate) const CPUS: Parameter =
    Parameter::new("cpus", "1,2,4,8,16,32,64", "numbers of CPUs, 1 to 256");

/// The memory.
pub(crate) const MEMORY: Parameter = Parameter::new(
    "memory",
    "auto",
    "memory of the machine, of which only the metadata is real; auto: 1G, or what the CPUs need",
);

/// What hangs on the count of instructions: one of an access fewer, or more, on the side that a
/// document proposes. The name of each, and the number.
pub(crate) const INSTRUCTIONS: [(&str, i8); 2] =
    [("instructions-fewer", -1), ("instructions-more", 1)];

/// One of them; `None` for what was counted.
pub(crate) type OtherCount = Option<(&'static str, i8)>;

/// Returns the workload with it, and the instructions of an access that it adds.
pub(crate) fn counted_as(workload: &str, other: OtherCount) -> (String, i8) {
    match other {
        None => (workload.to_owned(), 0),
        Some((name, more)) => (format!("{workload} {name}"), more),
    }
}

/// Their names.
pub(crate) const OTHER_INSTRUCTIONS: [&str; 2] = [INSTRUCTIONS[0].0, INSTRUCTIONS[1].0];

/// The frames of a machine with a number of CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frames {
    pub(crate) cpus: usize,
    /// The fewest that it needs.
    pub(crate) needed: usize,
    /// Those that it has if the user does not say.
    pub(crate) usual: usize,
}

/// Returns the frames of all machines of a run: the same for each, so that designs whose caches are
/// a share of the memory can be compared.
///
/// # Errors
/// [`Refusal`], if one of them needs more than the user gives or a zone can have.
pub(crate) fn frames(settings: &Settings<'_>, of: &[Frames]) -> Result<usize, Refusal> {
    let Some(&Frames { cpus, needed, .. }) = of.iter().max_by_key(|one| one.needed) else {
        return Err(wrong("cpus", "give at least one number"));
    };
    let cpus = counted(cpus, "CPU", "CPUs");
    if settings.is_auto("memory") {
        let usual = of.iter().map(|one| one.usual).max().unwrap_or(needed);
        return match usual {
            more if more > FRAMES_MOST => Err(wrong(
                "cpus",
                format_args!(
                    "{cpus} would need {more} frames, but one zone has at most {FRAMES_MOST}; use fewer CPUs or pages"
                ),
            )),
            usual => Ok(usual),
        };
    }
    let memory = settings.bytes("memory")?;
    if memory >= needed.saturating_mul(FRAME_BYTES) {
        return Ok(memory / FRAME_BYTES);
    }
    Err(wrong(
        "memory",
        format_args!(
            "{} is too small for {cpus}; give at least {}",
            bytes_text(memory),
            bytes_text(whole_mib(needed))
        ),
    ))
}

/// Returns for each number of CPUs all runs, and for each of these all designs: what `cell` makes of
/// a number of CPUs, a design, and the number of a run.
///
/// # Errors
/// [`Refusal`], if one of these parameters is wrong.
pub(crate) fn sweep<C>(
    settings: &Settings<'_>,
    cell: impl Fn(usize, Configuration, u32) -> C,
) -> Result<Vec<C>, Refusal> {
    let configs: Vec<Configuration> = settings.list("config")?;
    let mut cells = Vec::new();
    for cpus in settings.cpus("cpus")? {
        for run in 1..=settings.runs {
            cells.extend(configs.iter().map(|&config| cell(cpus, config, run)));
        }
    }
    Ok(cells)
}

/// Checks that every allocation was served and every free accepted. A request that fails would make
/// the run look faster than it is.
///
/// # Errors
/// If one was not.
pub(crate) fn all_served(counts: &Counts) -> anyhow::Result<()> {
    let Counts {
        failed, refused, ..
    } = counts;
    ensure!(
        *failed == 0,
        "{} failed for lack of memory",
        counted(*failed, "allocation", "allocations")
    );
    ensure!(
        *refused == 0,
        "{} refused",
        counted(*refused, "free was", "frees were")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_request_or_a_refused_free_is_an_error() {
        let all = Counts {
            asked: 7,
            ..Counts::default()
        };
        assert!(all_served(&all).is_ok());
        let failed = all_served(&Counts { failed: 2, ..all }).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "2 allocations failed for lack of memory"
        );
        let refused = all_served(&Counts { refused: 1, ..all }).unwrap_err();
        assert_eq!(refused.to_string(), "1 free was refused");
    }
}
