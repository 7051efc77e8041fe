//! Amounts of memory on the command line.

use brickyard::FRAMES_MOST;
use brickyard_results::{bytes_of, bytes_text};

/// Parses an amount of memory of at most what one zone of 4 KiB frames can have.
pub fn zone_bytes(text: &str) -> anyhow::Result<usize> {
    let amount = bytes_of(text)?;
    // Rounded down to GiB.
    let most = (FRAMES_MOST >> 18) << 30;
    anyhow::ensure!(
        amount <= most,
        "one zone has at most {FRAMES_MOST} frames of 4 KiB; give at most {}",
        bytes_text(most)
    );
    Ok(amount)
}

/// Formats an amount of memory, rounded to a tenth of the largest binary unit that it has.
pub fn rounded(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_to_a_unit() {
        let texts = [0, 1023, 1024, 1536 << 10, 3 << 40].map(rounded);
        assert_eq!(texts, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "3.0 TiB"]);
    }

    #[test]
    fn a_zone_has_a_largest_amount() {
        assert_eq!(zone_bytes("16383G").unwrap(), 16383 << 30);
        let why = zone_bytes("16T").unwrap_err().to_string();
        assert!(
            why.contains("4294967294 frames") && why.contains("16383G"),
            "{why}"
        );
    }
}
