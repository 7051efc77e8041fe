//! How long a zone is left alone after compactions that failed.

use super::*;

use brickyard::pressure::Why;

/// Moves nothing.
struct Stuck;

impl Migrate for Stuck {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        Migration::Later
    }
}

/// Test 25.
#[test]
fn each_failure_in_a_row_doubles_the_tries_that_are_skipped() {
    let zone = full_zone(16);
    for at in (0..8192).step_by(2) {
        release(&zone, at, 0);
    }
    let three = request(3, Mobility::Movable);
    let tries: Vec<Why> = (0..300).map(|_| zone.compact(&three, &Stuck).why).collect();
    let rounds = tries.split(|&why| why == Why::Complete).skip(1);
    let skipped: Vec<usize> = rounds
        .map(|round| {
            assert!(round.iter().all(|&why| why == Why::Deferred), "{round:?}");
            round.len()
        })
        .collect();
    assert_eq!(skipped[..7], [1, 3, 7, 15, 31, 63, 63]);
}
