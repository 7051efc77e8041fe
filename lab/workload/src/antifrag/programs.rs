//! The programs of the protocol and when each begins: a build before the load, a walk over the file
//! system, and seven builds.

use super::load::Program;
use super::{BUILDS, COMPILER, ERA, Protocol, WARM_UP};
use crate::machine::Machine;

/// The copies of the tree: all builds but one have their own.
const COPIES: u64 = BUILDS as u64 - 1;

/// Returns the time at which the load begins, after the builds before it.
pub(super) fn warmed_up(protocol: &Protocol<'_>) -> u64 {
    let build = (protocol.compile.duration() as f64 * ERA) as u64;
    protocol.gap + build * u64::from(WARM_UP)
}

/// Returns the time at which the last build begins: when the last copy of the tree is done.
pub(super) fn all_begun(protocol: &Protocol<'_>) -> u64 {
    warmed_up(protocol) + protocol.gap * COPIES
}

/// Returns a build that ends before the load, seven builds and a walk.
///
/// There are seven trees: the one of the build before the load, and six copies of it. As each copy
/// is done a build begins there, and with the last one also a build of the original.
pub(super) fn programs<'s>(protocol: &Protocol<'s>, machine: &Machine) -> Vec<Program<'s>> {
    let tree = protocol.tree / machine.frame_bytes as u64;
    let build = Program {
        script: protocol.compile,
        starts: protocol.gap,
        tree,
        copying: protocol.gap,
        stretch: protocol.stretch,
        anonymous: COMPILER,
        passes: None,
    };
    let warm_up = Program {
        stretch: ERA,
        passes: Some(WARM_UP),
        ..build
    };
    let begins = warmed_up(protocol);
    let builds = (1..=BUILDS as u64).map(|place| Program {
        starts: begins
            + protocol.gap * place.min(COPIES)
            + later(protocol.phase, protocol.gap, place),
        tree: if place <= COPIES { tree } else { 0 },
        ..build
    });
    let walk = Program {
        script: protocol.walk,
        starts: begins,
        tree: 0,
        copying: 0,
        stretch: ERA,
        ..build
    };
    [warm_up, walk].into_iter().chain(builds).collect()
}

/// Returns how much later than at its even time a build begins in this phase: less than the gap.
fn later(phase: u64, gap: u64, place: u64) -> u64 {
    if phase == 0 {
        return 0;
    }
    let drawn = phase
        .wrapping_mul(place)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Less than the gap, so it fits.
    ((u128::from(drawn) * u128::from(gap)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_draws_delays_from_the_whole_gap() {
        assert_eq!(later(0, 16_000_000_000, 3), 0);
        for gap in [16_000_000_000, u64::MAX] {
            let delays: Vec<u64> = (1..=64).map(|place| later(1, gap, place)).collect();
            assert!(delays.iter().all(|&delay| delay < gap), "{delays:?}");
            let late = delays.iter().filter(|&&delay| delay > gap / 4 * 3);
            assert!((8..=24).contains(&late.count()), "{delays:?}");
        }
    }
}
