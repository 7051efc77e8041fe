//! Every call of an allocator, read from bytes.

use brickyard::{Context, Frame, FrameRange, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::{GfpFlags, Retry};

/// Bytes that encode operations. After their end it reads zeros.
#[derive(Debug, Clone)]
pub struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    /// Makes a reader of these bytes.
    #[must_use]
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Returns true if all bytes are read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    pub(crate) fn word(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.word() % n.max(1)
    }
}

/// One call of the allocator, or event of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Runs on another CPU from now on.
    SwitchTo(usize),
    /// An interrupt begins, or ends.
    Interrupt(bool),
    /// A request.
    Alloc(Request),
    /// A request for a number of single frames.
    AllocBulk(Request, usize),
    /// A request for the block at a frame.
    AllocAt(Frame, Request),
    /// Frees a part of a block in use.
    Free {
        /// Index of the block in use.
        block: usize,
        /// How many orders smaller than the block the part is.
        smaller: u8,
        /// Index of the part.
        part: usize,
    },
    /// Frees a block at a frame, in use or not.
    FreeAnything(Frame, Order),
    /// Frees single frames in use, from the n-th on and at most as many as given, and then perhaps
    /// a frame that may not be in use.
    FreeBulk(usize, usize, Option<Frame>),
    /// Frees a range.
    FreeRange(FrameRange),
    /// Requests adjacent frames: number, and alignment and boundary as powers of two.
    AllocContiguous(usize, u8, u8, Mobility),
    /// A request by the design's own way through zones and the slow path.
    AllocFrom(Request, GfpFlags),
    /// Drains every cache.
    Drain,
    /// A second passes on this CPU.
    Tick,
    /// Background reclaim begins, or ends.
    Reclaiming(bool),
    /// Adds a range.
    Add(FrameRange),
    /// Removes a range.
    Remove(FrameRange),
    /// Reserves a range.
    Reserve(FrameRange),
    /// Ends the reservation of a range.
    Unreserve(FrameRange),
    /// Compacts every zone.
    Compact,
    /// Moves everything out of a range and removes it.
    Offline(FrameRange),
}

/// The CPUs that the operations run on.
pub(crate) const CPUS: usize = 5;

impl Operation {
    /// Reads one operation, for an allocator with this span and highest order.
    pub fn read(bytes: &mut Bytes<'_>, span: FrameRange, max: Order) -> Self {
        match bytes.byte() % 64 {
            0..=3 => Self::SwitchTo(bytes.below(CPUS)),
            4 => Self::Interrupt(true),
            5 | 6 => Self::Interrupt(false),
            7..=20 => Self::Alloc(Self::request(bytes, span, Order::ZERO)),
            21..=28 => Self::Alloc(Self::request(bytes, span, max)),
            29 => {
                let above = Order::new((max.get() + 1).min(Order::MAX.get()));
                Self::Alloc(Self::request(bytes, span, above))
            }
            30 | 31 => Self::AllocBulk(Self::request(bytes, span, Order::ZERO), bytes.below(200)),
            32 | 33 => Self::AllocAt(Self::frame(bytes, span), Self::request(bytes, span, max)),
            34..=47 => Self::Free {
                block: bytes.word(),
                smaller: bytes.byte() % 4 * (bytes.byte() % 2),
                part: bytes.word(),
            },
            48 | 49 => Self::FreeAnything(Self::frame(bytes, span), Self::order(bytes, max)),
            50..=52 => Self::FreeBulk(bytes.word(), bytes.below(200), {
                let frame = Self::frame(bytes, span);
                bytes.byte().is_multiple_of(4).then_some(frame)
            }),
            53 => Self::FreeRange(Self::range(bytes, span)),
            54 | 55 => {
                let frames = 1 + bytes.below(1 << max.get() << 1);
                let mobility = Mobility::ALL[bytes.below(3)];
                Self::AllocContiguous(frames, bytes.byte() % 8, bytes.byte() % 16, mobility)
            }
            56 => match bytes.byte() % 8 {
                0 | 1 => Self::Drain,
                2 => Self::Tick,
                3 => Self::Reclaiming(true),
                4 => Self::Reclaiming(false),
                _ => {
                    let request = Self::request(bytes, span, max);
                    Self::AllocFrom(request, Self::flags(bytes, &request))
                }
            },
            57 | 58 => Self::Add(Self::range(bytes, span)),
            59 => Self::Remove(Self::range(bytes, span)),
            60 => Self::Reserve(Self::range(bytes, span)),
            61 => Self::Unreserve(Self::range(bytes, span)),
            62 => Self::Compact,
            _ => Self::Offline(Self::range(bytes, span)),
        }
    }

    fn order(bytes: &mut Bytes<'_>, max: Order) -> Order {
        Order::new(bytes.byte() % (max.get() + 1))
    }

    fn request(bytes: &mut Bytes<'_>, span: FrameRange, max: Order) -> Request {
        let order = Self::order(bytes, max);
        let mobility = Mobility::ALL[bytes.below(3)];
        let context = match bytes.byte() % 8 {
            0 => Context::Atomic,
            1 => Context::Interrupt,
            _ => Context::MaySleep,
        };
        let mut request = Request::new(order, mobility).in_context(context);
        match bytes.byte() % 16 {
            0 => request = request.below(Self::frame(bytes, span)),
            1 => request = request.from_zones_up_to(ZoneKind::Normal),
            _ => {}
        }
        request
    }

    /// Reads flags that the request's context allows.
    fn flags(bytes: &mut Bytes<'_>, request: &Request) -> GfpFlags {
        let byte = bytes.byte();
        let retries = [
            Retry::Usual,
            Retry::Never,
            Retry::UntilUseless,
            Retry::Always,
        ];
        GfpFlags {
            high: byte & 1 != 0,
            wakes: byte & 2 != 0,
            reclaims: byte & 4 != 0 && request.context == Context::MaySleep,
            retry: retries[usize::from(byte >> 3) % 4],
        }
    }

    /// Reads a frame of the span, or one just outside.
    fn frame(bytes: &mut Bytes<'_>, span: FrameRange) -> Frame {
        let first = span.start.number().saturating_sub(2);
        Frame::new(first + bytes.below(span.len() + 4))
    }

    /// Reads a range that begins at such a frame, mostly a short one; it may reach beyond the span.
    fn range(bytes: &mut Bytes<'_>, span: FrameRange) -> FrameRange {
        let start = Self::frame(bytes, span);
        let longest = if bytes.byte().is_multiple_of(4) {
            span.len()
        } else {
            40
        };
        FrameRange::at(start, bytes.below(longest))
    }
}
