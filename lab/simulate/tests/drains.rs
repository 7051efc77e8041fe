//! Global drains: whom they interrupt, and that they find what the CPUs have cached.

use brickyard_machine::Profile;
use brickyard_simulate::drains::{DrainRun, Drains};
use brickyard_simulate::{Configuration, Setting, Slots};

fn drains(configuration: Configuration, slots: Slots, cpus: usize) -> DrainRun {
    let drains = Drains {
        pages: 400,
        every: 200_000,
        slots,
    };
    let measured = drains.run(&Setting {
        profile: Profile::by_name("i7-2013").unwrap(),
        cpus,
        configuration,
        frames: 1 << 17,
        seed: 1,
        more_instructions: 0,
    });
    measured.unwrap()
}

#[test]
fn drains_find_pages_whatever_the_design() {
    for configuration in Configuration::ALL {
        let measured = drains(configuration, Slots::Exclusive, 3);
        assert!(measured.drains > 3, "{configuration}: {measured:?}");
        assert!(measured.drained > 0, "{configuration}: {measured:?}");
        assert!(measured.drain_cycles > 100.0, "{configuration}");
        assert!(measured.alloc.max >= measured.alloc.p50);
    }
}

#[test]
fn interrupting_each_cpu_takes_longer_with_more_cpus() {
    let cycles = |configuration, cpus| drains(configuration, Slots::Exclusive, cpus).drain_cycles;
    let lists = |cpus| cycles(Configuration::List2007, cpus);
    // At least the way of an interrupt (1,400 cycles) to each of six more.
    assert!(lists(9) > lists(3) + 6.0 * 1_400.0);
}

#[test]
fn a_slot_that_is_lent_is_drained_without_an_interrupt() {
    let lost = |slots| drains(Configuration::Brickyard, slots, 5).lost_cycles;
    let (called, lent) = (lost(Slots::Exclusive), lost(Slots::Shared));
    // A call costs each of the four two switches of 3,400 cycles.
    assert!(called > lent + 4.0 * 3_400.0, "{called} {lent}");
}
