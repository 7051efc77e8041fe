//! Amounts of memory as short text.

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
