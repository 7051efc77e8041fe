//! A made-up machine under four page placements, as a page with a player and a PNG.
//!
//! `cargo run --release -p brickyard-pictures --example player -- [FOLDER] [SHOTS] [FILMS]` writes
//! `player.html` and `last.png`. Nothing here is measured: the machine allocates and
//! frees pages at random, so that there is something to look at.

use core::error::Error;
use std::{env, fs, fs::File, io::BufWriter, path::Path};

use brickyard_pictures::pagetypes::{Film, PageKind, Plan, ZoneSpan, html, png};

const FRAMES: usize = 1 << 18;
const BLOCK: usize = 1 << 10;
const BLOCKS: usize = FRAMES / BLOCK;
const SHOT_NS: u64 = 2_000_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Placement {
    /// Any free page.
    Anywhere,
    /// Blocks of a single page type, while unclaimed blocks last.
    Lists,
    /// Movable pages in an upper zone, all others in a lower one.
    Zones,
    /// `Lists` and `Zones` together.
    Combined,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments
        .next()
        .unwrap_or_else(|| "target/player".to_owned());
    let shots = arguments.next().map_or(Ok(60), |count| count.parse())?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let configurations = [
        ("vanilla", Placement::Anywhere),
        ("list-2007", Placement::Lists),
        ("zone-2007", Placement::Zones),
        ("combined-2007", Placement::Combined),
    ];
    let count = arguments
        .next()
        .map_or(Ok(configurations.len()), |count| count.parse())?;
    let films = configurations
        .iter()
        .take(count)
        .map(|&(name, placement)| film(name, placement, shots));
    let films = films.collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&Film> = films.iter().collect();
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    html::write(
        &all,
        "Kernel builds on 1 GiB, then rest (made up)",
        &mut create("player.html")?,
    )?;
    png::write(&films[0], films[0].len() - 1, &mut create("last.png")?)?;
    println!("{}", folder.join("player.html").display());
    Ok(())
}

fn film(name: &str, placement: Placement, shots: u64) -> Result<Film, Box<dyn Error>> {
    let zones = match placement {
        Placement::Anywhere | Placement::Lists => vec![zone("Normal", 0, FRAMES)],
        Placement::Zones | Placement::Combined => {
            let movable = FRAMES * 3 / 5 / BLOCK * BLOCK;
            vec![
                zone("Normal", 0, FRAMES - movable),
                zone("Movable", FRAMES - movable, movable),
            ]
        }
    };
    let plan = Plan {
        zones,
        box_order: 10,
        huge_order: 9,
        frame_bytes: 4096,
    };
    let mut film = Film::new(name.to_owned(), plan)?;
    let mut machine = Machine::new(placement);
    for shot in 0..shots {
        machine.work(shot, shots);
        let numbers = [
            ("allocations", machine.taken.to_string()),
            ("fallbacks", machine.strayed.to_string()),
        ];
        film.push(shot * SHOT_NS, &machine.kinds, &numbers)?;
    }
    Ok(film)
}

fn zone(name: &str, start: usize, frames: usize) -> ZoneSpan {
    ZoneSpan {
        name: name.to_owned(),
        start: start as u64,
        frames: frames as u64,
    }
}

struct Machine {
    placement: Placement,
    kinds: Vec<PageKind>,
    /// What each block was claimed for.
    claims: Vec<Option<PageKind>>,
    /// Runs in use: first page, length.
    held: Vec<(usize, usize)>,
    random: u64,
    taken: u64,
    strayed: u64,
}

impl Machine {
    fn new(placement: Placement) -> Self {
        let mut kinds = vec![PageKind::Free; FRAMES];
        kinds[..3 * BLOCK / 2].fill(PageKind::Unmovable);
        kinds[160..256].fill(PageKind::Absent);
        let mut claims = vec![None; BLOCKS];
        claims[..2].fill(Some(PageKind::Unmovable));
        Self {
            placement,
            kinds,
            claims,
            held: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15,
            taken: 0,
            strayed: 0,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % limit
    }

    /// Simulates two seconds: memory fills and churns; in the last fifth of the film most of it is
    /// freed.
    fn work(&mut self, shot: u64, shots: u64) {
        let rest = shot * 5 >= shots * 4;
        let full = if rest {
            FRAMES / 5
        } else {
            FRAMES / 5 + FRAMES * 18 / 25 * (shot as usize + 1) / shots as usize
        };
        for _ in 0..3000 {
            self.free_one();
        }
        let mut used = self
            .kinds
            .iter()
            .filter(|&&kind| kind != PageKind::Free)
            .count();
        while used > full && !self.held.is_empty() {
            used -= self.free_one();
        }
        while used < full {
            used += self.take_one().max(1);
        }
        self.settle();
    }

    /// Chooses anew which pages are under reclaim and which are on per-CPU lists.
    fn settle(&mut self) {
        for kind in &mut self.kinds {
            match kind {
                PageKind::UnderReclaim => *kind = PageKind::Movable,
                PageKind::PerCpu => *kind = PageKind::Free,
                _ => {}
            }
        }
        for _ in 0..120 {
            let (start, length) = (self.below(FRAMES), self.below(60));
            for kind in self.kinds.iter_mut().skip(start).take(length) {
                if *kind == PageKind::Movable {
                    *kind = PageKind::UnderReclaim;
                }
            }
        }
        for _ in 0..200 {
            let start = self.below(FRAMES);
            for kind in self.kinds.iter_mut().skip(start).take(4) {
                if *kind == PageKind::Free {
                    *kind = PageKind::PerCpu;
                }
            }
        }
    }

    /// Frees a run picked at random; of those that are not movable, only one in four. Returns how
    /// many pages it freed.
    fn free_one(&mut self) -> usize {
        let i = self.below(self.held.len().max(1));
        let Some(&(start, length)) = self.held.get(i) else {
            return 0;
        };
        let movable = matches!(
            self.kinds[start],
            PageKind::Movable | PageKind::UnderReclaim
        );
        if !movable && self.below(4) > 0 {
            return 0;
        }
        self.held.swap_remove(i);
        self.kinds[start..start + length].fill(PageKind::Free);
        let block = start / BLOCK;
        if self.kinds[block * BLOCK..(block + 1) * BLOCK]
            .iter()
            .all(|&kind| kind == PageKind::Free)
        {
            self.claims[block] = None;
        }
        length
    }

    fn take_one(&mut self) -> usize {
        let (kind, length) = match self.below(100) {
            0..=76 => (PageKind::Movable, 1 << self.below(5)),
            77..=91 => (PageKind::Reclaimable, 1 << self.below(4)),
            _ => (PageKind::Unmovable, 1 << self.below(3)),
        };
        let Some(start) = self.find(kind, length) else {
            return 0;
        };
        self.kinds[start..start + length].fill(kind);
        self.held.push((start, length));
        self.taken += 1;
        length
    }

    fn find(&mut self, kind: PageKind, length: usize) -> Option<usize> {
        let lists = matches!(self.placement, Placement::Lists | Placement::Combined);
        let zones = matches!(self.placement, Placement::Zones | Placement::Combined);
        let border = BLOCKS - BLOCKS * 3 / 5;
        let blocks = match kind {
            PageKind::Movable if zones => border..BLOCKS,
            _ if zones => 0..border,
            _ => 0..BLOCKS,
        };
        if lists {
            let own: Vec<usize> = blocks
                .clone()
                .filter(|&block| self.claims[block] == Some(kind))
                .collect();
            if let Some(start) = own
                .into_iter()
                .find_map(|block| self.room(block, 0, length))
            {
                return Some(start);
            }
            let fresh = |&block: &usize| self.claims[block].is_none();
            let unclaimed = if kind == PageKind::Movable && !zones {
                blocks.clone().rev().find(fresh)
            } else {
                blocks.clone().find(fresh)
            };
            if let Some(block) = unclaimed {
                self.claims[block] = Some(kind);
                return self.room(block, 0, length);
            }
            self.strayed += 1;
        }
        let tries = blocks.len();
        for _ in 0..tries {
            let block = blocks.start + self.below(blocks.len());
            let from = self.below(BLOCK);
            if let Some(start) = self
                .room(block, from, length)
                .or_else(|| self.room(block, 0, length))
            {
                return Some(start);
            }
        }
        if zones && kind == PageKind::Movable {
            (0..border).find_map(|block| self.room(block, 0, length))
        } else {
            None
        }
    }

    /// Returns the first page of the first aligned free run in a block, searching from its page
    /// `from` on.
    fn room(&self, block: usize, from: usize, length: usize) -> Option<usize> {
        let start = block * BLOCK + from / length * length;
        let pages = &self.kinds[start..(block + 1) * BLOCK];
        let free = |run: &[PageKind]| run.iter().all(|&kind| kind == PageKind::Free);
        pages
            .chunks_exact(length)
            .position(free)
            .map(|i| start + i * length)
    }
}
