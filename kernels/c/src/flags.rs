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
/// The caller is an interrupt, and may have interrupted anything. It cannot wait either. (Frees
/// have no flags: the platform's `in_interrupt` speaks for them.)
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

/// What flags say, other than an order.
#[derive(Clone, Copy)]
struct Meaning {
    mobility: Mobility,
    context: Context,
    highest: ZoneKind,
}

/// The meaning of each set of flags that has one, so that a request reads it instead of working it
/// out.
static MEANINGS: [Option<Meaning>; BY_FROM_ANY as usize + 0x10] = {
    let mut all = [None; BY_FROM_ANY as usize + 0x10];
    let mut flags = 0;
    while flags < all.len() {
        all[flags] = meaning_of(flags as u32);
        flags += 1;
    }
    all
};

const fn meaning_of(flags: u32) -> Option<Meaning> {
    let Ok(mobility) = mobility_of(flags) else {
        return None;
    };
    let context = match flags & CONTEXT {
        0 => Context::MaySleep,
        BY_ATOMIC => Context::Atomic,
        // An interrupt cannot wait either.
        _ => Context::Interrupt,
    };
    let request = Request::page(mobility);
    let request = match flags & !(MOBILITY | CONTEXT) {
        0 => request,
        BY_FROM_DMA => request.from_zones_up_to(ZoneKind::Dma),
        BY_FROM_DMA32 => request.from_zones_up_to(ZoneKind::Dma32),
        BY_FROM_NORMAL => request.from_zones_up_to(ZoneKind::Normal),
        BY_FROM_HIGHMEM => request.from_zones_up_to(ZoneKind::HighMem),
        BY_FROM_ANY => request.from_zones_up_to(ZoneKind::Movable),
        _ => return None,
    };
    Some(Meaning {
        mobility,
        context,
        highest: request.highest,
    })
}

/// Returns the request of `order` with these flags, below `limit` unless that is 0.
#[inline]
pub(crate) fn request_of(order: u32, flags: u32, limit: usize) -> Result<Request, isize> {
    let order = match order {
        0 => Order::ZERO,
        order => order_of(order).ok_or(BY_ORDER_TOO_LARGE)?,
    };
    let Some(&Some(meaning)) = MEANINGS.get(flags as usize) else {
        return Err(BY_INVALID);
    };
    Ok(Request {
        order,
        mobility: meaning.mobility,
        highest: meaning.highest,
        limit: match limit {
            0 => None,
            limit => Some(Frame::new(limit)),
        },
        context: meaning.context,
    })
}

const _: () = assert!(ZONES & (MOBILITY | CONTEXT) == 0 && BY_FROM_ANY & !ZONES == 0);

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
        let both = BY_MOVABLE | BY_ATOMIC | BY_INTERRUPT | BY_FROM_ANY;
        let wanted = Request::page(Mobility::Movable).in_context(Context::Interrupt);
        assert_eq!(request_of(0, both, 0), Ok(wanted));
        assert_eq!(request_of(19, 0, 0), Err(BY_ORDER_TOO_LARGE));
        assert_eq!(request_of(256, 0, 0), Err(BY_ORDER_TOO_LARGE));
        for unknown in [3, 0x57, 0x60, 0x70, 0x80, 1 << 31] {
            assert_eq!(request_of(0, unknown, 0), Err(BY_INVALID), "{unknown:#x}");
        }
    }
}
