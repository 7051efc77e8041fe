//! A request: how much memory, how mobile, from where, and what the caller may do meanwhile.

use crate::{Frame, Mobility, Order};

/// What the caller may do while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Context {
    /// May wait for reclaim and compaction.
    #[default]
    MaySleep,
    /// May not wait, for example because it holds a spin lock. Such a request may use five eighths
    /// of the reserve below the min watermark.
    Atomic,
    /// Runs in an interrupt. As [`Context::Atomic`], and also never waits for a lock that its own
    /// CPU may hold.
    Interrupt,
}

/// A kind of zone, from the one that serves the most kinds of request to the one that serves the
/// fewest. A request that may use one kind may use all kinds before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ZoneKind {
    /// Below 16 MiB on x86.
    Dma = 0,
    /// Below 4 GiB.
    Dma32 = 1,
    /// All memory that the kernel maps.
    Normal = 2,
    /// Memory that the kernel does not map permanently (32-bit machines).
    HighMem = 3,
    /// Only for pages that can be moved (Gorman 2007, zone-based).
    Movable = 4,
}

impl ZoneKind {
    /// All kinds, lowest first.
    pub const ALL: [Self; 5] = [
        Self::Dma,
        Self::Dma32,
        Self::Normal,
        Self::HighMem,
        Self::Movable,
    ];
    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the kind's name in buddyinfo.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dma => "DMA",
            Self::Dma32 => "DMA32",
            Self::Normal => "Normal",
            Self::HighMem => "HighMem",
            Self::Movable => "Movable",
        }
    }

    /// Returns the kind as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A request for one block.
///
/// ```
/// use brickyard::{Frame, Mobility, Order, Request, ZoneKind};
/// let huge = Request::new(Order::HUGE, Mobility::Movable);
/// assert_eq!(huge.highest, ZoneKind::Movable);
/// let dma = Request::new(Order::ZERO, Mobility::Unmovable).atomic().below(Frame::new(4096));
/// assert_eq!(dma.limit, Some(Frame::new(4096)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The size: 2^order frames.
    pub order: Order,
    /// What may be done with the pages while they are in use.
    pub mobility: Mobility,
    /// The highest kind of zone that may serve the request.
    pub highest: ZoneKind,
    /// If set, every frame of the block lies below this one.
    pub limit: Option<Frame>,
    /// What the caller may do while it waits.
    pub context: Context,
}

impl Request {
    /// Returns a request that may sleep and may use any zone that its mobility allows. Movable
    /// pages may come from all zones, others from those up to [`ZoneKind::Normal`].
    #[must_use]
    pub const fn new(order: Order, mobility: Mobility) -> Self {
        Self {
            order,
            mobility,
            highest: match mobility {
                Mobility::Movable => ZoneKind::Movable,
                Mobility::Unmovable | Mobility::Reclaimable => ZoneKind::Normal,
            },
            limit: None,
            context: Context::MaySleep,
        }
    }

    /// Returns a request for one frame of this mobility.
    #[must_use]
    pub const fn page(mobility: Mobility) -> Self {
        Self::new(Order::ZERO, mobility)
    }

    /// Requires every frame to lie below `limit`.
    #[must_use]
    pub const fn below(mut self, limit: Frame) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Allows `highest` and the kinds of zone before it. Only movable requests reach
    /// [`ZoneKind::Movable`]; others stop at [`ZoneKind::HighMem`].
    #[must_use]
    pub const fn from_zones_up_to(mut self, highest: ZoneKind) -> Self {
        self.highest = match (highest, self.mobility) {
            (ZoneKind::Movable, Mobility::Unmovable | Mobility::Reclaimable) => ZoneKind::HighMem,
            (highest, _) => highest,
        };
        self
    }

    /// Sets the context of the caller.
    #[must_use]
    pub const fn in_context(mut self, context: Context) -> Self {
        self.context = context;
        self
    }

    /// Declares that the caller may not sleep.
    #[must_use]
    pub const fn atomic(self) -> Self {
        self.in_context(Context::Atomic)
    }

    /// Returns the same request for one frame.
    #[must_use]
    pub const fn single(mut self) -> Self {
        self.order = Order::ZERO;
        self
    }

    /// Returns true for a request of the kind that high-atomic blocks are kept for.
    #[must_use]
    pub const fn is_high_atomic(&self) -> bool {
        self.order.get() > 0 && !matches!(self.context, Context::MaySleep)
    }
}
