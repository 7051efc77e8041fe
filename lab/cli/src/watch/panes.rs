//! The parts of the screen.

use brickyard_run::terminal::wrapped;
use core::time::Duration;

use brickyard::Order;
use brickyard_host::look::{Look, ZoneLook};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::{Sparkline, Widget};

use super::app::{App, Fallbacks, Point};
use super::draw::{bold, faint, selected};
use super::heat::{self, Paint};
use crate::snapshot::figures::{amount, block_size, named_zones, summary};
use crate::snapshot::words::{request_word, thousandths};

/// Draws the table of zones, scrolled so that the selected one is visible.
pub(super) fn zones(app: &App, area: Rect, screen: &mut Buffer) {
    let Some(look) = &app.lists else { return };
    let head = zone_line(
        [
            "zone",
            "free",
            "huge",
            "compacted",
            "unusable",
            "request",
            "per-CPU",
            "mixed",
        ]
        .map(String::from),
    );
    put(screen, area, 0, &head, bold());
    let rows = usize::from(area.height.saturating_sub(1));
    let first = app.selected.saturating_sub(rows.saturating_sub(1));
    let named = named_zones(look);
    for (y, (place, (name, zone))) in (1..).zip(named.iter().enumerate().skip(first).take(rows)) {
        let style = if place == app.selected {
            selected()
        } else {
            Style::new()
        };
        let seen = app
            .frames
            .as_ref()
            .and_then(|frames| frames.look.zones.get(place));
        put(
            screen,
            area,
            y,
            &zone_line(zone_cells(app, look, name, zone, seen)),
            style,
        );
    }
}

fn zone_line([name, free, huge, compacted, unusable, request, idle, mixed]: [String; 8]) -> String {
    format!(
        "{name:<12.12} {free:>9} {huge:>7} {compacted:>9} {unusable:>8} {request:>13} {idle:>9}{mixed:>6}"
    )
}

fn zone_cells(
    app: &App,
    look: &Look,
    name: &str,
    zone: &ZoneLook,
    seen: Option<&ZoneLook>,
) -> [String; 8] {
    let order = app.order;
    let outlook = seen.and_then(|seen| seen.outlook.get(order.index()));
    let unknown = || {
        if app.frames_withheld.is_some() {
            "root"
        } else {
            "..."
        }
        .to_owned()
    };
    let mixed = seen
        .and_then(summary)
        .map(|blocks| blocks.mixed.to_string());
    [
        name.into(),
        amount(zone.counts.free_frames() as u64, look.frame_bytes),
        zone.counts.suitable(order).to_string(),
        outlook.map_or_else(unknown, |outlook| outlook.drained.to_string()),
        thousandths(zone.counts.unusable_index(order)),
        request_word(zone, order).into(),
        amount(zone.info.idle_in_pagesets(), look.frame_bytes),
        mixed.unwrap_or_else(unknown),
    ]
}

/// Draws the memory of the selected zone: as cells, or as bars of its free blocks where frames
/// cannot be read.
pub(super) fn memory(app: &App, now: Duration, paint: Paint, area: Rect, screen: &mut Buffer) {
    let Some(look) = &app.lists else { return };
    let named = named_zones(look);
    let Some((name, zone)) = named.get(app.selected) else {
        return;
    };
    let seen = app.frames.as_ref();
    let Some((frames, seen)) =
        seen.and_then(|frames| Some((frames, frames.look.zones.get(app.selected)?)))
    else {
        return free_bars(app, look, name, zone, area, screen);
    };
    let legend_rows = 2;
    let cells_area = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1 + legend_rows),
        ..area
    };
    let (cells, each) = heat::cells(&seen.blocks, frames.slabs, heat::room(cells_area, paint));
    let cell = amount(
        (each as u64) << frames.look.page_block_order.get(),
        look.frame_bytes,
    );
    let age = now.saturating_sub(frames.taken).as_secs();
    let took = match frames.took {
        Duration::ZERO => String::new(),
        took => format!(" took {:.1} s,", took.as_secs_f64()),
    };
    let head = format!("{name}: {age} s old,{took} cell {cell}");
    put(screen, area, 0, &head, bold());
    heat::draw(&cells, paint, cells_area, screen);
    legend(
        paint,
        Rect {
            y: cells_area.bottom(),
            height: legend_rows.min(area.height),
            ..area
        },
        screen,
    );
}

fn legend(paint: Paint, area: Rect, screen: &mut Buffer) {
    let (mut x, mut y) = (area.x, area.y);
    for (letter, name, color) in heat::legend() {
        let width = name.chars().count() as u16 + 3;

        if x + width - 1 > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() {
            return;
        }
        let mark = match paint {
            Paint::Letters => letter,
            Paint::True | Paint::Indexed => '■',
        };
        screen.set_string(x, y, mark.to_string(), Style::new().fg(paint.color(color)));
        let room = usize::from(area.right().saturating_sub(x + 2));
        screen.set_stringn(x + 2, y, name, room, faint());
        x += width;
    }
}

/// Draws what any user may read: how much free memory is in blocks of each order.
fn free_bars(app: &App, look: &Look, name: &str, zone: &ZoneLook, area: Rect, screen: &mut Buffer) {
    put(
        screen,
        area,
        0,
        &format!("{name}: free memory by order"),
        bold(),
    );
    let orders: Vec<Order> = Order::ZERO.up_to(zone.max_order).collect();
    let frames = |order: Order| (zone.counts.by_order[order.index()] as u64) << order.get();
    let most = orders
        .iter()
        .map(|&order| frames(order))
        .max()
        .unwrap_or(0)
        .max(1);
    let why = app
        .frames_withheld
        .as_deref()
        .unwrap_or("reading all frames ...");
    let why = wrapped(why, usize::from(area.width));
    let rows = usize::from(area.height).saturating_sub(2 + why.len());
    let label = 20;
    let width = usize::from(area.width).saturating_sub(label + 1) as u64;
    for (y, &order) in (1..).zip(orders.iter().take(rows)) {
        let size = block_size(order.get(), look.frame_bytes);
        let amount = amount(frames(order), look.frame_bytes);
        let bar = "█".repeat((frames(order) * width).div_ceil(most) as usize);
        put(
            screen,
            area,
            y,
            &format!("{size:>8} {amount:>10}  {bar}"),
            Style::new(),
        );
    }
    let first = area.height.saturating_sub(why.len() as u16);
    for (y, line) in (first..).zip(&why) {
        put(screen, area, y, line, faint());
    }
}

/// Draws curves and counters.
pub(super) fn side(app: &App, area: Rect, screen: &mut Buffer) {
    let Some(look) = &app.lists else { return };
    let none = Default::default();
    let history = app.history.get(app.selected).unwrap_or(&none);
    let last = history.back().copied().unwrap_or(Point {
        available: 0,
        unusable: 0,
    });
    let recent = |of: fn(&Point) -> u64| -> Vec<u64> {
        let skipped = history.len().saturating_sub(usize::from(area.width));
        history.iter().skip(skipped).map(of).collect()
    };
    let size = block_size(app.order.get(), look.frame_bytes);
    put(
        screen,
        area,
        0,
        &format!("free blocks of {size}: {}", last.available),
        bold(),
    );
    curve(
        &recent(|point| point.available),
        None,
        Color::Green,
        row(area, 1, 2),
        screen,
    );
    let unusable = thousandths(last.unusable as u32);
    put(screen, area, 3, &format!("unusable: {unusable}"), bold());
    curve(
        &recent(|point| point.unusable),
        Some(1000),
        Color::Red,
        row(area, 4, 2),
        screen,
    );
    let grown = |name: &str| {
        app.grown(name)
            .map_or_else(|| "-".into(), |grown| grown.to_string())
    };
    put(screen, area, 6, "since the start", bold());
    let compactions = format!(
        "direct compactions {} ok {}",
        grown("compact_stall"),
        grown("compact_success")
    );
    put(screen, area, 7, &compactions, Style::new());
    let stalls = format!(
        "reclaim stalls {}  THP fallbacks {}",
        grown("allocstall"),
        grown("thp_fault_fallback")
    );
    put(screen, area, 8, &stalls, Style::new());
    fallbacks(app, row(area, 9, area.height.saturating_sub(9)), screen);
}

fn fallbacks(app: &App, area: Rect, screen: &mut Buffer) {
    match &app.fallbacks {
        Fallbacks::Unseen(why) => {
            put(screen, area, 0, "fallbacks", bold());
            for (y, line) in (1..).zip(wrapped(why, usize::from(area.width))) {
                put(screen, area, y, &line, faint());
            }
        }
        Fallbacks::Seen(tally) => {
            let lost = if tally.lost > 0 {
                format!(", {} lost", tally.lost)
            } else {
                String::new()
            };
            put(
                screen,
                area,
                0,
                &format!("fallbacks: {}{lost}", tally.all),
                bold(),
            );
            let lines = tally.lines(usize::from(area.height.saturating_sub(1)));
            for (y, line) in (1..).zip(&lines) {
                put(screen, area, y, line, Style::new());
            }
        }
    }
}

fn curve(points: &[u64], highest: Option<u64>, color: Color, area: Rect, screen: &mut Buffer) {
    let area = area.intersection(screen.area);
    let most = highest
        .or_else(|| points.iter().max().copied())
        .unwrap_or(1)
        .max(1);
    let curve = Sparkline::default().data(points).max(most);
    curve.style(Style::new().fg(color)).render(area, screen);
}

fn row(area: Rect, y: u16, height: u16) -> Rect {
    Rect {
        y: area.y + y,
        height,
        ..area
    }
    .intersection(area)
}

/// Draws a line of text in a row of an area; does nothing if the area has no such row.
fn put(screen: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    if y < area.height {
        screen.set_stringn(area.x, area.y + y, text, usize::from(area.width), style);
    }
}
