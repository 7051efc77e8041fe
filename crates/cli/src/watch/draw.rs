//! The screen: title, zones, memory as cells beside curves and counts, keys. Made for 80 x 24; larger screens show more.

use core::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::app::{App, Pace, Page};
use super::heat::Paint;
use super::panes;
use crate::snapshot::figures::block_size;

/// Below this there is no use in drawing.
const LEAST: (u16, u16) = (60, 16);
/// Rows of the table of zones, its head not counted.
const ZONES_MOST: u16 = 6;
/// The width of what stands beside the cells.
const SIDE: u16 = 34;

const KEYS: &str = "q quit   space pause   z next zone   +/- interval   ? help";

const HELP: &str = "\
q, Ctrl-C   end                         z, Z   next, previous zone
space       pause and go on             +, -   longer, shorter interval
?           this page                   any other key leaves it

Zones: free memory; huge   blocks of the order that are free now
  compacted  how many at most after compaction and a drain of per-CPU lists (root)
  unusable   the part of free memory in smaller blocks, 0 to 1
  request    would one succeed now? fragmentation or lack of memory if not
  per-CPU    memory idle in per-CPU lists; mixed: page blocks that hold movable
             pages beside such as cannot be moved (root)

Cells: some page blocks each, in order of address, in the colour of what most of
  their memory is. The more of them are mixed, the more orange. per-CPU? are
  single pages without a flag: idle in a list, or the kernel's own.

Fell back: how often, who, the type it wanted < the type it took (Unmovable,
  Movable, Reclaimable), the order it wanted < the order it broke (root).";

/// Draws everything as it is at `now`, counted from the start.
pub(super) fn screen(app: &App, now: Duration, paint: Paint, screen: &mut Buffer) {
    let area = screen.area;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        let what = format!("needs {width} x {height}");
        screen.set_stringn(area.x, area.y, what, usize::from(area.width), Style::new());
        return;
    }
    let row = |y: u16, height: u16| Rect {
        y: area.y + y,
        height,
        ..area
    };
    title(app, row(0, 1), screen);
    let last = row(area.height - 1, 1);
    screen.set_stringn(last.x, last.y, KEYS, usize::from(last.width), faint());
    if app.page == Page::Help {
        let lines = HELP.lines().take(usize::from(area.height - 3));
        for (y, line) in (area.y + 2..).zip(lines) {
            screen.set_stringn(area.x, y, line, usize::from(area.width), Style::new());
        }
        return;
    }
    let zones = app.lists.as_ref().map_or(0, |look| look.zones.len());
    let zones = u16::try_from(zones).unwrap_or(u16::MAX).min(ZONES_MOST);
    panes::zones(app, row(1, zones + 1), screen);
    let body = row(zones + 3, area.height - zones - 4);
    let side = SIDE.min(body.width / 2);
    let left = Rect {
        width: body.width - side - 2,
        ..body
    };
    let right = Rect {
        x: body.right() - side,
        width: side,
        ..body
    };
    panes::memory(app, now, paint, left, screen);
    panes::side(app, right, screen);
}

fn title(app: &App, area: Rect, screen: &mut Buffer) {
    let look = app.lists.as_ref();
    let kernel = look.map(|look| look.kernel.as_str()).unwrap_or_default();
    let frame_bytes = look.map_or(4096, |look| look.frame_bytes);
    let size = block_size(app.order.get(), frame_bytes);
    let pace = match app.pace {
        Pace::Running => format!("every {} s", app.interval.as_secs_f64()),
        Pace::Paused => "PAUSED".into(),
    };
    let order = app.order;
    let title = format!("brickyard watch   Linux {kernel}   order {order}, {size}   {pace}");
    let width = usize::from(area.width);
    screen.set_stringn(
        area.x,
        area.y,
        format!("{title:<width$}"),
        width,
        selected(),
    );
}

/// What is not important.
pub(super) fn faint() -> Style {
    Style::new().fg(Color::DarkGray)
}

/// A head.
pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// What is chosen.
pub(super) fn selected() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}
