//! The page fault test: one CPU's rate follows from the profile, and more CPUs serve more where no
//! lock limits them.

use brickyard_machine::Profile;
use brickyard_simulate::pft::{FaultFigures, Pft};
use brickyard_simulate::{Configuration, RunError, Setting};

const PFT: Pft = Pft { pages: 2000 };

fn pft(configuration: Configuration, cpus: usize, seed: u64) -> Result<FaultFigures, RunError> {
    PFT.run(&Setting {
        profile: Profile::by_name("i7-2013").unwrap(),
        cpus,
        configuration,
        frames: 1 << 15,
        seed,
        more_instructions: 0,
    })
}

#[test]
fn a_fault_takes_the_profiles_time_and_an_allocation() {
    for configuration in Configuration::ALL {
        let one = pft(configuration, 1, 1).unwrap();
        assert_eq!(one.pages, 2000);
        // 3,400 MHz, and 1,173 cycles besides the page and the allocator. A page is 64 lines, of
        // which ten are fetched at once: from the last level at best, from memory at worst.
        let (most, least) = (3.4e9 / 1173.0, 3.4e9 / (1173.0 + 64.0 * 250.0 / 10.0));
        let faults = one.faults_per_cpu_second();
        assert!(faults < most && faults > 0.7 * least, "{faults}");
        assert_eq!(one.lines_per_fault(), 0.0);
        // One CPU's time is the time.
        assert!((one.faults.cpu - one.faults.wall).abs() < 1e-12);
        assert!(one.frees_per_cpu_second() > faults);
    }
}

#[test]
fn one_cpu_has_the_published_rate_to_which_the_trap_was_fitted() {
    let pft = Pft { pages: 1 << 14 };
    let one = pft.run(&Setting {
        profile: Profile::by_name("i7-2013").unwrap(),
        cpus: 1,
        configuration: Configuration::List2007,
        frames: 1 << 18,
        seed: 1,
        more_instructions: 0,
    });
    let faults = one.unwrap().faults_per_cpu_second();
    assert!((faults / 953_441.0 - 1.0).abs() < 0.002, "{faults}");
}

#[test]
fn pages_that_go_from_one_cpu_to_another_move_lines() {
    let lines = |configuration| pft(configuration, 4, 1).unwrap().lines_per_fault();
    let lists = lines(Configuration::List2007);
    let magazines = lines(Configuration::Magazine2013);
    // A CPU's own lists keep what it freed; magazines hand it to whoever comes.
    assert!(
        lists > 0.5 && magazines > 2.0 * lists,
        "{lists} {magazines}"
    );
    assert!(lines(Configuration::Brickyard) < 0.5 * lists);
}

#[test]
fn more_cpus_serve_more_faults() {
    // In 16 MiB, so that the contents leave the caches on any number of CPUs.
    let pft = |configuration, cpus| {
        let pft = Pft { pages: 1 << 12 };
        let measured = pft.run(&Setting {
            profile: Profile::by_name("i7-2013").unwrap(),
            cpus,
            configuration,
            frames: 1 << 16,
            seed: 1,
            more_instructions: 0,
        });
        measured.unwrap()
    };
    let brickyard = |cpus| pft(Configuration::Brickyard, cpus);
    let (one, four, eight) = (brickyard(1), brickyard(4), brickyard(8));
    assert!(four.faults_per_second() > 3.75 * one.faults_per_second());
    assert!(four.faults_per_cpu_second() > 0.95 * one.faults_per_cpu_second());
    // Four cores with two threads each: more than four CPUs get done, and far less than eight
    // would.
    let second_threads = eight.faults_per_second() / four.faults_per_second();
    assert!((1.0..1.5).contains(&second_threads), "{second_threads}");
    let vanilla = |cpus| pft(Configuration::Vanilla, cpus);
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
        more_instructions: 0,
    });
    assert!(matches!(refused, Err(RunError::Memory { .. })));
}
