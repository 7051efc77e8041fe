//! `/sys/kernel/debug/extfrag/{unusable_index,extfrag_index}`: the kernel's own indices by zone and
//! order. Readable only by root, with debugfs mounted.
//!
//! The same numbers follow from buddyinfo ([`brickyard::stats::FreeCounts`]), which all users may
//! read; these files are used to check that.

use crate::ParseError;
use crate::lines::{Lines, node_and_zone};

/// The indices of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexZone {
    /// Its node.
    pub node: u32,
    /// Its name.
    pub zone: String,
    /// The index by order, in thousandths.
    pub index: Vec<i32>,
}

/// Parses either text.
///
/// # Errors
/// If a number is not in the form `0.066`, `-1.000` or `0.-62`.
///
/// ```
/// let zones = brickyard_host::extfrag::parse("Node 0, zone   Normal -1.000  0.-62  0.425 \n")?;
/// assert_eq!(zones[0].index, [-1000, -62, 425]);
/// # Ok::<(), brickyard_host::ParseError>(())
/// ```
pub fn parse(text: &str) -> Result<Vec<IndexZone>, ParseError> {
    let mut lines = Lines::new("extfrag", text);
    let mut zones = Vec::new();
    while let Some(line) = lines.next() {
        let Some((node, zone, rest)) = node_and_zone(line) else {
            continue;
        };
        let values = rest.split_whitespace().map(|word| {
            let value = thousandths(word);
            value.ok_or_else(|| lines.error(format!("`{word}` is not an index")))
        });
        zones.push(IndexZone {
            node,
            zone: zone.into(),
            index: values.collect::<Result<_, _>>()?,
        });
    }
    Ok(zones)
}

/// Parses what the kernel prints by `%d.%03d` of the quotient and remainder by 1000: in C both have
/// the sign.
fn thousandths(word: &str) -> Option<i32> {
    let (whole, part) = word.split_once('.')?;
    let whole: i32 = whole.parse().ok()?;
    let part: i32 = part.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(part)
}
