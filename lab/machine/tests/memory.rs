//! The memory model compared with sequences computed by hand, and with a naive model that is easily
//! seen to be right.

use std::collections::BTreeSet;

use brickyard_machine::AccessKind::{self, Exchange, Load, Store};
use brickyard_machine::{CacheShape, CacheSystem, Footprint, MOST_CPUS, Profile, Traffic};
use brickyard_run::Dice;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const fn shape(lines: usize, ways: usize, cycles: u64) -> CacheShape {
    CacheShape {
        lines,
        ways,
        cycles,
    }
}

/// A machine whose costs are different powers of ten, so that a sum shows its parts. First level: 2
/// sets of 2 ways; second level: 4 sets of 2 ways.
fn tiny() -> Profile {
    Profile {
        l1: shape(4, 2, 1),
        l2: shape(8, 2, 10),
        llc: None,
        nodes: 1,
        memory_cycles: 10_000,
        remote_cycles: 0,
        transfer_cycles: 1_000,
        upgrade_cycles: 100,
        occupancy_cycles: 3,
        perturbation: 0,
        atomic_cycles: 0,
        ..Profile::by_name("metatm-2007").unwrap().clone()
    }
}

/// The same, with caches large enough for all lines that a test uses.
fn roomy() -> Profile {
    Profile {
        l1: shape(64, 4, 1),
        l2: shape(1024, 8, 10),
        ..tiny()
    }
}

fn memory(profile: &Profile, cpus: usize) -> CacheSystem {
    let mut memory = CacheSystem::new(profile, cpus, 7);
    memory.grow(1024);
    memory
}

/// Each access begins when the one before is done, so no access waits.
struct OneByOne {
    memory: CacheSystem,
    now: u64,
}

impl OneByOne {
    fn new(profile: &Profile, cpus: usize) -> Self {
        Self {
            memory: memory(profile, cpus),
            now: 0,
        }
    }

    fn access(&mut self, cpu: usize, line: u32, kind: AccessKind) -> u64 {
        let cycles = self.memory.access(cpu, line, kind, self.now);
        self.now += cycles.max(1_000_000);
        self.memory.check().unwrap();
        cycles
    }
}

fn is_accounted_for(traffic: Traffic) {
    let Traffic {
        accesses,
        l1_hits,
        l2_hits,
        upgrades,
        ..
    } = traffic;
    assert_eq!(
        accesses,
        l1_hits + l2_hits + upgrades + traffic.moved(),
        "{traffic:?}"
    );
}

/// 100 instructions displace a line from the first level, 1000 from both; only those since the last
/// access count, and only those of the CPU itself.
#[test]
fn computing_displaces_what_is_not_used() {
    let footprint = Footprint {
        l1_instructions: 100,
        l2_instructions: 1_000,
    };
    let profile = roomy();
    let mut one = OneByOne::new(&profile, 2);
    one.memory = one.memory.with_footprint(footprint);
    one.access(0, 7, Store);
    one.memory.compute(0, 99);
    assert_eq!(one.access(0, 7, Store), 1, "in the first level");
    one.memory.compute(0, 99);
    one.memory.compute(1, 5_000);
    assert_eq!(
        one.access(0, 7, Store),
        1,
        "the other CPU's computing does nothing"
    );
    one.memory.compute(0, 100);
    assert_eq!(one.access(0, 7, Store), 10, "in the second");
    one.memory.compute(0, 1_000);
    assert!(!one.memory.would_hit(0, 7, Store));
    assert_eq!(one.access(0, 7, Store), 10_000, "from memory");
    assert!(one.memory.would_hit(0, 7, Store));
    // An owner that has lost the line does not deliver it.
    assert_eq!(one.access(1, 7, Load), 1_000);
    assert_eq!(one.access(0, 7, Store), 100);
    one.memory.compute(0, 1_000);
    assert_eq!(one.access(1, 7, Load), 10_000);
    assert!(!one.memory.holds(0, 7) && one.memory.holds(1, 7));
    is_accounted_for(one.memory.traffic(0));
    // Without a footprint nothing is lost.
    let mut one = OneByOne::new(&profile, 1);
    one.access(0, 7, Store);
    one.memory.compute(0, 1_000_000);
    assert_eq!(one.access(0, 7, Store), 1);
}

#[test]
fn hits_and_evictions_of_a_set() {
    let mut one = OneByOne::new(&tiny(), 1);
    // Lines 0, 4, 8, 12 share a set of the second level, the even ones a set of the first.
    let costs = [
        (0, 10_000),  // l1: 0        l2 set 0: 0
        (0, 1),       // l1: 0
        (4, 10_000),  // l1: 4 0      l2 set 0: 4 0
        (0, 1),       // l1: 0 4
        (2, 10_000),  // l1: 2 0      l2 set 2: 2      (4 left l1 only)
        (4, 10),      // l1: 4 2      l2 set 0: 4 0
        (0, 10),      // l1: 0 4      l2 set 0: 0 4
        (8, 10_000),  // l1: 8 0      l2 set 0: 8 0    (4 left both)
        (2, 10),      // l1: 2 8
        (4, 10_000),  // l1: 4 2      l2 set 0: 4 8    (0 left)
        (0, 10_000),  // l1: 0 4      l2 set 0: 0 4    (8 left)
        (12, 10_000), // l1: 12 0     l2 set 0: 12 0   (4 left, though just used: its set in l2 was not touched)
        (1, 10_000),  // another set of both
        (12, 1),
    ];
    for (step, (line, cycles)) in costs.into_iter().enumerate() {
        assert_eq!(one.access(0, line, Load), cycles, "step {step}");
    }
    assert!(!one.memory.holds(0, 4) && !one.memory.holds(0, 8));
    let traffic = one.memory.traffic(0);
    assert_eq!(
        (traffic.l1_hits, traffic.l2_hits, traffic.memory),
        (3, 3, 8)
    );
    is_accounted_for(traffic);
}

#[test]
fn an_eviction_from_the_second_level_evicts_from_the_first() {
    let mut one = OneByOne::new(&tiny(), 1);
    one.access(0, 0, Load);
    one.access(0, 4, Load);
    // 0 is the most recently used of the first level, but the least recently used of the second,
    // which does not notice hits in the first.
    assert_eq!(one.access(0, 0, Load), 1);
    one.access(0, 8, Load);
    assert!(!one.memory.holds(0, 0));
    assert_eq!(one.access(0, 0, Load), 10_000);
}

#[test]
fn an_evicted_line_has_no_owner() {
    let mut one = OneByOne::new(&tiny(), 2);
    one.access(0, 0, Store);
    one.access(0, 4, Load);
    one.access(0, 8, Load);
    assert!(!one.memory.holds(0, 0));
    // From memory, not from CPU 0; and exclusive, so the write after it is a hit.
    assert_eq!(one.access(1, 0, Load), 10_000);
    assert_eq!(one.access(1, 0, Store), 1);
}

#[test]
fn a_line_with_one_reader_is_written_without_a_request() {
    let mut one = OneByOne::new(&roomy(), 2);
    assert_eq!(one.access(0, 5, Load), 10_000);
    assert_eq!(one.access(0, 5, Store), 1);
    assert_eq!(one.memory.traffic(0).upgrades, 0);
}

#[test]
fn reading_after_a_writer_shares_and_writing_upgrades() {
    let mut one = OneByOne::new(&roomy(), 4);
    assert_eq!(one.access(0, 5, Store), 10_000);
    // From the writer; both share it then.
    assert_eq!(one.access(1, 5, Load), 1_000);
    assert_eq!(one.access(0, 5, Load), 1);
    // It has no owner: the next reader fetches it from memory.
    assert_eq!(one.access(2, 5, Load), 10_000);
    // The upgrade invalidates both other copies, and the next write is a hit.
    assert_eq!(one.access(1, 5, Store), 100);
    assert_eq!(one.access(1, 5, Store), 1);
    let held = [0, 1, 2, 3].map(|cpu| one.memory.holds(cpu, 5));
    assert_eq!(held, [false, true, false, false]);
    let invalidated = [0, 1, 2, 3].map(|cpu| one.memory.traffic(cpu).invalidated);
    assert_eq!(invalidated, [1, 0, 1, 0]);
    assert_eq!(one.memory.traffic(1).upgrades, 1);
    (0..4).for_each(|cpu| is_accounted_for(one.memory.traffic(cpu)));
}

#[test]
fn a_line_that_is_only_in_the_second_level_is_upgraded_there() {
    let mut one = OneByOne::new(&tiny(), 2);
    one.access(0, 0, Load);
    one.access(1, 0, Load);
    one.access(0, 2, Load);
    one.access(0, 6, Load);
    assert_eq!(one.access(0, 0, Store), 100);
    assert!(!one.memory.holds(1, 0));
    assert_eq!(one.access(0, 0, Store), 1);
}

#[test]
fn a_shared_line_that_only_the_writer_still_holds_is_upgraded_once() {
    let mut one = OneByOne::new(&tiny(), 2);
    one.access(0, 0, Load);
    one.access(1, 0, Load);
    one.access(1, 4, Load);
    one.access(1, 8, Load);
    assert!(!one.memory.holds(1, 0));
    assert_eq!(one.access(0, 0, Store), 100);
    assert_eq!(one.memory.traffic(1).invalidated, 0);
}

#[test]
fn a_write_among_readers_takes_as_long_as_the_slower_of_both() {
    let mut one = OneByOne::new(&roomy(), 3);
    one.access(0, 5, Load);
    one.access(1, 5, Load);
    // The data comes from memory; the other copies are invalidated meanwhile.
    assert_eq!(one.access(2, 5, Store), 10_000);
    let slow_upgrade = Profile {
        upgrade_cycles: 20_000,
        ..roomy()
    };
    let mut one = OneByOne::new(&slow_upgrade, 3);
    one.access(0, 5, Load);
    one.access(1, 5, Load);
    assert_eq!(one.access(2, 5, Store), 20_000);
    assert_eq!(one.memory.traffic(2).memory, 1);
}

/// Each way in which an access takes a line from other CPUs, or ends their copies, counts once;
/// what takes nothing from them does not count.
#[test]
fn every_way_to_take_a_line_from_others_bounces_it() {
    let mut one = OneByOne::new(&tiny(), 3);
    let mut bounced = |accesses: &[(usize, AccessKind)]| {
        let all = |memory: &CacheSystem| (0..3).map(|cpu| memory.traffic(cpu).bounced).sum::<u64>();
        let before = all(&one.memory);
        for &(cpu, kind) in accesses {
            one.access(cpu, 0, kind);
        }
        all(&one.memory) - before
    };
    // From memory, and hits of the owner.
    assert_eq!(bounced(&[(0, Store), (0, Load), (0, Exchange)]), 0);
    // A read, then a write, of a line that another CPU owns.
    assert_eq!(bounced(&[(1, Load)]), 1);
    assert_eq!(bounced(&[(0, Store)]), 1);
    assert_eq!(bounced(&[(1, Store)]), 1);
    // An upgrade while another CPU has a copy.
    assert_eq!(bounced(&[(0, Load), (1, Store)]), 2);
    // A third CPU reads the shared line, which takes it from nobody; and one that has no copy
    // writes it, which ends two at once.
    assert_eq!(bounced(&[(0, Load)]), 1);
    assert_eq!(bounced(&[(2, Load)]), 0);
    one.access(2, 4, Load);
    one.access(2, 8, Load);
    assert!(!one.memory.holds(2, 0) && one.memory.holds(0, 0) && one.memory.holds(1, 0));
    let before = one.memory.traffic(2);
    assert_eq!(one.access(2, 0, Store), 10_000);
    let traffic = one.memory.traffic(2) - before;
    assert_eq!((traffic.memory, traffic.bounced), (1, 1));
    // An upgrade of a line of which the other copy has been evicted.
    one.access(0, 0, Load);
    one.access(0, 4, Load);
    one.access(0, 8, Load);
    assert!(!one.memory.holds(0, 0));
    let before = one.memory.traffic(2);
    one.access(2, 0, Store);
    let traffic = one.memory.traffic(2) - before;
    assert_eq!((traffic.upgrades, traffic.bounced), (1, 0));
}

#[test]
fn two_cpus_that_write_one_line_move_it_each_time() {
    let mut one = OneByOne::new(&roomy(), 2);
    one.access(0, 5, Exchange);
    for round in 0..10 {
        assert_eq!(one.access(1, 5, Exchange), 1_000, "round {round}");
        assert_eq!(one.access(0, 5, Store), 1_000, "round {round}");
    }
    let (left, right) = (one.memory.traffic(0), one.memory.traffic(1));
    assert_eq!((left.transfers, right.transfers), (10, 10));
    assert_eq!((left.invalidated, right.invalidated), (10, 10));
    // On separate lines nothing moves.
    for cpu in [0, 1] {
        one.access(cpu, 10 + cpu as u32, Store);
        assert_eq!(one.access(cpu, 10 + cpu as u32, Store), 1);
    }
}

#[test]
fn an_exchange_costs_what_the_profile_adds() {
    let profile = Profile {
        atomic_cycles: 7,
        ..roomy()
    };
    let mut one = OneByOne::new(&profile, 2);
    assert_eq!(one.access(0, 5, Exchange), 10_007);
    assert_eq!(one.access(0, 5, Exchange), 8);
    assert_eq!(one.access(0, 5, Store), 1);
    assert_eq!(one.access(1, 5, Load), 1_000);
    assert_eq!(one.access(1, 5, Exchange), 107);
}

#[test]
fn exchanges_at_the_same_time_are_served_one_after_the_other() {
    let mut memory = memory(&roomy(), 4);
    memory.access(0, 5, Store, 0);
    // At 10,000 the line has arrived; three CPUs request it at 20,000.
    let cost = |memory: &mut CacheSystem, cpu| memory.access(cpu, 5, Exchange, 20_000);
    assert_eq!(cost(&mut memory, 1), 1_000);
    assert_eq!(cost(&mut memory, 2), 2_000);
    assert_eq!(cost(&mut memory, 3), 3_000);
    assert_eq!(memory.traffic(1).waited_cycles, 0);
    assert_eq!(memory.traffic(2).waited_cycles, 1_000);
    assert_eq!(memory.traffic(3).waited_cycles, 2_000);
    // Another line is not affected, and a later request waits for the remaining time only.
    assert_eq!(memory.access(0, 6, Load, 20_000), 10_000);
    assert_eq!(memory.access(0, 5, Load, 22_600), 400 + 1_000);
    // On the paper's machine, without perturbation: 200 and 400 cycles.
    let metatm = Profile {
        perturbation: 0,
        ..Profile::by_name("metatm-2007").unwrap().clone()
    };
    let mut memory = CacheSystem::new(&metatm, 2, 0);
    memory.grow(1);
    assert_eq!(memory.access(0, 0, Exchange, 0), 200);
    assert_eq!(memory.access(1, 0, Exchange, 0), 400);
}

#[test]
fn readers_after_a_writer_queue_for_the_occupancy_each() {
    let mut memory = memory(&roomy(), 8);
    memory.access(0, 5, Store, 0);
    // The first reader fetches it from the writer, which keeps the line busy until it is done; each
    // further one keeps it busy for 3 cycles.
    let costs: Vec<u64> = (1..5)
        .map(|cpu| memory.access(cpu, 5, Load, 20_000))
        .collect();
    assert_eq!(costs, [1_000, 11_000, 11_003, 11_006]);
    // A reader that has it does not wait; a writer waits for the last of these reads.
    assert_eq!(memory.access(1, 5, Load, 21_000), 1);
    assert_eq!(memory.access(2, 5, Store, 21_000), 9 + 100);
    assert_eq!(memory.traffic(2).waited_cycles, 1_000 + 9);
}

#[test]
fn an_upgrade_invalidates_every_reader() {
    let mut one = OneByOne::new(&roomy(), MOST_CPUS);
    for cpu in 0..MOST_CPUS {
        let cycles = if cpu == 1 { 1_000 } else { 10_000 };
        assert_eq!(one.access(cpu, 5, Load), cycles);
    }
    assert!((0..MOST_CPUS).all(|cpu| one.memory.holds(cpu, 5)));
    assert_eq!(one.access(255, 5, Exchange), 100);
    assert!((0..MOST_CPUS).all(|cpu| one.memory.holds(cpu, 5) == (cpu == 255)));
    let invalidated = |cpu| one.memory.traffic(cpu).invalidated;
    assert_eq!((0..MOST_CPUS).map(invalidated).sum::<u64>(), 255);
}

#[test]
#[should_panic(expected = "a machine has 1 to 256 CPUs, not 257")]
fn more_cpus_than_a_set_holds_are_refused() {
    let _ = CacheSystem::new(&tiny(), MOST_CPUS + 1, 0);
}

/// Two nodes with a last level of 4 lines in 2 ways each; 64 lines a page.
fn two_nodes() -> Profile {
    Profile {
        nodes: 2,
        llc: Some(shape(4, 2, 2_000)),
        remote_cycles: 100_000,
        ..roomy()
    }
}

#[test]
fn the_last_level_is_shared_by_its_node() {
    let near = Profile {
        nodes: 1,
        ..two_nodes()
    };
    let mut one = OneByOne::new(&near, 4);
    assert_eq!(one.access(0, 0, Load), 10_000);
    assert_eq!(one.access(1, 0, Load), 1_000);
    // Shared: from the last level now.
    assert_eq!(one.access(2, 0, Load), 2_000);
    // Two more lines of its set evict it; the private copies stay.
    one.access(3, 2, Load);
    one.access(3, 4, Load);
    assert_eq!(one.access(0, 0, Load), 1);
    assert_eq!(one.access(3, 0, Load), 10_000);
    let traffic = one.memory.traffic(2);
    assert_eq!((traffic.llc_hits, traffic.memory), (1, 0));
    (0..4).for_each(|cpu| is_accounted_for(one.memory.traffic(cpu)));
}

#[test]
fn a_request_that_leaves_the_node_costs_more_once() {
    // CPUs 0 and 1 are on node 0, 2 and 3 on node 1; the home of lines 0 to 63 is node 0, of 64 to
    // 127 node 1, of 128 node 0.
    let mut one = OneByOne::new(&two_nodes(), 4);
    assert_eq!(one.access(0, 0, Load), 10_000);
    assert_eq!(one.access(0, 64, Load), 110_000);
    assert_eq!(one.access(0, 128, Load), 10_000);
    assert_eq!(one.access(2, 127, Load), 10_000);
    // From an owner on the same node with the home there, on the other node, and on the same node
    // with the home elsewhere.
    assert_eq!(one.access(1, 0, Load), 1_000);
    assert_eq!(one.access(2, 128, Load), 101_000);
    assert_eq!(one.access(1, 64, Load), 101_000);
    // An upgrade: all on this node; then with a holder on the other; then with the home there.
    assert_eq!(one.access(0, 0, Store), 100);
    assert_eq!(one.access(0, 128, Store), 100_100);
    assert_eq!(one.access(0, 64, Store), 100_100);
    // A last level serves the other node too.
    assert_eq!(one.access(2, 0, Load), 101_000);
    assert_eq!(one.access(3, 0, Load), 102_000);
    // A write to a line with holders and home on the other node.
    one.access(2, 65, Load);
    one.access(3, 65, Load);
    one.access(2, 66, Load);
    one.access(0, 66, Load);
    assert_eq!(one.access(3, 66, Store), 102_000);
}

#[test]
fn a_miss_is_perturbed_within_bounds_and_by_the_seed_alone() {
    let profile = Profile {
        perturbation: 4,
        ..roomy()
    };
    let run = |seed| -> Vec<u64> {
        let mut memory = CacheSystem::new(&profile, 2, seed);
        memory.grow(1024);
        (0..500_u32)
            .map(|line| memory.access(0, line, Load, u64::from(line) * 100_000))
            .collect()
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    for delay in 0..=4 {
        let times = first.iter().filter(|&&cost| cost == 10_000 + delay).count();
        assert!((60..140).contains(&times), "{times} of 500 by {delay}");
    }
    assert!(first.iter().all(|cost| (10_000..=10_004).contains(cost)));
    // Hits and upgrades are not perturbed.
    let mut one = OneByOne::new(&profile, 2);
    for line in 0..100 {
        one.access(0, line, Load);
        one.access(1, line, Load);
        assert_eq!(one.access(1, line, Store), 100);
        assert_eq!(one.access(1, line, Store), 1);
    }
}

#[test]
fn growing_keeps_what_is_there() {
    let mut memory = CacheSystem::new(&tiny(), 1, 0);
    memory.grow(10);
    memory.access(0, 9, Store, 0);
    memory.grow(2000);
    memory.grow(5);
    assert_eq!(memory.access(0, 9, Store, 0), 1);
    assert_eq!(memory.access(0, 1999, Load, 0), 10_000);
    assert!(!memory.holds(0, 4_000_000));
}

/// Random accesses in the order of time, to few lines so that CPUs share them.
fn storm(memory: &mut CacheSystem, cpus: usize, lines: u32, accesses: usize) -> Vec<u64> {
    let mut dice = Dice::new(3);
    let mut now = 0;
    (0..accesses)
        .map(|_| {
            now += dice.below(50);
            let cpu = dice.below(cpus as u64) as usize;
            let line = dice.below(u64::from(lines)) as u32;
            let kind = [Load, Load, Load, Store, Exchange][dice.below(5) as usize];
            memory.access(cpu, line, kind, now)
        })
        .collect()
}

#[test]
fn every_profile_is_coherent_and_accounts_for_each_access() {
    for profile in Profile::ALL {
        for cpus in [1, 7, 64] {
            let mut memory = CacheSystem::new(profile, cpus, 1);
            memory.grow(8192);
            let costs = storm(&mut memory, cpus, 2000, 20_000);
            memory.check().unwrap();
            let mut sum = Traffic::default();
            for cpu in 0..cpus {
                is_accounted_for(memory.traffic(cpu));
                sum += memory.traffic(cpu);
            }
            assert_eq!(sum.accesses, 20_000);
            assert!(costs.iter().sum::<u64>() >= sum.waited_cycles);
            assert_eq!(sum.transfers > 0, cpus > 1, "{}", profile.name);

            let mut again = CacheSystem::new(profile, cpus, 1);
            again.grow(8192);
            assert_eq!(costs, storm(&mut again, cpus, 2000, 20_000));
        }
    }
}

/// The storm's costs as they were when the model was written: the same in debug and release, on
/// every host.
#[test]
fn the_costs_of_a_storm_are_what_they_were() {
    let profile = Profile {
        perturbation: 4,
        atomic_cycles: 7,
        ..two_nodes()
    };
    let mut memory = memory(&profile, 16);
    let costs = storm(&mut memory, 16, 1024, 50_000);
    let digest = |sum: u64, cost: &u64| sum.wrapping_mul(31).wrapping_add(*cost);
    assert_eq!(costs.iter().fold(0, digest), 6_444_659_455_083_528_574);
}

/// One line in the naive model: which CPUs have it, and whether the only one owns it.
#[derive(Debug, Clone, Default)]
struct Naive {
    holders: BTreeSet<usize>,
    owned: bool,
}

/// Makes an access in the naive model; returns the cost to expect with [`roomy`].
fn naive_access(line: &mut Naive, cpu: usize, kind: AccessKind) -> u64 {
    let held = line.holders.contains(&cpu);
    let alone = line.holders.len() == 1;
    let cost = match (held, kind) {
        (true, Load) => 1,
        (true, _) if line.owned => 1,
        (true, _) => 100,
        (false, _) if line.owned => 1_000,
        (false, _) => 10_000,
    };
    assert!(!line.owned || alone);
    if kind == Load {
        line.owned = line.holders.is_empty() || (line.owned && held);
        line.holders.insert(cpu);
    } else {
        line.owned = true;
        line.holders = BTreeSet::from([cpu]);
    }
    cost
}

fn kinds() -> impl Strategy<Value = AccessKind> {
    prop_oneof![3 => Just(Load), 1 => Just(Store), 1 => Just(Exchange)]
}

/// A runner of 128 cases; `PROPTEST_CASES` sets another number.
fn runner() -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(128);
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

#[test]
fn with_room_for_all_it_agrees_with_the_naive_model() {
    let steps = vec((0..70_usize, 0..12_u32, kinds()), 1..300);
    // The lines share few sets of the first level, which still holds them all.
    runner()
        .run(&steps, |steps| {
            let mut lines = vec![Naive::default(); 12];
            let mut one = OneByOne::new(&roomy(), 70);
            for (cpu, line, kind) in steps {
                let expected = naive_access(&mut lines[line as usize], cpu, kind);
                let cost = one.memory.access(cpu, line, kind, one.now);
                one.now += 1_000_000;
                prop_assert_eq!(cost, expected);
            }
            one.memory.check().unwrap();
            for (line, naive) in (0..).zip(&lines) {
                let held = (0..70).filter(|&cpu| one.memory.holds(cpu, line));
                prop_assert_eq!(held.collect::<BTreeSet<_>>(), naive.holders.clone());
            }
            Ok(())
        })
        .unwrap();
}

/// A CPU's caches as plain lists, one per set, most recent first: 2 sets and 4 sets of 2 ways.
#[derive(Debug, Clone, Default)]
struct NaiveCaches {
    l1: [Vec<u32>; 2],
    l2: [Vec<u32>; 4],
}

impl NaiveCaches {
    fn drop_line(&mut self, line: u32) {
        self.l1
            .iter_mut()
            .for_each(|set| set.retain(|&l| l != line));
        self.l2
            .iter_mut()
            .for_each(|set| set.retain(|&l| l != line));
    }

    /// Returns the level of the hit, if any, and the line that the second level evicted. Afterwards
    /// the line is the most recent of each level that was looked up.
    fn touch(&mut self, line: u32) -> (Option<u8>, Option<u32>) {
        let (l1, l2) = (line as usize % 2, line as usize % 4);
        let level = match line {
            _ if self.l1[l1].contains(&line) => Some(1),
            _ if self.l2[l2].contains(&line) => Some(2),
            _ => None,
        };
        let mut left = None;
        if level != Some(1) {
            self.l2[l2].retain(|&l| l != line);
            self.l2[l2].insert(0, line);
            left = self.l2[l2].get(2).copied();
            if let Some(victim) = left {
                self.drop_line(victim);
            }
        }
        self.l1[l1].retain(|&l| l != line);
        self.l1[l1].insert(0, line);
        self.l1[l1].truncate(2);
        (level, left)
    }
}

#[test]
fn with_tiny_caches_it_agrees_with_plain_lists() {
    let steps = vec((0..5_usize, 0..24_u32, kinds()), 1..300);
    runner()
        .run(&steps, |steps| {
            let mut caches = vec![NaiveCaches::default(); 5];
            let mut lines = vec![Naive::default(); 24];
            let mut one = OneByOne::new(&tiny(), 5);
            for (cpu, line, kind) in steps {
                let mut expected = naive_access(&mut lines[line as usize], cpu, kind);
                let (level, left) = caches[cpu].touch(line);
                if expected == 1 && level == Some(2) {
                    expected = 10;
                }
                if let Some(victim) = left {
                    let victim = &mut lines[victim as usize];
                    victim.holders.remove(&cpu);
                    victim.owned &= !victim.holders.is_empty();
                }
                for (other, caches) in caches.iter_mut().enumerate() {
                    if !lines[line as usize].holders.contains(&other) {
                        caches.drop_line(line);
                    }
                }
                prop_assert_eq!(one.memory.would_hit(cpu, line, kind), expected <= 10);
                prop_assert_eq!(one.memory.access(cpu, line, kind, one.now), expected);
                one.now += 1_000_000;
                one.memory.check().unwrap();
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_misses_of_a_clear_overlap() {
    let profile = Profile::by_name("i7-2013").unwrap();
    let mut memory = CacheSystem::new(profile, 2, 1);
    memory.grow(128);
    let fetched = memory.clear(0, 0..64, 0);
    // Ten at a time, each delayed by up to 14 cycles.
    let at_least = 64 * 2 + 64 * 230 / 10;
    assert!(
        (at_least..at_least + 64 * 14 / 10 + 1).contains(&fetched),
        "{fetched}"
    );
    assert!((0..64).all(|line| memory.holds(0, line)));
    // All in the first level now.
    assert_eq!(memory.clear(0, 0..64, 10_000), 64 * 2);
    let moved = memory.clear(1, 0..64, 20_000);
    assert!((64 * 2 + 64 * 75 / 10..fetched).contains(&moved), "{moved}");
    assert_eq!(memory.traffic(1).transfers, 64);
    assert!(!memory.holds(0, 0));
    memory.check().unwrap();
}
