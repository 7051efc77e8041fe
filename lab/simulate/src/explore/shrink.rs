//! Shrinking a case that fails: fewer CPUs, tasks and operations, no interrupts, plain options, as
//! long as it fails in the same way.
//!
//! Another case is another schedule, so each smaller case is tried with a few seeds.

use brickyard_machine::Failure;

use super::case::{Case, FreeMemory, Interrupts, Marks, Mode, Pressure, Sizes};
use super::log::Log;
use super::system::{Fault, System};

/// Seeds that a smaller case is tried with.
const SEEDS: u64 = 12;

/// The most runs in all. One that reaches its limit takes much longer, and counts as `LONG_RUN` of
/// them.
const RUNS_MOST: usize = 420;
const LONG_RUN: usize = 7;

/// A smaller case may not end although the one that was found has another fault. So the limit on a
/// run's accesses is divided by this while shrinking, and the result is run once with the full
/// limit.
const LIMIT_DIVISOR: u64 = 20;

/// A case that was shrunk.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Shrunk {
    /// The case; the same as the one found if nothing smaller failed.
    pub case: Case,
    /// How it failed.
    pub fault: Fault,
    /// The last operations before that, oldest first.
    pub log: Vec<String>,
    /// Runs that the shrinking took.
    pub runs: usize,
}

/// Shrinks `case`, which fails by `fault`, until nothing smaller fails, the runs are used up or
/// `stop` returns true.
pub fn shrink(
    system: &impl System,
    case: &Case,
    fault: &Fault,
    stop: &(dyn Fn() -> bool + Sync),
) -> Shrunk {
    let (mut best, mut why, mut runs) = (*case, fault.clone(), 0);
    let limit_divisor = match fault {
        Fault::Run(Failure::TooLong { .. }) => 1,
        _ => LIMIT_DIVISOR,
    };
    let mut left = RUNS_MOST;
    let mut shrunk = true;
    while shrunk {
        shrunk = false;
        for smaller in smaller_than(&best) {
            let tries = (0..SEEDS).map(|n| Case {
                seed: case.seed.wrapping_add(n),
                limit_divisor,
                ..smaller
            });
            let mut found = None;
            for case in tries {
                if left == 0 || stop() {
                    break;
                }
                runs += 1;
                let ended = system.run(&case, &Log::new());
                left = left.saturating_sub(match ended {
                    Err(Fault::Run(Failure::NoEnd { .. } | Failure::TooLong { .. })) => LONG_RUN,
                    _ => 1,
                });
                if let Err(fault) = ended
                    && fault.is_like(&why)
                {
                    found = Some((case, fault));
                    break;
                }
            }
            if let Some((case, fault)) = found {
                (best, why) = (case, fault);
                shrunk = true;
                break;
            }
        }
    }
    let mut log = Log::new();
    best.limit_divisor = 1;
    let mut again = system.run(&best, &log).err();
    if let Fault::Run(Failure::NoEnd { .. }) = why {
        if !again.as_ref().is_some_and(|again| again.is_like(&why)) {
            // It does end within the full limit: nothing smaller was found.
            (best, log) = (*case, Log::new());
            again = system.run(&best, &log).err();
        }
        // Report the fault with the full limit.
        why = again.clone().unwrap_or(why);
    }
    debug_assert_eq!(
        again.as_ref(),
        Some(&why),
        "a case always runs the same way"
    );
    Shrunk {
        case: best,
        fault: why,
        log: log.lines(),
        runs,
    }
}

/// Returns the cases that are one step smaller, the largest steps first.
fn smaller_than(case: &Case) -> Vec<Case> {
    let case = *case;
    let mut all = Vec::new();
    let mut number = |now: usize, least: usize, with: &dyn Fn(usize) -> Case| {
        for next in [least, now / 4, now / 2, now * 3 / 4, now.saturating_sub(1)] {
            if next < now && next >= least && !all.contains(&with(next)) {
                all.push(with(next));
            }
        }
    };
    number(case.tasks, 1, &|tasks| Case { tasks, ..case });
    number(case.operations, 1, &|operations| Case {
        operations,
        ..case
    });
    number(case.cpus, 1, &|cpus| Case { cpus, ..case });
    let plainer: [fn(&mut Case); 6] = [
        |case| case.interrupts = Interrupts::Off,
        |case| case.marks = Marks::Off,
        |case| case.pressure = Pressure::Reclaim,
        |case| case.sizes = Sizes::Small,
        |case| case.memory = FreeMemory::Plenty,
        |case| case.mode = Mode::Mixed,
    ];
    for plainer in plainer {
        let mut next = case;
        plainer(&mut next);
        if next != case {
            all.push(next);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::super::Covered;
    use super::*;

    /// Fails in one case only; every smaller one reaches its limit.
    struct Stalls {
        case: Case,
        runs: AtomicUsize,
    }

    impl System for Stalls {
        fn run(&self, case: &Case, _: &Log) -> Result<Covered, Fault> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            if *case == self.case {
                return Err(Fault::After("found".into()));
            }
            Err(Fault::Run(Failure::NoEnd {
                accesses: 1,
                what: String::new(),
            }))
        }
    }

    #[test]
    fn few_runs_reach_their_limit() {
        let case = Case::of(1);
        let system = Stalls {
            case,
            runs: AtomicUsize::new(0),
        };
        let shrunk = shrink(&system, &case, &Fault::After("found".into()), &|| false);
        assert_eq!(shrunk.case, case);
        assert_eq!(shrunk.runs, RUNS_MOST / LONG_RUN);
        assert_eq!(system.runs.into_inner(), shrunk.runs + 1);
    }
}
