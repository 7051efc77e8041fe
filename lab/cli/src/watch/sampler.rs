//! The thread that reads every frame. A host of 1 TiB takes it 20 seconds, so the screen does not
//! wait for it, and shows the age of the reading.

use core::time::Duration;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

use anyhow::Context;
use brickyard_host::Host;
use brickyard_host::look::{Depth, Look};
use brickyard_host::zoneinfo::ZoneInfo;
use brickyard_pictures::pagetypes::PageKind;

use super::app::Pace;
use crate::page_kinds::slab_kind;
use crate::snapshot::words::withheld;

/// After a reading the thread sleeps at least this many times as long as the reading took, so that
/// the view takes little of the host's time.
const REST: u32 = 3;

/// A reading of every frame.
#[derive(Debug)]
pub(super) struct Frames {
    /// The reading, without the runs.
    pub(super) look: Look,
    /// The kind of slab pages.
    pub(super) slabs: PageKind,
    /// When it ended, since the start.
    pub(super) taken: Duration,
    /// How long it took.
    pub(super) took: Duration,
    /// Why nothing could be read.
    pub(super) withheld: Option<String>,
}

impl Frames {
    pub(super) fn of(mut look: Look, taken: Duration, took: Duration) -> Self {
        let infos: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
        let withheld = look.runs.is_empty().then(|| {
            let why = withheld(&look, "brickyard watch");
            why.into_iter()
                .next()
                .unwrap_or_else(|| "No page states.".into())
        });
        look.runs = Vec::new();
        Self {
            slabs: slab_kind(&infos),
            look,
            taken,
            took,
            withheld,
        }
    }
}

/// What the main loop requests of the thread.
#[derive(Debug, Clone, Copy)]
struct Wish {
    interval: Duration,
    pace: Pace,
}

/// The main loop's handle to the thread. Dropping it ends the thread, without waiting for a reading
/// in progress.
#[derive(Debug)]
pub(super) struct Sampler {
    wishes: Sender<Wish>,
    looks: Receiver<anyhow::Result<Frames>>,
}

impl Sampler {
    /// Starts the thread, which begins its first reading at once. Times count from `began`.
    pub(super) fn start(host: Host, interval: Duration, began: Instant) -> anyhow::Result<Self> {
        let (wishes, wished) = mpsc::channel();
        let (looked, looks) = mpsc::channel();
        let wish = Wish {
            interval,
            pace: Pace::Running,
        };
        let thread = thread::Builder::new().name("frames".into());
        thread
            .spawn(move || look_on(&host, began, wish, &wished, &looked))
            .context("cannot start the thread that reads page states")?;
        Ok(Self { wishes, looks })
    }

    /// Changes the interval and the pace.
    pub(super) fn wish(&self, interval: Duration, pace: Pace) {
        // If the thread has ended, `next` says why.
        let _ = self.wishes.send(Wish { interval, pace });
    }

    /// Returns the newest reading since the last call.
    ///
    /// # Errors
    /// A reading failed.
    pub(super) fn next(&self) -> anyhow::Result<Option<Frames>> {
        self.looks.try_iter().last().transpose()
    }
}

/// Reads frames until the handle is dropped, a reading fails or page states cannot be read.
fn look_on(
    host: &Host,
    began: Instant,
    mut wish: Wish,
    wished: &Receiver<Wish>,
    looked: &Sender<anyhow::Result<Frames>>,
) {
    let mut depth = Depth::Everything;
    loop {
        let start = Instant::now();
        let now = || began.elapsed().as_nanos() as u64;
        let look = Look::at(host, depth, now, |_, _| {});
        let took = start.elapsed();
        let frames = look.map(|look| Frames::of(look, began.elapsed(), took));
        let last = match &frames {
            Ok(frames) => {
                let page_block_order = frames.look.page_block_order;
                depth = Depth::Frames { page_block_order };
                frames.withheld.is_some()
            }
            Err(_) => true,
        };
        if looked.send(frames.map_err(Into::into)).is_err() || last {
            return;
        }
        if rest(&mut wish, wished, took) == After::Gone {
            return;
        }
    }
}

#[derive(PartialEq, Eq)]
enum After {
    Rested,
    Gone,
}

/// Waits for the time of the next reading, by the newest wish.
fn rest(wish: &mut Wish, wished: &Receiver<Wish>, took: Duration) -> After {
    let start = Instant::now();
    loop {
        let pause = match wish.pace {
            Pace::Paused => Duration::MAX,
            Pace::Running => wish.interval.max(took.saturating_mul(REST)),
        };
        let left = pause.saturating_sub(start.elapsed());
        if left.is_zero() {
            return After::Rested;
        }
        match wished.recv_timeout(left.min(Duration::from_secs(3600))) {
            Ok(newer) => *wish = newer,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return After::Gone,
        }
    }
}
