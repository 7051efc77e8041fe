//! Every configuration against the naive model: random operations, the same results, nothing lost,
//! every invariant after each step.

use core::cell::Cell;

use brickyard_designs::classics::Configuration;
use brickyard_oracle::{Case, Driven, Slots};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Returns a runner of 32 cases, or as many as `PROPTEST_CASES` sets.
fn runner() -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(32);
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

fn agrees_with_the_model(configuration: Configuration) {
    let sum = Cell::new(Driven::default());
    let policies = any::<[u8; 3]>();
    let operations = vec(any::<u8>(), 0..3000);
    runner()
        .run(&(policies, operations), |([a, b, c], operations)| {
            let place = Configuration::ALL
                .iter()
                .position(|&other| other == configuration);
            let head = [place.unwrap_or(0) as u8, a, b, c];
            let (case, _) = Case::read(&head);
            let driven = case.drive(&operations);
            sum.set(sum.get() + driven);
            Ok(())
        })
        .unwrap();
    let sum = sum.get();
    // Not vacuous: everything under test has happened.
    assert!(sum.served > 100 && sum.freed > 100, "{sum:?}");
    assert!(
        sum.refused > 0 && sum.bad_frees > 0 && sum.moved > 0,
        "{sum:?}"
    );
}

macro_rules! agree {
    ($($name:ident: $configuration:ident,)*) => {
        $(#[test]
        fn $name() {
            agrees_with_the_model(Configuration::$configuration);
        })*
    };
}

agree! {
    vanilla_agrees_with_the_model: Vanilla,
    two_kinds_2005_agrees_with_the_model: TwoKinds2005,
    list_2007_agrees_with_the_model: List2007,
    zone_2007_agrees_with_the_model: Zone2007,
    combined_2007_agrees_with_the_model: Combined2007,
    magazine_2013_agrees_with_the_model: Magazine2013,
    linux_6_12_agrees_with_the_model: Linux612,
    linux_6_18_agrees_with_the_model: Linux618,
    brickyard_agrees_with_the_model: Brickyard,
}

#[test]
fn the_same_bytes_do_the_same() {
    let bytes: Vec<u8> = (0..2000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for configuration in Configuration::ALL {
        let case = Case::small(configuration, Slots::Shared);
        assert_eq!(case.drive(&bytes), case.drive(&bytes));
    }
}
