//! How true a replay is: its end beside the end of the recorded host.
//!
//! The *error* of a table of free blocks is the sum of the differences, without sign, of all its
//! cells, in parts of the sum of the real cells. By order, a cell has the blocks of one order; by
//! order and type, those of one order and type. A wrong block counts twice where another is
//! missing, so the error can exceed 1. The base line is a replay in which nothing happens: the
//! host's start beside its end.

use brickyard::block::FreeTable;
use brickyard::{MigrateType, Order};
use brickyard_host::ParseError;
use brickyard_host::pagetypeinfo::{self, Counted};
use brickyard_trace::HostTexts;
use brickyard_trace::record::decode::type_named;

use crate::outcome::ZoneEnd;

/// The types that are compared. Isolated blocks belong to whoever isolates them.
pub const TYPES: [MigrateType; 4] = [
    MigrateType::Unmovable,
    MigrateType::Movable,
    MigrateType::Reclaimable,
    MigrateType::HighAtomic,
];

/// The free blocks and the page blocks of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneTable {
    /// Its node.
    pub node: u32,
    /// Its name.
    pub zone: String,
    /// Free blocks, by order and type.
    pub free: FreeTable,
    /// Page blocks, by type.
    pub blocks: [usize; MigrateType::COUNT],
    /// Whether the kernel stopped counting some of the free blocks at 100,000.
    pub cut: bool,
}

/// Reads the tables of all zones with memory from pagetypeinfo. CMA areas count as movable.
///
/// # Errors
/// [`ParseError`] where the text cannot be parsed.
pub fn of_host(texts: &HostTexts) -> Result<Vec<ZoneTable>, ParseError> {
    let types = pagetypeinfo::parse(&texts.pagetypeinfo)?;
    let mut zones: Vec<ZoneTable> = Vec::new();
    for row in &types.free {
        let place = zones
            .iter()
            .position(|zone| zone.node == row.node && zone.zone == row.zone);
        let place = place.unwrap_or_else(|| {
            zones.push(ZoneTable {
                node: row.node,
                zone: row.zone.clone(),
                free: [[0; MigrateType::COUNT]; Order::COUNT],
                blocks: [0; MigrateType::COUNT],
                cut: false,
            });
            zones.len() - 1
        });
        let zone = &mut zones[place];
        let kind = type_named(&row.kind).index();
        for (cells, count) in zone.free.iter_mut().zip(&row.free) {
            cells[kind] += bounded(count.at_least());
            zone.cut |= matches!(count, Counted::MoreThan(_));
        }
    }
    for row in &types.blocks {
        let own = zones
            .iter_mut()
            .find(|zone| zone.node == row.node && zone.zone == row.zone);
        if let Some(zone) = own {
            for (name, blocks) in &row.blocks {
                zone.blocks[type_named(name).index()] += bounded(*blocks);
            }
        }
    }
    Ok(zones)
}

/// Returns a count of the host's texts, but none larger than any memory has: sums of them do not
/// overflow.
pub(crate) fn bounded(count: u64) -> usize {
    count.min(u64::from(u32::MAX)) as usize
}

/// Returns the tables of a replay's zones.
#[must_use]
pub fn of_replay(zones: &[ZoneEnd]) -> Vec<ZoneTable> {
    let table = |zone: &ZoneEnd| ZoneTable {
        node: zone.node,
        zone: zone.kind.name().to_owned(),
        free: zone.free,
        blocks: zone.blocks,
        cut: false,
    };
    zones.iter().map(table).collect()
}

/// How far one end is from another.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Distance {
    /// The error by order, of all zones together: parts of the real blocks.
    pub by_order: f64,
    /// The error by order and type, of all zones together.
    pub by_type: f64,
    /// The error by zone, order and type.
    pub by_zone: f64,
    /// Page blocks that have another type than they should, at least: half the differences of the
    /// numbers of page blocks by zone and type.
    pub wrong_blocks: usize,
}

/// Compares a replay's zones with the real ones. A zone that only one side has counts as empty on
/// the other.
#[must_use]
pub fn distance(replayed: &[ZoneTable], real: &[ZoneTable]) -> Distance {
    let mut by_zone = Sum::default();
    let mut blocks = 0;
    let (mut all, mut all_real) = (EMPTY, EMPTY);
    for table in real {
        let own = replayed.iter().find(|own| is_same(own, table));
        let empty = EMPTY;
        let free = own.map_or(&empty, |own| &own.free);
        by_zone.add(&by_type(free), &by_type(&table.free));
        add(&mut all, free);
        add(&mut all_real, &table.free);
        if let Some(own) = own {
            let differ = TYPES.map(|kind| {
                let (own, real) = (own.blocks[kind.index()], table.blocks[kind.index()]);
                own.abs_diff(real)
            });
            blocks += differ.iter().sum::<usize>();
        }
    }
    for table in replayed {
        if !real.iter().any(|other| is_same(other, table)) {
            by_zone.add(&by_type(&table.free), &by_type(&EMPTY));
            add(&mut all, &table.free);
        }
    }
    let mut of_types = Sum::default();
    of_types.add(&by_type(&all), &by_type(&all_real));
    let mut of_orders = Sum::default();
    of_orders.add(&by_order(&all), &by_order(&all_real));
    Distance {
        by_order: of_orders.error(),
        by_type: of_types.error(),
        by_zone: by_zone.error(),
        wrong_blocks: blocks / 2,
    }
}

const EMPTY: FreeTable = [[0; MigrateType::COUNT]; Order::COUNT];

fn is_same(one: &ZoneTable, other: &ZoneTable) -> bool {
    one.node == other.node && one.zone == other.zone
}

fn add(sum: &mut FreeTable, table: &FreeTable) {
    for (sums, counts) in sum.iter_mut().zip(table) {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
}

fn by_type(table: &FreeTable) -> Vec<usize> {
    let types = |counts: &[usize; MigrateType::COUNT]| TYPES.map(|kind| counts[kind.index()]);
    table.iter().flat_map(types).collect()
}

fn by_order(table: &FreeTable) -> Vec<usize> {
    let sum =
        |counts: &[usize; MigrateType::COUNT]| TYPES.iter().map(|kind| counts[kind.index()]).sum();
    table.iter().map(sum).collect()
}

#[derive(Debug, Default)]
struct Sum {
    differences: usize,
    real: usize,
}

impl Sum {
    fn add(&mut self, replayed: &[usize], real: &[usize]) {
        let pairs = replayed.iter().zip(real);
        self.differences += pairs
            .map(|(one, other)| one.abs_diff(*other))
            .sum::<usize>();
        self.real += real.iter().sum::<usize>();
    }

    /// Returns the differences in parts of what is real; 0 if there is neither, infinite if only
    /// nothing is real.
    fn error(&self) -> f64 {
        match (self.differences, self.real) {
            (0, 0) => 0.0,
            (differences, real) => differences as f64 / real as f64,
        }
    }
}
