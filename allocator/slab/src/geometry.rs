//! The shape of a cache's slabs: how many pages, how many objects, where they lie, how many of them
//! move at once.

use core::fmt;

use brickyard::Order;

use crate::layout::MAX_CAPACITY;

/// The most objects that a slab with a bitmap has.
pub const MAX_OBJECTS: usize = 256;

/// Objects are a multiple of it apart where a bitmap tells which are free: there can be no more
/// than [`MAX_OBJECTS`] in a page of 4 KiB.
const GRID: usize = 16;

/// The distance of colours, and what large objects are aligned to.
const LINE: usize = 64;

/// The largest object.
pub const MAX_SIZE: usize = 64 << 10;

/// The highest order of a slab.
const MAX_ORDER: u8 = 5;

/// How a design shapes slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Free objects hold the links. Orders 0 and 1 are tried with at most a quarter of the slab
    /// wasted; else the smallest order that holds an object (Piggin 2008).
    Linked,
    /// A bitmap beside the slab says which objects are free. The lowest order with at most an
    /// eighth wasted; where there is none, the order that wastes least. What [`MAX_OBJECTS`] leaves
    /// unused counts as waste: on pages of 4 KiB there is none of it, but a slab is a page at
    /// least, so on pages of 16 KiB objects below 56 bytes leave more than an eighth of a page
    /// unused (16 bytes: three quarters), on pages of 64 KiB objects below 224 bytes.
    Bitmap,
}

/// The shape of a cache's slabs, and the numbers that follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// From one object to the next, in bytes.
    pub stride: u32,
    /// What every object is a multiple of.
    pub align: u32,
    /// Pages of a slab: 2^order.
    pub order: Order,
    /// Objects of a slab.
    pub objects: u32,
    /// Where the first object of a slab lies: `colour * colour_step` for the colours from 0 below
    /// `colours`, slab after slab, so that equal fields of different slabs do not all meet in the
    /// same lines of a CPU's cache.
    pub colours: u32,
    /// See [`Geometry::colours`]; in bytes.
    pub colour_step: u32,
    /// Objects that a CPU of `slqb-2008` gives back at once: `max(4 pages / size, min(256, 64 pages
    /// / size))`, at least 1.
    pub free_batch: u32,
    /// Objects of a sheaf.
    pub capacity: u32,
    /// 2^40 / stride, rounded up: division by multiplication.
    inverse: u64,
}

/// Why no slab can hold such objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapeError {
    /// Nothing, or more than [`MAX_SIZE`] with what debugging adds.
    Size {
        /// The bytes asked for.
        bytes: usize,
    },
    /// No power of two, or more than a page.
    Align {
        /// The alignment asked for.
        align: usize,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { bytes } => write!(
                f,
                "objects of {bytes} bytes: a cache holds objects of 1 to {MAX_SIZE} bytes; take pages instead"
            ),
            Self::Align { align } => write!(
                f,
                "an alignment of {align}: it must be a power of two, at most a page"
            ),
        }
    }
}

impl core::error::Error for ShapeError {}

impl Geometry {
    /// The shape for objects of `size` bytes, multiples of `align`, on pages of `page_bytes`.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub const fn new(
        shape: Shape,
        size: usize,
        align: usize,
        page_bytes: usize,
    ) -> Result<Self, ShapeError> {
        if size == 0 || size > MAX_SIZE {
            return Err(ShapeError::Size { bytes: size });
        }
        if !align.is_power_of_two() || align > page_bytes {
            return Err(ShapeError::Align { align });
        }
        let grid = match shape {
            Shape::Linked => size_of::<usize>(),
            Shape::Bitmap => GRID,
        };
        let align = if align > grid { align } else { grid };
        let stride = size.next_multiple_of(align);
        let order = order_for(shape, stride, page_bytes);
        let bytes = page_bytes << order;
        let mut objects = bytes / stride;
        if matches!(shape, Shape::Bitmap) && objects > MAX_OBJECTS {
            objects = MAX_OBJECTS;
        }
        // Colours keep what the stride is a multiple of by nature, up to a line: general sizes
        // promise it.
        let natural = 1 << stride.trailing_zeros();
        let colour_step = if natural > LINE { natural } else { LINE };
        let colour_step = if align > colour_step {
            align
        } else {
            colour_step
        };
        let slack = bytes - objects * stride;
        Ok(Self {
            stride: stride as u32,
            align: align as u32,
            order: Order::new(order),
            objects: objects as u32,
            colours: (slack / colour_step + 1) as u32,
            colour_step: colour_step as u32,
            free_batch: free_batch(stride, page_bytes),
            capacity: capacity(stride),
            inverse: (1_u64 << 40).div_ceil(stride as u64),
        })
    }

    /// The number of the object that begins `offset` bytes behind the first one; `None` if none
    /// does.
    #[inline]
    #[must_use]
    pub const fn index_of(&self, offset: usize) -> Option<usize> {
        // Exact for offsets below 2^40 / stride, and a slab is at most 2^21 bytes: the error of
        // `inverse` is below 1.
        let index = ((offset as u64).wrapping_mul(self.inverse) >> 40) as usize;
        if index < self.objects as usize && index * self.stride as usize == offset {
            Some(index)
        } else {
            None
        }
    }

    /// Objects of a CPU's list from which on a batch is given back (`slqb-2008`).
    #[must_use]
    pub const fn high_water(&self) -> u32 {
        4 * self.free_batch
    }
}

const fn order_for(shape: Shape, stride: usize, page_bytes: usize) -> u8 {
    let (orders, part) = match shape {
        Shape::Linked => (2, 4),
        Shape::Bitmap => (MAX_ORDER + 1, 8),
    };
    let mut order = 0;
    let mut least = (u64::MAX, 0);
    while order < orders {
        let bytes = page_bytes << order;
        let fit = bytes / stride;
        let fit = if matches!(shape, Shape::Bitmap) && fit > MAX_OBJECTS {
            MAX_OBJECTS
        } else {
            fit
        };
        if fit > 0 {
            let waste = bytes - fit * stride;
            if waste * part <= bytes {
                return order;
            }
            let share = (waste as u64) * 1024 / bytes as u64;
            if share < least.0 {
                least = (share, order);
            }
        }
        order += 1;
    }
    if matches!(shape, Shape::Bitmap) && least.0 != u64::MAX {
        return least.1;
    }
    let mut order = 0;
    while page_bytes << order < stride {
        order += 1;
    }
    order
}

const fn free_batch(stride: usize, page_bytes: usize) -> u32 {
    let few = 4 * page_bytes / stride;
    let many = 64 * page_bytes / stride;
    let many = if many < 256 { many } else { 256 };
    let batch = if few > many { few } else { many };
    if batch > 1 { batch as u32 } else { 1 }
}

/// What a sheaf of large objects holds at most, in bytes.
const SHEAF_LOAD: usize = 64 << 10;

const fn capacity(stride: usize) -> u32 {
    let load = SHEAF_LOAD / stride;
    if load < 2 {
        2
    } else if load > MAX_CAPACITY {
        MAX_CAPACITY as u32
    } else {
        load as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn slqb_s_orders_are_piggin_s() {
        let order = |size| {
            Geometry::new(Shape::Linked, size, 8, PAGE)
                .unwrap()
                .order
                .get()
        };
        // Up to a page, never above order 1 (facts), and order 0 whenever a quarter at most is
        // wasted.
        for size in 1..=PAGE {
            assert!(order(size) <= 1, "{size}");
        }
        assert_eq!(order(1216), 0);
        assert_eq!(order(1536), 0); // exactly a quarter
        assert_eq!(order(1544), 0);
        assert_eq!(order(1400), 1); // two would waste more than a quarter
        assert_eq!(order(2048), 0);
        assert_eq!(order(2560), 1);
        assert_eq!(order(4096), 0);
        assert_eq!(order(5000), 1); // wastes more, but holds one
        assert_eq!(order(9000), 2);
    }

    #[test]
    fn slqb_s_batches_are_piggin_s() {
        let batch = |size| {
            Geometry::new(Shape::Linked, size, 8, PAGE)
                .unwrap()
                .free_batch
        };
        assert_eq!(batch(8), 2048);
        assert_eq!(batch(64), 256);
        assert_eq!(batch(1024), 256);
        assert_eq!(batch(2048), 128);
        assert_eq!(batch(65536), 4);
    }

    #[test]
    fn divides_exactly_and_refuses_what_lies_between() {
        for size in (1..=MAX_SIZE).step_by(37) {
            let shape = Geometry::new(Shape::Bitmap, size, 1, PAGE).unwrap();
            for index in 0..shape.objects as usize {
                let at = index * shape.stride as usize;
                assert_eq!(shape.index_of(at), Some(index));
                assert_eq!(shape.index_of(at + 1), None);
                assert_eq!(shape.index_of(at + shape.stride as usize - 1), None);
            }
            let end = shape.objects as usize * shape.stride as usize;
            assert_eq!(shape.index_of(end), None);
        }
    }

    #[test]
    fn wastes_an_eighth_at_most_up_to_32_kib() {
        for size in crate::sizes::SIZES {
            let shape = Geometry::new(Shape::Bitmap, size as usize, 1, PAGE).unwrap();
            let bytes = PAGE << shape.order.get();
            let waste = bytes - (shape.objects * shape.stride) as usize;
            assert!(waste * 8 <= bytes, "{size}: {shape:?}");
            assert!(shape.objects as usize <= MAX_OBJECTS);
        }
    }

    #[test]
    fn large_pages_waste_more_only_where_a_bitmap_is_full() {
        for page in [16 << 10, 64 << 10] {
            for size in (16..=32 << 10).step_by(16) {
                let shape = Geometry::new(Shape::Bitmap, size, 1, page).unwrap();
                let bytes = page << shape.order.get();
                let used = (shape.objects * shape.stride) as usize;
                let is_small = MAX_OBJECTS * size * 8 < page * 7;
                assert_eq!((bytes - used) * 8 > bytes, is_small, "{page} {size}");
                // No order can be lower than that.
                assert!(!is_small || shape.order.get() == 0, "{page} {size}");
            }
        }
    }

    #[test]
    fn says_what_cannot_be() {
        let shape = |size, align| Geometry::new(Shape::Bitmap, size, align, PAGE);
        assert_eq!(shape(0, 8), Err(ShapeError::Size { bytes: 0 }));
        assert_eq!(shape(8, 3), Err(ShapeError::Align { align: 3 }));
        assert_eq!(shape(8, 8192), Err(ShapeError::Align { align: 8192 }));
        assert!(shape(MAX_SIZE, PAGE).is_ok() && shape(MAX_SIZE + 1, 8).is_err());
    }
}
