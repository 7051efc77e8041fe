//! A request in two words: an order, and flags for all the rest, like Linux's `gfp_t`.

use brickyard::{Context, Frame, Mobility, Order, Request, ZoneKind};

use crate::error::{BY_INVALID, BY_ORDER_TOO_LARGE};
use crate::plan::order_of;

/// The pages stay in place until they are freed: page tables, kernel stacks, most slabs.
pub const BY_UNMOVABLE: u32 = 0;
/// The pages can be migrated or written out.
pub const BY_MOVABLE: u32 = 1;
/// The pages cannot be moved, but can be reclaimed on request.
pub const BY_RECLAIMABLE: u32 = 2;
/// The caller may not wait.
pub const BY_ATOMIC: u32 = 4;
/// The caller is an interrupt, and may have interrupted anything. It cannot wait either. (Frees have no
/// flags: the platform's `in_interrupt` speaks for them.)
pub const BY_INTERRUPT: u32 = 8;
/// From zones of kind BY_DMA only.
pub const BY_FROM_DMA: u32 = 0x10;
/// From zones up to kind BY_DMA32.
pub const BY_FROM_DMA32: u32 = 0x20;
/// From zones up to kind BY_NORMAL. The default for what is not movable.
pub const BY_FROM_NORMAL: u32 = 0x30;
/// From zones up to kind BY_HIGHMEM.
pub const BY_FROM_HIGHMEM: u32 = 0x40;
/// From zones of any kind. The default for BY_MOVABLE.
pub const BY_FROM_ANY: u32 = 0x50;

const MOBILITY: u32 = 0x03;
const CONTEXT: u32 = 0x0c;
const ZONES: u32 = 0x70;

/// Returns the mobility of these flags.
#[inline]
const fn mobility_of(flags: u32) -> Result<Mobility, isize> {
    match flags & MOBILITY {
        BY_UNMOVABLE => Ok(Mobility::Unmovable),
        BY_MOVABLE => Ok(Mobility::Movable),
        BY_RECLAIMABLE => Ok(Mobility::Reclaimable),
        _ => Err(BY_INVALID),
    }
}

/// Returns the request of `order` with these flags, below `limit` unless that is 0.
#[inline]
pub(crate) fn request_of(order: u32, flags: u32, limit: usize) -> Result<Request, isize> {
    let order = match order {
        0 => Order::ZERO,
        order => order_of(order).ok_or(BY_ORDER_TOO_LARGE)?,
    };
    let context = match flags & CONTEXT {
        0 => Context::MaySleep,
        BY_ATOMIC => Context::Atomic,
        // An interrupt cannot wait either.
        _ => Context::Interrupt,
    };
    let mut request = Request::new(order, mobility_of(flags)?).in_context(context);
    if flags & !(MOBILITY | CONTEXT) != 0 {
        request = match flags & !(MOBILITY | CONTEXT) {
            BY_FROM_DMA => request.from_zones_up_to(ZoneKind::Dma),
            BY_FROM_DMA32 => request.from_zones_up_to(ZoneKind::Dma32),
            BY_FROM_NORMAL => request.from_zones_up_to(ZoneKind::Normal),
            BY_FROM_HIGHMEM => request.from_zones_up_to(ZoneKind::HighMem),
            BY_FROM_ANY => request.from_zones_up_to(ZoneKind::Movable),
            _ => return Err(BY_INVALID),
        };
    }
    Ok(match limit {
        0 => request,
        limit => request.below(Frame::new(limit)),
    })
}

const _: () = assert!(ZONES & (MOBILITY | CONTEXT) == 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_the_library_is_asked_for() {
        let request = request_of(3, BY_RECLAIMABLE | BY_ATOMIC | BY_FROM_DMA32, 77);
        let wanted = Request::new(Order::new(3), Mobility::Reclaimable)
            .atomic()
            .from_zones_up_to(ZoneKind::Dma32)
            .below(Frame::new(77));
        assert_eq!(request, Ok(wanted));
        assert_eq!(request_of(0, 0, 0), Ok(Request::page(Mobility::Unmovable)));
        assert_eq!(request_of(19, 0, 0), Err(BY_ORDER_TOO_LARGE));
        assert_eq!(request_of(256, 0, 0), Err(BY_ORDER_TOO_LARGE));
        for unknown in [3, 0x60, 0x70, 0x80, 1 << 31] {
            assert_eq!(request_of(0, unknown, 0), Err(BY_INVALID), "{unknown:#x}");
        }
    }
}
