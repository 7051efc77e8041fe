//! A failing case made small: fewer CPUs, tasks and operations, no interrupts, nothing special, as
//! long as it fails in the same way.
//!
//! Another case is another schedule, so each smaller case is tried with a few seeds.

use brickyard_machine::Failure;

use super::case::{Case, Interrupts, Marks, Memory, Mode, Pressure, Sizes};
use super::log::Log;
use super::system::{Fault, System};

/// Seeds that a smaller case is tried with.
const SEEDS: u64 = 12;

/// Runs in all, at most; and where each takes long, because it does not end.
const RUNS_MOST: usize = 400;
const LONG_RUNS_MOST: usize = 60;

/// A smaller case may have no end where the one that was found has another fault: it is given up so
/// much sooner, and what comes out is held against the whole limit once.
const HURRY: u64 = 20;

/// A case that was made small.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The case; the same as the one found if nothing smaller failed.
    pub case: Case,
    /// What went wrong in it.
    pub fault: Fault,
    /// What was done last before that, oldest first.
    pub log: Vec<String>,
    /// Runs that it took.
    pub runs: usize,
}

/// Makes `case`, which fails by `fault`, smaller while `stop` does not say to end.
pub fn shrink(
    system: &impl System,
    case: &Case,
    fault: &Fault,
    stop: &(dyn Fn() -> bool + Sync),
) -> Shrunk {
    let (mut best, mut why, mut runs) = (*case, fault.clone(), 0);
    let (runs_most, hurry) = match fault {
        Fault::Run(Failure::NoEnd { .. }) => (LONG_RUNS_MOST, HURRY),
        Fault::Run(Failure::TooLong { .. }) => (LONG_RUNS_MOST, 1),
        _ => (RUNS_MOST, HURRY),
    };
    let mut shrunk = true;
    while shrunk {
        shrunk = false;
        for smaller in smaller_than(&best) {
            let tries = (0..SEEDS).map(|n| Case {
                seed: case.seed.wrapping_add(n),
                hurry,
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
    best.hurry = 1;
    let mut again = system.run(&best, &log).err();
    if let Fault::Run(Failure::NoEnd { .. }) = why {
        if !again.as_ref().is_some_and(|again| again.is_like(&why)) {
            // It has an end, a later one: nothing smaller was found.
            (best, log) = (*case, Log::new());
            again = system.run(&best, &log).err();
        }
        // What is told of it is what it came to at the whole limit.
        why = again.clone().unwrap_or(why);
    }
    debug_assert_eq!(again.as_ref(), Some(&why), "a case runs the same way twice");
    Shrunk {
        case: best,
        fault: why,
        log: log.lines(),
        runs: runs.min(runs_most),
    }
}

/// Cases a step smaller, the largest steps first.
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
