//! The machine that a trace is replayed on: its zones, memory and CPUs. It is either the recorded
//! host, or a machine of any size.

use std::collections::HashSet;

use brickyard::FRAMES_MOST;
use brickyard::node::movable::{self, Sizing};
use brickyard::watermark;
use brickyard::{Frame, FrameRange, Order, ZoneKind};
use brickyard_designs::classics::Configuration;
use brickyard_host::zoneinfo;
use brickyard_trace::{PageUse, Trace};

use crate::start;

/// A zone of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZonePlace {
    /// Its node.
    pub node: u32,
    /// Its kind.
    pub kind: ZoneKind,
    /// The frames it spans.
    pub span: FrameRange,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its zones, node by node, lowest kind first.
    pub zones: Vec<ZonePlace>,
    /// Its memory: rising, disjoint ranges.
    pub memory: Vec<FrameRange>,
    /// The number of CPUs.
    pub cpus: usize,
    /// The highest order of a block.
    pub max_order: Order,
    /// The order of a page block.
    pub page_block_order: Order,
    /// The order of a huge page.
    pub huge_order: Order,
    /// The bytes of a frame.
    pub frame_bytes: usize,
    /// The memory that is kept free, in KiB (Linux's `min_free_kbytes`).
    pub min_free_kbytes: usize,
    /// The size of the zone for movable pages, in configurations that have one.
    pub sizing: Sizing,
}

/// Why a machine cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The trace does not record its host's memory.
    #[error("the trace does not record its host's memory: give a size, `--memory 1G`")]
    Unknown,
    /// zoneinfo could not be read.
    #[error("the trace's zoneinfo cannot be read ({0}): give a size, `--memory 1G`")]
    Zoneinfo(String),
    /// The memory is too small for a page block.
    #[error(
        "a machine of {bytes} bytes is too small: give at least {least}, which is four page blocks"
    )]
    TooSmall {
        /// The bytes requested.
        bytes: u64,
        /// The least bytes of a machine.
        least: u64,
    },
    /// The memory is larger than one zone can be.
    #[error("{bytes} bytes are more than a zone's maximum of {most} frames: give a smaller size")]
    TooLarge {
        /// The bytes requested.
        bytes: u64,
        /// The most frames of a zone.
        most: usize,
    },
}

impl Machine {
    /// Makes a machine of `bytes` of memory, from frame 0 on, in one zone; page blocks of order 9,
    /// blocks up to order 10.
    ///
    /// # Errors
    /// [`MachineError::TooSmall`] below four page blocks, [`MachineError::TooLarge`] above
    /// [`FRAMES_MOST`].
    pub fn sized(bytes: u64, cpus: usize, frame_bytes: usize) -> Result<Self, MachineError> {
        let block = Order::DEFAULT_MAX.frames();
        let frames = (bytes / frame_bytes as u64) as usize / block * block;
        let least = 4 * Order::HUGE.frames();
        if frames < least {
            let least = (least * frame_bytes) as u64;
            return Err(MachineError::TooSmall { bytes, least });
        }
        if frames > FRAMES_MOST {
            let most = FRAMES_MOST;
            return Err(MachineError::TooLarge { bytes, most });
        }
        let span = FrameRange::new(0, frames);
        let lowmem = watermark::kbytes_of_frames(frames, frame_bytes);
        Ok(Self {
            zones: vec![ZonePlace {
                node: 0,
                kind: ZoneKind::Normal,
                span,
            }],
            memory: vec![span],
            cpus: cpus.max(1),
            max_order: Order::DEFAULT_MAX,
            page_block_order: Order::HUGE,
            huge_order: Order::HUGE,
            frame_bytes,
            min_free_kbytes: watermark::min_free_kbytes(lowmem),
            sizing: Sizing::KernelCorePercent(50),
        })
    }

    /// The same machine with page blocks and huge pages of order `huge`, and blocks up to `max`.
    #[must_use]
    pub fn with_orders(mut self, huge: Order, max: Order) -> Self {
        self.page_block_order = huge;
        self.huge_order = huge;
        self.max_order = max;
        self
    }

    /// Makes the machine on which `trace` was recorded: its zones from zoneinfo, its memory from
    /// the states of its frames at the start.
    ///
    /// # Errors
    /// [`MachineError::Unknown`] where the trace does not record them, [`MachineError::Zoneinfo`]
    /// where zoneinfo cannot be parsed.
    pub fn recorded(trace: &Trace) -> Result<Self, MachineError> {
        if trace.header.start.zoneinfo.is_empty() {
            return Err(MachineError::Unknown);
        }
        let recorded = zoneinfo::parse(&trace.header.start.zoneinfo)
            .map_err(|error| MachineError::Zoneinfo(error.to_string()))?;
        let memory = memory_of(trace, &start::unmanaged(trace));
        if memory.is_empty() {
            return Err(MachineError::Unknown);
        }
        let mut zones = Vec::new();
        let mut min_frames = 0;
        for zone in recorded {
            let kind = ZoneKind::ALL
                .into_iter()
                .find(|kind| kind.name() == zone.name);
            let end = zone.start_pfn.saturating_add(zone.spanned);
            let (Some(kind), true) = (kind, zone.spanned > 0 && end < 1 << 48) else {
                continue;
            };
            min_frames += zone.min as usize;
            let span = FrameRange::new(zone.start_pfn as usize, end as usize);
            let inside = memory.iter().map(|range| range.intersection(span));
            // A zone may span far more frames than it has: shrink the span to its memory.
            let populated = inside.filter(|range| !range.is_empty());
            let around = populated.reduce(|first, last| FrameRange {
                start: first.start,
                end: last.end,
            });
            if let Some(span) = around {
                zones.push(ZonePlace {
                    node: zone.node,
                    kind,
                    span,
                });
            }
        }
        if zones.is_empty() {
            return Err(MachineError::Unknown);
        }
        zones.sort_by_key(|zone| (zone.node, zone.kind));
        zones.dedup_by_key(|zone| (zone.node, zone.kind));
        let header = &trace.header;
        let block = Order::try_new(header.page_block_order).filter(|order| order.get() > 0);
        let block = block.unwrap_or(Order::HUGE);
        let frame_bytes = header.frame_bytes.max(512) as usize;
        Ok(Self {
            zones,
            memory,
            cpus: usize::from(header.cpus.max(1)),
            max_order: highest_order(&header.start.buddyinfo).max(block),
            page_block_order: block,
            huge_order: block,
            frame_bytes,
            min_free_kbytes: watermark::kbytes_of_frames(min_frames, frame_bytes),
            sizing: Sizing::KernelCorePercent(50),
        })
    }

    /// The number of frames of memory.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.memory.iter().map(|range| range.len()).sum()
    }

    /// The range from the first frame of all zones to the last.
    #[must_use]
    pub fn span(&self) -> FrameRange {
        let start = self.zones.iter().map(|zone| zone.span.start).min();
        let end = self.zones.iter().map(|zone| zone.span.end).max();
        FrameRange {
            start: start.unwrap_or_default(),
            end: end.unwrap_or_default(),
        }
    }

    /// Returns the zones under `configuration`: if it has a zone for movable pages, that is split
    /// off the zones of the highest kind.
    #[must_use]
    pub fn zones_for(&self, configuration: Configuration) -> Vec<ZonePlace> {
        let highest = self.zones.iter().map(|zone| zone.kind).max();
        let Some(highest) = highest.filter(|&kind| kind < ZoneKind::Movable) else {
            return self.zones.clone();
        };
        if !configuration.has_movable_zone() {
            return self.zones.clone();
        }
        let mut nodes: Vec<u32> = self.zones.iter().map(|zone| zone.node).collect();
        nodes.dedup();
        let ranges: Vec<Vec<FrameRange>> = nodes.iter().map(|&node| self.memory_of(node)).collect();
        let ranges: Vec<&[FrameRange]> = ranges.iter().map(Vec::as_slice).collect();
        let of_highest = self.zones.iter().filter(|zone| zone.kind == highest);
        let lowest = of_highest
            .map(|zone| zone.span.start)
            .min()
            .unwrap_or_default();
        let mut starts = vec![None; nodes.len()];
        movable::starts(&ranges, lowest, self.sizing, self.max_order, &mut starts);
        let mut zones = Vec::new();
        for &zone in &self.zones {
            let place = nodes.iter().position(|&node| node == zone.node);
            let start = place.and_then(|place| starts[place]);
            match start.filter(|&start| zone.kind == highest && start < zone.span.end) {
                Some(start) => zones.extend(cut(zone, start)),
                None => zones.push(zone),
            }
        }
        zones
    }

    fn memory_of(&self, node: u32) -> Vec<FrameRange> {
        let mut ranges: Vec<FrameRange> = self
            .zones
            .iter()
            .filter(|zone| zone.node == node)
            .flat_map(|zone| {
                self.memory
                    .iter()
                    .map(|range| range.intersection(zone.span))
            })
            .filter(|range| !range.is_empty())
            .collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }
}

/// Splits a zone at `start`: the frames from there on are a zone for movable pages.
fn cut(zone: ZonePlace, start: Frame) -> impl Iterator<Item = ZonePlace> {
    let kept = ZonePlace {
        span: FrameRange {
            end: start.max(zone.span.start),
            ..zone.span
        },
        ..zone
    };
    let movable = ZonePlace {
        kind: ZoneKind::Movable,
        span: FrameRange {
            start: start.max(zone.span.start),
            ..zone.span
        },
        ..zone
    };
    [kept, movable]
        .into_iter()
        .filter(|zone| !zone.span.is_empty())
}

/// Returns all frames that, by their recorded states, belong to the allocator.
fn memory_of(trace: &Trace, left_out: &HashSet<usize>) -> Vec<FrameRange> {
    let mut memory: Vec<FrameRange> = Vec::new();
    for (place, run) in trace.start.iter().enumerate() {
        let usage = run.state.usage;
        if matches!(usage, PageUse::Hole | PageUse::Reserved) || left_out.contains(&place) {
            continue;
        }
        let (start, end) = (
            run.frame as usize,
            run.frame.saturating_add(run.frames) as usize,
        );
        match memory.last_mut() {
            Some(last) if last.end.number() == start => last.end = Frame::new(end),
            _ => memory.push(FrameRange::new(start, end)),
        }
    }
    memory
}

/// Returns the highest order that has a column in buddyinfo.
fn highest_order(buddyinfo: &str) -> Order {
    let columns = buddyinfo.lines().next().map(|line| {
        let numbers = line.split_whitespace().rev();
        numbers
            .take_while(|word| word.parse::<u64>().is_ok())
            .count()
    });
    let highest = columns.and_then(|columns| Order::try_new(columns.checked_sub(1)? as u8));
    highest.unwrap_or(Order::DEFAULT_MAX)
}
