//! What a complete pass over the frames says, and a sample of all there is at once.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use brickyard_host::blocks::{BlockKind, BlockSummary, BlockUse};
use brickyard_host::forecast::Forecasts;
use brickyard_host::look::{Depth, Look, ZoneLook};
use brickyard_host::{Host, HostError};
use brickyard_trace::PageUse;

use crate::frames::{FrameMap, block_runs};
use crate::sample::{
    Cost, Gigantic, Reading, Sample, Source, ZoneBlocks, gigantic_order, pool_free,
};

impl Reading {
    /// Makes the reading of a host's look that has the frames, which took so long to read. Takes some
    /// passes over the frames: about a second for 24 GiB.
    #[must_use]
    pub fn of(host: &Host, look: &Look, took: Duration) -> Self {
        let pinned = host.pinned();
        let order = look.page_block_order.get();
        let blocks = || look.zones.iter().flat_map(|zone| &zone.blocks);
        Self {
            time: look.time,
            took,
            block_order: look.page_block_order,
            zones: look.zones.iter().map(ZoneBlocks::of).collect(),
            by_use: look.by_use(),
            forecasts: Forecasts::new(look, look.huge_order, &pinned),
            pinned: (!host.processes_are_hidden()).then(|| pinned.pages()),
            gigantic: Gigantic::of(blocks(), order, gigantic_order(look.frame_bytes)),
            blocks: block_runs(blocks(), order),
            frames: FrameMap::of(&look.runs),
        }
    }
}

impl ZoneBlocks {
    fn of(zone: &ZoneLook) -> Self {
        Self {
            node: zone.info.node,
            zone: zone.info.name.clone(),
            blocks: BlockSummary::of(&zone.blocks),
        }
    }
}

impl Gigantic {
    /// Counts the regions of 2^`whole` frames in these page blocks of 2^`order` frames, which are
    /// in order.
    fn of<'a>(blocks: impl Iterator<Item = &'a BlockUse>, order: u8, whole: u8) -> Self {
        let each = 1_u64 << whole.saturating_sub(order);
        let (mut gigantic, mut free_frames) = (Self::default(), 0);
        // The region that the last block is in, its blocks that are free, and that could be.
        let (mut region, mut free, mut movable) = (None, 0, 0);
        for block in blocks {
            free_frames += u64::from(block.of_use(PageUse::Free));
            let own = block.frame >> whole;
            if region != Some(own) {
                (region, free, movable) = (Some(own), 0, 0);
            }
            let kind = block.kind();
            free += u64::from(kind == BlockKind::Free);
            movable += u64::from(matches!(kind, BlockKind::Free | BlockKind::Movable));
            // A block that zones share is here twice, but never whole.
            gigantic.free += u64::from(free == each);
            gigantic.movable += u64::from(movable == each);
            if movable == each {
                (free, movable) = (0, 0);
            }
        }
        let room = free_frames >> whole;
        gigantic.emptiable = gigantic.movable.min(room).max(gigantic.free);
        gigantic
    }
}

impl Sample {
    /// Takes everything that this user may read, at once.
    ///
    /// # Errors
    /// If zoneinfo or buddyinfo cannot be read.
    pub fn of(host: &Host) -> Result<Self, HostError> {
        let began = Instant::now();
        let mut look = Look::at(host, Depth::Everything, || 0, |_, _| {})?;
        let took = began.elapsed();
        let reading = (!look.runs.is_empty()).then(|| Arc::new(Reading::of(host, &look, took)));
        look.runs = Vec::new();
        for zone in &mut look.zones {
            zone.blocks = Vec::new();
            zone.outlook = Vec::new();
        }
        let withheld = look.withheld.iter().map(|why| Source {
            name: "frames or types",
            withheld: Some(why.to_string()),
        });
        let meminfo = host.meminfo().unwrap_or_default();
        Ok(Self {
            counters: host.vmstat().unwrap_or_default(),
            available: meminfo
                .get("MemAvailable")
                .map(|kib| kib.saturating_mul(1024)),
            pool_free: pool_free(&meminfo, &look),
            page_types: look.page_types.take().map(Arc::new),
            progress: reading.as_ref().map(|_| 1.0),
            reading,
            fallbacks: None,
            fallbacks_lost: 0,
            sources: withheld.collect(),
            cost: Cost::default(),
            look,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(index: u64, free: u32, movable: u32) -> BlockUse {
        let mut block = BlockUse {
            frame: index << 9,
            movable,
            stuck: 512 - free - movable,
            ..BlockUse::default()
        };
        block.by_use[PageUse::Free as usize] = free;
        block.by_use[PageUse::Anonymous as usize] = movable;
        block.by_use[PageUse::Slab as usize] = 512 - free - movable;
        block
    }

    #[test]
    fn gigantic_regions_are_aligned_and_need_room() {
        let free = |index| block(index, 512, 0);
        let movable = |index| block(index, 0, 512);
        let of = |blocks: &[BlockUse]| {
            let gigantic = Gigantic::of(blocks.iter(), 9, 18);
            (gigantic.free, gigantic.emptiable)
        };
        let all: Vec<_> = (512..1024).map(free).collect();
        assert_eq!(of(&all), (1, 1));
        let shifted: Vec<_> = (500..1012).map(free).collect();
        assert_eq!(of(&shifted), (0, 0));
        // A region full of movable memory can be emptied into another that is free.
        let mut two: Vec<_> = (0..512).map(movable).chain((512..1024).map(free)).collect();
        assert_eq!(of(&two), (1, 1), "there is room for one");
        assert_eq!(Gigantic::of(two.iter(), 9, 18).movable, 2);
        two.extend((1024..1536).map(free));
        assert_eq!(of(&two), (2, 2));
        two.extend((1536..2048).map(|index| block(index, 256, 256)));
        assert_eq!(of(&two), (2, 2));
        two.extend((2048..2560).map(|index| block(index, 256, 256)));
        assert_eq!(of(&two), (2, 3));
        two[700] = block(700, 511, 0);
        assert_eq!(of(&two), (1, 2));
    }

    #[test]
    fn a_region_has_a_gibibyte_whatever_a_frame_has() {
        let orders = [4096, 16 << 10, 64 << 10].map(gigantic_order);
        assert_eq!(orders, [18, 16, 14]);
    }
}
