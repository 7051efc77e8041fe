//! `/proc/pagetypeinfo`: free blocks by zone, migrate type and order, and page blocks by zone and
//! type. Readable only by root.
//!
//! Types are identified by name, since kernels have different sets of them (`CMA`, `Isolate`,
//! `Reserve`).

use brickyard::Order;

use crate::ParseError;
use crate::lines::{Lines, node_and_zone};

/// A count that stops at a limit, since the kernel walks the lists with interrupts disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Exactly this number.
    Exactly(u64),
    /// More than this number: the kernel stopped counting.
    MoreThan(u64),
}

impl Counted {
    /// Returns the number counted.
    #[must_use]
    pub const fn at_least(self) -> u64 {
        match self {
            Self::Exactly(count) | Self::MoreThan(count) => count,
        }
    }
}

/// The free blocks of one type in one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreeOfType {
    /// The zone's node.
    pub node: u32,
    /// The zone's name.
    pub zone: String,
    /// The type's name, such as `Movable`.
    pub kind: String,
    /// Free blocks, by order.
    pub free: Vec<Counted>,
}

/// The page blocks of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlocksOfZone {
    /// The zone's node.
    pub node: u32,
    /// The zone's name.
    pub zone: String,
    /// Each type's name, and how many page blocks have it.
    pub blocks: Vec<(String, u64)>,
}

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PageTypes {
    /// The order of a page block; 0 if the text does not have it.
    pub page_block_order: u8,
    /// Free blocks by zone and type.
    pub free: Vec<FreeOfType>,
    /// Page blocks by zone.
    pub blocks: Vec<BlocksOfZone>,
}

/// The table that rows belong to.
enum Table {
    Free,
    Blocks(Vec<String>),
    /// One that is not needed.
    Other,
}

/// Parses the text, whose parts may be repeated for each node.
///
/// # Errors
/// If a number cannot be parsed, an order is above [`Order::MAX`], or a row does not match its
/// table's heading.
pub fn parse(text: &str) -> Result<PageTypes, ParseError> {
    let mut lines = Lines::new("pagetypeinfo", text);
    let mut types = PageTypes::default();
    let mut table = Table::Free;
    while let Some(line) = lines.next() {
        if let Some(order) = line.strip_prefix("Page block order:") {
            types.page_block_order = block_order(&lines, order)?;
        } else if line.starts_with("Free pages count") {
            table = Table::Free;
        } else if let Some(kinds) = line.strip_prefix("Number of blocks type") {
            table = Table::Blocks(names(kinds));
        } else if line.starts_with("Number of mixed blocks") {
            table = Table::Other;
        } else if let Some((node, zone, rest)) = node_and_zone(line) {
            match &table {
                Table::Free => types.free.push(free_row(&lines, node, zone, rest)?),
                Table::Blocks(kinds) => {
                    types
                        .blocks
                        .push(block_row(&lines, node, zone, rest, kinds)?);
                }
                Table::Other => {}
            }
        }
    }
    Ok(types)
}

fn block_order(lines: &Lines<'_>, text: &str) -> Result<u8, ParseError> {
    let order = lines.number(text.trim())?;
    let order = u8::try_from(order).ok().and_then(Order::try_new);
    let order = order.ok_or_else(|| lines.error(format!("an order is at most {}", Order::MAX)))?;
    Ok(order.get())
}

fn names(head: &str) -> Vec<String> {
    head.split_whitespace().map(str::to_owned).collect()
}

/// Parses `, type    Unmovable      0 >100000 `.
fn free_row(
    lines: &Lines<'_>,
    node: u32,
    zone: &str,
    rest: &str,
) -> Result<FreeOfType, ParseError> {
    let row = rest.trim_start().strip_prefix(',').map(str::trim_start);
    let row = row.and_then(|row| row.strip_prefix("type"));
    let mut words = row.unwrap_or_default().split_whitespace();
    let kind = words.next();
    let kind = kind.ok_or_else(|| lines.error("expected `, type` and its name after the zone"))?;
    let free = words.map(|word| match word.strip_prefix('>') {
        Some(word) => lines.number(word).map(Counted::MoreThan),
        None => lines.number(word).map(Counted::Exactly),
    });
    let free: Vec<_> = free.collect::<Result<_, _>>()?;
    if free.len() > Order::COUNT {
        return Err(lines.error(format!("more than {} orders", Order::COUNT)));
    }
    Ok(FreeOfType {
        node,
        zone: zone.into(),
        kind: kind.into(),
        free,
    })
}

fn block_row(
    lines: &Lines<'_>,
    node: u32,
    zone: &str,
    rest: &str,
    kinds: &[String],
) -> Result<BlocksOfZone, ParseError> {
    let counts = lines.numbers(rest)?;
    if counts.len() != kinds.len() {
        let (counts, kinds) = (counts.len(), kinds.len());
        return Err(lines.error(format!("{counts} counts for {kinds} types")));
    }
    Ok(BlocksOfZone {
        node,
        zone: zone.into(),
        blocks: kinds.iter().cloned().zip(counts).collect(),
    })
}
