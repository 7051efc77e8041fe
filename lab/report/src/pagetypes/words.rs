//! Sizes, times and sentences in pictures.

use super::{film::Film, layout::Layout};

/// The most zones that are listed: more would fill the picture with text.
const ZONES_MAX: usize = 16;

/// Makes the notes under the picture.
pub(super) fn notes(layout: &Layout, film: &Film) -> Vec<String> {
    let (grid, plan) = (&layout.grid, film.plan());
    let size = |order: u8| bytes(u128::from(plan.frame_bytes) << order);
    let mut first = match grid.scale {
        0 => format!("A pixel: one page, {}.", size(0)),
        k => format!(
            "A pixel: {} pages, {}, in the colour of the most frequent kind in use; light where more are free than used.",
            1_u64 << k,
            size(k)
        ),
    };
    if layout.cell > 1 && grid.scale == 0 {
        first = format!("A square of {0}x{0}: one page, {1}.", layout.cell, size(0));
    }
    first += &match grid.box_order - plan.box_order {
        0 => format!(
            " A box: a block of order {}, {}.",
            plan.box_order,
            size(plan.box_order)
        ),
        more => format!(
            " A box: {} blocks of order {}, {}.",
            1_u64 << more,
            plan.box_order,
            size(grid.box_order)
        ),
    };
    if u64::from(layout.columns) < grid.boxes() {
        let row = (u128::from(plan.frame_bytes) * u128::from(layout.columns)) << grid.box_order;
        first += &format!(" A row: {}.", bytes(row));
    }
    first += &format!(
        " A huge page: order {}, {}.",
        plan.huge_order,
        size(plan.huge_order)
    );
    let zones = plan.zones.iter().take(ZONES_MAX).map(|zone| {
        let size = bytes(u128::from(plan.frame_bytes) * u128::from(zone.frames));
        format!("{} from frame {}, {size}", zone.name, zone.start)
    });
    let mut zones = zones.collect::<Vec<_>>().join("; ");
    if plan.zones.len() > ZONES_MAX {
        zones += &format!("; and {} more", plan.zones.len() - ZONES_MAX);
    }
    vec![first, format!("Zones: {zones}.")]
}

/// Breaks a text between words into lines of at most `characters`; longer words stay whole.
pub(super) fn wrap(text: &str, characters: u32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= characters as usize {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Returns a part of a whole in percent; 0 if the whole is 0.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64 * 100.0
    }
}

/// Formats a time: `12.5 s`, `3 min 20 s`, `2 h 05 min`.
pub(super) fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..=119 => format!("{}.{} s", seconds, ns / 100_000_000 % 10),
        120..=7199 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a size, rounded to a tenth of its unit: `4 KiB`, `1.5 GiB`.
fn bytes(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (1..UNITS.len())
        .rev()
        .find(|&unit| bytes >> (10 * unit) > 0)
        .unwrap_or(0);
    let number = format!("{:.1}", bytes as f64 / (1_u128 << (10 * unit)) as f64);
    format!(
        "{} {}",
        number.strip_suffix(".0").unwrap_or(&number),
        UNITS[unit]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_well() {
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(duration(12_560_000_000), "12.5 s");
        assert_eq!(duration(200_000_000_000), "3 min 20 s");
        assert_eq!(duration(7_500_000_000_000), "2 h 05 min");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
    }
}
