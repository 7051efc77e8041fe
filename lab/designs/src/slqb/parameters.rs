//! The constants of the design: general sizes, orders of slabs, batches and marks.

use brickyard_slab::geometry::{Geometry, least_order};

/// The general sizes: powers of two from 8, with 96 and 192 between them.
pub const POWERS: [u32; 15] = [
    8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768,
];

/// Returns the order of slabs: 0, or else 1, if at most a quarter is wasted; else the smallest that
/// holds an object.
pub(super) fn order_for(stride: usize, page_bytes: usize) -> u8 {
    let wastes_little = |&order: &u8| {
        let bytes = page_bytes << order;
        stride <= bytes && bytes % stride * 4 <= bytes
    };
    let order = [0, 1].into_iter().find(wastes_little);
    order.unwrap_or_else(|| least_order(stride, page_bytes))
}

/// The batch and the high-water mark of a cache, which follow from its geometry.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    /// Number of objects that a CPU gives back at a time (freebatch): `max(4 pages / size, min(256,
    /// 64 pages / size))`, at least 1.
    pub batch: u32,
    /// Length of a CPU's LIFO above which a batch is given back (hiwater): four batches.
    pub high: u32,
}

impl Marks {
    /// Returns those of slabs with this geometry, on pages of `page_bytes`.
    #[must_use]
    pub fn of(geometry: &Geometry, page_bytes: usize) -> Self {
        let stride = geometry.stride as usize;
        let many = (64 * page_bytes / stride).min(256);
        let batch = (4 * page_bytes / stride).max(many).max(1) as u32;
        Self {
            batch,
            high: 4 * batch,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::alloc::Layout;

    use brickyard::OneCpu;
    use brickyard_slab::sizes::MAX_GENERAL;
    use brickyard_slab::{Pinned, SlabDesign, ZonePages};

    use super::*;
    use crate::slqb::Slqb2008;

    type Zone = brickyard::Zone<'static, OneCpu>;
    type Design = Slqb2008<'static, ZonePages<'static, Zone>, Pinned<OneCpu>>;

    const PAGE: usize = 4096;

    #[test]
    fn slqb_s_orders_are_piggin_s() {
        let order = |size| Design::shape(size, 8, PAGE).unwrap().order.get();
        // Up to a page, never above order 1, and order 0 whenever at most a quarter is wasted.
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
        let batch = |size| Marks::of(&Design::shape(size, 8, PAGE).unwrap(), PAGE).batch;
        assert_eq!(batch(8), 2048);
        assert_eq!(batch(64), 256);
        assert_eq!(batch(1024), 256);
        assert_eq!(batch(2048), 128);
        assert_eq!(batch(65536), 4);
    }

    #[test]
    fn every_request_gets_the_smallest_size_that_serves() {
        for size in 0..=MAX_GENERAL {
            for align in [1, 8, 16, 64, 4096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let serves = |&s: &u32| s as usize >= size && (s as usize).is_multiple_of(align);
                assert_eq!(
                    Design::class_of(layout),
                    POWERS.iter().position(serves),
                    "{layout:?}"
                );
            }
        }
        assert!(
            POWERS
                .iter()
                .all(|&size| Design::size_name(size).len() > "general-".len())
        );
    }
}
