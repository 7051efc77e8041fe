//! Our own designs as subjects: through the node, as a kernel with several zones asks, or straight at a zone, as an embedder with one does.

use brickyard::design::Design;
use brickyard::node::Nodes;
use brickyard::zone::Zone;
use brickyard::{Frame, Mobility, Order, Request};

use super::subject::{Handle, Subject};

/// Every request through `Nodes`: zones in order, watermarks, the slow path.
#[derive(Debug)]
pub(crate) struct ThroughNodes<'n, 'z, D: Design> {
    pub(crate) nodes: &'n Nodes<'z, D>,
    pub(crate) mobility: Mobility,
}

/// One thread's way through the nodes.
#[derive(Debug)]
pub(crate) struct NodesHandle<'n, 'z, D: Design> {
    nodes: &'n Nodes<'z, D>,
    request: Request,
}

impl<'z, D: Design> Subject for ThroughNodes<'_, 'z, D> {
    type Handle<'s>
        = NodesHandle<'s, 'z, D>
    where
        Self: 's;

    fn handle(&self, order: Order) -> NodesHandle<'_, 'z, D> {
        NodesHandle {
            nodes: self.nodes,
            request: Request::new(order, self.mobility),
        }
    }
}

impl<D: Design> Handle for NodesHandle<'_, '_, D> {
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

/// Every request straight at one zone.
#[derive(Debug)]
pub(crate) struct ThroughZone<'z, D: Design> {
    zone: &'z Zone<D>,
    mobility: Mobility,
}

impl<'z, D: Design> ThroughZone<'z, D> {
    /// The zone that requests of this mobility would be given first.
    pub(crate) fn of(nodes: &Nodes<'z, D>, mobility: Mobility) -> Option<Self> {
        let mut zones = nodes.zones();
        let zone = match mobility {
            Mobility::Movable => zones.last(),
            Mobility::Unmovable | Mobility::Reclaimable => zones.next(),
        };
        zone.map(|zone| Self { zone, mobility })
    }
}

/// One thread's way to a zone.
#[derive(Debug)]
pub(crate) struct ZoneHandle<'z, D: Design> {
    zone: &'z Zone<D>,
    request: Request,
}

impl<'z, D: Design> Subject for ThroughZone<'z, D> {
    type Handle<'s>
        = ZoneHandle<'z, D>
    where
        Self: 's;

    fn handle(&self, order: Order) -> ZoneHandle<'z, D> {
        ZoneHandle {
            zone: self.zone,
            request: Request::new(order, self.mobility),
        }
    }
}

impl<D: Design> Handle for ZoneHandle<'_, D> {
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
