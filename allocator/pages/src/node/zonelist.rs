//! The order in which the zones of all nodes are tried for a request.
//!
//! One plain loop, since every step of the slow path goes through it: chained adapters of iterators
//! would be compiled for each step anew.

use core::fmt;
use core::mem;

use super::Node;
use crate::zones::AnyZone;
use crate::{Mobility, Request, ZoneKind};

/// The zones that may serve a request, best first: see
/// [`Nodes::zonelist`](super::Nodes::zonelist).
pub struct Zonelist<'z, Z> {
    // What is left of the node that is being looked at, and the nodes to look at next, then last.
    zones: &'z [Z],
    next: &'z [Node<'z, Z>],
    last: &'z [Node<'z, Z>],
    request: Request,
}

impl<'z, Z: AnyZone> Zonelist<'z, Z> {
    /// Returns the zones of these nodes for `request`, from the node with the index `from` on.
    pub(super) fn new(nodes: &'z [Node<'z, Z>], from: usize, request: &Request) -> Self {
        let (last, next) = nodes.split_at(from.min(nodes.len()));
        Self {
            zones: &[],
            next,
            last,
            request: *request,
        }
    }
}

impl<'z, Z: AnyZone> Iterator for Zonelist<'z, Z> {
    type Item = &'z Z;

    fn next(&mut self) -> Option<&'z Z> {
        loop {
            while let Some((zone, lower)) = self.zones.split_last() {
                self.zones = lower;
                if may_serve(zone, &self.request) {
                    return Some(zone);
                }
            }
            if self.next.is_empty() {
                self.next = mem::take(&mut self.last);
            }
            let (node, others) = self.next.split_first()?;
            (self.zones, self.next) = (node.zones, others);
        }
    }
}

impl<Z> fmt::Debug for Zonelist<'_, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zonelist")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

#[inline]
pub(super) fn may_serve<Z: AnyZone>(zone: &Z, request: &Request) -> bool {
    is_for(zone, request) && request.limit.is_none_or(|limit| zone.span().start < limit)
}

/// Returns true if the zone's kind may serve `request`.
#[inline]
pub(super) fn is_for<Z: AnyZone>(zone: &Z, request: &Request) -> bool {
    let kind = zone.kind();
    let movable = kind != ZoneKind::Movable || request.mobility == Mobility::Movable;
    kind <= request.highest && movable
}
