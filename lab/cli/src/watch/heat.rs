//! Memory as cells: each represents some page blocks, and shows what most of their memory is and
//! how many of them are mixed.

use brickyard_host::blocks::{BlockKind, BlockUse};
use brickyard_pictures::pagetypes::PageKind;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

use crate::page_kinds::block_kinds;

/// The colour of mixed blocks.
const MIXED: [u8; 3] = [0xff, 0x7a, 0x00];
/// The least share of that colour in a cell with a mixed block.
const MIXED_LEAST: f64 = 0.45;

/// How cells are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    /// Two cells a character, in 16 million colours.
    True,
    /// Two cells a character, in 256 colours.
    Indexed,
    /// A cell a character, as the letter of its kind; `x` where a block is mixed, `X` where most
    /// are.
    Letters,
}

impl Paint {
    /// Chooses what this terminal can show, by its environment variables.
    pub(super) fn of_environment() -> Self {
        let is = |name: &str, wanted: &[&str]| {
            std::env::var(name).is_ok_and(|value| wanted.contains(&value.as_str()))
        };
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || is("TERM", &["dumb", "vt100"])
        {
            Self::Letters
        } else if is("COLORTERM", &["truecolor", "24bit"]) {
            Self::True
        } else {
            Self::Indexed
        }
    }

    /// Returns the nearest colour that the terminal has.
    pub(super) fn color(self, [r, g, b]: [u8; 3]) -> Color {
        match self {
            Self::True => Color::Rgb(r, g, b),
            Self::Indexed => Color::Indexed(nearest_indexed([r, g, b])),
            Self::Letters => Color::Reset,
        }
    }
}

/// Some page blocks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryCell {
    /// The kind that most frames have.
    pub(super) kind: PageKind,
    /// Blocks that are mixed.
    pub(super) mixed: u32,
    /// Blocks with memory.
    pub(super) blocks: u32,
}

impl MemoryCell {
    fn of(blocks: &[BlockUse], slabs: PageKind) -> Self {
        let mut frames = [0_u64; PageKind::COUNT];
        let (mut mixed, mut present) = (0, 0);
        for block in blocks {
            for (sum, frames) in frames.iter_mut().zip(block_kinds(block, slabs)) {
                *sum += u64::from(frames);
            }
            let kind = block.kind();
            mixed += u32::from(kind == BlockKind::Mixed);
            present += u32::from(kind != BlockKind::Absent);
        }
        let most = PageKind::ALL
            .into_iter()
            .max_by_key(|kind| frames[kind.index()]);
        Self {
            kind: most.unwrap_or_default(),
            mixed,
            blocks: present,
        }
    }

    fn letter(self) -> char {
        match self.mixed {
            0 => self.kind.letter(),
            mixed if mixed * 2 > self.blocks => 'X',
            _ => 'x',
        }
    }

    /// Returns the colour of its kind, blended with the colour of mixed blocks by their share.
    fn color(self) -> [u8; 3] {
        let own = self.kind.dark_color();
        if self.mixed == 0 {
            return own;
        }
        let share = f64::from(self.mixed) / f64::from(self.blocks.max(1));
        let part = MIXED_LEAST + (1.0 - MIXED_LEAST) * share;
        let blend = |(own, mixed): (u8, u8)| {
            (f64::from(own) * (1.0 - part) + f64::from(mixed) * part) as u8
        };
        [0, 1, 2].map(|i| blend((own[i], MIXED[i])))
    }
}

/// Groups the blocks of a zone into at most `most` cells; also returns how many blocks a cell has.
pub(super) fn cells(blocks: &[BlockUse], slabs: PageKind, most: usize) -> (Vec<MemoryCell>, usize) {
    let each = blocks.len().div_ceil(most.max(1)).max(1);
    let cells = blocks
        .chunks(each)
        .map(|blocks| MemoryCell::of(blocks, slabs));
    (cells.collect(), each)
}

/// Returns how many cells fit.
pub(super) fn room(area: Rect, paint: Paint) -> usize {
    let rows = match paint {
        Paint::Letters => 1,
        Paint::True | Paint::Indexed => 2,
    };
    usize::from(area.width) * usize::from(area.height) * rows
}

/// Draws cells in rows from the top; with colours, two rows of cells per row of characters.
pub(super) fn draw(cells: &[MemoryCell], paint: Paint, area: Rect, screen: &mut Buffer) {
    let width = usize::from(area.width);
    let at = |row: usize, column: u16| cells.get(row * width + usize::from(column)).copied();
    for y in 0..area.height {
        for x in 0..area.width {
            let Some(place) = screen.cell_mut((area.x + x, area.y + y)) else {
                continue;
            };
            if paint == Paint::Letters {
                let letter = at(usize::from(y), x).map_or(' ', MemoryCell::letter);
                place.set_char(letter);
                continue;
            }
            let (upper, lower) = (at(usize::from(y) * 2, x), at(usize::from(y) * 2 + 1, x));
            if let Some(upper) = upper {
                place.set_char('▀').set_fg(paint.color(upper.color()));
            }
            if let Some(lower) = lower {
                place.set_bg(paint.color(lower.color()));
            }
        }
    }
}

/// Returns the legend: letter, name and colour of each kind, and of mixed blocks.
pub(super) fn legend() -> Vec<(char, &'static str, [u8; 3])> {
    let short = |kind: PageKind| match kind {
        PageKind::Absent => "none",
        PageKind::Free => "free",
        PageKind::Movable => "movable",
        PageKind::UnderReclaim => "written",
        PageKind::Reclaimable => "slab",
        PageKind::Unmovable => "unmovable",
        PageKind::PerCpu => "per-CPU?",
    };
    let kinds = PageKind::ALL.into_iter().skip(1);
    let mut legend: Vec<_> = kinds
        .map(|kind| (kind.letter(), short(kind), kind.dark_color()))
        .collect();
    legend.push(('X', "mixed", MIXED));
    legend
}

/// Returns the nearest of the 6 x 6 x 6 colours and 24 greys of a 256-colour terminal.
fn nearest_indexed(color: [u8; 3]) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let distance = |other: [u8; 3]| -> u32 {
        let parts = color.iter().zip(other);
        parts.map(|(&a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    let cube = (0..216_u8).map(|i| {
        let steps = [i / 36, i / 6 % 6, i % 6];
        (16 + i, steps.map(|step| STEPS[usize::from(step)]))
    });
    let greys = (0..24_u8).map(|i| (232 + i, [8 + 10 * i; 3]));
    let nearest = cube.chain(greys).min_by_key(|&(_, other)| distance(other));
    nearest.map_or(16, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_trace::PageUse;

    fn block(of: &[(PageUse, u32)]) -> BlockUse {
        let mut block = BlockUse::default();
        for &(usage, frames) in of {
            block.by_use[usage as usize] = frames;
            match usage {
                PageUse::File | PageUse::Anonymous => block.movable += frames,
                PageUse::Slab | PageUse::PageTable => block.stuck += frames,
                _ => {}
            }
        }
        block
    }

    #[test]
    fn a_cell_shows_what_dominates_and_what_is_mixed() {
        let blocks = [
            block(&[(PageUse::Free, 512)]),
            block(&[(PageUse::File, 500), (PageUse::Free, 12)]),
            block(&[(PageUse::File, 300), (PageUse::Slab, 212)]),
            block(&[(PageUse::Hole, 512)]),
            block(&[(PageUse::PageTable, 512)]),
        ];
        let letters = |most: usize| -> String {
            let (cells, _) = cells(&blocks, PageKind::Reclaimable, most);
            cells.iter().map(|cell| cell.letter()).collect()
        };
        assert_eq!(letters(5), "FMX-U");
        assert_eq!(letters(100), "FMX-U", "no cell without a block");
        assert_eq!(letters(2), "xU", "three blocks and two");
        assert_eq!(cells(&blocks, PageKind::Unmovable, 2).1, 3);
        assert!(cells(&[], PageKind::Unmovable, 5).0.is_empty());
    }

    #[test]
    fn mixed_blocks_change_the_colour() {
        let cell = |mixed| MemoryCell {
            kind: PageKind::Movable,
            mixed,
            blocks: 4,
        };
        let red = [0, 1, 2, 4].map(|mixed| cell(mixed).color()[0]);
        assert!(red.is_sorted_by(|a, b| a < b), "{red:?}");
        assert_eq!(cell(4).color(), MIXED);
    }

    #[test]
    fn indexed_colours_are_near() {
        assert_eq!(nearest_indexed([255, 0, 0]), 196);
        assert_eq!(nearest_indexed([0, 0, 0]), 16);
        assert_eq!(nearest_indexed([8, 8, 8]), 232);
        assert_eq!(nearest_indexed([0x5f, 0xaf, 0x87]), 72);
        // The kinds have different colours.
        let mut kinds: Vec<_> = legend()
            .iter()
            .map(|entry| nearest_indexed(entry.2))
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 7);
    }

    #[test]
    fn half_blocks_hold_two_rows() {
        let blocks = [
            block(&[(PageUse::Free, 512)]),
            block(&[(PageUse::File, 512)]),
            block(&[(PageUse::Slab, 512)]),
        ];
        let (cells, _) = cells(&blocks, PageKind::Reclaimable, 4);
        let area = Rect::new(0, 0, 2, 1);
        let mut screen = Buffer::empty(area);
        draw(&cells, Paint::True, area, &mut screen);
        let rgb = |kind: PageKind| Paint::True.color(kind.dark_color());
        assert_eq!(
            (screen[(0, 0)].symbol(), screen[(0, 0)].fg),
            ("▀", rgb(PageKind::Free))
        );
        assert_eq!(screen[(0, 0)].bg, rgb(PageKind::Reclaimable));
        assert_eq!(
            (screen[(1, 0)].fg, screen[(1, 0)].bg),
            (rgb(PageKind::Movable), Color::Reset)
        );
        assert_eq!(room(area, Paint::True), 4);
        assert_eq!(room(area, Paint::Letters), 2);
    }
}
