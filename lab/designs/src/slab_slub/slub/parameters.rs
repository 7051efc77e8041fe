//! The numbers of SLUB, and the shapes of its slabs.

use brickyard_slab::geometry::{Geometry, ShapeError, least_order};

/// The CPUs that a slab's objects are reckoned for: the document's eight. (Linux takes the
/// machine's; a shape does not know of them.)
const CPUS: u32 = 8;

/// The objects that a slab should hold: four for each bit of the number of CPUs, and four more.
const OBJECTS: usize = 4 * (bits(CPUS) + 1);

/// The highest order of a slab with several objects.
const ORDER_MOST: u8 = 3;

/// The least waste that is tried first: a sixteenth of the slab; then an eighth and a quarter.
const FRACTIONS: [usize; 3] = [16, 8, 4];

const fn bits(number: u32) -> usize {
    (u32::BITS - number.leading_zeros()) as usize
}

/// Returns how many partial slabs a node keeps before it gives an empty one back.
pub(super) const fn partial_least(size: usize) -> u32 {
    match size.checked_ilog2() {
        Some(log @ 5..=10) => log,
        Some(11..) => 10,
        _ => 5,
    }
}

/// Returns the lowest order of a slab that holds `objects` objects and wastes at most so little.
fn order_of(stride: usize, objects: usize, fraction: usize, page_bytes: usize) -> Option<u8> {
    (0..=ORDER_MOST).find(|&order| {
        let bytes = page_bytes << order;
        objects * stride <= bytes && bytes % stride <= bytes / fraction
    })
}

fn order_for(stride: usize, page_bytes: usize) -> u8 {
    let mut objects = OBJECTS;
    while objects > 1 {
        let orders = FRACTIONS.map(|fraction| order_of(stride, objects, fraction, page_bytes));
        if let Some(order) = orders.into_iter().flatten().next() {
            return order;
        }
        objects /= 2;
    }
    least_order(stride, page_bytes)
}

/// Returns the shape of slabs. They have no colours.
pub(super) fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
    let rules = (size_of::<usize>(), usize::MAX);
    let order = |stride| order_for(stride, page_bytes);
    let mut shape = Geometry::by(size, align, page_bytes, rules, order)?;
    shape.colours = 1;
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_objects_fit_into_a_slab_if_they_can() {
        let shape = |size| {
            let shape = shape(size, 8, 4096).unwrap();
            (shape.order.get(), shape.objects)
        };
        // Dentries of 192 bytes: 21 to a page. Of 256 bytes a page has 16, which is too few: two
        // have 32.
        assert_eq!(shape(192), (0, 21));
        assert_eq!(shape(256), (1, 32));
        assert_eq!(shape(640), (2, 25));
        assert_eq!(shape(1216), (3, 26));
        assert_eq!(shape(4096), (3, 8));
        // Twenty, ten and five do not fit.
        assert_eq!(shape(8192), (2, 2));
        assert_eq!(shape(32768), (3, 1));
        assert_eq!(shape(65536), (4, 1));
    }

    #[test]
    fn a_node_keeps_five_to_ten_partial_slabs() {
        assert_eq!(
            [8, 32, 64, 192, 1024, 65536].map(partial_least),
            [5, 5, 6, 7, 10, 10]
        );
    }
}
