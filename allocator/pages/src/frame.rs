//! Frames, orders and ranges: the numbers that go in and out of the allocator.
//!
//! A frame is named by its number (physical address / page size). The allocator never turns the
//! number into an address, and never touches the memory behind it.

use core::fmt;

/// A page frame, named by its number.
///
/// It is laid out as a `usize`, and stays so. A frame can cross a C interface as one, and memory
/// that holds numbers of frames can be filled as memory of frames:
///
/// ```
/// #![deny(improper_ctypes_definitions)]
/// use brickyard::Frame;
///
/// /// What `uintptr_t *numbers` is in C.
/// ///
/// /// # Safety
/// /// `numbers` points to `count` numbers.
/// unsafe extern "C" fn highest(numbers: *const Frame, count: usize) -> Frame {
///     // SAFETY: the caller's promise; every `usize` is a frame.
///     let frames = unsafe { core::slice::from_raw_parts(numbers, count) };
///     frames.iter().copied().max().unwrap_or_default()
/// }
///
/// let numbers = [7_usize, 9, 8];
/// // SAFETY: these are as many numbers.
/// let highest = unsafe { highest(numbers.as_ptr().cast(), numbers.len()) };
/// assert_eq!(highest, Frame::new(9));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Frame(usize);

/// Whoever casts pointers relies on it.
const _: () =
    assert!(size_of::<Frame>() == size_of::<usize>() && align_of::<Frame>() == align_of::<usize>());

impl Frame {
    /// Returns the frame with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: usize) -> Self {
        Self(number)
    }

    /// Returns the frame's number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }

    /// Returns the frame `frames` further up. Saturates at the highest number.
    #[inline]
    #[must_use]
    pub const fn plus(self, frames: usize) -> Self {
        Self(self.0.saturating_add(frames))
    }

    /// Returns true if a block of this order may start here.
    #[inline]
    #[must_use]
    pub const fn is_aligned(self, order: Order) -> bool {
        self.0 & (order.frames() - 1) == 0
    }

    /// Returns the start of the block of this order that contains the frame.
    #[inline]
    #[must_use]
    pub const fn align_down(self, order: Order) -> Self {
        Self(self.0 & !(order.frames() - 1))
    }

    /// Returns the start of the buddy: the block that merges with the one of this order that starts
    /// here.
    #[must_use]
    pub const fn buddy(self, order: Order) -> Self {
        Self(self.0 ^ order.frames())
    }
}

/// The most frames that a zone can span: 16 TiB of 4 KiB frames, less two frames. Every position in
/// the zone, and one value that means "none", fits into 32 bits. A node may have any number of
/// zones.
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
    /// The highest order of a zone unless its plan says otherwise: 4 MiB in frames of 4 KiB, as in
    /// Linux.
    pub const DEFAULT_MAX: Self = Self(10);
    /// The highest order supported: 1 GiB in frames of 4 KiB.
    pub const MAX: Self = Self(18);
    /// The number of orders.
    pub const COUNT: usize = Self::MAX.0 as usize + 1;

    /// Returns this order, or `None` above [`Order::MAX`].
    #[must_use]
    pub const fn try_new(order: u8) -> Option<Self> {
        if order <= Self::MAX.0 {
            Some(Self(order))
        } else {
            None
        }
    }

    /// Returns this order.
    ///
    /// # Panics
    /// Panics above [`Order::MAX`]. In a constant, that is a compile error.
    #[inline]
    #[must_use]
    pub const fn new(order: u8) -> Self {
        match Self::try_new(order) {
            Some(order) => order,
            None => panic!("an order is at most 18"),
        }
    }

    /// Returns the smallest order whose blocks hold `frames`, or `None` if no order does.
    #[must_use]
    pub const fn holding(frames: usize) -> Option<Self> {
        match frames.checked_next_power_of_two() {
            Some(power) => Self::try_new(power.trailing_zeros() as u8),
            None => None,
        }
    }

    /// Returns the order as a number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the order as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of frames in a block of this order.
    #[inline]
    #[must_use]
    pub const fn frames(self) -> usize {
        1 << self.0
    }

    /// Returns the next higher order, or `None` at [`Order::MAX`].
    #[must_use]
    pub const fn up(self) -> Option<Self> {
        Self::try_new(self.0 + 1)
    }

    /// Returns the next lower order, or `None` at order 0.
    #[must_use]
    pub const fn down(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(order) => Some(Self(order)),
            None => None,
        }
    }

    /// Returns every order from this one up to and including `last`, in rising order.
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

/// The frames from `start` up to, but not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FrameRange {
    /// The first frame.
    pub start: Frame,
    /// The frame after the last one.
    pub end: Frame,
}

impl FrameRange {
    /// Returns the frames numbered `start..end`. The range is empty if `end` is not above `start`.
    #[inline]
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self {
            start: Frame(start),
            end: Frame(end),
        }
    }

    /// Returns the range of `frames` frames that begins at `start`.
    #[must_use]
    pub const fn at(start: Frame, frames: usize) -> Self {
        Self {
            start,
            end: start.plus(frames),
        }
    }

    /// Returns the frames of one block.
    #[must_use]
    pub const fn of_block(first: Frame, order: Order) -> Self {
        Self::at(first, order.frames())
    }

    /// Returns the number of frames.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Returns true if the range has no frames.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns true if the range contains `frame`.
    #[inline]
    #[must_use]
    pub const fn contains(self, frame: Frame) -> bool {
        frame.0 >= self.start.0 && frame.0 < self.end.0
    }

    /// Returns true if the range contains all frames of `other`.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        other.is_empty() || (other.start.0 >= self.start.0 && other.end.0 <= self.end.0)
    }

    /// Returns the frames that are in both ranges.
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

    /// Returns each frame, in rising order.
    pub fn frames(self) -> impl DoubleEndedIterator<Item = Frame> {
        (self.start.0..self.end.0.max(self.start.0)).map(Frame)
    }

    /// Splits the range into the fewest aligned blocks of at most order `max`, in rising order.
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
