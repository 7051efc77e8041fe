//! Linux's text of free memory: `/proc/buddyinfo`, `/proc/pagetypeinfo`, and `unusable_index` and
//! `extfrag_index` of `/sys/kernel/debug/extfrag`.
//!
//! The text is byte for byte what Linux 6.18 prints (compared with such a host). So any program
//! that reads those files reads ours: paddings, the space after each number, and pagetypeinfo's
//! repeated head. Each file is a `Display` over the snapshots of all zones, node by node and lowest
//! zone first. Nothing is gathered in memory. Linux leaves out zones without memory, so the caller
//! leaves them out too.
//!
//! Our zones have more freedom than Linux's: they may differ in their highest order. Each line then
//! ends with the highest order of its zone, and what is printed once per node uses the highest of
//! its zones.

use core::fmt;

use super::{FragmentationText, FreeCounts, UnusableText};
use crate::{MigrateType, Order, ZoneKind};

/// From this many blocks on, pagetypeinfo stops counting: Linux walks the lists with interrupts
/// off.
const COUNTED: usize = 100_000;

/// What is known of the free memory of one zone at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneSnapshot {
    /// The number of the zone's node.
    pub node: u32,
    /// The zone's kind.
    pub zone: ZoneKind,
    /// The zone's highest order.
    pub max_order: Order,
    /// The order of the zone's page blocks.
    pub page_block_order: Order,
    /// Free blocks, by order and type. None above the highest order.
    pub free: [[usize; MigrateType::COUNT]; Order::COUNT],
    /// Page blocks, by type.
    pub blocks: [usize; MigrateType::COUNT],
}

impl ZoneSnapshot {
    /// Returns the free blocks of each order, of all types.
    ///
    /// Isolated blocks are included, although they are not available. In Linux, buddyinfo and the
    /// indices all come from one count per order that includes every free block. For the available
    /// blocks, see [`ZoneSnapshot::counts_to_be_had`].
    #[must_use]
    pub fn counts(&self) -> FreeCounts {
        FreeCounts {
            by_order: self.free.map(|by_type| by_type.iter().sum()),
        }
    }

    /// Returns the free blocks of each order, of all types but [`MigrateType::Isolate`].
    #[must_use]
    pub fn counts_to_be_had(&self) -> FreeCounts {
        FreeCounts::to_be_had(&self.free)
    }
}

/// The text of `/proc/buddyinfo`: free blocks by order, one line per zone.
///
/// ```
/// use brickyard::stats::{BuddyInfo, ZoneSnapshot};
/// use brickyard::{MigrateType, Order, ZoneKind};
/// let mut zone = ZoneSnapshot {
///     node: 0,
///     zone: ZoneKind::Normal,
///     max_order: Order::new(2),
///     page_block_order: Order::new(2),
///     free: [[0; MigrateType::COUNT]; Order::COUNT],
///     blocks: [0; MigrateType::COUNT],
/// };
/// zone.free[1][MigrateType::Movable.index()] = 7;
/// assert_eq!(BuddyInfo(&[zone]).to_string(), "Node 0, zone   Normal      0      7      0 \n");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BuddyInfo<'a>(pub &'a [ZoneSnapshot]);

impl fmt::Display for BuddyInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line_by_order(self.0, f, |counts, order, f| {
            write!(f, "{:6} ", counts.by_order[order.index()])
        })
    }
}

/// The text of `unusable_index`: [`FreeCounts::unusable_index`] by order, one line per zone.
#[derive(Debug, Clone, Copy)]
pub struct UnusableIndex<'a>(pub &'a [ZoneSnapshot]);

impl fmt::Display for UnusableIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line_by_order(self.0, f, |counts, order, f| {
            write!(f, "{}", UnusableText(counts.unusable_index(order)))
        })
    }
}

/// The text of `extfrag_index`: [`FreeCounts::fragmentation_index`] by order, one line per zone.
#[derive(Debug, Clone, Copy)]
pub struct ExtfragIndex<'a>(pub &'a [ZoneSnapshot]);

impl fmt::Display for ExtfragIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line_by_order(self.0, f, |counts, order, f| {
            let index = counts.fragmentation_index(order);
            write!(f, "{}", FragmentationText(index))
        })
    }
}

/// The text of `/proc/pagetypeinfo`: free blocks by order and type, and page blocks by type.
///
/// The whole text, including its first lines, is repeated for each node, with nothing in between. A
/// node is a run of snapshots with the same number. From 100,000 free blocks on, the text says
/// `>100000`.
#[derive(Debug, Clone, Copy)]
pub struct PageTypeInfo<'a>(pub &'a [ZoneSnapshot]);

impl fmt::Display for PageTypeInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for zones in self.0.chunk_by(|one, next| one.node == next.node) {
            block_size(zones, f)?;
            free_by_type(zones, f)?;
            page_blocks_by_type(zones, f)?;
        }
        Ok(())
    }
}

/// Writes one line per zone, with an entry for each of its orders.
fn line_by_order(
    zones: &[ZoneSnapshot],
    f: &mut fmt::Formatter<'_>,
    entry: impl Fn(&FreeCounts, Order, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for zone in zones {
        start_of_line(zone, f)?;
        let counts = zone.counts();
        for order in Order::ZERO.up_to(zone.max_order) {
            entry(&counts, order, f)?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn start_of_line(zone: &ZoneSnapshot, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "Node {}, zone {:>8} ", zone.node, zone.zone.name())
}

/// Writes the size of a page block, and an empty line.
fn block_size(zones: &[ZoneSnapshot], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let order = highest(zones, |zone| zone.page_block_order);
    writeln!(f, "Page block order: {order}")?;
    writeln!(f, "Pages per block:  {}", order.frames())?;
    writeln!(f)
}

/// Writes the free blocks by type and order.
fn free_by_type(zones: &[ZoneSnapshot], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{:43} ", "Free pages count per migrate type at order")?;
    for order in Order::ZERO.up_to(highest(zones, |zone| zone.max_order)) {
        write!(f, "{:6} ", order.get())?;
    }
    writeln!(f)?;
    for zone in zones {
        for kind in MigrateType::ALL {
            free_of_type(zone, kind, f)?;
        }
    }
    Ok(())
}

/// Writes the line of one zone and type.
fn free_of_type(zone: &ZoneSnapshot, kind: MigrateType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = zone.zone.name();
    write!(
        f,
        "Node {:4}, zone {name:>8}, type {:>12} ",
        zone.node,
        kind.name()
    )?;
    for order in Order::ZERO.up_to(zone.max_order) {
        match zone.free[order.index()][kind.index()] {
            COUNTED.. => write!(f, ">{COUNTED:6} ")?,
            blocks => write!(f, "{blocks:6} ")?,
        }
    }
    writeln!(f)
}

/// Writes an empty line, and the page blocks by type.
fn page_blocks_by_type(zones: &[ZoneSnapshot], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "\n{:23}", "Number of blocks type ")?;
    for kind in MigrateType::ALL {
        write!(f, "{:>12} ", kind.name())?;
    }
    writeln!(f)?;
    for zone in zones {
        start_of_line(zone, f)?;
        for blocks in zone.blocks {
            write!(f, "{blocks:12} ")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn highest(zones: &[ZoneSnapshot], order: impl Fn(&ZoneSnapshot) -> Order) -> Order {
    zones.iter().map(order).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use MigrateType::{Isolate, Movable, Reclaimable, Unmovable};
    use std::string::ToString;

    fn zone(node: u32, zone: ZoneKind, max_order: u8) -> ZoneSnapshot {
        ZoneSnapshot {
            node,
            zone,
            max_order: Order::new(max_order),
            page_block_order: Order::HUGE,
            free: [[0; MigrateType::COUNT]; Order::COUNT],
            blocks: [0; MigrateType::COUNT],
        }
    }

    fn with_free(mut zone: ZoneSnapshot, kind: MigrateType, blocks: &[usize]) -> ZoneSnapshot {
        for (order, &count) in blocks.iter().enumerate() {
            zone.free[order][kind.index()] = count;
        }
        zone
    }

    /// A Linux 6.18 host with 4 GiB, whose four files were read in one quiet moment. The expected
    /// texts are what it printed.
    fn host() -> [ZoneSnapshot; 3] {
        let dma = zone(0, ZoneKind::Dma, 10);
        let dma = with_free(dma, Unmovable, &[0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let mut dma = with_free(dma, Movable, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        dma.blocks = [1, 7, 0, 0, 0];
        let dma32 = zone(0, ZoneKind::Dma32, 10);
        let mut dma32 = with_free(dma32, Movable, &[1, 2, 4, 2, 5, 4, 3, 3, 4, 2, 752]);
        dma32.blocks = [0, 1528, 0, 0, 0];
        let normal = zone(0, ZoneKind::Normal, 10);
        let normal = with_free(normal, Unmovable, &[157, 151, 234, 161, 88, 39, 20, 15, 7]);
        let movable = [0, 0, 142, 323, 351, 298, 214, 175, 112, 85, 143];
        let normal = with_free(normal, Movable, &movable);
        let mut normal = with_free(normal, Reclaimable, &[167, 5, 95, 79, 42, 10, 2, 0, 1]);
        normal.blocks = [47, 558, 35, 0, 0];
        [dma, dma32, normal]
    }

    #[test]
    fn pagetypeinfo_is_what_linux_prints() {
        let expected = "\
Page block order: 9\n\
Pages per block:  512\n\
\n\
Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n\
Node    0, zone      DMA, type    Unmovable      0      0      0      0      0      0      0      0      1      0      0 \n\
Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      0      1      3 \n\
Node    0, zone      DMA, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone      DMA, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone      DMA, type      Isolate      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone    DMA32, type    Unmovable      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone    DMA32, type      Movable      1      2      4      2      5      4      3      3      4      2    752 \n\
Node    0, zone    DMA32, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone    DMA32, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone    DMA32, type      Isolate      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone   Normal, type    Unmovable    157    151    234    161     88     39     20     15      7      0      0 \n\
Node    0, zone   Normal, type      Movable      0      0    142    323    351    298    214    175    112     85    143 \n\
Node    0, zone   Normal, type  Reclaimable    167      5     95     79     42     10      2      0      1      0      0 \n\
Node    0, zone   Normal, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0 \n\
Node    0, zone   Normal, type      Isolate      0      0      0      0      0      0      0      0      0      0      0 \n\
\n\
Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate \n\
Node 0, zone      DMA            1            7            0            0            0 \n\
Node 0, zone    DMA32            0         1528            0            0            0 \n\
Node 0, zone   Normal           47          558           35            0            0 \n";
        assert_eq!(PageTypeInfo(&host()).to_string(), expected);
    }

    #[test]
    fn buddyinfo_is_what_linux_prints() {
        let expected = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
Node 0, zone    DMA32      1      2      4      2      5      4      3      3      4      2    752 \n\
Node 0, zone   Normal    324    156    471    563    481    347    236    190    120     85    143 \n";
        assert_eq!(BuddyInfo(&host()).to_string(), expected);
    }

    #[test]
    fn indices_are_what_linux_prints() {
        let unusable = "\
Node 0, zone      DMA 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.066 0.200 \n\
Node 0, zone    DMA32 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.001 0.002 0.003 \n\
Node 0, zone   Normal 0.000 0.001 0.002 0.008 0.024 0.051 0.090 0.143 0.228 0.335 0.487 \n";
        assert_eq!(UnusableIndex(&host()).to_string(), unusable);
        let extfrag = "\
Node 0, zone      DMA -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 \n\
Node 0, zone    DMA32 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 \n\
Node 0, zone   Normal -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 \n";
        assert_eq!(ExtfragIndex(&host()).to_string(), extfrag);
    }

    #[test]
    fn extfrag_where_requests_would_fail() {
        // Order 1: 1000 - (1000 + 4000 / 2) / 4 = 250; order 2: 1000 - (1000 + 1000) / 4 = 500;
        // order 3: 1000 - 1500 / 4 = 625.
        let zones = [with_free(zone(1, ZoneKind::Movable, 3), Movable, &[4])];
        let text = ExtfragIndex(&zones).to_string();
        assert_eq!(text, "Node 1, zone  Movable -1.000  0.250  0.500  0.625 \n");
        // One block of order 0 for order 1: 1000 - 1500.
        let zones = [with_free(zone(1, ZoneKind::Movable, 1), Movable, &[1])];
        let text = ExtfragIndex(&zones).to_string();
        assert_eq!(text, "Node 1, zone  Movable -1.000  0.-500 \n");
        let text = UnusableIndex(&zones).to_string();
        assert_eq!(text, "Node 1, zone  Movable 0.000 1.000 \n");
    }

    #[test]
    fn counting_stops_at_a_hundred_thousand_in_pagetypeinfo_only() {
        let blocks = [99_999, 100_000, 1_234_567];
        let zones = [with_free(zone(0, ZoneKind::Normal, 2), Movable, &blocks)];
        let text = PageTypeInfo(&zones).to_string();
        let line = text.lines().find(|line| line.contains("type      Movable"));
        let expected = "Node    0, zone   Normal, type      Movable  99999 >100000 >100000 ";
        assert_eq!(line, Some(expected));
        let expected = "Node 0, zone   Normal  99999 100000 1234567 \n";
        assert_eq!(BuddyInfo(&zones).to_string(), expected);
    }

    /// The text of a host with two nodes: the head is repeated, and no line stands between them.
    #[test]
    fn pagetypeinfo_starts_anew_for_each_node() {
        let mut second = zone(12, ZoneKind::Normal, 1);
        second.page_block_order = Order::new(1);
        second.blocks[Isolate.index()] = 2;
        let second = with_free(second, Isolate, &[0, 2]);
        let zones = [zone(0, ZoneKind::HighMem, 0), second];
        let expected = "\
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0 \n\
Node    0, zone  HighMem, type    Unmovable      0 \n\
Node    0, zone  HighMem, type      Movable      0 \n\
Node    0, zone  HighMem, type  Reclaimable      0 \n\
Node    0, zone  HighMem, type   HighAtomic      0 \n\
Node    0, zone  HighMem, type      Isolate      0 \n\
\n\
Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate \n\
Node 0, zone  HighMem            0            0            0            0            0 \n\
Page block order: 1
Pages per block:  2

Free pages count per migrate type at order       0      1 \n\
Node   12, zone   Normal, type    Unmovable      0      0 \n\
Node   12, zone   Normal, type      Movable      0      0 \n\
Node   12, zone   Normal, type  Reclaimable      0      0 \n\
Node   12, zone   Normal, type   HighAtomic      0      0 \n\
Node   12, zone   Normal, type      Isolate      0      2 \n\
\n\
Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate \n\
Node 12, zone   Normal            0            0            0            0            2 \n";
        assert_eq!(PageTypeInfo(&zones).to_string(), expected);
        let expected = "Node 0, zone  HighMem      0 \nNode 12, zone   Normal      0      2 \n";
        assert_eq!(BuddyInfo(&zones).to_string(), expected);
    }

    #[test]
    fn the_header_takes_the_highest_order_of_a_node() {
        let zones = [zone(0, ZoneKind::Dma, 0), zone(0, ZoneKind::Normal, 2)];
        let text = PageTypeInfo(&zones).to_string();
        let header = "Free pages count per migrate type at order       0      1      2 ";
        assert_eq!(text.lines().nth(3), Some(header));
        let dma = "Node    0, zone      DMA, type    Unmovable      0 ";
        assert_eq!(text.lines().nth(4), Some(dma));
        let lines = text.lines().filter(|&line| line == header).count();
        assert_eq!(lines, 1, "one header for the node");
    }

    #[test]
    fn without_zones_there_is_no_text() {
        assert_eq!(BuddyInfo(&[]).to_string(), "");
        assert_eq!(PageTypeInfo(&[]).to_string(), "");
        assert_eq!(UnusableIndex(&[]).to_string(), "");
        assert_eq!(ExtfragIndex(&[]).to_string(), "");
    }

    #[test]
    fn isolated_blocks_count_as_free_but_cannot_be_had() {
        let zone = with_free(zone(0, ZoneKind::Normal, 3), Movable, &[5]);
        let zone = with_free(zone, Isolate, &[1, 0, 0, 2]);
        assert_eq!(zone.counts().free_frames(), 22);
        assert_eq!(zone.counts().suitable(Order::new(3)), 2);
        assert_eq!(zone.counts_to_be_had().free_frames(), 5);
        assert_eq!(zone.counts_to_be_had().suitable(Order::new(3)), 0);
    }
}
