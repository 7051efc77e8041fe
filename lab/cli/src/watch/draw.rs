//! The screen: title, zones, memory as cells beside curves and counters, keys. Made for 80 x 24;
//! larger screens show more.

use core::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::app::{App, Pace, Page};
use super::heat::Paint;
use super::panes;
use crate::snapshot::figures::block_size;

/// The smallest screen that is drawn on.
const LEAST: (u16, u16) = (60, 16);
/// The most rows of the table of zones, without its heading.
const ZONES_MOST: u16 = 6;
/// The width of the pane beside the cells.
const SIDE: u16 = 34;

const KEYS: &str = "q quit   space pause   z next zone   +/- interval   ? help";

const HELP: &str = "\
q, Ctrl-C   quit                        z, Z   next, previous zone
space       pause, resume               +, -   longer, shorter interval
?           this page                   any other key leaves it

Zones: free memory; huge: blocks of the order that are free now
  compacted  upper bound after compaction, per-CPU lists drained (root)
  unusable   the share of free memory in smaller blocks, 0 to 1
  request    whether one would succeed now; if not: fragmentation or lack
  per-CPU    memory idle in per-CPU lists; mixed: page blocks with movable
             pages next to pages that cannot be moved (root)

Cells: some page blocks each, in order of address, in the colour of what most of
  their memory is. The more of them are mixed, the more orange. per-CPU? are
  single pages without a flag: idle in a list, or the kernel's own.

Fallbacks: how often, process, requested type < type taken (Unmovable,
  Movable, Reclaimable), requested order < order of the split block (root).";

/// Draws the screen at time `now` since the start.
pub(super) fn screen(app: &App, now: Duration, paint: Paint, screen: &mut Buffer) {
    let area = screen.area;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        let what = format!("needs {width} x {height} characters");
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

/// The style of unimportant text.
pub(super) fn faint() -> Style {
    Style::new().fg(Color::DarkGray)
}

/// The style of headings.
pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// The style of the selected zone and the title.
pub(super) fn selected() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::app::Fallbacks;
    use crate::watch::sampler::Frames;
    use brickyard::Order;
    use brickyard::stats::FreeCounts;
    use brickyard_host::Unevictable;
    use brickyard_host::blocks;
    use brickyard_host::look::{Look, ZoneLook};
    use brickyard_host::movability::Judge;
    use brickyard_host::outlook;
    use brickyard_host::zoneinfo::{PageSet, ZoneInfo};
    use brickyard_trace::record::fallbacks::Tally;
    use brickyard_trace::{PageState, PageUse, StateRun};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// Two zones; in the second a quarter is free, a quarter movable, a quarter mixed, a quarter
    /// slab.
    fn look() -> Look {
        let uses = [
            (PageUse::Free, 65_536),
            (PageUse::Free, 16_384),
            (PageUse::Anonymous, 16_384),
            (PageUse::File, 16_000),
            (PageUse::PageTable, 384),
            (PageUse::Slab, 16_384),
        ];
        let mut frame = 0;
        let runs = uses.map(|(usage, frames)| {
            let run = StateRun {
                time: 0,
                frame,
                frames,
                order: 0,
                state: PageState::of(usage),
            };
            frame += frames;
            run
        });
        let judge = Judge::new(&runs, 9, Unevictable::Moves);
        let zone = |name: &str, start_pfn: u64, free: usize| {
            let info = ZoneInfo {
                name: name.into(),
                start_pfn,
                spanned: 65_536,
                present: 65_536 + start_pfn,
                managed: 65_536,
                min: 200,
                pagesets: vec![PageSet {
                    count: 777,
                    ..PageSet::default()
                }],
                ..ZoneInfo::default()
            };
            let mut counts = FreeCounts::default();
            counts.by_order[10] = free;
            ZoneLook {
                blocks: blocks::of_zone(&runs, &info, 9, &judge),
                outlook: outlook::of_zone(&runs, &info, &counts, Order::new(10), &judge),
                info,
                counts,
                max_order: Order::new(10),
            }
        };
        Look {
            host: "host".into(),
            time: std::time::SystemTime::UNIX_EPOCH,
            kernel: "6.18".into(),
            frame_bytes: 4096,
            unevictable: Unevictable::Moves,
            huge_order: Order::HUGE,
            page_block_order: Order::HUGE,
            zones: vec![zone("DMA32", 0, 64), zone("Normal", 65_536, 16)],
            page_types: None,
            runs: runs.to_vec(),
            withheld: Vec::new(),
        }
    }

    fn app() -> App {
        let mut app = App::new(Order::HUGE, Duration::from_secs(2));
        app.lists(look());
        app.frames(Frames::of(
            look(),
            Duration::from_secs(3),
            Duration::from_millis(500),
        ));
        let mut tally = Tally::new(Vec::new());
        let line = "cc1-7 [000] ..... 1.0: mm_page_alloc_extfrag: page=1 pfn=0x1 alloc_order=0 fallback_order=10 alloc_migratetype=0 fallback_migratetype=1 change_ownership=1";
        tally.add(line);
        app.fallbacks = Fallbacks::Seen(tally);
        app
    }

    fn drawn(app: &App, (width, height): (u16, u16), paint: Paint) -> Buffer {
        let mut terminal =
            Terminal::new(TestBackend::new(width, height)).expect("a test's terminal");
        let now = Duration::from_secs(10);
        terminal
            .draw(|frame| screen(app, now, paint, frame.buffer_mut()))
            .expect("a test's terminal");
        terminal.backend().buffer().clone()
    }

    fn text(screen: &Buffer) -> String {
        let mut text = crate::watch::lines(screen).join("\n");
        text.push('\n');
        text
    }

    /// Compares with a file beside this one; `BRICKYARD_BLESS=1` rewrites it.
    fn golden(name: &str, shown: &str) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/watch/").to_owned() + name;
        if std::env::var_os("BRICKYARD_BLESS").is_some() {
            std::fs::write(&path, shown).expect("a file beside this one");
        }
        assert_eq!(
            shown,
            std::fs::read_to_string(&path).unwrap_or_default(),
            "{name}"
        );
    }

    #[test]
    fn a_screen_of_80_by_24() {
        let screen = drawn(&app(), (80, 24), Paint::True);
        golden("screen.txt", &text(&screen));
        // Two rows of cells a character: free above, and so on through the quarters of the zone.
        let kinds = heat_colors(&screen);
        let color =
            |kind: brickyard_pictures::pagetypes::PageKind| Paint::True.color(kind.dark_color());
        use brickyard_pictures::pagetypes::PageKind::{Free, Movable, Unmovable};
        assert!(
            [Free, Movable, Unmovable]
                .iter()
                .all(|&kind| kinds.contains(&color(kind)))
        );
    }

    /// The colours of the field of cells.
    fn heat_colors(screen: &Buffer) -> Vec<Color> {
        let cells = screen.content.iter().filter(|cell| cell.symbol() == "▀");
        cells.flat_map(|cell| [cell.fg, cell.bg]).collect()
    }

    #[test]
    fn a_screen_of_letters() {
        let letters = text(&drawn(&app(), (80, 24), Paint::Letters));
        golden("letters.txt", &letters);
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        let mut app = app();
        let mut hidden = look();
        hidden.runs = Vec::new();
        app.frames(Frames::of(hidden, Duration::ZERO, Duration::ZERO));
        app.frames_withheld = Some("Run as root: sudo brickyard watch".into());
        app.fallbacks = Fallbacks::Unseen("run as root to count them".into());
        let shown = text(&drawn(&app, (80, 24), Paint::True));
        for part in [
            "free memory by order",
            "sudo brickyard watch",
            "run as root to count them",
            "root",
        ] {
            assert!(shown.contains(part), "{part} is missing from:\n{shown}");
        }
    }

    #[test]
    fn any_size_and_any_state_is_drawn() {
        let mut help = app();
        help.key('?');
        let mut other_zone = app();
        other_zone.key('z');
        let empty = App::new(Order::HUGE, Duration::from_secs(2));
        for app in [app(), help, other_zone, empty] {
            for size in [(1, 1), (59, 15), (60, 16), (61, 17), (80, 24), (200, 60)] {
                for paint in [Paint::True, Paint::Letters] {
                    let shown = text(&drawn(&app, size, paint));
                    assert_eq!(
                        shown.contains("brickyard watch"),
                        size.0 >= LEAST.0 && size.1 >= LEAST.1
                    );
                }
            }
        }
    }

    #[test]
    fn help_and_keys_fit_80_columns() {
        let widest = HELP
            .lines()
            .chain([KEYS])
            .map(|line| line.chars().count())
            .max();
        assert!(widest <= Some(80), "{widest:?}");
        assert!(HELP.lines().count() <= 24 - 3);
    }
}
