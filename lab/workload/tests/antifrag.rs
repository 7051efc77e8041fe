//! The protocol of 2005 and 2007 on small traces.

use crate::support;

use brickyard::MigrateType::Movable;
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::LabZone;
use brickyard_trace::{Header, PageUse, Trace};
use brickyard_workload::antifrag::{self, Profile, Protocol, Reclaim};
use brickyard_workload::kernel::NAP;
use brickyard_workload::pages::Role;
use brickyard_workload::{BuildError, FrameUse, Script, View, Watcher};

use support::{FRAMES, host, run, taken};

const MIB: u64 = 1 << 20;

/// A trace of one page, of this duration.
fn one_page(duration: u64) -> Script {
    let trace = host(vec![run(0, FRAMES, 0, PageUse::Free)]);
    let header = Header {
        duration,
        ..trace.header
    };
    let events = vec![taken(0, 0, Movable)];
    Script::of_events(&Trace {
        header,
        events,
        ..trace
    })
    .unwrap()
}

/// The protocol with trees of a MiB, in a second each.
fn protocol<'s>(compile: &'s Script, walk: &'s Script) -> Protocol<'s> {
    Protocol {
        compile,
        walk,
        tree: MIB,
        gap: 1_000_000_000,
        settle: 1_000_000_000,
        stretch: 1.0,
        phase: 0,
        nap: NAP,
        boot: 0,
        tries: Some(1),
        reclaim: Reclaim::Plain,
        min_free: None,
        kernel_core: 60,
        sample_every: 1_000_000_000,
    }
}

fn result(protocol: &Protocol<'_>, watcher: impl Watcher) -> Result<antifrag::Result, BuildError> {
    let profile = Profile {
        memory: 64 * MIB,
        ..Profile::OF_2005
    };
    let machine = antifrag::machine(&profile, 60).unwrap();
    antifrag::run(Configuration::Vanilla, &machine, protocol, watcher)
}

#[test]
fn there_are_seven_trees_with_the_original() {
    /// The most slabs there were: all are the trees'.
    #[derive(Default)]
    struct Most(u64);

    impl Watcher for &mut Most {
        fn sample<Z: LabZone>(&mut self, view: &View<'_, '_, Z>) {
            let mut slabs = 0;
            view.runs(|frames, usage| {
                let is_slab = matches!(usage, FrameUse::Used(Role::SlabReclaimable, _));
                slabs += if is_slab { frames as u64 } else { 0 };
            });
            self.0 = self.0.max(slabs);
        }
    }

    let (build, walk) = (one_page(1_000_000_000), one_page(1_000_000_000));
    let mut most = Most::default();
    result(&protocol(&build, &walk), &mut most).unwrap();
    // One slab for 16 pages.
    assert_eq!(most.0, 7 * MIB / 4096 / 16);
}

#[test]
fn a_trace_too_short_to_be_repeated_is_refused() {
    let (build, short) = (one_page(1_000_000_000), one_page(0));
    for [compile, walk] in [[&short, &build], [&build, &short]] {
        let error = result(&protocol(compile, walk), ()).unwrap_err();
        assert!(matches!(error, BuildError::TooShort(_)), "{error}");
        assert!(error.to_string().contains("record"), "{error}");
    }
}
