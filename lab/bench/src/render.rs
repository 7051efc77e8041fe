//! Whether an allocator displaces what its user has in the CPU caches: Gorman's test of 2005. A
//! large file is rendered ten times, and the result is the mean of its user and system time.
//!
//! A rendering here is what a printer's program does with pages of text. Glyphs are merged into
//! bands of the picture, letter by letter, in an order that is the same each time. The memory of a
//! band is allocated and cleared when the band begins, and freed when it has been printed, some
//! bands later. Glyphs and bands together just fit in the second-level cache of a core, from which
//! cold pages or much metadata can displace them.
//!
//! Real time is by the clock. User and system time are by the thread's CPU clock, so neither
//! includes other work of the host. System time is the allocator's alone, without system calls and
//! traps; user time is all the rest, which is the rendering, on the pages that the allocator chose
//! and with what it left in the caches.

use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use brickyard_designs::classics::LabZone;

use super::masking::MemoryPlatform;
use super::pages::{Page, Pages, Work};
use brickyard_measure::clock::{cost_of_the_clock, cpu_of_this_thread};
use brickyard_run::Random;

/// Pages of glyphs: 512 KiB. With the bands in use that is 704 KiB; a core of most current machines
/// has a second-level cache of 1 MiB or more.
const GLYPH_PAGES: usize = 128;

/// Bytes of a glyph: 16 by 16 points.
const GLYPH: usize = 256;

/// Pages of a band.
const BAND_PAGES: usize = 16;

/// Letters of a band.
const LETTERS: usize = 1024;

/// Bands that wait for the printer.
const WAITING: usize = 2;

/// Bands of a rendering.
const BANDS: usize = 96;

/// Renderings, of which the mean is taken.
const RENDERINGS: u32 = 10;

/// Pages of memory that the test needs, with ample room for caches.
pub const PAGES: usize = 32 * GLYPH_PAGES;

/// The seed of the order of letters.
const TEXT: u64 = 2005;

/// Ten renderings of the same file.
#[derive(Debug, Clone, Copy)]
pub struct Render;

/// The times of a rendering, as the mean of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spent {
    /// From its start to its end.
    pub real: Duration,
    /// Rendering.
    pub user: Duration,
    /// In the allocator.
    pub sys: Duration,
    /// A checksum of the last picture: the same for every allocator.
    pub picture: u64,
}

impl Work for Render {
    /// `None` if the memory was too small.
    type Output = Option<Spent>;

    fn run<'a, Z: LabZone<Platform = MemoryPlatform<'a>>>(
        self,
        pages: &Pages<'_, 'a, Z>,
    ) -> Option<Spent> {
        let mut glyphs = Vec::new();
        for _ in 0..GLYPH_PAGES {
            glyphs.push(pages.take()?);
        }
        let mut random = Random::new(TEXT);
        for byte in glyphs.iter_mut().flat_map(|page| page.bytes()) {
            *byte = random.below(256) as u8;
        }
        let mut press = Press {
            pages,
            glyphs,
            waiting: VecDeque::new(),
            stretches: Stretches::default(),
        };
        // The first one warms up.
        press.render()?;
        press.stretches = Stretches::default();
        let (begun, cpu) = (Instant::now(), cpu_of_this_thread());
        let mut picture = 0;
        for _ in 0..RENDERINGS {
            picture = press.render()?;
        }
        let (real, cpu) = (begun.elapsed(), cpu_of_this_thread().saturating_sub(cpu));
        let sys = press.stretches.sum();
        press.glyphs.drain(..).for_each(|page| pages.give(page));
        Some(Spent {
            real: real / RENDERINGS,
            user: cpu.saturating_sub(sys) / RENDERINGS,
            sys: sys / RENDERINGS,
            picture,
        })
    }
}

/// The times spent in the allocator, some microseconds each: too short for the thread's CPU clock,
/// so they are by the wall clock.
#[derive(Debug, Default)]
struct Stretches(Vec<Duration>);

impl Stretches {
    /// Longer than any undisturbed stretch: the host did other work meanwhile.
    const INTERRUPTED: Duration = Duration::from_micros(50);

    /// Returns the sum, minus the cost of the clock. An interrupted stretch counts as much as the
    /// others on average.
    fn sum(&self) -> Duration {
        let clock = cost_of_the_clock();
        let whole = self.0.iter().filter(|&&time| time < Self::INTERRUPTED);
        let count = whole.clone().count();
        let sum: Duration = whole.map(|time| time.saturating_sub(clock)).sum();
        if count == 0 {
            return self.0.iter().sum();
        }
        sum.mul_f64(self.0.len() as f64 / count as f64)
    }
}

struct Press<'p, 'n, 'a, Z: LabZone> {
    pages: &'p Pages<'n, 'a, Z>,
    glyphs: Vec<Page<'a>>,
    waiting: VecDeque<Vec<Page<'a>>>,
    stretches: Stretches,
}

impl<'a, Z: LabZone<Platform = MemoryPlatform<'a>>> Press<'_, '_, 'a, Z> {
    /// Renders the file once. Returns the checksum of the picture; `None` if no page is left.
    fn render(&mut self) -> Option<u64> {
        let mut text = Random::new(TEXT);
        let mut sum = 0_u64;
        for _ in 0..BANDS {
            let mut band = self.take_band()?;
            for page in &mut band {
                page.bytes().fill(0);
            }
            self.typeset(&mut band, &mut text);
            sum = sum.wrapping_mul(31).wrapping_add(look(&mut band));
            self.waiting.push_back(band);
            if self.waiting.len() > WAITING {
                self.give_band();
            }
        }
        while !self.waiting.is_empty() {
            self.give_band();
        }
        Some(sum)
    }

    fn take_band(&mut self) -> Option<Vec<Page<'a>>> {
        let mut band = Vec::with_capacity(BAND_PAGES);
        let begun = Instant::now();
        for _ in 0..BAND_PAGES {
            band.push(self.pages.take()?);
        }
        self.stretches.0.push(begun.elapsed());
        Some(band)
    }

    /// Frees the band that has waited longest.
    fn give_band(&mut self) {
        let Some(band) = self.waiting.pop_front() else {
            return;
        };
        let begun = Instant::now();
        for page in band {
            self.pages.give(page);
        }
        self.stretches.0.push(begun.elapsed());
    }

    /// Merges letter after letter into the band.
    fn typeset(&mut self, band: &mut [Page<'a>], text: &mut Random) {
        const GLYPHS_A_PAGE: usize = 4096 / GLYPH;
        for letter in 0..LETTERS {
            let glyph = text.below(GLYPH_PAGES * GLYPHS_A_PAGE);
            let (from, at) = (glyph / GLYPHS_A_PAGE, glyph % GLYPHS_A_PAGE * GLYPH);
            let place = letter % (BAND_PAGES * GLYPHS_A_PAGE);
            let (to, into) = (place / GLYPHS_A_PAGE, place % GLYPHS_A_PAGE * GLYPH);
            let points = &self.glyphs[from].bytes()[at..][..GLYPH];
            let paper = &mut band[to].bytes()[into..][..GLYPH];
            for (paper, point) in paper.iter_mut().zip(points) {
                *paper = paper.wrapping_add(*point);
            }
        }
    }
}

/// Reads a few bytes of each page of a band, as a printer would.
fn look(band: &mut [Page<'_>]) -> u64 {
    let bytes = band
        .iter_mut()
        .flat_map(|page| page.bytes().iter().step_by(64));
    bytes.fold(0, |sum: u64, &byte| sum.rotate_left(5) ^ u64::from(byte))
}

#[cfg(test)]
mod tests {
    use brickyard_designs::classics::Configuration;

    use super::*;
    use crate::masking::Masking;
    use crate::pages::PageMemory;

    #[test]
    fn an_interrupted_stretch_counts_as_the_others_do() {
        let micros = |micros| Duration::from_micros(micros);
        let stretches = Stretches(vec![micros(20), micros(5000), micros(40)]);
        let sum = stretches.sum();
        // 90 us, minus the cost of the clock.
        assert!(sum > micros(60) && sum <= micros(90), "{sum:?}");
        assert_eq!(Stretches(vec![micros(70)]).sum(), micros(70));
        assert_eq!(Stretches::default().sum(), Duration::ZERO);
    }

    #[test]
    #[ignore = "slow: .ci/jobs/slow runs it"]
    fn the_picture_is_the_same_for_every_allocator() {
        let mut memory = PageMemory::new(PAGES).unwrap();
        let mut pictures = Vec::new();
        for configuration in Configuration::ALL {
            let spent = memory
                .with(configuration, Masking::Flags, Render)
                .unwrap()
                .unwrap();
            assert!(spent.sys > Duration::ZERO && spent.user > Duration::ZERO);
            pictures.push(spent.picture);
        }
        assert!(
            pictures
                .iter()
                .all(|&picture| picture == pictures[0] && picture != 0)
        );
    }
}
