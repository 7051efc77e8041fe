//! The test of a zone against a mark: could it serve a request of some order and stay above?

use brickyard::{AnyZone, Mobility, Order, Request};

use super::super::Of2007;

/// Returns true if `zone` could serve a request of this order with more than `min` frames, and what
/// is reserved against it, left.
///
/// There must be a block of that order. Linux's test until 4.3 also asks
/// ([`Of2007::tests_each_order`]): of the frames left, those in blocks of order k and above must be
/// more than a 2^k-th of `min`, for every k up to the order; the frames of the block but one count
/// as gone. So with a large `min` the last block of an order is kept.
pub(in crate::kernel) fn serves_above<Z: AnyZone>(
    rules: &Of2007,
    zone: &Z,
    order: Order,
    min: usize,
    reserve: usize,
) -> bool {
    let gone = order.frames() - 1;
    let Some(mut left) = zone.free_frames().checked_sub(gone) else {
        return false;
    };
    if left <= min + reserve {
        return false;
    }
    if order == Order::ZERO {
        return true;
    }
    let request = Request::new(order, Mobility::Movable).from_zones_up_to(zone.kind());
    if !zone.may_serve(&request) {
        return false;
    }
    if !rules.tests_each_order {
        return true;
    }
    let counts = zone.free_counts().by_order;
    for below in 0..order.get() {
        let unusable = counts[usize::from(below)] << below;
        left = match left.checked_sub(unusable) {
            Some(left) => left,
            None => return false,
        };
        if left <= min >> (below + 1) {
            return false;
        }
    }
    true
}
