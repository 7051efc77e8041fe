//! The designs of slabs on the simulated machine: the same seed gives the same figures; no schedule
//! gives an object to two, or lets two CPUs meet in a guarded word; what is freed by the batch
//! leaves the CPU in some designs, and stays in SLQB.

use brickyard_machine::Profile;
use brickyard_simulate::slabs::remote::RemoteFrees;
use brickyard_simulate::slabs::socket::{Files, SocketBench, SocketRun};
use brickyard_simulate::slabs::{Design, INSTRUCTIONS, Purpose, SlabSetting, memory};

fn setting(design: Design, cpus: usize, seed: u64) -> SlabSetting {
    SlabSetting {
        profile: Profile::by_name("bl460c-g1").unwrap(),
        cpus,
        design,
        instructions: INSTRUCTIONS,
        seed,
        purpose: Purpose::Measure,
    }
}

fn sockets(design: Design, cpus: usize, files: Files) -> SocketRun {
    let bench = SocketBench {
        sockets: files.batch().max(100),
        files,
    };
    bench.run(&setting(design, cpus, 1)).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    for design in Design::ALL {
        let twice = [0, 1].map(|_| sockets(design, 2, Files::Deferred));
        assert_eq!(twice[0], twice[1], "{design:?}");
        let twice = [0, 1].map(|_| memory::run(&setting(design, 4, 1), 2).unwrap());
        assert_eq!(twice[0], twice[1], "{design:?}");
    }
}

#[test]
fn tasks_with_nothing_in_common_do_not_slow_each_other() {
    for design in Design::ALL {
        let [one, eight] = [1, 8].map(|cpus| sockets(design, cpus, Files::AtOnce));
        assert!(eight.lines < 0.01, "{design:?}: {eight:?}");
        assert_eq!(eight.pair, one.pair, "{design:?}");
    }
}

#[test]
fn more_instructions_between_accesses_take_more_time() {
    for design in Design::ALL {
        let of = |instructions| {
            let bench = SocketBench {
                sockets: 100,
                files: Files::AtOnce,
            };
            let setting = SlabSetting {
                instructions,
                ..setting(design, 2, 1)
            };
            bench.run(&setting).unwrap()
        };
        let [few, usual, many] = [1, INSTRUCTIONS, 8].map(of);
        assert!(few.pair < usual.pair, "{design:?}");
        assert!(usual.pair < many.pair, "{design:?}");
        assert_eq!(usual, sockets(design, 2, Files::AtOnce), "{design:?}");
    }
}

#[test]
fn a_batch_of_files_stays_with_its_cpu_in_slqb_alone() {
    for design in Design::ALL {
        let eight = sockets(design, 8, Files::Deferred);
        let stays = eight.lines < 0.01;
        assert_eq!(stays, design == Design::Slqb, "{design:?}: {eight:?}");
    }
}

#[test]
fn no_schedule_gives_an_object_to_two() {
    let bench = SocketBench {
        sockets: 1000,
        files: Files::Deferred,
    };
    for design in Design::ALL {
        for seed in 1..=4 {
            let explored = SlabSetting {
                purpose: Purpose::Explore,
                ..setting(design, 3, seed)
            };
            bench.run(&explored).unwrap();
        }
    }
}

#[test]
fn remote_frees_move_the_objects_at_least() {
    for design in Design::ALL {
        let load = RemoteFrees { objects: 500 };
        let measured = load.run(&setting(design, 4, 1)).unwrap();
        assert!(measured.lines >= 1.0, "{design:?}: {measured:?}");
        assert!(measured.object > 10.0, "{design:?}: {measured:?}");
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn memory_grows_with_cpus_and_with_nodes() {
    let bytes = |design, cpus, nodes| memory::run(&setting(design, cpus, 1), nodes).unwrap();
    for design in Design::ALL {
        let [one, eight] = [1, 8].map(|cpus| bytes(design, cpus, 1));
        assert!(eight.metadata > one.metadata, "{design:?}");
        assert!(eight.kept >= eight.trimmed, "{design:?}: {eight:?}");
        let nodes = bytes(design, 8, 2);
        assert!(nodes.metadata > eight.metadata, "{design:?}");
    }
    // One CPU of SLAB shares no arrays: it has its own, of 24, 54, 120 and 120 entries, with a head
    // each, and four lists.
    let alone = bytes(Design::Slab, 1, 1).metadata;
    assert_eq!(alone, 4 * (24 + 128) + 8 * (24 + 54 + 120 + 120));
    // SLQB gives back all by trims, SLUB nothing.
    let slqb = bytes(Design::Slqb, 4, 1);
    assert!(slqb.kept > 0 && slqb.trimmed == 0, "{slqb:?}");
    let slub = bytes(Design::Slub, 4, 1);
    assert_eq!(slub.kept, slub.trimmed);
}
