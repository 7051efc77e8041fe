//! `/proc/buddyinfo`: free blocks by zone and order. Readable by all users.

use brickyard::Order;
use brickyard::stats::FreeCounts;

use crate::ParseError;
use crate::lines::{Lines, node_and_zone};

/// The free blocks of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuddyZone {
    /// Its node.
    pub node: u32,
    /// Its name, such as `Normal`.
    pub zone: String,
    /// Free blocks, by order: as many entries as the kernel has orders, at most [`Order::COUNT`].
    pub free: Vec<u64>,
}

impl BuddyZone {
    /// Returns the counts in the form that the fragmentation indices are computed from.
    #[must_use]
    pub fn counts(&self) -> FreeCounts {
        let mut counts = FreeCounts::default();
        for (count, &free) in counts.by_order.iter_mut().zip(&self.free) {
            *count = usize::try_from(free).unwrap_or(usize::MAX);
        }
        counts
    }

    /// Returns the highest order of the kernel's free lists.
    #[must_use]
    pub fn max_order(&self) -> Order {
        let highest = self.free.len().saturating_sub(1);
        u8::try_from(highest)
            .ok()
            .and_then(Order::try_new)
            .unwrap_or(Order::MAX)
    }
}

/// Parses the text. Zones are in the order of the text; lines that do not begin with a zone are
/// skipped.
///
/// # Errors
/// If a count is not a number, or a zone has no counts or more than [`Order::COUNT`].
///
/// ```
/// let zones = brickyard_host::buddyinfo::parse("Node 0, zone   Normal      4      0      2 \n")?;
/// assert_eq!(zones[0].counts().free_frames(), 12);
/// # Ok::<(), brickyard_host::ParseError>(())
/// ```
pub fn parse(text: &str) -> Result<Vec<BuddyZone>, ParseError> {
    let mut lines = Lines::new("buddyinfo", text);
    let mut zones = Vec::new();
    while let Some(line) = lines.next() {
        let Some((node, zone, rest)) = node_and_zone(line) else {
            continue;
        };
        let free = lines.numbers(rest)?;
        if free.is_empty() || free.len() > Order::COUNT {
            let most = Order::COUNT;
            return Err(lines.error(format!("{} orders, expected 1 to {most}", free.len())));
        }
        zones.push(BuddyZone {
            node,
            zone: zone.into(),
            free,
        });
    }
    Ok(zones)
}
