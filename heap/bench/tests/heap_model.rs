//! The process's heap against the model of the malloc family, on one thread and on many.

use core::cell::Cell;
use std::thread;

use brickyard_heap_bench::model::{Driven, ProcessHeap, drive};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Returns a runner of 16 cases, or as many as `PROPTEST_CASES` sets.
fn runner() -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(16);
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    })
}

fn is_not_vacuous(sum: Driven) {
    println!("{sum:?}");
    assert!(sum.served > 500 && sum.freed > 500, "{sum:?}");
    assert!(sum.zeroed > 50 && sum.aligned > 20, "{sum:?}");
    assert!(sum.resized > 100 && sum.moved > 20, "{sum:?}");
    assert!(sum.large > 0 && sum.refused > 0, "{sum:?}");
}

#[test]
fn the_heap_agrees_with_the_model() {
    let sum = Cell::new(Driven::default());
    runner()
        .run(&vec(any::<u8>(), 0..6000), |bytes| {
            sum.set(sum.get() + drive(&ProcessHeap, &bytes, 1));
            Ok(())
        })
        .unwrap();
    is_not_vacuous(sum.get());
}

#[test]
fn threads_do_not_get_each_other_s_memory() {
    let sum = Cell::new(Driven::default());
    runner()
        .run(&vec(vec(any::<u8>(), 0..3000), 4), |threads| {
            let driven: Vec<Driven> = thread::scope(|scope| {
                let threads: Vec<_> = (2..)
                    .zip(&threads)
                    .map(|(owner, bytes)| scope.spawn(move || drive(&ProcessHeap, bytes, owner)))
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            sum.set(driven.into_iter().fold(sum.get(), |a, b| a + b));
            Ok(())
        })
        .unwrap();
    is_not_vacuous(sum.get());
}
