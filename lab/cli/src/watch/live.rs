//! The terminal, and the loop that reads the host, draws and handles keys. The terminal is restored
//! on every way out: quitting, errors, signals, panics.

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

/// The longest delay in handling a signal or a new reading.
const TICK: Duration = Duration::from_millis(100);

/// The terminal while this process draws on it.
struct Screen(DefaultTerminal);

impl Screen {
    /// Takes over the terminal. A panic restores it before its message is printed.
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

/// Shows `app` until the user quits. Times count from `began`.
pub(super) fn run(mut app: App, host: &Host, began: Instant) -> anyhow::Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ended));
        registered.context("cannot watch for signals")?;
    }
    // Declared before the screen, so dropped after it: the terminal is restored first.
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
    // Relaxed: the flag publishes no other data.
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

/// Returns the types of page blocks by the kernel's numbers, as pagetypeinfo lists them; none if
/// this user may not read it.
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

/// Waits at most a tick for a key, and handles it.
fn listen(app: &mut App) -> anyhow::Result<Next> {
    match event::poll(TICK) {
        Ok(false) => return Ok(Next::GoOn),
        Ok(true) => {}
        // Interrupted by a signal; the loop checks the flag.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Next::GoOn),
        Err(error) => return Err(error).context("cannot read the keyboard"),
    }
    match event::read().context("cannot read the keyboard")? {
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
