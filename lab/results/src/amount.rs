//! Amounts as short text, and read from it: of memory, and numbers with their noun.

use core::fmt::Display;

/// Returns the form of a noun that belongs to a number.
pub fn noun<'a, N: PartialEq + From<u8>>(count: N, one: &'a str, many: &'a str) -> &'a str {
    if count == N::from(1) { one } else { many }
}

/// Formats a number with its noun: `1 CPU`, `2 CPUs`.
///
/// ```
/// use brickyard_results::counted;
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

/// What is wrong with an amount of memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAmount {
    /// It is none.
    #[error("{0:?} is not an amount of memory; write one such as 512M or 2G")]
    Unreadable(String),
    /// It is too large.
    #[error("{0} is too large for this machine to address")]
    TooLarge(String),
}

/// Reads an amount of memory such as 512M or 2G.
///
/// # Errors
/// [`NoAmount`].
///
/// ```
/// use brickyard_results::{bytes_of, bytes_text};
///
/// assert_eq!(bytes_of("64k"), Ok(65536));
/// assert_eq!(bytes_text(bytes_of("1536M")?), "1536M");
/// assert!(bytes_of("G").is_err());
/// # Ok::<(), brickyard_results::NoAmount>(())
/// ```
pub fn bytes_of(text: &str) -> Result<usize, NoAmount> {
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number = number.parse::<usize>();
    let number = number.map_err(|_| NoAmount::Unreadable(text.to_owned()))?;
    let bytes = number.checked_mul(1 << shift);
    bytes.ok_or_else(|| NoAmount::TooLarge(text.to_owned()))
}
