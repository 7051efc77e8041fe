//! What was in memory over time, as one picture: time from left to right, memory from top to
//! bottom.

use core::time::Duration;
use std::path::Path;

use brickyard_host::blocks::BlockKind;
use brickyard_pictures::raster::Raster;
use brickyard_serve::history::blocks::BlockMap;
use brickyard_serve::history::{HistoryError, read};

use super::Shown;
use brickyard_serve::history::time_of;

/// Columns of the picture.
const WIDTH: u32 = 720;
/// Its rows.
const HEIGHT: u32 = 320;
/// The least share of their colour in a pixel with mixed blocks: they would not be seen otherwise.
const MIXED_LEAST: f64 = 0.35;

/// The colours of the kinds of page blocks, in their order.
pub(super) const COLORS: [[u8; 3]; BlockKind::ALL.len()] = [
    [0xf7, 0xf8, 0xfa],
    [0xe4, 0xe8, 0xee],
    [0x21, 0x66, 0xc4],
    [0x45, 0xb9, 0x7c],
    [0xf5, 0xb3, 0x24],
    [0xc1, 0x12, 0x1f],
    [0x7b, 0x86, 0x96],
];

/// The picture, and what is to be said of it.
#[derive(Debug)]
pub(super) struct Picture {
    /// `None` if there is no map.
    pub(super) raster: Option<Raster>,
    /// Maps that are in it.
    pub(super) maps: usize,
    /// Page blocks from top to bottom, and their order.
    pub(super) blocks: u64,
    pub(super) order: u8,
    /// What could not be read.
    pub(super) faults: Vec<HistoryError>,
}

/// Draws the maps of the shown time. A column has the newest map of its time or before.
pub(super) fn of(folder: &Path, shown: &Shown<'_>) -> Result<Picture, HistoryError> {
    let host = &shown.last().host;
    let (begin, length) = (shown.rows[0].time, shown.length());
    // The first columns may have a map from before.
    let from = time_of(begin);
    let end = time_of(shown.last().time) + Duration::from_millis(1);
    let times = read::map_times(folder, host, from..end)?;
    let mut faults = times.faults;
    let mut times = times.found;
    if let Ok(Some(before)) = read::map(folder, host, from) {
        times.insert(0, before.time);
        times.dedup();
    }
    let column_end = |column: u32| {
        begin + ((u128::from(length) * u128::from(column + 1)) / u128::from(WIDTH)) as u64
    };
    let of_column = |column| {
        let after = times.partition_point(|&time| time <= column_end(column));
        after.checked_sub(1).map(|place| times[place])
    };
    let columns: Vec<Option<u64>> = (0..WIDTH).map(of_column).collect();
    let mut chosen: Vec<u64> = columns.iter().copied().flatten().collect();
    chosen.dedup();
    let mut picture = Picture {
        raster: None,
        maps: chosen.len(),
        blocks: 0,
        order: 0,
        faults: Vec::new(),
    };
    // Memory from its first block to its last, as in the newest map.
    let mut extent = 0..0;
    if let Some(&last) = chosen.last() {
        faults.extend(read::maps(folder, host, &[last], |map| {
            extent = extent_of(&map);
            picture.order = map.order;
        })?);
    }
    if extent.is_empty() {
        picture.faults = faults;
        return Ok(picture);
    }
    picture.blocks = extent.end - extent.start;
    let mut raster = Raster::new(WIDTH, HEIGHT, COLORS[0]);
    let found = read::maps(folder, host, &chosen, |map| {
        let pixels = pixels(&map, extent.start, picture.blocks);
        let own = columns.iter().enumerate();
        for (x, _) in own.filter(|(_, time)| **time == Some(map.time)) {
            for (y, color) in (0..).zip(&pixels) {
                raster.set(x as u32, y, *color);
            }
        }
    })?;
    faults.extend(found);
    picture.raster = Some(raster);
    picture.faults = faults;
    Ok(picture)
}

/// Returns the blocks from the first that is memory to the last.
fn extent_of(map: &BlockMap) -> core::ops::Range<u64> {
    let mut present = map.runs.iter().filter(|run| run.kind != BlockKind::Absent);
    let Some(first) = present.next() else {
        return 0..0;
    };
    let last = present.next_back().unwrap_or(first);
    first.first..last.first.saturating_add(last.blocks)
}

/// Returns the colours of a column for the `blocks` blocks from `start` on.
fn pixels(map: &BlockMap, start: u64, blocks: u64) -> Vec<[u8; 3]> {
    let mut counts = vec![[0.0_f64; BlockKind::ALL.len()]; HEIGHT as usize];
    let scale = f64::from(HEIGHT) / blocks as f64;
    for run in &map.runs {
        // Where the run begins and ends, in pixels.
        let place = |block: u64| block.saturating_sub(start) as f64 * scale;
        let (top, bottom) = (
            place(run.first),
            place(run.first.saturating_add(run.blocks)),
        );
        let rows = top as usize..(bottom.ceil() as usize).min(counts.len());
        for row in rows {
            let covered = bottom.min(row as f64 + 1.0) - top.max(row as f64);
            counts[row][run.kind as usize] += covered.max(0.0);
        }
    }
    counts.iter().map(color).collect()
}

/// Returns the mean of the colours of what is in a pixel, with mixed blocks always visible.
fn color(counts: &[f64; BlockKind::ALL.len()]) -> [u8; 3] {
    let all: f64 = counts.iter().sum();
    if all < 1e-9 {
        return COLORS[0];
    }
    let mixed = BlockKind::Mixed as usize;
    let share = counts[mixed] / all;
    let raised = if share > 1e-6 {
        MIXED_LEAST + (1.0 - MIXED_LEAST) * share
    } else {
        0.0
    };
    let others = (all - counts[mixed]).max(1e-9);
    let mean = |channel: usize| {
        let sum = counts.iter().zip(COLORS).enumerate();
        let rest: f64 = sum
            .filter(|(kind, _)| *kind != mixed)
            .map(|(_, (count, color))| count / others * f64::from(color[channel]))
            .sum();
        (rest * (1.0 - raised) + f64::from(COLORS[mixed][channel]) * raised).round() as u8
    };
    [mean(0), mean(1), mean(2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_serve::frames::BlockRun;

    #[test]
    fn a_pixel_has_the_mean_and_shows_mixed_blocks() {
        let run = |first, blocks, kind| BlockRun {
            first,
            blocks,
            kind,
        };
        let map = |runs| BlockMap {
            host: "web".to_owned(),
            time: 0,
            order: 9,
            runs,
        };
        let half = u64::from(HEIGHT) / 2;
        let halves = map(vec![
            run(1000, half, BlockKind::Free),
            run(1000 + half, half, BlockKind::Unmovable),
        ]);
        assert_eq!(extent_of(&halves), 1000..1000 + 2 * half);
        let drawn = pixels(&halves, 1000, 2 * half);
        assert_eq!(drawn.len(), HEIGHT as usize);
        assert_eq!(drawn[0], COLORS[1]);
        assert_eq!(drawn[HEIGHT as usize - 1], COLORS[6]);
        // One mixed block in ten thousand.
        let many = u64::from(HEIGHT) * 10_000;
        let rare = map(vec![
            run(0, 5, BlockKind::Free),
            run(5, 1, BlockKind::Mixed),
            run(6, many - 6, BlockKind::Free),
        ]);
        let drawn = pixels(&rare, 0, many);
        assert_eq!(drawn[1], COLORS[1]);
        assert!(drawn[0][1] < 0xb0, "{:?}", drawn[0]);
        // Blocks that the newest map does not have are not drawn, and do not fail.
        let beyond = map(vec![run(u64::MAX - 5, 3, BlockKind::Free)]);
        assert_eq!(pixels(&beyond, 0, 100)[0], COLORS[0]);
        assert_eq!(extent_of(&map(Vec::new())), 0..0);
    }
}
