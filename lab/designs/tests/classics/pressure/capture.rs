//! Capture: blocks freed meanwhile go to the request that compacts.

use super::*;

/// Does the work of another CPU while a request compacts, at the first call of the hook only.
struct Meanwhile<'z, Z: AnyZone, F> {
    zone: &'z Z,
    work: F,
    calls: Cell<usize>,
}

impl<'z, Z: AnyZone, F> Meanwhile<'z, Z, F> {
    const fn new(zone: &'z Z, work: F) -> Self {
        Self {
            zone,
            work,
            calls: Cell::new(0),
        }
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>, F: Fn(&Z)> Migrate for Meanwhile<'_, Z, F> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        if self.calls.replace(self.calls.get() + 1) == 0 {
            let platform = self.zone.platform();
            let here = platform.cpu();
            platform.switch_to(here + 1);
            (self.work)(self.zone);
            platform.switch_to(here);
        }
        Migration::Later
    }
}

impl<Z: AnyZone<Platform = &'static Cpus>, F: Fn(&Z)> Reclaim for Meanwhile<'_, Z, F> {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }
}

/// Makes a zone of 256 frames, every second frame of it free but for an unmovable block of 16 at
/// 128, which another CPU owns.
fn with_a_foreign_block<G, F>() -> Parts<G, F>
where
    G: Grouping + Placed<'static>,
    F: Front<G, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone = full(&small(256), Cpus::new());
    let foreign = request(4, Mobility::Unmovable);
    assert_eq!(zone.alloc_at(frame(128), &foreign), Ok(()));
    for at in take_all(&zone, Mobility::Movable) {
        if at.number() % 2 == 1 {
            free(&zone, at, 0);
        }
    }
    zone.drain();
    zone
}

/// Makes a request while another CPU does `work`. Returns the frame, and how often the hook was
/// called.
fn request_while<Z, F>(zones: &[Z; 1], request: &Request, work: F) -> (Option<Frame>, usize)
where
    Z: AnyZone<Platform = &'static Cpus>,
    F: Fn(&Z),
{
    let hooks = Meanwhile::new(&zones[0], work);
    let node = [Node::new(0, zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let answer = nodes.alloc(0, request).ok();
    sound(&zones[0]);
    (answer, hooks.calls.get())
}

#[test]
fn a_block_freed_by_another_cpu_meanwhile_goes_to_the_request_that_compacts() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable);
    let (answer, calls) = request_while(&zones, &asked, |zone| {
        free(zone, frame(128), 4);
        // It is taken already: that CPU cannot get it again.
        assert_eq!(usage(zone, frame(128)), Use::Allocated);
        assert!(zone.alloc(&request(4, Mobility::Unmovable)).is_err());
    });
    assert_eq!(answer, Some(frame(128)));
    // And the compaction ends.
    assert_eq!(calls, 1);
    let block = state(&zones[0], frame(128));
    assert_eq!(
        (block.order, block.kind),
        (Order::new(4), Mobility::Movable.into())
    );
}

#[test]
fn a_block_completed_by_a_page_from_a_cache_is_captured() {
    let zones: [Parts<NoGrouping, Lists<Exclusive>>; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable);
    let (answer, calls) = request_while(&zones, &asked, |zone| {
        // Frame by frame into that CPU's list, and from there back to the store.
        free(zone, frame(128), 3);
        for at in range(136, 144).frames() {
            free(zone, at, 0);
        }
        zone.drain();
    });
    assert_eq!((answer, calls), (Some(frame(128)), 1));
}

#[test]
fn a_smaller_block_is_not_captured_and_of_a_larger_one_only_the_requested_part() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(5, Mobility::Movable);
    let (answer, calls) = request_while(&zones, &asked, |zone| free(zone, frame(128), 4));
    assert_eq!(answer, None);
    assert!(calls > 1);
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(3, Mobility::Movable);
    let (answer, _) = request_while(&zones, &asked, |zone| free(zone, frame(128), 4));
    assert_eq!(answer, Some(frame(128)));
    assert_eq!(usage(&zones[0], frame(136)), Use::Free);
}

#[test]
fn a_captured_block_above_the_limit_is_given_back() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable).below(frame(100));
    let (answer, _) = request_while(&zones, &asked, |zone| free(zone, frame(128), 4));
    assert_eq!(answer, None);
    assert_eq!(usage(&zones[0], frame(128)), Use::Free);
}

/// Makes a grouped zone of 512 frames in use, but for every second page below 384. The page block
/// of 64 at 448 belongs to another CPU, has the type of `owned`, and was handed out as a whole.
fn grouped_with_a_foreign_block(owned: &Request) -> [Parts<Blocks, Direct>; 1] {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    let whole = Request {
        order: Order::new(7),
        ..MOVABLE
    };
    assert_eq!(zone.alloc_at(frame(0), &whole), Ok(()));
    assert_eq!(zone.alloc_at(frame(128), &whole), Ok(()));
    assert_eq!(zone.alloc_at(frame(256), &whole), Ok(()));
    // Only 384..512 is free: the request claims it, or has it already.
    let first = zone.alloc(&Request {
        order: Order::new(6),
        ..*owned
    });
    let second = zone.alloc(&Request {
        order: Order::new(6),
        ..*owned
    });
    let mut two = [first.expect("free"), second.expect("free")];
    two.sort();
    assert_eq!(two, [frame(384), frame(448)]);
    for at in (0..384).step_by(2) {
        free(&zone, frame(at), 0);
    }
    [zone]
}

#[test]
fn part_of_a_block_of_another_type_is_not_captured() {
    let zones = grouped_with_a_foreign_block(&UNMOVABLE);
    let asked = request(4, Mobility::Movable);
    let mut types = zones[0].snapshot(0).blocks;
    assert_eq!(types, [2, 6, 0, 0, 0]);
    let (answer, calls) = request_while(&zones, &asked, |zone| {
        free(zone, frame(448), 4);
        assert_eq!(usage(zone, frame(448)), Use::Free);
        // Either way no other request may take it, so that this one is not served from it by a
        // fallback.
        assert_eq!(
            zone.alloc_at(frame(448), &request(4, Mobility::Unmovable)),
            Ok(())
        );
    });
    assert!(answer.is_none_or(|at| at != frame(448)));
    assert!(calls > 1);
    types = zones[0].snapshot(0).blocks;
    assert_eq!(types, [2, 6, 0, 0, 0]);
}

#[test]
fn part_of_a_block_of_the_same_type_is_captured() {
    let zones = grouped_with_a_foreign_block(&MOVABLE);
    let asked = request(4, Mobility::Movable);
    let (answer, calls) = request_while(&zones, &asked, |zone| free(zone, frame(448), 4));
    assert_eq!((answer, calls), (Some(frame(448)), 1));
}

#[test]
fn a_whole_block_of_another_type_is_captured_and_claimed() {
    let zones = grouped_with_a_foreign_block(&UNMOVABLE);
    let asked = request(6, Mobility::Movable);
    let (answer, calls) = request_while(&zones, &asked, |zone| free(zone, frame(448), 6));
    assert_eq!((answer, calls), (Some(frame(448)), 1));
    assert_eq!(zones[0].snapshot(0).blocks, [1, 7, 0, 0, 0]);
}

#[test]
fn nothing_is_captured_after_the_compaction() {
    let zones: [Plain; 1] = [with_a_foreign_block()];
    let asked = request(4, Mobility::Movable);
    assert_eq!(request_while(&zones, &asked, |_| ()).0, None);
    free(&zones[0], frame(128), 4);
    assert_eq!(usage(&zones[0], frame(128)), Use::Free);
    assert_eq!(zones[0].alloc(&asked), Ok(frame(128)));
}

#[test]
fn compaction_for_a_request_with_a_limit_clears_below_the_limit() {
    // All frames below 128 are in use, all above are free: moving the pages up makes room for a
    // block of 64 below 128.
    let zones = [plain(512)];
    for at in 0..128 {
        assert_eq!(zones[0].alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::of(&zones[0]);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &owner, SlowPath::MODERN);
    let below = request(6, Mobility::Unmovable).below(frame(128));
    let block = nodes.alloc(0, &below);
    assert!(block.is_ok(), "{block:?} after {} moves", owner.asked());
    owner.owns_what_is_in_use();
}
