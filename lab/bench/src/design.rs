//! Our own designs as subjects: through the node, as in a kernel with several zones, or directly at
//! a zone, as in a system with one.

use brickyard::node::Nodes;
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;

use super::subject::{Handle, Subject};

/// Sends every request through `Nodes`: zones in order, watermarks, the slow path.
#[derive(Debug)]
pub(crate) struct ThroughNodes<'n, 'z, Z: LabZone> {
    pub(crate) nodes: &'n Nodes<'z, Z>,
    pub(crate) mobility: Mobility,
}

/// One thread's access to the nodes.
#[derive(Debug)]
pub(crate) struct NodesHandle<'n, 'z, Z: LabZone> {
    nodes: &'n Nodes<'z, Z>,
    request: Request,
}

impl<'z, Z: LabZone> Subject for ThroughNodes<'_, 'z, Z> {
    type Handle<'s>
        = NodesHandle<'s, 'z, Z>
    where
        Self: 's;

    fn handle(&self, order: Order) -> NodesHandle<'_, 'z, Z> {
        NodesHandle {
            nodes: self.nodes,
            request: Request::new(order, self.mobility),
        }
    }
}

impl<Z: LabZone> Handle for NodesHandle<'_, '_, Z> {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        self.nodes.alloc(0, &self.request).ok()
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        let freed = self.nodes.free(block, self.request.order);
        debug_assert_eq!(freed, Ok(()), "the benchmark frees what it has allocated");
    }

    #[inline]
    fn alloc_bulk(&mut self, out: &mut [Frame]) -> usize {
        self.nodes.alloc_bulk(0, &self.request, out).unwrap_or(0)
    }

    #[inline]
    fn free_bulk(&mut self, blocks: &[Frame]) {
        let freed = self.nodes.free_bulk(blocks);
        debug_assert_eq!(freed, Ok(()), "the benchmark frees what it has allocated");
    }

    fn settle(&mut self) {
        self.nodes.drain();
    }
}

/// Sends every request directly to one zone.
#[derive(Debug)]
pub(crate) struct ThroughZone<'z, Z: LabZone> {
    zone: &'z Z,
    mobility: Mobility,
}

impl<'z, Z: LabZone> ThroughZone<'z, Z> {
    /// Returns the zone that serves requests of this mobility first.
    pub(crate) fn of(nodes: &Nodes<'z, Z>, mobility: Mobility) -> Option<Self> {
        let mut zones = nodes.zones();
        let zone = match mobility {
            Mobility::Movable => zones.last(),
            Mobility::Unmovable | Mobility::Reclaimable => zones.next(),
        };
        zone.map(|zone| Self { zone, mobility })
    }
}

/// One thread's access to a zone.
#[derive(Debug)]
pub(crate) struct ZoneHandle<'z, Z: LabZone> {
    zone: &'z Z,
    request: Request,
}

impl<'z, Z: LabZone> Subject for ThroughZone<'z, Z> {
    type Handle<'s>
        = ZoneHandle<'z, Z>
    where
        Self: 's;

    fn handle(&self, order: Order) -> ZoneHandle<'z, Z> {
        ZoneHandle {
            zone: self.zone,
            request: Request::new(order, self.mobility),
        }
    }
}

impl<Z: LabZone> Handle for ZoneHandle<'_, Z> {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        self.zone.alloc(&self.request).ok()
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        let freed = self.zone.free(block, self.request.order);
        debug_assert_eq!(freed, Ok(()), "the benchmark frees what it has allocated");
    }

    #[inline]
    fn alloc_bulk(&mut self, out: &mut [Frame]) -> usize {
        self.zone.alloc_bulk(&self.request, out).unwrap_or(0)
    }

    #[inline]
    fn free_bulk(&mut self, blocks: &[Frame]) {
        let freed = self.zone.free_bulk(blocks);
        debug_assert_eq!(freed, Ok(()), "the benchmark frees what it has allocated");
    }

    fn settle(&mut self) {
        self.zone.drain();
    }
}
