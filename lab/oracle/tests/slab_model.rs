//! Every design of slabs, at every level of checking, on one and two nodes, against the naive
//! model: random operations, the same results, every byte checked, nothing lost.

use core::cell::Cell;

use brickyard_oracle::slab::{LEVELS, SlabCase, SlabDriven, SlabKind};
use brickyard_slab::Checks;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Returns a runner for one level: an eighth of `PROPTEST_CASES` (64), since there are six levels
/// and a case is long; eight at least, with which everything that is asserted below happens.
fn runner() -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(64_u32);
    TestRunner::new(Config {
        cases: cases.div_ceil(8).max(8),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    })
}

/// Events while an operation runs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Events {
    /// None.
    None,
    /// Interrupts, other tasks, moves to another CPU.
    Happen,
}

/// Tests a design at every level of checking.
fn agrees_with_the_model(kind: SlabKind, nodes: usize, events: Events) {
    case_agrees(|checks| SlabCase::new(kind, checks, nodes), events);
}

/// Tests a case at every level of checking.
fn case_agrees(case: impl Fn(Checks) -> SlabCase, events: Events) {
    for checks in LEVELS {
        let sum = Cell::new(SlabDriven::default());
        let case = case(checks);
        runner()
            .run(
                &(0..256_usize, vec(any::<u8>(), 0..4000)),
                |(seed, bytes)| {
                    let case = match events {
                        Events::None => case,
                        // From often to rarely.
                        Events::Happen => {
                            case.with_events([6, 25, 100, 400][seed % 4], seed as u64)
                        }
                    };
                    sum.set(sum.get() + case.drive(&bytes));
                    Ok(())
                },
            )
            .unwrap();
        let sum = sum.get();
        println!("{case:?}: {sum:?}");
        // Not vacuous: everything under test has happened.
        assert!(
            sum.served > 500 && sum.freed > 500 && sum.general > 50,
            "{sum:?}"
        );
        assert!(
            sum.zeroed > 0 && sum.constructed > 0 && sum.bulks > 0,
            "{sum:?}"
        );
        assert!(
            sum.refused > 0 && sum.misplaced > 0 && sum.too_large > 0,
            "{sum:?}"
        );
        assert!(
            sum.destroyed > 0 && sum.leaks > 0 && sum.reserves > 0,
            "{sum:?}"
        );
        assert!(
            sum.bad_frees > 0 && sum.shrunk > 0 && sum.on_a_node > 0,
            "{sum:?}"
        );
        assert!(
            events == Events::None || (sum.events > 100 && sum.moves > 0),
            "{sum:?}"
        );
    }
}

macro_rules! agree {
    ($($(#[$ignored:meta])? $name:ident: $kind:ident, $nodes:literal, $events:ident;)*) => {
        $(#[test]
        $(#[$ignored])?
        fn $name() {
            agrees_with_the_model(SlabKind::$kind, $nodes, Events::$events);
        })*
    };
}

agree! {
    sheaves_agree_with_the_model: Sheafed, 1, None;
    sheaves_on_two_nodes_agree_with_the_model: Sheafed, 2, None;
    sheaves_that_are_interrupted_agree_with_the_model: Sheafed, 1, Happen;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    sheaves_that_are_interrupted_on_two_nodes_agree_with_the_model: Sheafed, 2, Happen;
    sheaves_of_a_heap_agree_with_the_model: SheafedOfHeap, 2, Happen;
    slqb_2008_agrees_with_the_model: Slqb2008, 1, None;
    slqb_2008_on_two_nodes_agrees_with_the_model: Slqb2008, 2, None;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    slqb_2008_interrupted_agrees_with_the_model: Slqb2008, 1, Happen;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    slqb_2008_interrupted_on_two_nodes_agrees_with_the_model: Slqb2008, 2, Happen;
    slab_2008_agrees_with_the_model: Slab2008, 1, None;
    slab_2008_on_two_nodes_agrees_with_the_model: Slab2008, 2, None;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    slab_2008_interrupted_agrees_with_the_model: Slab2008, 1, Happen;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    slab_2008_interrupted_on_two_nodes_agrees_with_the_model: Slab2008, 2, Happen;
    slub_2008_agrees_with_the_model: Slub2008, 1, None;
    slub_2008_on_two_nodes_agrees_with_the_model: Slub2008, 2, None;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    slub_2008_interrupted_agrees_with_the_model: Slub2008, 1, Happen;
    #[ignore = "slow: .ci/jobs/slow runs it"]
    slub_2008_interrupted_on_two_nodes_agrees_with_the_model: Slub2008, 2, Happen;
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn sheaves_of_pages_with_homes_agree_with_the_model() {
    for nodes in [1, 2] {
        let case = |checks| SlabCase::new(SlabKind::Sheafed, checks, nodes).with_homes();
        case_agrees(case, Events::None);
        case_agrees(case, Events::Happen);
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn sheaves_of_a_heap_agree_with_the_model_otherwise_too() {
    agrees_with_the_model(SlabKind::SheafedOfHeap, 1, Events::None);
    agrees_with_the_model(SlabKind::SheafedOfHeap, 1, Events::Happen);
    agrees_with_the_model(SlabKind::SheafedOfHeap, 2, Events::None);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn sheaves_of_a_heap_whose_pages_have_homes_agree_with_the_model() {
    let case = |checks| SlabCase::new(SlabKind::SheafedOfHeap, checks, 1).with_homes();
    case_agrees(case, Events::None);
    case_agrees(case, Events::Happen);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_same_bytes_do_the_same() {
    let bytes: Vec<u8> = (0..3000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for kind in SlabKind::ALL {
        let case = SlabCase::new(kind, LEVELS[0], 2).with_events(5, 1);
        assert_eq!(case.drive(&bytes), case.drive(&bytes));
    }
}
