//! The page fault test: one CPU's rate follows from the profile, and more CPUs serve more where no
//! lock limits them.

use brickyard_machine::Profile;
use brickyard_simulate::pft::{Measured, Pft};
use brickyard_simulate::{Configuration, RunError, Setting};

const PFT: Pft = Pft { pages: 2000 };

fn pft(configuration: Configuration, cpus: usize, seed: u64) -> Result<Measured, RunError> {
    PFT.run(&Setting {
        profile: Profile::by_name("i7-2013").unwrap(),
        cpus,
        configuration,
        frames: 1 << 15,
        seed,
    })
}

#[test]
fn a_fault_takes_the_profiles_time_and_an_allocation() {
    for configuration in Configuration::ALL {
        let one = pft(configuration, 1, 1).unwrap();
        assert_eq!(one.pages, 2000);
        // 3,400 MHz, and 3,166 cycles besides the allocator.
        let most = 3.4e9 / 3166.0;
        let faults = one.faults_per_cpu_second();
        assert!(faults < most && faults > 0.7 * most, "{faults}");
        // One CPU's time is the time.
        assert!((one.faults.cpu - one.faults.wall).abs() < 1e-12);
        assert!(one.frees_per_cpu_second() > faults);
    }
}

#[test]
fn more_cpus_serve_more_faults() {
    let brickyard = |cpus| pft(Configuration::Brickyard, cpus, 1).unwrap();
    let (one, eight) = (brickyard(1), brickyard(8));
    assert!(eight.faults_per_second() > 7.5 * one.faults_per_second());
    assert!(eight.faults_per_cpu_second() > 0.95 * one.faults_per_cpu_second());
    let vanilla = |cpus| pft(Configuration::Vanilla, cpus, 1).unwrap();
    assert!(vanilla(8).frees_per_cpu_second() < 0.5 * vanilla(1).frees_per_cpu_second());
}

#[test]
fn a_seed_gives_the_same_faults() {
    let of_seed = |seed| pft(Configuration::Magazine2013, 5, seed).unwrap();
    assert_eq!(of_seed(3), of_seed(3));
    assert_ne!(of_seed(3), of_seed(4));
}

#[test]
fn too_little_memory_is_refused() {
    let refused = Pft { pages: 1 << 15 }.run(&Setting {
        profile: Profile::by_name("i7-2013").unwrap(),
        cpus: 1,
        configuration: Configuration::Vanilla,
        frames: 1 << 15,
        seed: 1,
    });
    assert!(matches!(refused, Err(RunError::Memory { .. })));
}
