//! Tests that slabs of every design pass, on SLAB, SLUB and SLQB: planted bugs, what safe code must
//! not be able to break, nodes, general sizes.

use core::sync::atomic::{AtomicBool, Ordering};

use brickyard::OneCpu;
use brickyard_designs::slab_slub::{Slab2008, Slub2008};
use brickyard_designs::slqb::Slqb2008;
use brickyard_slab::{CacheError, Pinned, SlabDesign, SlabPlan};

use crate::adversary::{self, Claims, Hooked, Reused};
use crate::lasting::general_among;
use crate::nodes::{self, On};
use crate::pages::TestPages;
use crate::planted::{self, Watched, finds_planted_bugs, with_slabs};
use crate::slabs::{Bench, pinned};

macro_rules! passes_as_every_design {
    ($name:ident, $design:ident, $firsts:expr) => {
        mod $name {
            use super::*;

            type Design<P, S = &'static TestPages> = $design<'static, S, Pinned<P>>;
            type OnNodes<'p> = $design<'p, &'p TestPages, Pinned<&'p On>>;

            mod planted_bugs {
                use super::*;

                type Checked<'p> = $design<'p, &'p TestPages, Pinned<Watched>>;

                finds_planted_bugs!(Checked);
            }

            #[test]
            fn a_slab_goes_while_a_bad_free_is_told() {
                adversary::a_slab_goes_while_a_bad_free_is_told::<Design<Hooked, Reused>>();
            }

            #[test]
            fn a_slab_goes_while_what_is_in_use_is_listed() {
                adversary::a_slab_goes_while_what_is_in_use_is_listed::<Design<Hooked, Reused>>();
            }

            #[test]
            fn a_constructor_that_panics_loses_nothing() {
                static PANICS: AtomicBool = AtomicBool::new(false);
                adversary::a_constructor_that_panics_loses_nothing::<Design<OneCpu>>(
                    |_| assert!(!PANICS.load(Ordering::Relaxed)),
                    &PANICS,
                );
            }

            #[test]
            fn what_cannot_be_is_refused() {
                adversary::what_cannot_be_is_refused::<Design<OneCpu, Claims>>();
            }

            #[test]
            fn general_sizes_find_a_row_of_numbers() {
                let source = Box::leak(Box::new(TestPages::new(512, 1)));
                let (firsts, error) =
                    general_among::<Design<OneCpu>>((200, 1), source, pinned(OneCpu));
                assert_eq!(firsts, $firsts);
                let sizes = Design::<OneCpu>::SIZES.len();
                assert!(matches!(error, CacheError::TooMany { wanted, .. } if wanted == sizes));
            }

            #[test]
            fn a_cpu_whose_node_is_full_takes_no_more_than_it_needs() {
                let (source, platform) = (TestPages::new(nodes::PAGES, 2), On::default());
                let mut bench = Bench::new::<OnNodes<'_>>(SlabPlan::new(4, 2), &source);
                let slabs = bench.slabs(&source, pinned(&platform));
                nodes::takes_what_it_needs::<OnNodes<'_>>(&slabs, &source);
            }

            #[test]
            fn a_request_for_the_own_node_does_not_go_elsewhere() {
                let (source, platform) = (TestPages::new(nodes::PAGES, 2), On::default());
                let mut bench = Bench::new::<OnNodes<'_>>(SlabPlan::new(4, 2), &source);
                let slabs = bench.slabs(&source, pinned(&platform));
                nodes::asks_its_own_node::<OnNodes<'_>>(&slabs, &source);
            }
        }
    };
}

passes_as_every_design!(slab_2008, Slab2008, [202]);
passes_as_every_design!(slub_2008, Slub2008, [202]);
passes_as_every_design!(slqb_2008, Slqb2008, [202, 217, 232]);
