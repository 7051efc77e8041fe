//! All situations, one after the other, and what became of them.

use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use std::collections::BTreeMap;
use std::panic;

use brickyard::sync::{Exclusive, Shared, SlotAccess};

use crate::machine::{self, Mode, NEVER, observe};
use crate::world::{Start, with_world};
use crate::{calls, slabs};

/// What is tried.
#[derive(Debug, Clone, Default)]
pub struct StopPlan {
    /// Only pairs of calls whose names these are; all, if it is empty.
    pub only: Vec<String>,
    /// The most stopping points of a situation: every one, or some at equal distances.
    pub stops_most: Option<u64>,
    /// The most pairs of stopping points of a situation; 0: none.
    pub pairs_most: u64,
    /// Of all situations, one in so many; 0 and 1: all.
    pub every: u64,
}

/// What became of the situations of two calls.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Stopping points tried, of the first call only.
    pub stops: u64,
    /// Pairs of stopping points tried.
    pub pairs: u64,
    /// How many of both failed.
    pub failed: u64,
    /// The first situation for each failure.
    pub failures: BTreeMap<String, String>,
}

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Tries everything that `plan` says, and tells `done` of each two calls by their names.
///
/// # Panics
/// If a name in the plan is no call's.
pub fn try_all(plan: &StopPlan, mut done: impl FnMut(&str, &str, &Tally)) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        // Nobody is stopped any more while stacks are unwound.
        observe(0);
        let at = info
            .location()
            .map(|at| format!("{}:{}", at.file(), at.line()));
        let what = info.payload();
        let text = what.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| what.downcast_ref::<&str>().copied());
        let what = text.unwrap_or("a panic");
        SAID.set(format!("{what} ({})", at.unwrap_or_default()));
    }));
    let (exclusive, shared) = (all::<Exclusive>(), all::<Shared>());
    for name in &plan.only {
        assert!(
            exclusive.iter().any(|call| call.name == name),
            "no call is named {name}"
        );
    }
    let wanted = |call: &calls::Call<Exclusive>| {
        plan.only.is_empty() || plan.only.iter().any(|name| name == call.name)
    };
    let mut number = 0;
    let mut is_next = || {
        number += 1;
        number % plan.every.max(1) == 0
    };
    for (first, a) in exclusive
        .iter()
        .enumerate()
        .filter(|(_, call)| wanted(call))
    {
        for (second, b) in exclusive
            .iter()
            .enumerate()
            .filter(|(_, call)| wanted(call))
        {
            if a.slabs != b.slabs {
                continue;
            }
            let mut tally = Tally::default();
            for start in Start::PAIRED {
                for mode in Mode::ALL {
                    // Changes of ranges and slabs have locks, which a CPU that stands still keeps.
                    let excused = match mode {
                        Mode::Cpus | Mode::Tasks => false,
                        Mode::Stands => !b.anywhere || b.slabs,
                        Mode::Interrupt => !b.anywhere,
                    };
                    let scarce = !matches!(start, Start::Free | Start::OneBlock);
                    if excused || a.slabs && scarce {
                        continue;
                    }
                    if is_next() {
                        situation(&mut tally, plan, start, mode, "exclusive", [a, b]);
                    }
                    if is_next() {
                        let both = [&shared[first], &shared[second]];
                        situation(&mut tally, plan, start, mode, "shared", both);
                    }
                }
            }
            if first == second && !a.slabs {
                let both = [&shared[first], &shared[first]];
                situation(&mut tally, plan, Start::Crowd, Mode::Cpus, "shared", both);
            }
            done(a.name, b.name, &tally);
        }
    }
    panic::set_hook(usual);
}

fn all<A: SlotAccess>() -> Vec<calls::Call<A>> {
    let mut all = calls::all();
    all.extend(slabs::calls());
    all
}

/// Tries the stopping points of one situation.
fn situation<A: SlotAccess>(
    tally: &mut Tally,
    plan: &StopPlan,
    start: Start,
    mode: Mode,
    slots: &str,
    calls: [&calls::Call<A>; 2],
) {
    let (mut stops, mut pairs) = (0, 0);
    let parties = if start == Start::Crowd {
        machine::PARTIES
    } else {
        2
    };
    // Returns how many accesses each party made, if it has not stopped; nothing after a failure.
    let mut one = |stops: [u64; 2]| {
        let each: Vec<u64> = match start {
            Start::Crowd => vec![stops[0]; parties],
            _ => stops.to_vec(),
        };
        let made = panic::catch_unwind(AssertUnwindSafe(|| {
            let mut made = Vec::new();
            with_world::<A>(start, mode, calls[0].slabs, |world| {
                made = machine::run(mode, &each, |party| world.call(calls[party % 2]));
                world.check();
            });
            made
        }));
        if let Ok(made) = made {
            return Some(made);
        }
        tally.failed += 1;
        let said = SAID.take();
        // Failures of one kind differ in numbers only.
        let kind = said.chars().filter(|c| !c.is_ascii_digit()).collect();
        let at = stops.map(|stop| match stop {
            NEVER => "the end".to_owned(),
            stop => stop.to_string(),
        });
        tally.failures.entry(kind).or_insert_with(|| {
            let at = at.join(" and ");
            format!("{start:?}, {mode:?}, {slots} slots, stopped at {at}: {said}")
        });
        None
    };
    let usual = one([NEVER; 2]);
    let points = |party: usize| {
        usual
            .as_ref()
            .and_then(|made| made[party])
            .unwrap_or(100)
            .max(1)
    };
    // A party has stopped, as far as is known, if something failed.
    let has_ended = |made: &Option<Vec<Option<u64>>>, party: usize| {
        made.as_ref().is_some_and(|made| made[party].is_some())
    };
    let far = |points: u64| 4 * points + 1000;
    let step = plan
        .stops_most
        .map_or(1, |most| points(0).div_ceil(most.max(1)));
    for first in (0..far(points(0))).step_by(step as usize) {
        if has_ended(&one([first, NEVER]), 0) {
            break;
        }
        stops += 1;
    }
    let product = points(0) * points(1);
    if plan.pairs_most > 0 && mode.has_pairs() && parties == 2 {
        let step = product.div_ceil(plan.pairs_most).isqrt().max(1);
        for (row, first) in (0..far(points(0))).step_by(step as usize).enumerate() {
            let mut made = None;
            for second in (row as u64 % step..far(points(1))).step_by(step as usize) {
                made = one([first, second]);
                if has_ended(&made, 0) || has_ended(&made, 1) {
                    break;
                }
                pairs += 1;
            }
            if has_ended(&made, 0) {
                break;
            }
        }
    }
    tally.stops += stops;
    tally.pairs += pairs;
}
