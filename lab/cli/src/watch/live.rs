//! The terminal, and the loop that looks, draws and listens. The terminal is given back as it was
//! on every way out: the end, errors, signals, panics.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use brickyard_host::Host;
use brickyard_host::look::{Depth, Look};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::app::{App, Fallbacks, Next, Pace};
use super::draw;
use super::heat::Paint;
use super::sampler::Sampler;
use brickyard_trace::record::fallbacks::{Tally, Tracing};

/// How long a signal or a new look may wait.
const TICK: Duration = Duration::from_millis(100);

/// The terminal while it is ours.
struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal. A panic gives it back before its message is printed.
    fn take() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore());
        Ok(Self(terminal.context("cannot use this terminal")?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows `app` until the user ends it. Times count from `began`.
pub(super) fn run(mut app: App, host: &Host, began: Instant) -> anyhow::Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ended));
        registered.context("cannot watch for signals")?;
    }
    // Before the screen, so that it goes after it: the terminal comes first whatever happens.
    let mut tracing = match Tracing::start() {
        Ok(tracing) => {
            app.fallbacks = Fallbacks::Seen(Tally::new(types(host)));
            Some(tracing)
        }
        Err(why) => {
            app.fallbacks = Fallbacks::Unseen(why);
            None
        }
    };
    let sampler = Sampler::start(host.clone(), app.interval, began)?;
    let mut screen = Screen::take()?;
    let paint = Paint::of_environment();
    let mut looked = Instant::now();
    // Relaxed: a flag alone, nothing is published with it.
    while !ended.load(Ordering::Relaxed) {
        if app.pace == Pace::Running {
            if let Some(frames) = sampler.next()? {
                app.frames(frames);
            }
            if let (Some(tracing), Fallbacks::Seen(tally)) = (&mut tracing, &mut app.fallbacks) {
                tracing.read_into(tally);
            }
            if looked.elapsed() >= app.interval {
                looked = Instant::now();
                app.lists(Look::at(host, Depth::Lists, || 0, |_, _| {})?);
                app.counters(host.vmstat().unwrap_or_default());
            }
        }
        let drawn = screen
            .0
            .draw(|frame| draw::screen(&app, began.elapsed(), paint, frame.buffer_mut()));
        drawn.context("cannot draw")?;
        let wished = (app.interval, app.pace);
        if listen(&mut app)? == Next::Quit {
            break;
        }
        if wished != (app.interval, app.pace) {
            sampler.wish(app.interval, app.pace);
        }
    }
    Ok(())
}

/// The types of page blocks by the kernel's numbers, as pagetypeinfo lists them; none for who may
/// not read it.
fn types(host: &Host) -> Vec<String> {
    let Ok(types) = host.page_types() else {
        return Vec::new();
    };
    let Some(first) = types.free.first() else {
        return Vec::new();
    };
    let of_first = types.free.iter();
    let of_first = of_first.take_while(|row| (row.node, &row.zone) == (first.node, &first.zone));
    of_first.map(|row| row.kind.clone()).collect()
}

/// Waits for a tick, and does what keys say meanwhile.
fn listen(app: &mut App) -> anyhow::Result<Next> {
    match event::poll(TICK) {
        Ok(false) => return Ok(Next::GoOn),
        Ok(true) => {}
        // A signal came; the loop looks which.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Next::GoOn),
        Err(error) => return Err(error).context("cannot listen to the keyboard"),
    }
    match event::read().context("cannot listen to the keyboard")? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Ok(pressed(app, key)),
        _ => Ok(Next::GoOn),
    }
}

fn pressed(app: &mut App, key: KeyEvent) -> Next {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Next::Quit,
        KeyCode::Char(letter) => app.key(letter),
        KeyCode::Tab => app.key('z'),
        KeyCode::BackTab => app.key('Z'),
        _ => Next::GoOn,
    }
}
