//! The numbers of SLAB, and the shapes of its slabs.

use brickyard_slab::geometry::{Geometry, ShapeError, least_order};

/// The most entries of a CPU's array.
pub(super) const ARRAY_MOST: usize = 120;

/// The most entries of a node's shared array: eight batches.
pub(super) const SHARED_MOST: usize = 8 * ARRAY_MOST / 2;

/// Entries of an alien array: objects freed on one node, of the memory of another.
pub(super) const ALIEN: usize = 12;

/// Nodes that have alien arrays; objects of others are freed straight into their slabs. (Linux has
/// one for each pair of nodes.)
pub(super) const ALIEN_NODES: usize = 8;

/// An array that was not used since the last trim is refilled with no more than this.
pub(super) const COLD_BATCH: u32 = 16;

/// Bytes of a slab's description, if it lies in the slab: Linux's `struct slab` on 64 bits.
const DESCRIPTION: usize = 48;

/// Bytes of an index.
pub(super) const INDEX_BYTES: usize = 4;

/// The highest order at which a slab may still waste more than an eighth.
const ORDER_ENOUGH: u8 = 1;

/// The highest order.
const ORDER_MOST: u8 = 5;

/// Returns the entries of a CPU's array, by the size of the objects.
pub(super) const fn limit_of(size: usize, page_bytes: usize) -> u32 {
    if size > 128 << 10 {
        1
    } else if size > page_bytes {
        8
    } else if size > 1024 {
        24
    } else if size > 256 {
        54
    } else {
        ARRAY_MOST as u32
    }
}

/// Returns how many objects move at a time.
pub(super) const fn batch_of(limit: u32) -> u32 {
    limit.div_ceil(2)
}

/// Returns the entries of a node's shared array; none where objects are larger than a page, nor on
/// a machine with one CPU, where it would be a second array of the same CPU.
pub(super) const fn shared_of(size: usize, page_bytes: usize, cpus: usize) -> u32 {
    if size > page_bytes || cpus == 1 {
        0
    } else {
        8 * batch_of(limit_of(size, page_bytes))
    }
}

/// Returns the bytes at a slab's end for its description and the indices of `objects` objects.
const fn described(objects: usize) -> usize {
    DESCRIPTION + objects * INDEX_BYTES
}

/// Returns true if a slab's description and indices lie in the slab, behind its objects: always for
/// objects below an eighth of a page, else only if there is room left.
pub(super) fn is_on_slab(shape: &Geometry, page_bytes: usize) -> bool {
    let bytes = page_bytes << shape.order.get();
    let objects = shape.objects as usize;
    objects * shape.stride as usize + described(objects) <= bytes
}

/// Returns the shape of slabs: the lowest order that wastes an eighth at most, and order 1 whatever
/// it wastes. (Linux stops at the first order that fits for caches that can be reclaimed; a shape
/// does not know of that.)
pub(super) fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
    let off_slab = size >= page_bytes / 8;
    let fit = |stride: usize, order: u8| {
        let bytes = page_bytes << order;
        match off_slab {
            true => bytes / stride,
            false => bytes.saturating_sub(DESCRIPTION) / (stride + INDEX_BYTES),
        }
    };
    let order = |stride: usize| {
        let fits = (0..=ORDER_MOST).filter(|&order| fit(stride, order) > 0);
        let mut enough = fits.skip_while(|&order| {
            let bytes = page_bytes << order;
            let objects = fit(stride, order);
            let used = objects * stride + if off_slab { 0 } else { described(objects) };
            order < ORDER_ENOUGH && (bytes - used) * 8 > bytes
        });
        enough
            .next()
            .unwrap_or_else(|| least_order(stride, page_bytes))
    };
    let stride = size.max(1).next_multiple_of(align.max(size_of::<usize>()));
    let most = fit(stride, order(stride)).max(1);
    let rules = (size_of::<usize>(), most);
    let mut shape = Geometry::by(size, align, page_bytes, rules, order)?;
    let objects = shape.objects as usize;
    let mut used = objects * shape.stride as usize;
    if is_on_slab(&shape, page_bytes) {
        // Colours must leave the end to the description.
        used += described(objects);
    }
    // Linux has as many as steps fit, and begins again before the last offset that would fit.
    let slack = (page_bytes << shape.order.get()) - used;
    shape.colours = (slack as u32 / shape.colour_step).max(1);
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn arrays_are_as_long_as_linux_s() {
        let limits = [8, 256, 257, 1024, 1025, 4096, 4097, 131_072, 131_073];
        let limits = limits.map(|size| limit_of(size, PAGE));
        assert_eq!(limits, [120, 120, 54, 54, 24, 24, 8, 8, 1]);
        assert_eq!([120, 54, 24, 8, 1].map(batch_of), [60, 27, 12, 4, 1]);
        assert_eq!(
            [256, 4096, 8192].map(|size| shared_of(size, PAGE, 2)),
            [480, 96, 0]
        );
        assert_eq!(shared_of(8, PAGE, 2) as usize, SHARED_MOST);
        assert_eq!([8, 4096].map(|size| shared_of(size, PAGE, 1)), [0, 0]);
    }

    #[test]
    fn colours_begin_again_before_the_last_that_fits() {
        // 20 of 192 bytes and their description leave 128 bytes, which is two lines; three of 1216
        // and theirs leave 388, which is six.
        for (size, colours) in [(192, 2), (1216, 6), (4096, 1)] {
            assert_eq!(shape(size, 8, PAGE).unwrap().colours, colours, "{size}");
        }
    }

    #[test]
    fn slabs_have_the_orders_that_slabinfo_showed() {
        let objects = |size| {
            let shape = shape(size, 8, PAGE).unwrap();
            (shape.order.get(), shape.objects, is_on_slab(&shape, PAGE))
        };
        // As in slabinfo of 64-bit kernels of that time: dentries of 192 bytes 20 to a page, files
        // of 256 bytes 15, objects of 512, 1024, 2048 and 4096 bytes 8, 4, 2 and 1.
        assert_eq!(objects(192), (0, 20, true));
        assert_eq!(objects(256), (0, 15, true));
        assert_eq!(objects(640), (0, 6, true));
        assert_eq!(objects(512), (0, 8, false));
        assert_eq!(objects(1024), (0, 4, false));
        assert_eq!(objects(2048), (0, 2, false));
        assert_eq!(objects(4096), (0, 1, false));
        assert_eq!(objects(8192), (1, 1, false));
        // Three waste 448 bytes of 4096, less than an eighth.
        assert_eq!(objects(1216), (0, 3, true));
    }

    #[test]
    fn the_description_lies_behind_the_objects_of_every_colour() {
        for page in [1 << 10, PAGE, 16 << 10, 64 << 10] {
            for size in (1..=64 << 10).step_by(23) {
                let shape = shape(size, 8, page).unwrap();
                let bytes = page << shape.order.get();
                let colour = (shape.colours - 1) * shape.colour_step;
                let end = (colour + shape.objects * shape.stride) as usize;
                let objects = shape.objects as usize;
                match is_on_slab(&shape, page) {
                    true => assert!(end + described(objects) <= bytes, "{size} {shape:?}"),
                    false => assert!(end <= bytes && objects <= 24, "{size} {shape:?}"),
                }
            }
        }
    }
}
