//! The kinds of a page, and their names, letters and colours.
//!
//! The colours are close to those of 2007 (movable green, reclaimable blue, pinned red), in tints
//! that people with any of the three colour-vision deficiencies can tell apart; a test measures
//! that. The letters serve those who see no colours.

/// Red, green, blue.
pub type Color = [u8; 3];

/// What a page is used for, in the categories of the pictures of 2007.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageKind {
    /// No memory: a hole, or a frame that was never given to the allocator.
    #[default]
    Absent = 0,
    /// Free in the store.
    Free = 1,
    /// Allocated, with content that can be moved (`__GFP_MOVABLE`).
    Movable = 2,
    /// Movable, and currently being written out or reclaimed.
    UnderReclaim = 3,
    /// Allocated; cannot be moved, but can be dropped on request (`__GFP_RECLAIMABLE`).
    Reclaimable = 4,
    /// Allocated, and neither: the kernel's own, reserved, or pinned.
    Unmovable = 5,
    /// Free in a cache in front of the store: a per-CPU list, a magazine, a stash.
    PerCpu = 6,
}

impl PageKind {
    /// The number of kinds.
    pub const COUNT: usize = 7;

    /// All kinds, by their number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Absent,
        Self::Free,
        Self::Movable,
        Self::UnderReclaim,
        Self::Reclaimable,
        Self::Unmovable,
        Self::PerCpu,
    ];

    /// Returns the kind with this number; `None` above 6.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT {
            Some(Self::ALL[number as usize])
        } else {
            None
        }
    }

    /// Its index in arrays of [`PageKind::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in legends.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "no memory",
            Self::Free => "free",
            Self::Movable => "movable",
            Self::UnderReclaim => "movable, under reclaim",
            Self::Reclaimable => "reclaimable",
            Self::Unmovable => "unmovable or pinned",
            Self::PerCpu => "per-CPU",
        }
    }

    /// The letter that marks the kind without colour. `W` is for being written out.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Absent => '-',
            Self::Free => 'F',
            Self::Movable => 'M',
            Self::UnderReclaim => 'W',
            Self::Reclaimable => 'R',
            Self::Unmovable => 'U',
            Self::PerCpu => 'C',
        }
    }

    /// The colour on a light background: that of all pictures.
    #[must_use]
    pub const fn color(self) -> Color {
        match self {
            Self::Absent => [0xf7, 0xf8, 0xfa],
            Self::Free => [0xe4, 0xe8, 0xee],
            Self::Movable => [0x45, 0xb9, 0x7c],
            Self::UnderReclaim => [0xd0, 0x96, 0xe6],
            Self::Reclaimable => [0x21, 0x66, 0xc4],
            Self::Unmovable => [0xc1, 0x12, 0x1f],
            Self::PerCpu => [0xf5, 0xb3, 0x24],
        }
    }

    /// The colour on a dark background, for the page's dark scheme.
    #[must_use]
    pub const fn dark_color(self) -> Color {
        match self {
            Self::Absent => [0x15, 0x19, 0x20],
            Self::Free => [0x2e, 0x35, 0x40],
            Self::Movable => [0x4c, 0xc3, 0x8a],
            Self::UnderReclaim => [0xdc, 0xa6, 0xee],
            Self::Reclaimable => [0x3d, 0x7d, 0xe6],
            Self::Unmovable => [0xcf, 0x20, 0x2f],
            Self::PerCpu => [0xf5, 0xbd, 0x3d],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by it")]

    use super::*;

    /// Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
    const VISIONS: [(&str, [[f64; 3]; 3]); 4] = [
        ("full", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    fn lab(color: Color, vision: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = color.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        let seen = vision.map(|row| {
            let sum: f64 = row
                .iter()
                .zip(linear)
                .map(|(weight, part)| weight * part)
                .sum();
            sum.clamp(0.0, 1.0)
        });
        let [r, g, b] = seen;
        let x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505;
        let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089;
        let [x, y, z] = [x, y, z].map(|t| {
            if t > 0.008856 {
                t.cbrt()
            } else {
                7.787 * t + 16.0 / 116.0
            }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn every_pair_is_distinct_in_every_colour_vision() {
        let shown = &PageKind::ALL[1..];
        for colors in [PageKind::color, PageKind::dark_color] {
            for (vision, matrix) in &VISIONS {
                for (i, &a) in shown.iter().enumerate() {
                    for &b in &shown[i + 1..] {
                        let (from, to) = (lab(colors(a), matrix), lab(colors(b), matrix));
                        let distance = from
                            .iter()
                            .zip(to)
                            .map(|(p, q)| (p - q).powi(2))
                            .sum::<f64>()
                            .sqrt();
                        // A distance of 2.3 is just noticeable side by side.
                        assert!(
                            distance > 20.0,
                            "{a:?} and {b:?} with {vision}: {distance:.1}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn kinds_have_their_numbers() {
        for kind in PageKind::ALL {
            assert_eq!(PageKind::from_number(kind as u8).unwrap(), kind);
        }
        assert_eq!(PageKind::from_number(7), None);
    }
}
