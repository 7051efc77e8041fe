//! Amounts as short text: of memory, and numbers with their noun.

use core::fmt::Display;

/// Returns the form of a noun that belongs to a number.
pub fn noun<'a, N: PartialEq + From<u8>>(count: N, one: &'a str, many: &'a str) -> &'a str {
    if count == N::from(1) { one } else { many }
}

/// Formats a number with its noun: `1 CPU`, `2 CPUs`.
///
/// ```
/// use brickyard_report::counted;
///
/// assert_eq!(counted(0, "CPU", "CPUs"), "0 CPUs");
/// assert_eq!(counted(1_u64, "line has", "lines have"), "1 line has");
/// assert_eq!(counted(2_usize, "line has", "lines have"), "2 lines have");
/// ```
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(
    count: N,
    one: &str,
    many: &str,
) -> String {
    format!("{count} {}", noun(count, one, many))
}

/// Formats an amount in the largest binary unit that needs no fraction: 1536M, 64G.
#[must_use]
pub fn bytes_text(bytes: usize) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = |&&(shift, _): &&(u32, &str)| bytes != 0 && bytes.trailing_zeros() >= shift;
    match units.iter().find(whole) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}
