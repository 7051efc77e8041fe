//! The storm: its counts are right, a seed repeats it, and it distinguishes designs.

use brickyard_machine::Profile;
use brickyard_simulate::storm::{Latency, Shape, Storm, StormRun};
use brickyard_simulate::{Configuration, RunError, Setting};

fn setting(configuration: Configuration, cpus: usize) -> Setting {
    Setting {
        profile: Profile::by_name("metatm-2007").unwrap(),
        cpus,
        configuration,
        frames: 1 << 16,
        seed: 1,
        more_instructions: 0,
    }
}

fn storm(shape: Shape, setting: &Setting) -> StormRun {
    let pages = match shape {
        Shape::Deep => 3000,
        Shape::Hot | Shape::Remote => 300,
    };
    Storm { shape, pages }.run(setting).unwrap()
}

#[test]
fn every_configuration_allocates_and_frees_each_page() {
    for configuration in Configuration::ALL {
        for shape in Shape::ALL {
            for cpus in [1, 3] {
                let setting = setting(configuration, cpus);
                let measured = storm(shape, &setting);
                let pages = if shape == Shape::Deep { 3000 } else { 300 };
                assert_eq!(measured.pages, (pages * cpus) as u64, "{configuration}");
                let StormRun { alloc, free, .. } = measured;
                for Latency {
                    p50,
                    p90,
                    p99,
                    p999,
                    max,
                    ..
                } in [alloc, free]
                {
                    assert!(0 < p50 && p50 <= p90 && p90 <= p99);
                    assert!(p99 <= p999 && p999 <= max);
                }
                // All CPUs' requests are between the beginning and the end.
                assert!(p50_of_all(&measured) < measured.cycles);
                assert!(measured.accesses > 2 * measured.pages);
            }
        }
    }
}

fn p50_of_all(measured: &StormRun) -> u64 {
    measured.alloc.p50 + measured.free.p50
}

#[test]
fn a_seed_gives_the_same_storm() {
    for shape in Shape::ALL {
        let setting = setting(Configuration::List2007, 4);
        let first = storm(shape, &setting);
        assert_eq!(storm(shape, &setting), first);
        let other = Setting { seed: 2, ..setting };
        assert_ne!(storm(shape, &other), first);
    }
}

/// The shared words that a page of the default costs: what a kernel pays in cache lines.
#[test]
fn a_page_of_the_default_accesses_few_words() {
    let setting = setting(Configuration::Brickyard, 1);
    // A hit takes three to allocate: the stack's word, the entry, the word again. It takes six to
    // free: the class of the page block, the frame's own bit, and of the stack the word, the entry
    // freed last, the new entry, and the word again.
    let hot = storm(Shape::Hot, &setting);
    assert_eq!(hot.accesses, (3 + 6) * hot.pages);
    // What is fetched and flushed in batches adds less than four words to a page.
    let deep = storm(Shape::Deep, &setting);
    assert!(
        deep.accesses < (3 + 6 + 4) * deep.pages,
        "{}",
        deep.accesses
    );
}

#[test]
fn one_cpu_never_waits() {
    for configuration in Configuration::ALL {
        let measured = storm(Shape::Deep, &setting(configuration, 1));
        assert_eq!(
            (measured.lock_waits, measured.traffic.waited_cycles),
            (0, 0)
        );
    }
}

#[test]
fn cpus_wait_for_a_zone_lock_and_for_no_other() {
    let vanilla = storm(Shape::Deep, &setting(Configuration::Vanilla, 8));
    assert!(vanilla.lock_waits_percent(8) > 50.0, "{vanilla:?}");
    let brickyard = storm(Shape::Deep, &setting(Configuration::Brickyard, 8));
    assert_eq!((brickyard.locked, brickyard.lock_waits), (0, 0));
    assert!(brickyard.pages_per_second > 5.0 * vanilla.pages_per_second);
}

#[test]
fn hot_bursts_stay_in_their_caches() {
    let brickyard = |cpus| storm(Shape::Hot, &setting(Configuration::Brickyard, cpus));
    let (one, eight) = (brickyard(1), brickyard(8));
    assert!(eight.lines_per_page() < 0.1, "{eight:?}");
    let speedup = eight.pages_per_second / one.pages_per_second;
    assert!(speedup > 7.0, "{speedup}");
}

#[test]
fn impossible_machines_are_refused() {
    let storm = Storm {
        shape: Shape::Deep,
        pages: 10,
    };
    for cpus in [0, 257] {
        let refused = storm.run(&setting(Configuration::Brickyard, cpus));
        assert_eq!(refused, Err(RunError::Cpus(cpus)));
    }
    let refused = storm.run(&setting(Configuration::Brickyard, 64));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("CPUs: 64, this needs 1012 MiB"), "{text}");
}

#[test]
fn percentiles_are_measured_values() {
    let thousand = Latency::of((1..=1000).rev().collect());
    let Latency {
        p50,
        p90,
        p99,
        p999,
        max,
        ..
    } = thousand;
    assert_eq!((p50, p90, p99, p999, max), (500, 900, 990, 999, 1000));
    assert_eq!(Latency::of(vec![7]).p50, 7);
    assert_eq!(Latency::of(Vec::new()), Latency::default());
}
