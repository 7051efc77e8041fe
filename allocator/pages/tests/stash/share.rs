//! Stashes hold no more than their share of the memory, and all arrays of a CPU get a part of it.

use super::*;

/// So much memory for so many CPUs, with the default sizes.
fn machine(frames: usize, cpus: usize) -> (Own, &'static Cpus) {
    let platform = Cpus::new();
    let plan = ZonePlan {
        cpus,
        stash: StashSizes::DEFAULT,
        ..linux(frames)
    };
    (full(&plan, platform), platform)
}

/// The most that the stashes of a zone may hold.
fn most(zone: &impl AnyZone) -> usize {
    zone.managed_frames() * 2 / 100
}

#[test]
fn all_stashes_together_hold_at_most_2_percent() {
    // From a machine of 16 MiB to one on which the arrays are as large as they can be.
    for (frames, cpus) in [
        (4096, 2),
        (24 * 1024, 2),
        (32 * 1024, 4),
        (1 << 18, 2),
        (1 << 18, 16),
        (1 << 20, 1),
    ] {
        let (zone, platform) = machine(frames, cpus);
        let mut dice = Dice::new(7);
        let mut held: Vec<(Frame, u8)> = Vec::new();
        let mut seen = 0;
        for step in 0..60_000_u64 {
            platform.switch_to(dice.below(cpus));
            let order = dice.one_of(&[0, 0, 0, 0, 1, 2, 3, 9]);
            let mobility = dice.one_of(&Mobility::ALL);
            // Grows and shrinks in waves, so that arrays run empty and full.
            let grows = step / 3000 % 2 == 0;
            if (dice.below(8) < 6) == grows {
                if let Ok(at) = zone.alloc(&request(order, mobility)) {
                    held.push((at, order));
                }
            } else if !held.is_empty() {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                free(&zone, at, order);
            }
            let cached = zone.cached_frames();
            assert!(cached <= most(&zone), "{cached} of {frames} on {cpus}");
            seen = seen.max(cached);
        }
        assert!(seen * 4 > most(&zone), "only {seen} of {frames} on {cpus}");
        sound(&zone);
    }
}

/// An array that is used gets a part of the share, though others have had all of it.
#[test]
fn whoever_comes_last_gets_a_part() {
    let (zone, _) = machine(24 * 1024, 2);
    let share = zone.managed_frames() * 2 / 100 / 2;
    for mobility in Mobility::ALL {
        for _ in 0..4 {
            give(&zone, &take(&zone, share * 4, mobility));
        }
        // In small batches all are hits by now: nothing leaves the store for them.
        assert!(hits(&zone, share / 8, mobility) > 90, "{mobility:?}");
    }
    sound(&zone);
}

/// What a machine has too little memory for goes straight to the store.
#[test]
fn a_page_block_above_the_share_is_not_kept() {
    let (zone, _) = machine(24 * 1024, 2);
    use_one(&zone, &request(9, Mobility::Movable));
    assert_eq!(zone.cached_frames(), 0);
    let (zone, _) = machine(1 << 18, 2);
    use_one(&zone, &request(9, Mobility::Movable));
    assert!(zone.cached_frames() >= 512);
}

/// The share follows what the zone manages, not what it spans.
#[test]
fn memory_that_is_added_raises_the_share() {
    let plan = ZonePlan {
        stash: StashSizes::DEFAULT,
        ..linux(1 << 18)
    };
    let zone: Own = empty(&plan, Cpus::new());
    let cached_most = || {
        let all = take(&zone, zone.managed_frames() * 3 / 4, Mobility::Movable);
        let cached = all.into_iter().map(|at| {
            free(&zone, at, 0);
            zone.cached_frames()
        });
        let most = cached.max().unwrap();
        zone.drain();
        most
    };
    zone.add(range(0, 8192)).unwrap();
    assert!(cached_most() <= 8192 / 50);
    zone.add(range(8192, 1 << 18)).unwrap();
    // In an array of movable frames, and in that of sparse page blocks.
    let most = cached_most();
    assert!((MOST..=MOST + SPARSES).contains(&most), "{most}");
}

/// CPUs that come one after the other, and then do nothing more, leave each other their shares: the
/// stashes of all of them together never hold more than they may.
fn cpus_come_one_after_another<A: SlotAccess + 'static>() {
    for (frames, cpus) in [
        (1 << 16, 1),
        (1 << 16, 2),
        (1 << 16, 4),
        (1 << 16, 16),
        (1 << 16, 64),
        (1 << 12, 64),
        (1 << 11, 64),
    ] {
        let platform = Cpus::new();
        let plan = ZonePlan {
            cpus,
            stash: StashSizes::DEFAULT,
            ..linux(frames)
        };
        let zone: Bricks<A> = full(&plan, platform);
        for cpu in 0..cpus {
            platform.switch_to(cpu);
            for (mobility, order) in Mobility::ALL
                .into_iter()
                .flat_map(|mobility| [0, 9, 5, 4, 3].map(|order| (mobility, order)))
            {
                let wanted = request(order, mobility);
                let held: Vec<_> = (0..64).map_while(|_| zone.alloc(&wanted).ok()).collect();
                for some in held.chunks(8) {
                    some.iter().for_each(|&at| free(&zone, at, order));
                    let cached = zone.cached_frames();
                    assert!(
                        cached <= most(&zone),
                        "{cached} of {frames}, CPU {cpu} of {cpus}"
                    );
                }
            }
        }
        let cached = zone.cached_frames();
        // In smaller memory, page blocks are requested until stashes are drained for them.
        assert!(
            cached * 4 > most(&zone) || frames < 1 << 16,
            "only {cached} of {frames} on {cpus}"
        );
        let census = sound(&zone);
        assert_eq!((census.allocated, census.cached), (0, cached));
        assert_eq!(zone.drain(), cached);
    }
}

#[test]
fn stashes_of_cpus_that_come_one_after_another_hold_no_more_than_2_percent() {
    cpus_come_one_after_another::<Shared>();
    cpus_come_one_after_another::<Exclusive>();
}

/// What other CPUs do changes no CPU's share.
#[test]
fn a_cpu_has_its_share_however_many_others_work() {
    let (zone, platform) = machine(1 << 16, 4);
    let share = most(&zone) / 4;
    for round in 0..3 {
        for cpu in 0..4 {
            platform.switch_to(cpu);
            let before = zone.cached_frames();
            give(&zone, &take(&zone, 3 * share, Mobility::Movable));
            let cached = zone.cached_frames() - if round == 0 { before } else { 0 };
            assert!(cached > share / 4 && cached <= 4 * share, "{cached}");
            assert!(hits(&zone, share / 8, Mobility::Movable) > 90, "CPU {cpu}");
        }
    }
    sound(&zone);
}

/// On a machine of so many CPUs that none has room for a frame, everything goes to the store.
#[test]
fn where_a_share_is_nothing_the_store_serves_all() {
    let (zone, _) = machine(512, 64);
    let all = take_all(&zone, Mobility::Movable);
    assert_eq!(all.len(), 512);
    let (some, rest) = all.split_at(200);
    assert_eq!(zone.free_bulk(some), Ok(()));
    assert_eq!((zone.cached_frames(), zone.free_frames()), (0, 200));
    let again = take_bulk(&zone, &UNMOVABLE, 200);
    assert_eq!(zone.free_frames(), 0);
    let mut twice = again.to_vec();
    twice[150] = twice[149];
    let error = FreeError::DoubleFree;
    assert_eq!(
        zone.free_bulk(&twice),
        Err(BulkFreeError { freed: 150, error })
    );
    give(&zone, &again[150..]);
    give(&zone, rest);
    assert_eq!(zone.free(rest[0], Order::ZERO), Err(FreeError::DoubleFree));
    for order in [3, 9] {
        use_one(&zone, &request(order, Mobility::Reclaimable));
    }
    assert_eq!((zone.cached_frames(), zone.free_frames()), (0, 512));
    sound(&zone);
}

/// In a share of a few frames, an array that came first leaves one to each that comes later.
#[test]
fn a_share_of_a_few_frames_is_divided_too() {
    let (zone, _) = machine(1024, 2);
    assert_eq!(most(&zone) / 2, 10);
    for mobility in Mobility::ALL {
        for _ in 0..3 {
            give(&zone, &take(&zone, 40, mobility));
        }
        assert!(hits(&zone, 1, mobility) > 90, "{mobility:?}");
        assert!(zone.cached_frames() <= 10);
    }
    sound(&zone);
}

/// Whether a batch of single frames is served by the stash alone, in most of some rounds.
fn hits(zone: &Own, batch: usize, mobility: Mobility) -> usize {
    let round = |_: &i32| {
        let before = zone.free_frames();
        let held = take(zone, batch, mobility);
        let hit = zone.free_frames() == before;
        give(zone, &held);
        hit
    };
    (0..100).filter(round).count()
}

/// Arrays that were used once, and never again, leave room for those that are used.
#[test]
fn idle_small_arrays_do_not_starve_single_frames() {
    for (frames, cpus) in [
        (16 * 1024, 1),
        (24 * 1024, 1),
        (32 * 1024, 1),
        (64 * 1024, 2),
    ] {
        let (zone, _) = machine(frames, cpus);
        for order in [3, 2, 1] {
            for mobility in Mobility::ALL {
                use_one(&zone, &request(order, mobility));
            }
        }
        let hits = hits(&zone, 8, Mobility::Movable);
        assert!(hits > 90, "{frames} on {cpus}: {hits} of 100");
        sound(&zone);
    }
}

/// A drain makes arrays small also where they hold nothing.
#[test]
fn a_drain_makes_empty_arrays_small() {
    let (zone, _) = machine(32 * 1024, 1);
    for order in [3, 2, 1] {
        for mobility in Mobility::ALL {
            // All that is fetched is held, so the array is empty, and never used again.
            while zone.alloc(&request(order, mobility)).is_ok() && zone.cached_frames() > 0 {}
        }
    }
    assert_eq!(zone.cached_frames(), 0);
    zone.drain();
    give(&zone, &take(&zone, 200, Mobility::Movable));
    assert!(zone.cached_frames() > 30, "{}", zone.cached_frames());
}

/// Memory that leaves the zone takes its part of the shares with it, once stashes are drained.
#[test]
fn memory_that_leaves_lowers_the_share() {
    let (zone, _) = machine(1 << 16, 1);
    give(&zone, &take(&zone, 4096, Mobility::Movable));
    assert!(zone.cached_frames() > 8192 / 50);
    assert_eq!(zone.remove(range(8192, 1 << 16)), Ok((1 << 16) - 8192));
    zone.drain();
    for _ in 0..3 {
        give(&zone, &take(&zone, 1024, Mobility::Movable));
        assert!(zone.cached_frames() <= 8192 / 50);
    }
    sound(&zone);
}

/// Random work of many CPUs, with drains from any of them and interrupts in between, where shares
/// are small or nothing.
fn works_in_a_small_share<A: SlotAccess + 'static>(seed: u64) {
    let mut dice = Dice::new(seed);
    let platform = Cpus::new();
    let (frames, cpus) = (dice.one_of(&[512, 1024, 4096]), dice.one_of(&[1, 3, 64]));
    let mut stash = StashSizes::LARGEST;
    stash.percent = dice.one_of(&[0, 1, 2, 10, 50]);
    stash.singles = dice.one_of(&[0, 1, 3, 1024]);
    stash.small = dice.one_of(&[0, 1, 16]);
    let plan = ZonePlan {
        cpus,
        stash,
        page_block_order: Order::new(dice.one_of(&[6, 9])),
        ..linux(frames)
    };
    let zone: Bricks<A> = full(&plan, platform);
    let most = frames * stash.percent / 100;
    let mut owned = Owned::none_of(zone.span());
    let mut held: Vec<(Frame, u8)> = Vec::new();
    for step in 0..4000 {
        // One more CPU than there are slots.
        platform.switch_to(dice.below(cpus + 1));
        platform.set_interrupt(dice.below(16) == 0);
        let order = dice.one_of(&[0, 0, 0, 1, 2, 4, 5, 6, 9]);
        let wanted = request(order, dice.one_of(&Mobility::ALL));
        match dice.below(20) {
            0..8 => {
                if let Ok(at) = zone.alloc(&wanted) {
                    owned.take(at, order);
                    held.push((at, order));
                }
            }
            8 => {
                let mut some = vec![Frame::new(0); dice.one_of(&[5, 40, 200, 300])];
                let taken = zone.alloc_bulk(&wanted, &mut some).unwrap_or(0);
                some.truncate(taken);
                some.iter().for_each(|&at| owned.take(at, 0));
                // Parts of larger blocks among them.
                if let Ok(at) = zone.alloc(&request(2, Mobility::Movable)) {
                    owned.take(at, 2);
                    some.splice(taken / 2..taken / 2, (0..4).map(|i| at.plus(i)));
                }
                if dice.below(2) == 0 {
                    some = dice.shuffled(some.len()).iter().map(|&i| some[i]).collect();
                }
                platform.switch_to(dice.below(cpus));
                some.iter().for_each(|&at| owned.give(at, 0));
                assert_eq!(zone.free_bulk(&some), Ok(()), "seed {seed}, step {step}");
            }
            9 => drop(zone.drain()),
            _ if !held.is_empty() => {
                let (at, order) = held.swap_remove(dice.below(held.len()));
                owned.give(at, order);
                free(&zone, at, order);
            }
            _ => {}
        }
        platform.set_interrupt(false);
        let cached = zone.cached_frames();
        assert!(
            cached <= most,
            "{cached} of {most}, seed {seed}, step {step}"
        );
    }
    let census = sound(&zone);
    assert_eq!(census.allocated, owned.count());
    assert_eq!(census.cached, zone.cached_frames());
    assert_eq!((zone.refused_late(), platform.waits()), (0, 0));
    give_held(&zone, &held);
    platform.switch_to(0);
    assert_eq!(take_all(&zone, Mobility::Movable).len(), frames);
}

#[test]
fn random_work_in_a_small_share_loses_nothing() {
    for seed in 0..24 {
        works_in_a_small_share::<Shared>(seed);
        works_in_a_small_share::<Exclusive>(seed);
    }
}
