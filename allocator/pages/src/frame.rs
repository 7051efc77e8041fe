//! Frames, orders and ranges: the numbers that go in and out of the allocator.
//!
//! A frame is named by its number (physical address / page size). The allocator never turns it into
//! an address and never touches the memory behind it.

use core::fmt;

/// A page frame, named by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Frame(usize);

impl Frame {
    /// The frame with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: usize) -> Self {
        Self(number)
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }

    /// The frame `frames` further up. Saturates at the highest number.
    #[inline]
    #[must_use]
    pub const fn plus(self, frames: usize) -> Self {
        Self(self.0.saturating_add(frames))
    }

    /// May a block of this order start here?
    #[inline]
    #[must_use]
    pub const fn is_aligned(self, order: Order) -> bool {
        self.0 & (order.frames() - 1) == 0
    }

    /// The start of the block of this order that the frame lies in.
    #[inline]
    #[must_use]
    pub const fn align_down(self, order: Order) -> Self {
        Self(self.0 & !(order.frames() - 1))
    }

    /// The start of the block that merges with the one of this order that starts here.
    #[must_use]
    pub const fn buddy(self, order: Order) -> Self {
        Self(self.0 ^ order.frames())
    }
}

/// The most frames that a zone can span: 16 TiB of 4 KiB frames, less two. Every place in it, and
/// one that means "none", fits into 32 bits. A node has room for any number of zones.
pub const FRAMES_MOST: usize = u32::MAX as usize - 1;

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({:#x})", self.0)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The size of a block: 2^order frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Order(u8);

impl Order {
    /// One frame.
    pub const ZERO: Self = Self(0);
    /// A huge page of 2 MiB in frames of 4 KiB, and the usual page block.
    pub const HUGE: Self = Self(9);
    /// The highest order of a zone that asks for nothing else: 4 MiB in frames of 4 KiB, as in
    /// Linux.
    pub const DEFAULT_MAX: Self = Self(10);
    /// The highest order there is: 1 GiB in frames of 4 KiB.
    pub const MAX: Self = Self(18);
    /// How many orders there are.
    pub const COUNT: usize = Self::MAX.0 as usize + 1;

    /// This order, or `None` above [`Order::MAX`].
    #[must_use]
    pub const fn try_new(order: u8) -> Option<Self> {
        if order <= Self::MAX.0 {
            Some(Self(order))
        } else {
            None
        }
    }

    /// This order.
    ///
    /// # Panics
    /// Above [`Order::MAX`]; in a constant, that is an error of the compiler.
    #[inline]
    #[must_use]
    pub const fn new(order: u8) -> Self {
        match Self::try_new(order) {
            Some(order) => order,
            None => panic!("an order is at most 18"),
        }
    }

    /// The smallest order whose blocks hold `frames`, or `None` where none does.
    #[must_use]
    pub const fn holding(frames: usize) -> Option<Self> {
        match frames.checked_next_power_of_two() {
            Some(power) => Self::try_new(power.trailing_zeros() as u8),
            None => None,
        }
    }

    /// The order as a number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The order as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// How many frames a block has.
    #[inline]
    #[must_use]
    pub const fn frames(self) -> usize {
        1 << self.0
    }

    /// The next higher order, or `None` at [`Order::MAX`].
    #[must_use]
    pub const fn up(self) -> Option<Self> {
        Self::try_new(self.0 + 1)
    }

    /// The next lower order, or `None` at order 0.
    #[must_use]
    pub const fn down(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(order) => Some(Self(order)),
            None => None,
        }
    }

    /// Every order from this one up to `last`, in rising order.
    pub fn up_to(self, last: Self) -> impl DoubleEndedIterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Order({})", self.0)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Frames from `start` up to, but not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FrameRange {
    /// The first frame.
    pub start: Frame,
    /// The frame behind the last one.
    pub end: Frame,
}

impl FrameRange {
    /// The frames with the numbers `start..end`; empty where `end` is not above `start`.
    #[inline]
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self {
            start: Frame(start),
            end: Frame(end),
        }
    }

    /// `frames` frames from `start` on.
    #[must_use]
    pub const fn at(start: Frame, frames: usize) -> Self {
        Self {
            start,
            end: start.plus(frames),
        }
    }

    /// The frames of one block.
    #[must_use]
    pub const fn of_block(first: Frame, order: Order) -> Self {
        Self::at(first, order.frames())
    }

    /// How many frames.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.0.saturating_sub(self.start.0)
    }

    /// No frame at all?
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Is this frame among them?
    #[inline]
    #[must_use]
    pub const fn contains(self, frame: Frame) -> bool {
        frame.0 >= self.start.0 && frame.0 < self.end.0
    }

    /// Are all frames of `other` among them?
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        other.is_empty() || (other.start.0 >= self.start.0 && other.end.0 <= self.end.0)
    }

    /// The frames that are in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        let start = if self.start.0 > other.start.0 {
            self.start
        } else {
            other.start
        };
        let end = if self.end.0 < other.end.0 {
            self.end
        } else {
            other.end
        };
        Self { start, end }
    }

    /// Each frame, upwards.
    pub fn frames(self) -> impl DoubleEndedIterator<Item = Frame> {
        (self.start.0..self.end.0.max(self.start.0)).map(Frame)
    }

    /// The range as the fewest aligned blocks of at most `max`, upwards.
    ///
    /// ```
    /// use brickyard::{FrameRange, Order};
    /// let blocks: Vec<_> = FrameRange::new(3, 17).blocks(Order::new(3))
    ///     .map(|(first, order)| (first.number(), order.get()))
    ///     .collect();
    /// assert_eq!(blocks, [(3, 0), (4, 2), (8, 3), (16, 0)]);
    /// ```
    pub fn blocks(self, max: Order) -> impl Iterator<Item = (Frame, Order)> {
        let mut rest = self;
        core::iter::from_fn(move || {
            let left = rest.len();
            if left == 0 {
                return None;
            }
            let fits = left.ilog2();
            let aligned = match rest.start.0 {
                0 => u32::from(max.get()),
                number => number.trailing_zeros(),
            };
            let order = Order(fits.min(aligned).min(u32::from(max.get())) as u8);
            let first = rest.start;
            rest.start = first.plus(order.frames());
            Some((first, order))
        })
    }
}

impl fmt::Debug for FrameRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start.0, self.end.0)
    }
}
