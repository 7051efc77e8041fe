//! How a curve looks: a colour, a marker and dashes, by its name alone.
//!
//! The names of the lab have looks of their own, chosen so that those that stand in one plot differ
//! in all three. Any other name gets one from its letters.

use brickyard_machine::fnv1a;

/// Markers around the origin, about ten units wide.
const MARKERS: [&str; 8] = [
    "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z",
    "M-4-4h8v8h-8z",
    "M0-5l4.8 8.6h-9.6z",
    "M0-5.4l5 5.4l-5 5.4l-5-5.4z",
    "M0 5l4.8-8.6h-9.6z",
    "M-4.6-2.6l2-2l2.6 2.6l2.6-2.6l2 2l-2.6 2.6l2.6 2.6l-2 2l-2.6-2.6l-2.6 2.6l-2-2l2.6-2.6z",
    "M-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
    "M0-5.2l5 3.7l-1.9 5.9h-6.2l-1.9-5.9z",
];

/// Dashes, and none.
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2"];

/// How many colours `style.css` has.
const HUES: usize = 8;

/// The look of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// The number of its colour in `style.css`.
    pub(super) hue: usize,
    /// The place of its marker.
    marker: usize,
    /// The place of its dashes.
    dash: usize,
}

impl Look {
    const fn new(hue: usize, marker: usize, dash: usize) -> Self {
        Self { hue, marker, dash }
    }

    /// The marker as the data of a path around the origin.
    pub(super) const fn marker(self) -> &'static str {
        MARKERS[self.marker]
    }

    /// The dashes as SVG has them; empty for a whole line.
    pub(super) const fn dashes(self) -> &'static str {
        DASHES[self.dash]
    }

    /// The look of what has this name.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "brickyard" => Self::new(0, 0, 0),
            "vanilla" => Self::new(1, 1, 1),
            "list-2007" => Self::new(2, 2, 0),
            "magazine-2013" => Self::new(3, 3, 3),
            "zone-2007" => Self::new(4, 4, 2),
            "combined-2007" => Self::new(5, 5, 4),
            "two-kinds-2005" => Self::new(6, 6, 2),
            "linux-6.12" => Self::new(7, 7, 3),
            // The locks, beside which `list-2007`, `magazine-2013` and `brickyard` stand.
            "hold" => Self::new(1, 1, 1),
            "release" => Self::new(4, 4, 0),
            "ticket" => Self::new(6, 6, 2),
            "ticket+yield" => Self::new(5, 5, 3),
            "ticket+yield+own-line" => Self::new(7, 7, 4),
            // The heaps.
            "slqb-2008" => Self::new(2, 2, 1),
            "brickyard-pinned" => Self::new(6, 3, 3),
            "system" => Self::new(1, 1, 2),
            other => Self::by_letters(other),
        }
    }

    /// FNV-1a, so that the same name looks the same everywhere and always.
    fn by_letters(name: &str) -> Self {
        let hash = fnv1a(name);
        let part = |shift: u32, among: usize| (hash >> shift) as usize % among;
        Self::new(
            part(16, HUES),
            part(32, MARKERS.len()),
            part(48, DASHES.len()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_one_plot_differs_in_colour_and_marker() {
        let designs = [
            "vanilla",
            "two-kinds-2005",
            "list-2007",
            "zone-2007",
            "combined-2007",
            "magazine-2013",
            "brickyard",
        ];
        let locks = [
            "hold",
            "release",
            "ticket",
            "ticket+yield",
            "ticket+yield+own-line",
            "list-2007",
            "magazine-2013",
            "brickyard",
        ];
        let heaps = ["slqb-2008", "brickyard-pinned", "brickyard", "system"];
        for names in [&designs[..], &locks, &heaps] {
            for (i, one) in names.iter().enumerate() {
                for other in &names[..i] {
                    let (one, other) = (Look::of(one), Look::of(other));
                    assert!(one.hue != other.hue && one.marker() != other.marker());
                }
            }
        }
    }

    #[test]
    fn every_colour_is_in_the_style() {
        for hue in 0..HUES {
            assert!(super::super::STYLE.contains(&format!(".hue-{hue} ")));
        }
    }
}
