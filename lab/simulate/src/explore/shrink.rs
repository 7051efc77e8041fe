//! Shrinking a case that fails: fewer CPUs, tasks and operations, no interrupts, plain options, as
//! long as it fails in the same way.
//!
//! Another case is another schedule, so each smaller case is tried with a few seeds.

use brickyard_machine::Failure;

use super::case::{Case, Interrupts, Marks, Memory, Mode, Pressure, Sizes};
use super::log::Log;
use super::system::{Fault, System};

/// Seeds that a smaller case is tried with.
const SEEDS: u64 = 12;

/// The most runs in all; and the most where each takes long because it does not end.
const RUNS_MOST: usize = 400;
const LONG_RUNS_MOST: usize = 60;

/// A smaller case may not end although the one that was found has another fault. So the limit on a
/// run's accesses is divided by this while shrinking, and the result is run once with the full
/// limit.
const LIMIT_DIVISOR: u64 = 20;

/// A case that was shrunk.
#[derive(Debug, Clone)]
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
    let (runs_most, limit_divisor) = match fault {
        Fault::Run(Failure::NoEnd { .. }) => (LONG_RUNS_MOST, LIMIT_DIVISOR),
        Fault::Run(Failure::TooLong { .. }) => (LONG_RUNS_MOST, 1),
        _ => (RUNS_MOST, LIMIT_DIVISOR),
    };
    let mut shrunk = true;
    while shrunk {
        shrunk = false;
        for smaller in smaller_than(&best) {
            let tries = (0..SEEDS).map(|n| Case {
                seed: case.seed.wrapping_add(n),
                limit_divisor,
                ..smaller
            });
            let found = tries.take_while(|_| {
                runs += 1;
                runs <= runs_most && !stop()
            });
            let mut found = found.filter_map(|case| {
                let fault = system.run(&case, &Log::new()).err()?;
                fault.is_like(&why).then_some((case, fault))
            });
            if let Some((case, fault)) = found.next() {
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
        runs: runs.min(runs_most),
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
        |case| case.memory = Memory::Plenty,
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
