//! The look of a curve: a colour, a marker and dashes, determined by its name alone.
//!
//! The names of the lab have fixed looks, chosen so that those in one plot differ in colour and
//! marker. Any other name gets its look from a hash.

use brickyard_run::fnv1a;

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

/// Dashes; the first is a solid line.
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2"];

/// The number of colours in `style.css`.
const HUES: usize = 8;

/// The look of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// The number of its colour in `style.css`.
    pub(super) hue: usize,
    /// The index of its marker in [`MARKERS`].
    marker: usize,
    /// The index of its dashes in [`DASHES`].
    dash: usize,
}

impl Look {
    const fn new(hue: usize, marker: usize, dash: usize) -> Self {
        Self { hue, marker, dash }
    }

    /// Returns the marker as the data of an SVG path around the origin.
    pub(super) const fn marker(self) -> &'static str {
        MARKERS[self.marker]
    }

    /// Returns the dashes as an SVG `stroke-dasharray`; empty for a solid line.
    pub(super) const fn dashes(self) -> &'static str {
        DASHES[self.dash]
    }

    /// Returns the look of the curve with this name.
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
            "linux-6.18" => Self::new(4, 5, 0),
            // A recorded host, plotted together with replays of some designs.
            "the host" => Self::new(1, 1, 0),
            "as the start" => Self::new(6, 4, 2),
            // The locks, plotted together with `list-2007`, `magazine-2013` and `brickyard`.
            "hold" => Self::new(1, 1, 1),
            "release" => Self::new(4, 4, 0),
            "ticket" => Self::new(6, 6, 2),
            "ticket+yield" => Self::new(5, 5, 3),
            "ticket+yield+own-line" => Self::new(7, 7, 4),
            // The heaps.
            "slqb-2008" => Self::new(2, 2, 1),
            "brickyard-pinned" => Self::new(6, 3, 3),
            "system" => Self::new(1, 1, 2),
            // The other designs of slabs, plotted together with `slqb-2008`.
            "slab-2008" => Self::new(3, 4, 3),
            "slub-2008" => Self::new(4, 5, 2),
            "brickyard-slab" => Self::new(0, 0, 0),
            other => Self::by_hash(other),
        }
    }

    /// Returns the look from the name's FNV-1a hash, the same in every plot.
    fn by_hash(name: &str) -> Self {
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
    fn curves_of_one_plot_differ_in_colour_and_marker() {
        let designs = [
            "vanilla",
            "two-kinds-2005",
            "list-2007",
            "zone-2007",
            "combined-2007",
            "magazine-2013",
            "brickyard",
        ];
        let replays = [
            "the host",
            "as the start",
            "linux-6.18",
            "linux-6.12",
            "magazine-2013",
            "list-2007",
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
        let heaps = ["slqb-2008", "brickyard-pinned", "system"];
        let slabs = ["slqb-2008", "slub-2008", "slab-2008", "brickyard-slab"];
        for names in [&designs[..], &replays, &locks, &heaps, &slabs] {
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
