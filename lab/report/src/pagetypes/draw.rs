//! [`Artist`]: draws the shots of a film as pictures of one size.
//!
//! From the top: the film's name; time and number of the shot, and the number of free huge pages;
//! the numbers pushed with the shot; the legend with each kind's share; the boxes; the sizes of a
//! pixel, a box and a row, and the zones.

use super::{
    PictureError,
    canvas::{GROUND, INK, PALE_INK, Picture},
    film::{Caption, Film, Shot},
    font,
    kind::PageKind,
    layout::{Fit, Layout},
    words::{duration, notes, percent, wrap},
};

/// The least width, so that the legend has room.
const WIDTH_MIN: u32 = 560;

/// Draws the shots of one film.
#[derive(Clone, Debug)]
pub struct Artist<'a> {
    film: &'a Film,
    layout: Layout,
    /// Pixels per dot of the font.
    dot: u32,
    /// The numbers' names and positions in the picture.
    numbers: Vec<(&'a str, (u32, u32))>,
    /// The legend's entries and positions.
    legend: Vec<(PageKind, (u32, u32))>,
    /// The left upper corner of the field of boxes.
    field: (u32, u32),
    /// The parts that are the same in each shot.
    blank: Picture,
}

impl<'a> Artist<'a> {
    /// Lays out the pictures of `film`. Cost: one pass over the numbers of all shots.
    #[must_use]
    pub fn new(film: &'a Film, fit: Fit) -> Self {
        let layout = Layout::new(film.plan(), fit);
        let (field_width, field_height) = layout.size();
        let dot = if field_width >= 900 { 2 } else { 1 };
        let width = field_width.max(WIDTH_MIN) + 2 * margin(dot);

        let mut flow = Flow {
            left: margin(dot),
            right: width - margin(dot),
            x: margin(dot),
            y: margin(dot),
            line: line(dot),
        };
        flow.y += line(dot + 1) + line(dot);
        let numbers = place_numbers(film, &mut flow, dot);
        flow.new_line();
        flow.y += 2 * dot;
        let zones = flow.take(text_width("zone starts", dot) + 2 * line(dot));
        let legend = legend_kinds(film)
            .into_iter()
            .map(|kind| (kind, flow.take(legend_width(kind, dot))))
            .collect();
        flow.new_line();
        let field = ((width - field_width) / 2, flow.y + 2 * dot);

        let notes = notes(&layout, film);
        let notes = notes
            .iter()
            .flat_map(|note| wrap(note, (width - 2 * margin(dot)) / (font::ADVANCE * dot)));
        let notes: Vec<String> = notes.collect();
        let notes_top = field.1 + field_height + 3 * dot;
        let lines = u32::try_from(notes.len()).expect("a few lines");
        let height = notes_top + lines * line(dot) + margin(dot);

        let mut blank = Picture::new(width, height);
        blank.text((margin(dot), margin(dot)), film.name(), dot + 1, INK);
        draw_zone_key(&mut blank, zones, dot);
        for (i, note) in (0..).zip(&notes) {
            blank.text(
                (margin(dot), notes_top + i * line(dot)),
                note,
                dot,
                PALE_INK,
            );
        }
        draw_boundaries(&mut blank, &layout, field);
        Self {
            film,
            layout,
            dot,
            numbers,
            legend,
            field,
            blank,
        }
    }

    /// The width in pixels, of every shot.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.blank.width()
    }

    /// The height in pixels, of every shot.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.blank.height()
    }

    /// The scale: a cell is 2^scale pages.
    #[must_use]
    pub fn scale(&self) -> u8 {
        self.layout.grid.scale
    }

    /// The side of a cell's square, in pixels.
    #[must_use]
    pub fn cell(&self) -> u32 {
        self.layout.cell
    }

    /// Returns the left upper pixel of the cell with frame `frame` of zone `zone`, both counted
    /// from 0; `None` if there is no such frame.
    #[must_use]
    pub fn pixel_of(&self, zone: usize, frame: u64) -> Option<(u32, u32)> {
        let (x, y) = self.layout.pixel_of(zone, frame)?;
        Some((self.field.0 + x, self.field.1 + y))
    }

    /// Draws shot `i`.
    ///
    /// # Errors
    ///
    /// [`PictureError::NoSuchShot`].
    pub fn draw(&self, i: usize) -> Result<Picture, PictureError> {
        let shot = self.film.shot(i).ok_or(PictureError::NoSuchShot {
            shot: i,
            shots: self.film.len(),
        })?;
        Ok(self.draw_shot(i, &shot))
    }

    /// Draws all shots, first to last. Cost: less than [`draw`](Self::draw) on each.
    pub fn draw_all(&self) -> impl Iterator<Item = Picture> {
        self.film
            .shots()
            .enumerate()
            .map(|(i, shot)| self.draw_shot(i, &shot))
    }

    fn draw_shot(&self, i: usize, shot: &Shot) -> Picture {
        let mut picture = self.blank.clone();
        let caption = &self.film.captions()[i];
        let dot = self.dot;
        let top = margin(dot) + line(dot + 1);
        let time = format!(
            "{:<12} shot {} of {}",
            duration(self.film.since_first(i)),
            i + 1,
            self.film.len()
        );
        picture.text((margin(dot), top), &time, dot, INK);
        let huge = format!("huge pages free: {}", caption.free_huge);
        let right = self.width() - margin(dot);
        picture.text(
            (right.saturating_sub(text_width(&huge, dot)), top),
            &huge,
            dot,
            INK,
        );
        for (name, value) in &shot.numbers {
            if let Some((_, at)) = self.numbers.iter().find(|(known, _)| known == name) {
                picture.text(*at, name, dot, PALE_INK);
                picture.text(
                    (at.0 + text_width(name, dot) + font::ADVANCE * dot, at.1),
                    value,
                    dot,
                    INK,
                );
            }
        }
        self.draw_legend(&mut picture, caption);
        self.draw_cells(&mut picture, &self.layout.grid.pool(&shot.kinds));
        picture
    }

    fn draw_legend(&self, picture: &mut Picture, caption: &Caption) {
        let dot = self.dot;
        let present = caption.counts.iter().sum::<u64>() - caption.counts[PageKind::Absent.index()];
        for &(kind, (x, y)) in &self.legend {
            let side = 9 * dot;
            picture.fill((x, y - dot), (side, side), PALE_INK);
            picture.fill((x + 1, y - dot + 1), (side - 2, side - 2), kind as u8);
            let dark = matches!(kind, PageKind::Reclaimable | PageKind::Unmovable);
            let letter = if dark { GROUND } else { INK };
            picture.text((x + 2 * dot, y), &kind.letter().to_string(), dot, letter);
            let count = caption.counts[kind.index()];
            let text = match kind {
                PageKind::Absent => kind.name().to_owned(),
                _ => format!("{} {:.1}%", kind.name(), percent(count, present)),
            };
            picture.text((x + 12 * dot, y), &text, dot, INK);
        }
    }

    fn draw_cells(&self, picture: &mut Picture, cells: &[u8]) {
        let side = (self.layout.cell, self.layout.cell);
        let mut rest = cells.iter();
        for (zone, first) in self.layout.grid.zones.iter().zip(self.layout.zone_boxes()) {
            for i in 0..zone.cells {
                let (x, y) = self.layout.cell_at(first, zone.lead + i);
                let color = *rest.next().expect("a cell for each place of the grid");
                picture.fill((self.field.0 + x, self.field.1 + y), side, color);
            }
        }
    }
}

/// Places entries side by side, and starts a new line where one does not fit.
struct Flow {
    left: u32,
    right: u32,
    x: u32,
    y: u32,
    line: u32,
}

impl Flow {
    fn take(&mut self, width: u32) -> (u32, u32) {
        if self.x > self.left && self.x.saturating_add(width) > self.right {
            self.new_line();
        }
        let at = (self.x, self.y);
        self.x = self.x.saturating_add(width);
        at
    }

    fn new_line(&mut self) {
        if self.x > self.left {
            self.x = self.left;
            self.y += self.line;
        }
    }
}

fn place_numbers<'a>(film: &'a Film, flow: &mut Flow, dot: u32) -> Vec<(&'a str, (u32, u32))> {
    let mut widths: Vec<(&str, u32)> = Vec::new();
    for (name, value) in film.captions().iter().flat_map(|caption| &caption.numbers) {
        let width = text_width(name, dot) + text_width(value, dot) + 3 * font::ADVANCE * dot;
        match widths.iter_mut().find(|(known, _)| known == name) {
            Some((_, widest)) => *widest = width.max(*widest),
            None => widths.push((name, width)),
        }
    }
    widths
        .into_iter()
        .map(|(name, width)| (name, flow.take(width)))
        .collect()
}

/// Returns the kinds of the legend: all, but "no memory" only if some shot has such a frame.
fn legend_kinds(film: &Film) -> Vec<PageKind> {
    let absent = film
        .captions()
        .iter()
        .any(|caption| caption.counts[PageKind::Absent.index()] > 0);
    let order = [
        PageKind::Movable,
        PageKind::UnderReclaim,
        PageKind::Reclaimable,
        PageKind::Unmovable,
        PageKind::PerCpu,
        PageKind::Free,
        PageKind::Absent,
    ];
    order
        .into_iter()
        .filter(|&kind| absent || kind != PageKind::Absent)
        .collect()
}

fn draw_zone_key(picture: &mut Picture, (x, y): (u32, u32), dot: u32) {
    let side = 9 * dot;
    picture.fill((x, y - dot), (side, side), INK);
    picture.fill((x + dot, y), (side - dot, side - dot), PageKind::Free as u8);
    picture.text((x + 12 * dot, y), "zone starts", dot, INK);
}

/// Draws an outline to the left of and above each box where a zone starts.
fn draw_boundaries(picture: &mut Picture, layout: &Layout, field: (u32, u32)) {
    let ((width, height), gap) = (layout.pitch(), layout.gap);
    for first in layout.zone_boxes() {
        let (x, y) = layout.box_at(first);
        let corner = (field.0 + x - gap, field.1 + y - gap);
        picture.fill(corner, (width, gap), INK);
        picture.fill(corner, (gap, height), INK);
    }
}

fn margin(dot: u32) -> u32 {
    8 * dot
}

fn line(dot: u32) -> u32 {
    (font::HEIGHT + 4) * dot
}

fn text_width(text: &str, dot: u32) -> u32 {
    font::width(text).saturating_mul(dot)
}

fn legend_width(kind: PageKind, dot: u32) -> u32 {
    let share = if kind == PageKind::Absent {
        ""
    } else {
        " 100.0%"
    };
    12 * dot + text_width(kind.name(), dot) + text_width(share, dot) + 2 * font::ADVANCE * dot
}
