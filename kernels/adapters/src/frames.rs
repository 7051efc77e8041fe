//! Where adapters take frames from: a zone by itself, or a node and what stands behind it.

use brickyard::node::Nodes;
use brickyard::pressure::{Migrate, Reclaim};
use brickyard::sync::SlotAccess;
use brickyard::{
    AllocError, AnyZone, Frame, FrameRange, FreeError, Order, Platform, Request, Zone,
};

/// What hands out frames. The methods are those of [`Zone`], without a choice of node.
pub trait Frames: Sync {
    /// Takes a block.
    ///
    /// # Errors
    /// The errors of [`Zone::alloc`].
    fn alloc(&self, request: &Request) -> Result<Frame, AllocError>;

    /// Takes a block back, or an aligned part of one.
    ///
    /// # Errors
    /// The errors of [`Zone::free`].
    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError>;

    /// Takes any number of adjacent frames.
    ///
    /// # Errors
    /// The errors of [`Zone::alloc_range`].
    fn alloc_range(&self, request: &Request, frames: usize) -> Result<FrameRange, AllocError>;

    /// Takes adjacent frames back, all that were taken or a part.
    ///
    /// # Errors
    /// The errors of [`Zone::free_range`].
    fn free_range(&self, range: FrameRange) -> Result<(), FreeError>;
}

impl<P: Platform, A: SlotAccess> Frames for Zone<'_, P, A> {
    fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        Zone::alloc(self, request)
    }

    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        Zone::free(self, frame, order)
    }

    fn alloc_range(&self, request: &Request, frames: usize) -> Result<FrameRange, AllocError> {
        Zone::alloc_range(self, request, frames)
    }

    fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        Zone::free_range(self, range)
    }
}

/// All nodes, asked from one of them on.
///
/// ```
/// # use core::mem::MaybeUninit;
/// use brickyard::node::{Node, Nodes};
/// use brickyard::{FrameRange, Mobility, OneCpu, Request, Zone, ZoneKind, ZonePlan};
/// use brickyard_adapters::{Frames, OnNode};
///
/// # const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 1);
/// # let mut memory = [MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
/// # let zones = [Zone::<OneCpu>::new(&PLAN, OneCpu, &mut memory)?];
/// # zones[0].add(PLAN.span)?;
/// let node = [Node::new(0, &zones)];
/// let nodes = Nodes::new(&node);
/// let frames = OnNode::new(&nodes, 0);
/// let three = frames.alloc_range(&Request::page(Mobility::Unmovable), 3)?;
/// frames.free_range(three)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OnNode<'n, 'z, Z, H> {
    nodes: &'n Nodes<'z, Z, H>,
    from: usize,
}

impl<'n, 'z, Z, H> OnNode<'n, 'z, Z, H> {
    /// Returns these nodes, asked from the node at this place of [`Nodes::nodes`] on.
    #[must_use]
    pub const fn new(nodes: &'n Nodes<'z, Z, H>, from: usize) -> Self {
        Self { nodes, from }
    }
}

impl<Z: AnyZone, H: Reclaim + Migrate + Sync> Frames for OnNode<'_, '_, Z, H> {
    fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        self.nodes.alloc(self.from, request)
    }

    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.nodes.free(frame, order)
    }

    fn alloc_range(&self, request: &Request, frames: usize) -> Result<FrameRange, AllocError> {
        self.nodes.alloc_range(self.from, request, frames)
    }

    fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.nodes.free_range(range)
    }
}

impl<F: Frames> Frames for &F {
    fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        (**self).alloc(request)
    }

    fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        (**self).free(frame, order)
    }

    fn alloc_range(&self, request: &Request, frames: usize) -> Result<FrameRange, AllocError> {
        (**self).alloc_range(request, frames)
    }

    fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        (**self).free_range(range)
    }
}
