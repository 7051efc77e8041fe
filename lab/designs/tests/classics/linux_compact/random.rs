//! Any compaction of any zone loses no frame and no contents.

use super::*;

/// Fills a zone at random: blocks of all orders up to that of a page block, of any mobility.
fn filled(dice: &mut Dice) -> Linux {
    let blocks = 5 + dice.below(28);
    let zone = zone_of(blocks);
    let percent = 20 + dice.below(75);
    let movable = dice.below(101);
    let orders = dice.one_of(&[1, 1, 3, 7]);
    let mut at = 0;
    while at < blocks * BLOCK {
        let order = dice.below(orders) as u8;
        let aligned = at % (1 << order) == 0;
        let order = if aligned { order } else { 0 };
        if dice.below(100) < percent {
            let mobility = match dice.below(100) {
                chance if chance < movable => Mobility::Movable,
                _ => dice.one_of(&[Mobility::Unmovable, Mobility::Reclaimable]),
            };
            put_block(&zone, at, order, mobility);
        }
        at += 1 << order;
    }
    for block in 0..blocks {
        let kinds = [
            Mobility::Movable,
            Mobility::Unmovable,
            Mobility::Reclaimable,
        ];
        if dice.below(4) == 0 {
            zone.dedicate(frame(block * BLOCK), dice.one_of(&kinds));
        }
    }
    if dice.below(4) == 0 {
        let min = dice.below(zone.free_frames() + 1) / 4;
        let marks = Marks {
            min,
            low: min + min / 4,
            high: min + min / 2,
        };
        zone.watermarks().set(marks, [0; ZoneKind::COUNT]);
    }
    sound(&zone);
    zone
}

/// Makes the owner, with some pages that do not move.
fn owner_of<'z>(zone: &'z Linux, dice: &mut Dice) -> Owner<'z> {
    let mut owner = Owner::of(zone);
    let stuck = dice.one_of(&[0, 0, 5, 50]);
    let pages: Vec<Frame> = owner.pages.borrow().keys().copied().collect();
    let answers = [
        Migration::Later,
        Migration::Never,
        Migration::Unknown,
        Migration::NotNeeded,
    ];
    for at in pages {
        if dice.below(100) < stuck {
            match dice.below(5) {
                4 => drop(owner.pinned.insert(at)),
                answer => drop(owner.answers.insert(at, answers[answer])),
            }
        }
    }
    owner
}

#[test]
fn any_compaction_keeps_every_frame_and_all_contents() {
    let seeds = std::env::var("PROPTEST_CASES").map_or(400, |cases| cases.parse().unwrap());
    for seed in 0..seeds {
        let mut dice = Dice::new(seed);
        let zone = filled(&mut dice);
        let owner = owner_of(&zone, &mut dice);
        let mut others = Vec::new();
        let frames = |zone: &Linux| {
            let census = sound(zone);
            (census.free + census.allocated + census.cached, census.free)
        };
        for _ in 0..6 {
            let (all, free) = frames(&zone);
            let order = 1 + dice.below(7) as u8;
            let mobility = dice.one_of(&[Mobility::Movable, Mobility::Unmovable]);
            let priority = dice.one_of(&[Priority::Async, Priority::SyncLight, Priority::SyncFull]);
            owner.calls.borrow_mut().clear();
            let compacted = match dice.below(5) {
                0 => {
                    behind(&owner, order);
                    None
                }
                _ => Some(compact(&owner, order, mobility, priority)),
            };
            let caught = compacted.and_then(|compacted| compacted.caught);
            if let Some(caught) = caught
                && mobility == Mobility::Movable
            {
                others.push(caught);
            }
            owner.has_all(&others);
            let (all_now, free_now) = frames(&zone);
            assert_eq!(all, all_now, "seed {seed}");
            // What became free were pages that nobody needs; what is in use now, was caught.
            let taken = caught.map_or(0, |_| 1 << order);
            let unneeded = owner.unneeded.take();
            assert_eq!(free_now + taken, free + unneeded, "seed {seed}");
            if let Some(compacted) = compacted {
                moved_forward(&owner, &compacted);
            }
        }
    }
}

/// Checks that no page was moved in circles.
fn moved_forward(owner: &Owner<'_>, compacted: &Compacted) {
    let moves = owner.moves();
    // Linearly at most twice, and once since a free block was found there.
    let mut times = BTreeMap::new();
    moves
        .iter()
        .for_each(|one| *times.entry(one.0).or_insert(0) += 1);
    assert!(times.values().all(|&times| times <= 3), "{times:?}");
    if compacted.why == Why::Deferred {
        assert!(moves.is_empty());
    }
}
