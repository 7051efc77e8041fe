//! The kinds of zones, as numbers of C.

use brickyard::ZoneKind;

/// All memory that the kernel maps.
pub const BY_NORMAL: u32 = 0;
/// Below 16 MiB on x86.
pub const BY_DMA: u32 = 1;
/// Below 4 GiB.
pub const BY_DMA32: u32 = 2;
/// Memory that the kernel does not map permanently.
pub const BY_HIGHMEM: u32 = 3;
/// Only for pages that can be moved.
pub const BY_ZONE_MOVABLE: u32 = 4;

/// Returns the kind that C's number means.
pub(crate) const fn kind_of(number: u32) -> Option<ZoneKind> {
    Some(match number {
        BY_NORMAL => ZoneKind::Normal,
        BY_DMA => ZoneKind::Dma,
        BY_DMA32 => ZoneKind::Dma32,
        BY_HIGHMEM => ZoneKind::HighMem,
        BY_ZONE_MOVABLE => ZoneKind::Movable,
        _ => return None,
    })
}

/// Returns C's number of the kind.
pub(crate) const fn kind_in_c(kind: ZoneKind) -> u32 {
    match kind {
        ZoneKind::Normal => BY_NORMAL,
        ZoneKind::Dma => BY_DMA,
        ZoneKind::Dma32 => BY_DMA32,
        ZoneKind::HighMem => BY_HIGHMEM,
        ZoneKind::Movable => BY_ZONE_MOVABLE,
    }
}
