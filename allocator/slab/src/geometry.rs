//! The shape of a cache's slabs: how many pages, how many objects, where they lie, and how many
//! objects a sheaf holds.

use core::fmt;

use brickyard::Order;

use crate::layout::MAX_CAPACITY;
use crate::sizes::process::SINGLE_ABOVE;

/// The most objects of a slab with a bitmap.
pub const MAX_OBJECTS: usize = 256;

/// The distance between objects is a multiple of this. So no more than [`MAX_OBJECTS`] fit in a
/// page of 4 KiB.
const GRID: usize = 16;

/// The distance of colours, and what large objects are aligned to: a cache line.
const LINE: usize = 64;

/// The largest object, but for a heap's.
pub const MAX_SIZE: usize = 64 << 10;

/// The highest order of a slab, but for a heap's.
const MAX_ORDER: u8 = 5;

/// The largest object of a heap, what checks add included.
pub(crate) const MAX_SIZE_OF_HEAP: usize = 256 << 10;

/// The highest order of a heap's slab.
const MAX_ORDER_OF_HEAP: u8 = 6;

/// A heap's sheaf holds so many objects at least.
const CAPACITY_OF_HEAP: u32 = 4;

/// The shape of a cache's slabs, and the numbers that follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// From one object to the next, in bytes.
    pub stride: u32,
    /// The alignment of every object.
    pub align: u32,
    /// A slab is taken out of 2^order pages.
    pub order: Order,
    /// The pages of a slab: all of those, or fewer.
    pub pages: u16,
    /// How many of them, from the first on, the tables of pages say are the slab's: all, or only
    /// the first where one object begins, so that a slab is begun and ended at once.
    pub marked: u16,
    /// The objects of a slab.
    pub objects: u32,
    /// The number of colours. The first object of a slab lies at `colour * colour_step`, where the
    /// colour runs from 0 to below `colours`, slab after slab. So equal fields of different slabs
    /// do not all fall on the same lines of a CPU's cache.
    pub colours: u32,
    /// See [`Geometry::colours`]; in bytes.
    pub colour_step: u32,
    /// The objects of a sheaf.
    pub capacity: u32,
    /// 2^40 / stride, rounded up: division by multiplication.
    inverse: u64,
}

/// Why no slab can hold such objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// No bytes, or more than there may be, with what debugging adds.
    Size {
        /// The bytes asked for.
        bytes: usize,
        /// The most that there may be.
        most: usize,
    },
    /// Not a power of two, or more than a page.
    Align {
        /// The alignment asked for.
        align: usize,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { bytes, most } => write!(
                f,
                "objects of {bytes} bytes: a cache holds objects of 1 to {most} bytes; take pages instead"
            ),
            Self::Align { align } => write!(
                f,
                "an alignment of {align}: it must be a power of two, at most a page"
            ),
        }
    }
}

impl core::error::Error for ShapeError {}

/// What a shape keeps to.
struct Limits {
    /// Objects lie at multiples of this.
    grid: usize,
    /// The most bytes of an object.
    bytes: usize,
    /// The most objects of a slab.
    objects: usize,
}

impl Geometry {
    /// Returns the shape for objects of `size` bytes, multiples of `align`, on pages of
    /// `page_bytes`, by the rules of the default design. A bitmap beside the slab says which
    /// objects are free.
    ///
    /// The order is the lowest that wastes at most an eighth. If there is none, it is the order
    /// that wastes least. Objects beyond [`MAX_OBJECTS`] that would still fit count as waste. On
    /// pages of 4 KiB there are none. But a slab is at least a page, so large pages waste more than
    /// an eighth for small objects. That is below 56 bytes on pages of 16 KiB (16 bytes: three
    /// quarters), and below 224 bytes on pages of 64 KiB.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub fn new(size: usize, align: usize, page_bytes: usize) -> Result<Self, ShapeError> {
        let order = |stride| order_for(stride, page_bytes, MAX_ORDER);
        Self::by(size, align, page_bytes, (GRID, MAX_OBJECTS), order)
    }

    /// Returns the shape by the rules for a heap: as [`new`](Geometry::new), but objects may be
    /// larger, and sheaves hold four of them at least. An object above [`SINGLE_ABOVE`] that is
    /// whole pages is a slab of its own, of no more pages than that. (Of pages of 16 or 64 KiB few
    /// sizes are.)
    ///
    /// # Errors
    /// [`ShapeError`].
    pub(crate) fn of_heap(
        size: usize,
        align: usize,
        page_bytes: usize,
    ) -> Result<Self, ShapeError> {
        let is_single = size > SINGLE_ABOVE && size.is_multiple_of(page_bytes);
        let order = |stride| match is_single {
            true => least_order(stride, page_bytes),
            false => order_for(stride, page_bytes, MAX_ORDER_OF_HEAP),
        };
        let limits = Limits {
            grid: GRID,
            bytes: MAX_SIZE_OF_HEAP,
            objects: MAX_OBJECTS,
        };
        let mut shape = Self::within(size, align, page_bytes, &limits, order)?;
        shape.capacity = shape.capacity.max(CAPACITY_OF_HEAP);
        if is_single {
            shape.pages = (size / page_bytes) as u16;
            shape.marked = 1;
            shape.colours = 1;
        }
        Ok(shape)
    }

    /// Returns the shape by other rules: objects at multiples of `grid`, at most `most` in a slab.
    /// `order` returns the slab's order for the distance of objects; such a slab must hold at least
    /// one of them.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub fn by(
        size: usize,
        align: usize,
        page_bytes: usize,
        (grid, most): (usize, usize),
        order: impl FnOnce(usize) -> u8,
    ) -> Result<Self, ShapeError> {
        let limits = Limits {
            grid,
            bytes: MAX_SIZE,
            objects: most,
        };
        Self::within(size, align, page_bytes, &limits, order)
    }

    fn within(
        size: usize,
        align: usize,
        page_bytes: usize,
        limits: &Limits,
        order: impl FnOnce(usize) -> u8,
    ) -> Result<Self, ShapeError> {
        if size == 0 || size > limits.bytes {
            return Err(ShapeError::Size {
                bytes: size,
                most: limits.bytes,
            });
        }
        if !align.is_power_of_two() || align > page_bytes {
            return Err(ShapeError::Align { align });
        }
        let align = align.max(limits.grid);
        let stride = size.next_multiple_of(align);
        let order = order(stride);
        debug_assert!(
            order < 16,
            "the pages of a slab are counted in 16 bits: {order}"
        );
        let bytes = page_bytes << order;
        let objects = (bytes / stride).min(limits.objects);
        // Colours keep the natural alignment of the stride, the largest power of two that divides
        // it: general sizes promise it.
        let natural = 1 << stride.trailing_zeros();
        let colour_step = align.max(natural).max(LINE);
        let slack = bytes - objects * stride;
        Ok(Self {
            stride: stride as u32,
            align: align as u32,
            order: Order::new(order),
            pages: 1 << order,
            marked: 1 << order,
            objects: objects as u32,
            colours: (slack / colour_step + 1) as u32,
            colour_step: colour_step as u32,
            capacity: capacity(stride),
            inverse: (1_u64 << 40).div_ceil(stride as u64),
        })
    }

    /// Returns the number of the object that begins `offset` bytes behind the first one; `None` if
    /// none does.
    #[inline]
    #[must_use]
    pub const fn index_of(&self, offset: usize) -> Option<usize> {
        match self.index_around(offset) {
            Some(index) if index * self.stride as usize == offset => Some(index),
            _ => None,
        }
    }

    /// Returns the number of the object in which the byte lies that is `offset` bytes behind the
    /// begin of the first one; `None` if it lies in none. The byte is one of the slab: `offset` may
    /// be negative, wrapped around.
    #[inline]
    #[must_use]
    pub const fn index_around(&self, offset: usize) -> Option<usize> {
        // Exact for offsets below 2^40 / stride: the error of `inverse` is below 1. A slab is at
        // most 2^22 bytes. A negative offset in it gives a product near 2^64, and a number above
        // that of all objects.
        let index = ((offset as u64).wrapping_mul(self.inverse) >> 40) as usize;
        if index < self.objects as usize {
            Some(index)
        } else {
            None
        }
    }
}

fn order_for(stride: usize, page_bytes: usize, most: u8) -> u8 {
    let mut least = (u64::MAX, 0);
    for order in 0..=most {
        let bytes = page_bytes << order;
        let fit = (bytes / stride).min(MAX_OBJECTS);
        if fit > 0 {
            let waste = bytes - fit * stride;
            if waste * 8 <= bytes {
                return order;
            }
            let share = (waste as u64) * 1024 / bytes as u64;
            if share < least.0 {
                least = (share, order);
            }
        }
    }
    if least.0 != u64::MAX {
        return least.1;
    }
    least_order(stride, page_bytes)
}

/// Returns the smallest order that holds an object of `stride` bytes.
#[must_use]
pub fn least_order(stride: usize, page_bytes: usize) -> u8 {
    let mut order = 0;
    while page_bytes << order < stride {
        order += 1;
    }
    order
}

/// The most bytes of large objects that a sheaf holds.
const SHEAF_LOAD: usize = 64 << 10;

fn capacity(stride: usize) -> u32 {
    (SHEAF_LOAD / stride).clamp(2, MAX_CAPACITY) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// All that there are, on pages of 4 and 64 KiB.
    fn shapes() -> impl Iterator<Item = Geometry> {
        [PAGE, 16 * PAGE].into_iter().flat_map(|page| {
            let kernel = (1..=MAX_SIZE).step_by(37);
            let kernel = kernel.map(move |size| Geometry::new(size, 1, page).unwrap());
            let heap = (1..=MAX_SIZE_OF_HEAP).step_by(37);
            let heap = heap.map(move |size| Geometry::of_heap(size, 1, page).unwrap());
            kernel.chain(heap)
        })
    }

    #[test]
    fn divides_exactly_and_refuses_what_lies_between() {
        for shape in shapes() {
            for index in 0..shape.objects as usize {
                let at = index * shape.stride as usize;
                assert_eq!(shape.index_of(at), Some(index));
                let last = at + shape.stride as usize - 1;
                assert_eq!(shape.index_of(at + 1), None);
                assert_eq!(shape.index_of(last), None);
                for inside in [at, at + 1, last] {
                    assert_eq!(shape.index_around(inside), Some(index));
                }
            }
            let end = shape.objects as usize * shape.stride as usize;
            for outside in [end, end + 1, usize::MAX >> 24, usize::MAX] {
                assert_eq!(shape.index_of(outside), None);
                assert_eq!(shape.index_around(outside), None, "{outside:x}");
            }
        }
    }

    #[test]
    fn wastes_an_eighth_at_most_up_to_32_kib() {
        for size in crate::sizes::SIZES {
            let shape = Geometry::new(size as usize, 1, PAGE).unwrap();
            let bytes = PAGE << shape.order.get();
            let waste = bytes - (shape.objects * shape.stride) as usize;
            assert!(waste * 8 <= bytes, "{size}: {shape:?}");
            assert!(shape.objects as usize <= MAX_OBJECTS);
        }
    }

    #[test]
    fn a_heap_wastes_no_page_above_32_kib_and_its_sheaves_hold_four() {
        for size in crate::sizes::process::SIZES {
            let shape = Geometry::of_heap(size as usize, 1, PAGE).unwrap();
            assert!(shape.capacity >= 4, "{size}: {shape:?}");
            if size <= 16 << 10 {
                assert_eq!(Geometry::new(size as usize, 1, PAGE), Ok(shape));
            }
            let bytes = shape.pages as usize * PAGE;
            let waste = bytes - (shape.objects * shape.stride) as usize;
            let is_single = size > 32 << 10;
            let most = if is_single { 0 } else { bytes / 8 };
            assert!(waste <= most, "{size}: {shape:?}");
            assert_eq!(
                is_single,
                shape.pages != 1 << shape.order.get() || size == 65536 || size == 131072
            );
            let marked = if is_single { 1 } else { shape.pages };
            assert_eq!(shape.marked, marked, "{size}: {shape:?}");
            assert!(!is_single || shape.objects == 1);
        }
    }

    #[test]
    fn large_pages_waste_more_only_where_a_bitmap_is_full() {
        for page in [16 << 10, 64 << 10] {
            for size in (16..=32 << 10).step_by(16) {
                let shape = Geometry::new(size, 1, page).unwrap();
                let bytes = page << shape.order.get();
                let used = (shape.objects * shape.stride) as usize;
                let is_small = MAX_OBJECTS * size * 8 < page * 7;
                assert_eq!((bytes - used) * 8 > bytes, is_small, "{page} {size}");
                // No order is lower than 0.
                assert!(!is_small || shape.order.get() == 0, "{page} {size}");
            }
        }
    }

    #[test]
    fn says_what_cannot_be() {
        let shape = |size, align| Geometry::new(size, align, PAGE);
        let (bytes, most) = (0, MAX_SIZE);
        assert_eq!(shape(0, 8), Err(ShapeError::Size { bytes, most }));
        assert_eq!(shape(8, 3), Err(ShapeError::Align { align: 3 }));
        assert_eq!(shape(8, 8192), Err(ShapeError::Align { align: 8192 }));
        assert!(shape(MAX_SIZE, PAGE).is_ok() && shape(MAX_SIZE + 1, 8).is_err());
        let (bytes, most) = (MAX_SIZE_OF_HEAP + 1, MAX_SIZE_OF_HEAP);
        let large = |size| Geometry::of_heap(size, PAGE, PAGE);
        assert_eq!(large(bytes), Err(ShapeError::Size { bytes, most }));
        assert!(large(most).is_ok());
    }
}
