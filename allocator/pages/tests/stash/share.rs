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

/// The most that the stashes of a zone may hold: 2 percent, and one single frame of each mobility
/// of each CPU where that is more.
fn most(zone: &Own, cpus: usize) -> usize {
    zone.managed_frames() * 2 / 100 + 3 * cpus
}

/// The most while not all CPUs have worked since the last drain: the first may have had a share of
/// all, the second of a half, and so on.
fn most_ever(zone: &Own, cpus: usize) -> usize {
    let shares = (1..=cpus).map(|users| zone.managed_frames() * 2 / 100 / users);
    shares.sum::<usize>() + 3 * cpus
}

#[test]
fn all_stashes_together_hold_at_most_2_percent() {
    // From a machine of 16 MiB to one on which the arrays are as large as they can be.
    for (frames, cpus) in [
        (4096, 2),
        (24 * 1024, 2),
        (32 * 1024, 4),
        (1 << 18, 2),
        (1 << 20, 1),
    ] {
        let (zone, platform) = machine(frames, cpus);
        let mut dice = 7_u64;
        let mut held: Vec<(Frame, u8)> = Vec::new();
        let mut seen = 0;
        for step in 0..60_000_u64 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (dice >> 33) as usize;
            platform.switch_to(pick % cpus);
            let order = [0, 0, 0, 0, 1, 2, 3, 9][pick / 8 % 8];
            let mobility = Mobility::ALL[pick / 64 % 3];
            // Grows and shrinks in waves, so that arrays run empty and full.
            let grows = step / 3000 % 2 == 0;
            if (pick / 256 % 8 < 6) == grows {
                if let Ok(at) = zone.alloc(&request(order, mobility)) {
                    held.push((at, order));
                }
            } else if !held.is_empty() {
                let (at, order) = held.swap_remove(pick % held.len());
                free(&zone, at, order);
            }
            let cached = zone.cached_frames();
            assert!(
                cached <= most_ever(&zone, cpus),
                "{cached} of {frames} on {cpus}, step {step}"
            );
            seen = seen.max(cached);
        }
        assert!(
            seen * 4 > most(&zone, cpus),
            "only {seen} of {frames} on {cpus}"
        );
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
            for at in take(&zone, share * 4, mobility) {
                free(&zone, at, 0);
            }
        }
        // In small batches all are hits by now: nothing leaves the store for them.
        let batch = || {
            let before = zone.free_frames();
            let held = take(&zone, share / 8, mobility);
            let hits = zone.free_frames() == before;
            held.into_iter().for_each(|at| free(&zone, at, 0));
            hits
        };
        let hits = [batch(), batch(), batch(), batch()];
        assert!(hits[3], "{mobility:?}: {hits:?}");
    }
    sound(&zone);
}

/// What a machine has too little memory for goes straight to the store.
#[test]
fn a_page_block_above_the_share_is_not_kept() {
    let (zone, _) = machine(24 * 1024, 2);
    let at = zone.alloc(&request(9, Mobility::Movable)).unwrap();
    free(&zone, at, 9);
    assert_eq!(zone.cached_frames(), 0);
    let (zone, _) = machine(1 << 18, 2);
    let at = zone.alloc(&request(9, Mobility::Movable)).unwrap();
    free(&zone, at, 9);
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
    assert_eq!(cached_most(), MOST);
}

/// Slots of CPUs that are never used take no share, and those that come later get theirs.
#[test]
fn who_uses_a_stash_shares_with_those_who_do() {
    let (zone, platform) = machine(16 * 1024, 64);
    let most = most(&zone, 0);
    let work = |cpu| {
        platform.switch_to(cpu);
        give(&zone, &take(&zone, 3 * most, Mobility::Movable));
    };
    work(0);
    let alone = zone.cached_frames();
    assert!(alone > most / 2, "{alone} of {most}");
    for round in 0..8 {
        for cpu in 0..4 {
            work(cpu);
            let cached = zone.cached_frames();
            // Whoever was alone gives back what others are due when it works again.
            assert!(round == 0 || cached <= most, "{cached} of {most}");
        }
    }
    assert!(hits(&zone, most / 16, Mobility::Movable) > 90);
    // A drain ends the use of a stash.
    zone.drain();
    platform.switch_to(7);
    work(7);
    assert!(zone.cached_frames() > most / 2, "{}", zone.cached_frames());
    sound(&zone);
}

/// CPUs that have used their stashes, and hold nothing now, take no share after a drain.
#[test]
fn a_drain_ends_the_use_of_empty_stashes() {
    let platform = Cpus::new();
    let plan = ZonePlan {
        cpus: 64,
        stash: StashSizes::DEFAULT,
        ..linux(16 * 1024)
    };
    let zone: Lent = full(&plan, platform);
    let most = zone.managed_frames() * 2 / 100;
    for cpu in 1..64 {
        platform.switch_to(cpu);
        let mut held = vec![zone.alloc(&MOVABLE).unwrap()];
        while zone.cached_frames() > 0 {
            held.push(zone.alloc(&MOVABLE).unwrap());
        }
        in_interrupt(platform, || give(&zone, &held));
    }
    platform.switch_to(0);
    zone.drain();
    give(&zone, &take(&zone, 3 * most, Mobility::Movable));
    let cached = zone.cached_frames();
    assert!(cached > most / 2, "{cached} of {most}");
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
                let at = zone.alloc(&request(order, mobility)).unwrap();
                free(&zone, at, order);
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
