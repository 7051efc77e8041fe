//! A part of all situations: each pair of calls in a few, and those in which faults were found at
//! every access.

use brickyard_steps::{StopPlan, try_all};

/// Returns what failed.
fn tried(plan: &StopPlan) -> String {
    let (mut failures, mut stops, mut pairs) = (String::new(), 0, 0);
    try_all(plan, |first, second, tally| {
        stops += tally.stops;
        pairs += tally.pairs;
        for failure in tally.failures.values() {
            failures += &format!("{first} | {second}: {failure}\n");
        }
    });
    assert!(stops > 300, "only {stops} stopping points");
    assert!(plan.pairs_most == 0 || pairs > 300, "only {pairs} pairs");
    failures
}

/// One test, since what a panic does is a matter of the process.
#[test]
fn whatever_runs_while_a_cpu_is_stopped() {
    let mut failures = String::new();
    // What is isolated is counted once; what a task has in hand keeps nobody from what is free;
    // CPUs that settle a total at the same time settle it once. Who gives up what is set aside, or
    // drains another CPU's stash there, is not preempted meanwhile.
    for pair in [
        "isolate,free_uncached 9",
        "reserve wide,alloc_at 0",
        "alloc 7,alloc 0",
        "free_uncached 4",
        "alloc 0",
    ] {
        failures += &tried(&StopPlan {
            only: pair.split(',').map(str::to_owned).collect(),
            stops_most: Some(8),
            ..StopPlan::default()
        });
    }
    failures += &tried(&StopPlan {
        stops_most: Some(2),
        pairs_most: 2,
        every: 211,
        ..StopPlan::default()
    });
    assert!(failures.is_empty(), "{failures}");
}
