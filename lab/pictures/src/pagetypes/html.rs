//! Films as one self-contained page with a player: `player/` holds its text, style and script.
//!
//! Nothing is fetched, and only the player's own script runs: the page's [`policy`] forbids all
//! else. Shots are embedded as the film's own zlib streams in base64, every sixteenth a key, so
//! that the player decodes only the shots it shows. Outside texts (names, numbers) are embedded as
//! JSON in which `<`, `>` and `&` are escaped, and the script inserts them as text.

use std::io::{self, Write};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use serde::Serialize;

use super::{
    PictureError,
    film::Film,
    grid::{Grid, SCALE_MAX, ZoneGrid},
    kind::{Color, PageKind},
    reel::{Coding, KEY_EVERY, Reel, checksum},
};
use crate::markup::{self, Escaped, escape_json};
use crate::policy;

/// The most cells of a film: in larger memory a cell is 2, 4, 8 ... pages.
const FILM_CELLS_MAX: u64 = 1 << 22;

/// The most cells of all shots of all films of a page: a browser decodes them in a few seconds, and
/// they determine the page's size.
const PAGE_CELLS_MAX: u64 = 1 << 29;

const PAGE: &str = include_str!("player/page.html");
const STYLE: &str = include_str!("player/style.css");
const SCRIPTS: [&str; 7] = [
    include_str!("player/film.js"),
    include_str!("player/words.js"),
    include_str!("player/geometry.js"),
    include_str!("player/picture.js"),
    include_str!("player/chart.js"),
    include_str!("player/player.js"),
    include_str!("player/selftest.js"),
];

/// Writes `films` side by side as one page with the title `title`. They play in step, by the time
/// since each film's first shot. Cost: memory larger than four million pages is compressed anew;
/// otherwise the stored streams are copied.
///
/// # Errors
///
/// [`PictureError::NoFilm`] without a film, [`PictureError::NoSuchShot`] if one is empty,
/// [`PictureError::Write`] if writing to `out` fails.
pub fn write(films: &[&Film], title: &str, out: &mut impl Write) -> Result<(), PictureError> {
    if films.is_empty() {
        return Err(PictureError::NoFilm);
    }
    if films.iter().any(|film| film.is_empty()) {
        return Err(PictureError::NoSuchShot { shot: 0, shots: 0 });
    }
    let scale = scale(films);
    let scenes: Vec<Scene<'_>> = films.iter().map(|film| Scene::new(film, scale)).collect();
    write_page(&scenes, title, out).map_err(PictureError::Write)
}

/// Returns the text of the player's script element, for the policy of a page that embeds such a
/// page in a frame. It is the same in every page that this version writes.
#[must_use]
pub fn script() -> String {
    markup::script(&SCRIPTS)
}

/// Returns the scale of all films of a page, a common one so that they can be compared: the least
/// that keeps within both limits.
fn scale(films: &[&Film]) -> u8 {
    let grids = |scale: u8| {
        films
            .iter()
            .map(move |film| (Grid::new(film.plan(), scale).cells(), film.len() as u64))
    };
    let fits = |&scale: &u8| {
        let all: u64 = grids(scale)
            .map(|(cells, shots)| cells.saturating_mul(shots))
            .sum();
        all <= PAGE_CELLS_MAX && grids(scale).all(|(cells, _)| cells <= FILM_CELLS_MAX)
    };
    (0..SCALE_MAX).find(fits).unwrap_or(SCALE_MAX)
}

/// A film at the page's scale.
struct Scene<'a> {
    film: &'a Film,
    grid: Grid,
    /// The film in fewer cells and their checksums, where the page's scale is above 0.
    pooled: Option<(Reel, Vec<u32>)>,
}

impl<'a> Scene<'a> {
    fn new(film: &'a Film, scale: u8) -> Self {
        let grid = Grid::new(film.plan(), scale);
        let pooled = (scale > 0).then(|| {
            let mut reel = Reel::new(
                usize::try_from(grid.cells()).expect("a cell is at least a page in memory"),
            );
            let mut sums = Vec::new();
            for shot in film.shots() {
                let cells = grid.pool(&shot.kinds);
                sums.push(checksum(&cells));
                reel.push(cells.into_iter());
            }
            (reel, sums)
        });
        Self { film, grid, pooled }
    }

    fn reel(&self) -> &Reel {
        self.pooled
            .as_ref()
            .map_or(self.film.reel(), |(reel, _)| reel)
    }

    fn about(&self) -> AboutFilm<'_> {
        let plan = self.film.plan();
        let zones = plan.zones.iter().zip(&self.grid.zones);
        let shots = self
            .film
            .captions()
            .iter()
            .zip(self.reel().streams())
            .enumerate();
        AboutFilm {
            name: self.film.name(),
            scale: self.grid.scale,
            box_order: self.grid.box_order,
            block_order: plan.box_order,
            huge_order: plan.huge_order,
            frame_bytes: plan.frame_bytes,
            zones: zones
                .map(|(zone, grid)| AboutZone {
                    name: &zone.name,
                    grid,
                })
                .collect(),
            shots: shots
                .map(|(i, (caption, stream))| AboutShot {
                    seconds: self.film.since_first(i) as f64 / 1e9,
                    key: stream.coding == Coding::Key,
                    checksum: self
                        .pooled
                        .as_ref()
                        .map_or(caption.checksum, |(_, sums)| sums[i]),
                    counts: &caption.counts,
                    free_huge: caption.free_huge,
                    numbers: &caption.numbers,
                })
                .collect(),
        }
    }
}

/// The description of all films that the script reads first.
#[derive(Serialize)]
struct About<'a> {
    key_every: usize,
    kinds: Vec<AboutKind>,
    films: Vec<AboutFilm<'a>>,
}

#[derive(Serialize)]
struct AboutKind {
    name: &'static str,
    letter: char,
    light: String,
    dark: String,
}

#[derive(Serialize)]
struct AboutFilm<'a> {
    name: &'a str,
    scale: u8,
    box_order: u8,
    block_order: u8,
    huge_order: u8,
    frame_bytes: u32,
    zones: Vec<AboutZone<'a>>,
    shots: Vec<AboutShot<'a>>,
}

#[derive(Serialize)]
struct AboutZone<'a> {
    name: &'a str,
    #[serde(flatten)]
    grid: &'a ZoneGrid,
}

#[derive(Serialize)]
struct AboutShot<'a> {
    seconds: f64,
    key: bool,
    checksum: u32,
    counts: &'a [u64],
    free_huge: u64,
    numbers: &'a [(String, String)],
}

fn write_page(scenes: &[Scene<'_>], title: &str, out: &mut impl Write) -> io::Result<()> {
    let script = script();
    markup::fill(PAGE, out, |marker, out| match marker {
        "title" => write!(out, "{}", Escaped(title)),
        "style" => out.write_all(STYLE.as_bytes()),
        "about" => out.write_all(about(scenes)?.as_bytes()),
        "films" => write_streams(scenes, out),
        "policy" => out.write_all(policy::of(&[&script]).as_bytes()),
        "script" => out.write_all(script.as_bytes()),
        other => unreachable!("the page has no marker {other}"),
    })
}

fn about(scenes: &[Scene<'_>]) -> io::Result<String> {
    let kinds = PageKind::ALL.map(|kind| AboutKind {
        name: kind.name(),
        letter: kind.letter(),
        light: hex(kind.color()),
        dark: hex(kind.dark_color()),
    });
    let films = scenes.iter().map(Scene::about).collect();
    let about = About {
        key_every: KEY_EVERY,
        kinds: kinds.into(),
        films,
    };
    Ok(escape_json(&serde_json::to_string(&about)?))
}

/// Writes one element per film: its shots' streams in base64, separated by spaces.
fn write_streams(scenes: &[Scene<'_>], out: &mut impl Write) -> io::Result<()> {
    for (i, scene) in scenes.iter().enumerate() {
        write!(out, "<script type=\"text/plain\" id=\"film-{i}\">")?;
        for (shot, stream) in scene.reel().streams().iter().enumerate() {
            if shot > 0 {
                out.write_all(b" ")?;
            }
            let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
            encoder.write_all(&stream.bytes)?;
            encoder.finish()?;
        }
        out.write_all(b"</script>\n")?;
    }
    Ok(())
}

fn hex([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_has_no_markup() {
        assert_eq!(
            Escaped("</title><script>&\"'").to_string(),
            "&lt;/title&gt;&lt;script&gt;&amp;&quot;&#39;"
        );
        assert_eq!(
            escape_json("\"</script><!--&\""),
            "\"\\u003c/script\\u003e\\u003c!--\\u0026\""
        );
    }

    #[test]
    fn the_policy_is_of_the_pages_own_script() {
        assert!(!PAGE.contains("unsafe-inline"));
        assert!(PAGE.contains(r#"content="{{policy}}""#));
        // The script's text starts and ends at the element's tags.
        assert_eq!(PAGE.matches("<script>{{script}}</script>").count(), 1);
        assert_eq!(PAGE.matches("<script>").count(), 1);
    }

    #[test]
    fn no_script_ends_its_own_element() {
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
