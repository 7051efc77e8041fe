//! Tests that slabs of every design pass, on `slqb-2008`: planted bugs, what safe code must not be
//! able to break, nodes, general sizes.

#![cfg(not(loom))]

use core::sync::atomic::{AtomicBool, Ordering};

use brickyard::OneCpu;
use brickyard_slab::{CacheError, Pinned, SlabPlan};
use brickyard_slqb::Slqb2008;

use crate::adversary;
use crate::lasting;
use crate::nodes;
use crate::pages;
use crate::planted;
use crate::slabs;

use adversary::{Claims, Hooked, Reused};
use lasting::general_among;
use nodes::On;
use pages::TestPages;
use slabs::{Bench, pinned};

type Linked<P, S = &'static TestPages> = Slqb2008<'static, S, Pinned<P>>;

mod planted_bugs {
    use super::planted::{self, Watched, finds_planted_bugs, with_slabs};
    use super::*;

    type Checked<'p> = Slqb2008<'p, &'p TestPages, Pinned<Watched>>;

    finds_planted_bugs!(Checked);
}

#[test]
fn a_slab_goes_while_a_bad_free_is_told() {
    adversary::a_slab_goes_while_a_bad_free_is_told::<Linked<Hooked, Reused>>();
}

#[test]
fn a_slab_goes_while_what_is_in_use_is_listed() {
    adversary::a_slab_goes_while_what_is_in_use_is_listed::<Linked<Hooked, Reused>>();
}

#[test]
fn a_constructor_that_panics_loses_nothing() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    adversary::a_constructor_that_panics_loses_nothing::<Linked<OneCpu>>(
        |_| assert!(!PANICS.load(Ordering::Relaxed)),
        &PANICS,
    );
}

#[test]
fn what_cannot_be_is_refused() {
    adversary::what_cannot_be_is_refused::<Linked<OneCpu, Claims>>();
}

#[test]
fn general_sizes_find_a_row_of_numbers() {
    let source = Box::leak(Box::new(TestPages::new(512, 1)));
    let (firsts, error) = general_among::<Linked<OneCpu>>((200, 1), source, pinned(OneCpu));
    assert_eq!(firsts, [202, 217, 232]);
    assert!(matches!(error, CacheError::TooMany { wanted: 15, .. }));
}

type OnNodes<'p> = Slqb2008<'p, &'p TestPages, Pinned<&'p On>>;

#[test]
fn a_cpu_whose_node_is_full_takes_no_more_than_it_needs() {
    let (source, platform) = (TestPages::new(nodes::PAGES, 2), On::default());
    let mut bench = Bench::new::<OnNodes<'_>>(SlabPlan::new(4, 2), &source);
    nodes::takes_what_it_needs::<OnNodes<'_>>(&bench.slabs(&source, pinned(&platform)), &source);
}

#[test]
fn a_request_for_the_own_node_does_not_go_elsewhere() {
    let (source, platform) = (TestPages::new(nodes::PAGES, 2), On::default());
    let mut bench = Bench::new::<OnNodes<'_>>(SlabPlan::new(4, 2), &source);
    nodes::asks_its_own_node::<OnNodes<'_>>(&bench.slabs(&source, pinned(&platform)), &source);
}
