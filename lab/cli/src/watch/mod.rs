//! `brickyard watch`: this host's memory live in the terminal.
//!
//! | file | contents |
//! |---|---|
//! | `app` | the state, and what keys do |
//! | `sampler` | the thread that reads every frame, which takes seconds on a large host |
//! | `heat` | memory as cells: what most of it is, and how mixed it is |
//! | `draw`, `panes` | the screen |
//! | `live` | the terminal, and the loop |

mod app;
mod draw;
mod heat;
mod live;
mod panes;
mod sampler;

use core::time::Duration;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use brickyard_host::look::{Depth, Look};
use clap::Args;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::snapshot::{chosen_order, host};
use app::App;
use brickyard_measure::command::misuse::Misuse;
use heat::Paint;
use sampler::Frames;

/// The screen of `--once`.
const ONCE: (u16, u16) = (80, 24);

/// The options of `brickyard watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Seconds between two updates, 0.2 to 3600. Reading every frame may take longer.
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    interval: f64,
    /// Print one screen as plain text and exit.
    #[arg(long)]
    once: bool,
    /// Show free blocks and indices of this order. [default: the order of a huge page]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=18))]
    order: Option<u8>,
    /// With --once: read another host's files, copied to this folder (DIR/proc/zoneinfo and so on).
    #[arg(long, value_name = "DIR", requires = "once")]
    root: Option<PathBuf>,
}

impl Watch {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let interval = self.interval()?;
        let host = host(self.root.as_deref());
        if !self.once && !io::stdout().is_terminal() {
            let what = "the live view needs a terminal; give --once for one screen as text";
            return Err(Misuse::new(what).into());
        }
        let began = Instant::now();
        let look = Look::at(&host, Depth::Lists, || 0, |_, _| {})?;
        let order = chosen_order(&look, self.order)?;
        let mut app = App::new(order, interval);
        app.counters(host.vmstat().unwrap_or_default());
        app.lists(look);
        if self.once {
            let all = Look::at(&host, Depth::Everything, || 0, |_, _| {})?;
            app.no_other_look();
            app.frames(Frames::of(all, Duration::ZERO, Duration::ZERO));
            return print_once(&app);
        }
        live::run(app, &host, began)
    }

    fn interval(&self) -> anyhow::Result<Duration> {
        let wrong = || {
            let given = self.interval;
            Misuse::new(format!("--interval {given}: give 0.2 to 3600 seconds"))
        };
        let allowed = (0.2..=3600.0).contains(&self.interval);
        let interval = allowed.then(|| Duration::from_secs_f64(self.interval));
        Ok(interval.ok_or_else(wrong)?)
    }
}

/// Prints one screen, with letters instead of colours.
fn print_once(app: &App) -> anyhow::Result<()> {
    let (width, height) = ONCE;
    let mut screen = Buffer::empty(Rect::new(0, 0, width, height));
    draw::screen(app, Duration::ZERO, Paint::Letters, &mut screen);
    let mut out = io::stdout().lock();
    for line in lines(&screen) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Returns a screen as lines of text.
fn lines(screen: &Buffer) -> Vec<String> {
    let area = screen.area;
    let line = |y: u16| {
        let cells = (area.left()..area.right()).map(|x| screen[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (area.top()..area.bottom()).map(line).collect()
}
