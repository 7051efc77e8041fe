//! What the events of a trace show of its start, completed by what is drawn.

use std::collections::HashMap;

use brickyard::{MigrateType, Order};
use brickyard_run::Dice;

use crate::pages::PageId;
use crate::script::Draw;

use super::matching::{Contents, Matching};
use super::ticks::TICK;
use super::{First, Idle, Inference, Inferring, Known, LIST_ORDERS};

/// One draw.
pub(super) struct Drawing<'d> {
    of: &'d Inferring<'d>,
    excluded: Option<&'d HashMap<usize, u8>>,
    dice: Dice,
    known: Known,
}

impl<'d> Drawing<'d> {
    pub(super) fn new(of: &'d Inferring<'d>, draw: &Draw<'d>) -> Self {
        Self {
            of,
            excluded: draw.excluded,
            dice: Dice::new(draw.seed),
            known: Known::default(),
        }
    }

    /// Returns what all events show, and what is drawn.
    pub(super) fn infer(mut self) -> Inference {
        let types = self.types();
        let idle = self.idle(&types);
        let mut listed: Vec<(usize, MigrateType)> = types
            .iter()
            .enumerate()
            .filter(|&(_, &kind)| kind != MigrateType::Movable)
            .map(|(block, &kind)| (block, kind))
            .collect();
        listed.sort_unstable_by_key(|&(block, _)| block);
        let drawn = self.dice.below(TICK);
        Inference {
            idle,
            types: listed,
            limits: self.of.limits(),
            first_ticks: self.of.ticks.first(drawn),
            known: self.known,
        }
    }

    /// Returns the type of each page block.
    fn types(&mut self) -> Vec<MigrateType> {
        let size = 1_usize << self.of.block_order;
        let blocks = self.of.pages.div_ceil(size);
        let mut types = vec![MigrateType::Movable; blocks];
        let contents: Vec<Contents> = (0..blocks).map(|block| self.of.contents(block)).collect();
        let mut fixed = vec![false; blocks];
        for (&block, &kind) in &self.of.shown {
            if block < blocks && kind != MigrateType::Isolate {
                types[block] = kind;
                fixed[block] = true;
                self.known.types_shown += 1;
            }
        }
        for zone in 0..self.of.zones.len() {
            let part = self.of.part(
                self.of.zones[zone].from,
                self.of.zones[zone].to - self.of.zones[zone].from,
            );
            // A zone may begin within a page block, as the first one does.
            let range = part.start / size..part.end.div_ceil(size);
            self.types_of_zone(zone, range, &contents, &fixed, &mut types);
        }
        types
    }

    fn types_of_zone(
        &mut self,
        zone: usize,
        range: core::ops::Range<usize>,
        contents: &[Contents],
        fixed: &[bool],
        types: &mut [MigrateType],
    ) {
        let Some(counts) = self.of.zones[zone].blocks else {
            // Only the contents tell.
            for block in range {
                if !fixed[block] && contents[block].unmovable() > 0 {
                    types[block] = match contents[block].slab > contents[block].other {
                        true => MigrateType::Reclaimable,
                        false => MigrateType::Unmovable,
                    };
                }
            }
            return;
        };
        let mut missing = counts;
        for block in range.clone() {
            if fixed[block] {
                let count = &mut missing[types[block].index()];
                *count = count.saturating_sub(1);
            }
        }
        let mut wanted = self.of.zones[zone].free;
        for block in range.clone().filter(|&block| fixed[block]) {
            let row = &mut wanted[types[block].index()];
            for (sum, &chunks) in row.iter_mut().zip(&contents[block].chunks) {
                *sum -= i64::from(chunks);
            }
        }
        let open: Vec<usize> = range.filter(|&block| !fixed[block]).collect();
        let before = (self.of.base >> self.of.block_order) as usize;
        let excluded = |block: &usize| self.excluded?.get(&(before + block)).copied();
        let excluded = open
            .iter()
            .map(|block| excluded(block).unwrap_or(0))
            .collect();
        let mut matching = Matching::new(contents, open, excluded, wanted);
        for kind in [MigrateType::Unmovable, MigrateType::Reclaimable] {
            matching.begin(kind, missing[kind.index()] as usize);
        }
        matching.improve(&mut self.dice);
        for (block, kind) in matching.members() {
            types[block] = kind;
            self.known.types_drawn += 1;
        }
    }

    /// Returns the free blocks in lists.
    fn idle(&mut self, types: &[MigrateType]) -> Vec<Idle> {
        let kind_of = |page: usize| types[page >> self.of.block_order];
        // By when they leave: first what goes back to the zone from the cold end, then what never
        // leaves, last what is handed out, latest first.
        let (mut back, mut out) = (Vec::new(), Vec::new());
        let mut left: Vec<Vec<u64>> = self.of.zones.iter().map(|zone| zone.counts()).collect();
        self.known.idle_counted = left.iter().flatten().copied().fold(0, u64::saturating_add);
        for page in 0..self.of.pages {
            if !self.of.is_unknown(page) {
                continue;
            }
            let (place, order, cpu, leaves) = match self.of.first.get(&(page as u32)) {
                Some(&First::Out(place, order, cpu)) => (place, order, cpu, &mut out),
                Some(&First::Back(place, order, cpu)) => (place, order, cpu, &mut back),
                Some(First::Other) | None => continue,
            };
            let end = (page + order.frames()).min(self.of.pages);
            if !(page..end).all(|page| self.of.is_unknown(page)) {
                continue;
            }
            let idle = Idle {
                page: PageId(page as u32),
                order,
                cpu,
                kind: kind_of(page),
            };
            let frames = order.frames() as u64;
            self.known.idle_shown += frames;
            let own = self
                .of
                .zone_of(page)
                .and_then(|zone| left[zone].get_mut(usize::from(cpu)));
            if let Some(own) = own {
                *own = own.saturating_sub(frames);
            }
            leaves.push((place, idle));
        }
        back.sort_by_key(|&(place, _)| place);
        out.sort_by_key(|&(place, _)| core::cmp::Reverse(place));
        let drawn = self.draw(types, &left);
        let shown = |of: Vec<(u32, Idle)>| of.into_iter().map(|(_, idle)| idle);
        shown(back).chain(drawn).chain(shown(out)).collect()
    }

    /// Draws blocks for the lists that were never empty, as many frames as events show too few in
    /// all lists of a CPU: the largest first, since what is large and idle as a whole hardly lies
    /// so by chance.
    fn draw(&mut self, types: &[MigrateType], left: &[Vec<u64>]) -> Vec<Idle> {
        let mut drawn = Vec::new();
        let mut taken = vec![false; self.of.pages];
        for (zone, left) in left.iter().enumerate() {
            let mut left = left.clone();
            for order in (0..LIST_ORDERS).rev() {
                let size = 1 << order;
                let cpus = left.iter().zip(&self.of.emptied).enumerate();
                let open = cpus.filter(|(_, (_, emptied))| !emptied[order]);
                let places = open.flat_map(|(cpu, (&frames, _))| {
                    (0..frames / size as u64).map(move |_| cpu as u32)
                });
                let places: Vec<u32> = places.take(self.of.pages).collect();
                if places.is_empty() {
                    continue;
                }
                let likely = self.likely(zone, types, &taken, size);
                let blocks = self.some_of(likely, places.len());
                let cpus = self.some_of(places, blocks.len());
                for (page, cpu) in blocks.into_iter().zip(cpus) {
                    taken[page as usize..page as usize + size].fill(true);
                    left[cpu as usize] -= size as u64;
                    self.known.idle_drawn += size as u64;
                    drawn.push(Idle {
                        page: PageId(page),
                        order: Order::new(order as u8),
                        cpu: cpu as u16,
                        kind: MigrateType::Movable,
                    });
                }
            }
        }
        drawn
    }

    /// Returns the blocks of `size` frames of a zone that may lie in a list: of unknown use, not
    /// mentioned by events, not `taken`, in page blocks of movable pages. Hardly anything of
    /// unknown use is in use there.
    fn likely(&self, zone: usize, types: &[MigrateType], taken: &[bool], size: usize) -> Vec<u32> {
        let (from, to) = (self.of.zones[zone].from, self.of.zones[zone].to);
        let part = self.of.part(from, to - from);
        let is_likely = |page: usize| {
            let movable = types[page >> self.of.block_order] == MigrateType::Movable;
            movable && self.of.is_unknown(page) && !self.of.mentioned[page] && !taken[page]
        };
        let blocks = (part.start.next_multiple_of(size)..part.end).step_by(size);
        blocks
            .filter(|&first| first + size <= part.end)
            .filter(|&first| (first..first + size).all(is_likely))
            .map(|first| first as u32)
            .collect()
    }

    /// Returns `wanted` of these pages, at random.
    fn some_of(&mut self, mut pages: Vec<u32>, wanted: usize) -> Vec<u32> {
        let wanted = wanted.min(pages.len());
        for place in 0..wanted {
            let other = place + self.dice.below((pages.len() - place) as u64) as usize;
            pages.swap(place, other);
        }
        pages.truncate(wanted);
        pages
    }
}
