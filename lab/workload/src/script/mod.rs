//! A trace prepared for many replays, with no look-ups left: frames are small numbers, flags are
//! requests, page states are roles.
//!
//! | file | contents |
//! |---|---|
//! | `survey` | what two passes over the events tell, however the rest is drawn |
//! | `beginning` | the state of memory before the first step |
//! | `build` | the steps, for several draws at once |

mod beginning;
mod build;
mod survey;

use core::ops::ControlFlow;
use std::collections::HashMap;
use std::io;

use brickyard::{MigrateType, Order, Request};
use brickyard_trace::{Event, Events, NameId, Trace, name_in};

use crate::pages::{PageId, Role};
use crate::passes::Passes;
use crate::start::{Idle, Known, Limit};
use crate::steps::{Collecting, Rounds, Steps};

pub use beginning::Beginning;
pub use survey::{Counts, Survey};

/// A step: an event that matters to a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStep {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// The first page.
    pub page: PageId,
    /// The task's name.
    pub name: NameId,
    /// The CPU.
    pub cpu: u16,
    pub(crate) request: u16,
    /// The order.
    pub order: Order,
    /// The page's role.
    pub role: Role,
    /// The page's initial marks.
    pub marks: u8,
    pub(crate) overlaps_used: bool,
}

impl ScriptStep {
    /// Makes a step that is no request for a page, just before `next`.
    const fn not_of_a_page(request: u16, time: u64, next: &Event) -> Self {
        Self {
            time,
            page: PageId::NONE,
            name: next.name,
            cpu: next.cpu,
            request,
            order: Order::ZERO,
            role: Role::None,
            marks: 0,
            overlaps_used: false,
        }
    }

    /// Returns true if it takes pages of which one is in use according to the trace: the event of a
    /// free was lost then.
    #[must_use]
    #[inline]
    pub const fn overlaps_used(&self) -> bool {
        self.overlaps_used
    }
}

/// The request numbers of steps that are no requests: a free, and background reclaim that begins or
/// ends.
const FREE: u16 = u16::MAX;
const WAKE: u16 = u16::MAX - 1;
const SLEEP: u16 = u16::MAX - 2;

/// More different requests than a trace may have.
const REQUESTS_MOST: u16 = SLEEP;

/// The action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Takes a block.
    Take(Request),
    /// Takes a block and gives it back: the request failed on the host.
    Try(Request),
    /// Gives back a block, a part of one, or several.
    Give,
    /// The host's background reclaim begins (true) or ends.
    Reclaim(bool),
}

/// A block in use before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialBlock {
    /// Its first page.
    pub page: PageId,
    /// Its order.
    pub order: Order,
    /// Its role.
    pub role: Role,
    /// Its marks.
    pub marks: u8,
}

/// Why a trace cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It has no allocations.
    #[error(
        "the trace has no allocation: record a command that uses memory, `brickyard record -o FILE -- COMMAND`"
    )]
    Empty,
    /// Its frames are too far apart.
    #[error(
        "the trace spans {0} frames, and a replay supports at most {MOST_PAGES}: the trace is damaged or not of one host"
    )]
    TooWide(u64),
    /// It has too many different requests.
    #[error(
        "the trace has more than {REQUESTS_MOST} different requests, and a kernel makes some hundred: the trace is damaged"
    )]
    TooVaried,
    /// It has more events than their indices can number.
    #[error(
        "the trace has {0} events, and a replay supports at most 4 billion: record a shorter time"
    )]
    TooLong(u64),
    /// Its events cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The steps cannot be stored.
    #[error(
        "the steps of the replay cannot be kept in a temporary file ({0}): free some of the disk, or name a folder on another one by TMPDIR"
    )]
    Unstored(String),
    /// The caller has ended it.
    #[error("interrupted")]
    Stopped,
}

impl From<io::Error> for ScriptError {
    fn from(error: io::Error) -> Self {
        Self::Unstored(error.to_string())
    }
}

/// The widest span of frames: 8 TiB with 4 KiB frames.
const MOST_PAGES: u64 = 1 << 31;

/// A trace prepared for replays.
#[derive(Debug)]
pub struct Script {
    beginning: Beginning,
    steps: Steps,
    requests: Vec<Request>,
    // The steps that no event shows, by their numbers, in rising order.
    hidden: Vec<u32>,
    reports_free: bool,
    names: Vec<String>,
    duration: u64,
    compared_at: u64,
    shows_reclaim: bool,
    host_fallbacks: u64,
    host_failures: u64,
}

impl Script {
    /// Prepares `trace` for the recorded host. O(events and pages).
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn new(trace: &Trace) -> Result<Self, ScriptError> {
        Self::read(trace, Whose::HOST, |_| ControlFlow::Continue(()))
    }

    /// Prepares a trace with only what its events show: for a machine other than the recorded one,
    /// which compacts by itself and has other memory at the start. Keeps all steps in memory, 24
    /// bytes each.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn of_events(trace: &Trace) -> Result<Self, ScriptError> {
        let passes = Passes::new(trace, |_| ControlFlow::Continue(()))?;
        Self::build(passes, Whose::Other, Collecting::in_memory)
    }

    /// Prepares a trace, with what is unknown of its start drawn by this seed: see
    /// [`start`](crate::start). `excluded` has the types that page blocks, counted from frame 0,
    /// certainly do not have, a bit for each.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn drawn(
        trace: &Trace,
        seed: u64,
        excluded: &HashMap<usize, u8>,
    ) -> Result<Self, ScriptError> {
        let excluded = Some(excluded);
        let whose = Whose::Recorded(Draw { seed, excluded });
        Self::read(trace, whose, |_| ControlFlow::Continue(()))
    }

    /// Prepares a trace that need not be in memory. More than a million steps are kept in a
    /// temporary file. So memory grows with that of the host, by about 15 bytes a frame, and not
    /// with the number of events.
    ///
    /// Takes several [`passes`]. `goes_on` is told how many events more are done, and can end it.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be read or replayed.
    pub fn read(
        source: &impl Events,
        whose: Whose<'_>,
        goes_on: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, ScriptError> {
        let passes = Passes::new(source, goes_on)?;
        Self::build(passes, whose, Collecting::in_bounds)
    }

    /// Makes the script, step by step, in several passes over the events.
    fn build<'a, S: Events, G: FnMut(u64) -> ControlFlow<()>>(
        mut passes: Passes<'a, S, G>,
        whose: Whose<'_>,
        steps: impl Fn() -> Collecting,
    ) -> Result<Self, ScriptError> {
        let (is_hosts, draw) = match whose {
            Whose::Recorded(draw) => (true, draw),
            Whose::Other => (false, Draw::FIRST),
        };
        let survey = Survey::of(&mut passes, is_hosts)?;
        let mut scripts = survey.make(&mut passes, &[draw], steps)?;
        // There is one for each draw.
        Ok(scripts.swap_remove(0))
    }

    /// The state of memory before the first step.
    #[must_use]
    pub const fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    /// The host's frame of page 0, a multiple of the largest block.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.beginning.first
    }

    /// The number of pages: page numbers are below this.
    #[must_use]
    pub const fn pages(&self) -> usize {
        self.beginning.pages
    }

    /// The steps, in order of time. `None` if they are in a file, as those of a long
    /// trace are, unless [`Script::of_events`] has made them.
    #[must_use]
    pub fn steps(&self) -> Option<&[ScriptStep]> {
        self.steps.in_memory()
    }

    /// The number of steps.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true if there are no steps, as in no trace that can be replayed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a reader of all steps.
    pub(crate) fn rounds(&self) -> Rounds<'_> {
        self.steps.rounds()
    }

    /// The blocks in use before the first step.
    #[must_use]
    pub fn initial_blocks(&self) -> &[InitialBlock] {
        &self.beginning.initial_blocks
    }

    /// The number of pages of unknown use at the start that must have been in a CPU's cache: they
    /// are allocated before they are freed.
    #[must_use]
    pub const fn from_caches(&self) -> u64 {
        self.beginning.from_caches
    }

    /// The number of blocks that were taken without an event: steps that no event shows.
    #[must_use]
    pub const fn hidden(&self) -> u64 {
        self.hidden.len() as u64
    }

    /// The numbers of these steps, in rising order.
    pub(crate) fn hidden_steps(&self) -> &[u32] {
        &self.hidden
    }

    /// The free blocks in lists of CPUs before the first step, in the order in which they are put
    /// there.
    #[must_use]
    pub fn idle(&self) -> &[Idle] {
        &self.beginning.idle
    }

    /// The page blocks that are not movable before the first step: the first page of each, and its
    /// type.
    pub fn types(&self) -> impl Iterator<Item = (PageId, MigrateType)> + '_ {
        self.beginning.types()
    }

    /// How many frames the lists of CPUs may hold before the first step.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.beginning.limits
    }

    /// When the page sets of each of the recorded host's CPUs first shrink with time, in
    /// nanoseconds; they do every second. Where no event shows it, it is drawn.
    pub(crate) fn first_ticks(&self) -> &[u64] {
        self.beginning.first_ticks()
    }

    /// Says whether the recorded host reports its free page blocks to a host of its own, which
    /// makes them movable. At first it does not.
    #[must_use]
    pub fn with_reports(self, reports_free: bool) -> Self {
        Self {
            reports_free,
            ..self
        }
    }

    /// Whether the recorded host reports its free page blocks.
    #[must_use]
    pub const fn reports_free(&self) -> bool {
        self.reports_free
    }

    /// How much of the start is known.
    #[must_use]
    pub const fn known(&self) -> Known {
        self.beginning.known
    }

    /// Whether the trace shows when background reclaim works.
    #[must_use]
    pub const fn shows_reclaim(&self) -> bool {
        self.shows_reclaim
    }

    /// The duration of the trace, in nanoseconds.
    #[must_use]
    pub const fn duration(&self) -> u64 {
        self.duration
    }

    /// The time at which the host's texts at the end were read, in nanoseconds; `u64::MAX` where
    /// unknown.
    #[must_use]
    pub const fn compared_at(&self) -> u64 {
        self.compared_at
    }

    /// The number of fallbacks to another type's memory on the host.
    #[must_use]
    pub const fn host_fallbacks(&self) -> u64 {
        self.host_fallbacks
    }

    /// The number of requests that failed on the host.
    #[must_use]
    pub const fn host_failures(&self) -> u64 {
        self.host_failures
    }

    /// Returns the name of a task; `?` for an unknown one.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        name_in(&self.names, id)
    }

    /// Returns the action of a step.
    #[must_use]
    #[inline]
    pub fn action(&self, step: &ScriptStep) -> Action {
        match self.requests.get(usize::from(step.request)) {
            Some(&request) if step.page == PageId::NONE => Action::Try(request),
            Some(&request) => Action::Take(request),
            None if step.request == FREE => Action::Give,
            None => Action::Reclaim(step.request == WAKE),
        }
    }
}

/// Returns how often [`Script::read`] goes through all events.
#[must_use]
pub const fn passes(whose: &Whose<'_>) -> u64 {
    match whose {
        Whose::Recorded(_) => 4,
        Whose::Other => 3,
    }
}

/// The machine that a script is for.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// The recorded host, in its recorded state, of which some is drawn.
    Recorded(Draw<'a>),
    /// Another one: only what the events show.
    Other,
}

impl Whose<'_> {
    /// The recorded host, by the first draw.
    pub const HOST: Self = Self::Recorded(Draw::FIRST);
}

/// How that is drawn which a trace does not tell of its start: see [`start`](crate::start).
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// The seed.
    pub seed: u64,
    /// The types that page blocks, counted from frame 0, certainly do not have, a bit for each.
    pub excluded: Option<&'a HashMap<usize, u8>>,
}

impl Draw<'_> {
    /// The first draw, of which nothing is excluded.
    pub const FIRST: Self = Self {
        seed: 0,
        excluded: None,
    };
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use core::cell::Cell;
    use std::path::Path;

    use brickyard_designs::classics::Configuration;
    use brickyard_trace::file::{self, ReadError, Source};
    use brickyard_trace::{PageState, PageUse, StateRun, What};

    use super::*;
    use crate::{Machine, Options, Outcome, Rules, Start, replay};

    /// The outcome of a replay without what is timed.
    fn replayed(script: &Script) -> Outcome {
        let machine = Machine::sized(64 << 20, 2, 4096).unwrap();
        let options = Options {
            start: Start::Empty,
            rules: Rules::TODAY,
            sample_every: 100_000_000,
        };
        let outcome = replay(Configuration::Brickyard, &machine, script, &options, ()).unwrap();
        Outcome {
            alloc_ns: None,
            free_ns: None,
            seconds: 0.0,
            ..outcome
        }
    }

    #[test]
    fn a_trace_read_piece_by_piece_makes_the_same_script() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/dd.parquet");
        let (whole, source) = (file::read(&path).unwrap(), Source::open(&path).unwrap());
        for whose in [Whose::HOST, Whose::Other] {
            let goes_on = |_| ControlFlow::Continue(());
            let in_memory = Collecting::in_memory;
            let kept = Script::build(Passes::new(&whole, goes_on).unwrap(), whose, in_memory);
            let few = || Collecting::keeping(500);
            let spooled = Script::build(Passes::new(&source, goes_on).unwrap(), whose, few);
            let (kept, spooled) = (kept.unwrap(), spooled.unwrap());
            assert_eq!((kept.steps().is_some(), spooled.steps()), (true, None));
            assert_same(&kept, &spooled);
            assert_eq!(replayed(&kept), replayed(&spooled));
        }
    }

    fn assert_same(one: &Script, other: &Script) {
        assert_eq!(one.len(), other.len());
        assert!(one.rounds().all() == other.rounds().all());
        assert_eq!(one.beginning, other.beginning);
        assert_eq!(
            (&one.names, &one.requests, &one.hidden),
            (&other.names, &other.requests, &other.hidden)
        );
        let counts = |of: &Script| (of.host_fallbacks, of.host_failures);
        assert_eq!(counts(one), counts(other));
        let rest = |of: &Script| (of.duration, of.compared_at, of.shows_reclaim);
        assert_eq!(rest(one), rest(other));
    }

    /// The events of a trace, and how often they were gone through.
    struct Read {
        trace: Trace,
        passes: Cell<u64>,
    }

    impl Events for Read {
        fn outline(&self) -> &Trace {
            &self.trace
        }

        fn count(&self) -> u64 {
            self.trace.count()
        }

        fn last_time(&self) -> u64 {
            self.trace.last_time()
        }

        fn pass(
            &self,
            take: impl FnMut(&[Event], &[String]) -> ControlFlow<()>,
        ) -> Result<(), ReadError> {
            self.passes.set(self.passes.get() + 1);
            self.trace.pass(take)
        }
    }

    /// A trace of 4096 frames, many of unknown use: events show that some were idle, and others are
    /// drawn.
    fn unknown() -> Trace {
        let zoneinfo = "Node 0, zone   Normal
  pages free     0
        min      1
        low      2
        high     3
        spanned  4096
        present  4096
        managed  4096
    nr_free_pages 0
  pagesets
    cpu: 0
              count: 300
              high:  400
              batch: 63
  node_unreclaimable:  0
  start_pfn:           4096
";
        let run = |frame, frames, usage| StateRun {
            time: 0,
            frame,
            frames,
            order: 0,
            state: PageState::of(usage),
        };
        // More of it is movable than unknown, so it is taken to be a block of movable pages.
        let page_block = |place: u64| {
            let first = 4096 + place * 512;
            [
                run(first, 200, PageUse::Untold),
                run(first + 200, 312, PageUse::Anonymous),
            ]
        };
        let (mobility, flags) = (MigrateType::Movable, 0);
        let event = |place: u64| Event {
            time: place * 1000,
            frame: 4096 + place * 37 % 2048,
            what: match place % 3 {
                0 => What::Free,
                _ => What::Alloc { mobility, flags },
            },
            pid: 1,
            name: NameId(0),
            cpu: 0,
            order: Order::ZERO,
        };
        let mut trace = Trace {
            names: vec!["task".to_owned()],
            start: (0..8).flat_map(page_block).collect(),
            events: (0..600).map(event).collect(),
            end: vec![run(4096, 4096, PageUse::File)],
            ..Trace::default()
        };
        trace.header.start.zoneinfo = zoneinfo.to_owned();
        trace.header.page_block_order = 9;
        trace.header.cpus = 1;
        trace
    }

    #[test]
    fn draws_of_one_reading_are_those_of_a_reading_each() {
        let read = Read {
            trace: unknown(),
            passes: Cell::new(0),
        };
        let goes_on = |_| ControlFlow::Continue(());
        let excluded = HashMap::from([(9, 1), (11, 4)]);
        let excluded = [None, Some(&excluded)];
        let draw = |seed| Draw {
            seed,
            excluded: excluded[seed as usize % 2],
        };
        for (count, passes) in [(1, 4), (4, 4), (5, 6), (9, 8)] {
            read.passes.set(0);
            let draws: Vec<Draw<'_>> = (0..count).map(draw).collect();
            let survey = Survey::read(&read, goes_on).unwrap();
            let begun = survey.begin(&draws[0]);
            let together = survey.scripts(&read, &draws, goes_on).unwrap();
            assert_eq!((together.len() as u64, read.passes.get()), (count, passes));
            assert_eq!(begun, together[0].beginning);
            for (&draw, script) in draws.iter().zip(&together) {
                let alone = Script::read(&read, Whose::Recorded(draw), goes_on).unwrap();
                assert_same(&alone, script);
            }
            // They differ, so that one could be taken for another.
            for (one, other) in together.iter().zip(&together[1..]) {
                assert_ne!(one.beginning, other.beginning);
                assert!(one.rounds().all() != other.rounds().all());
            }
        }
    }

    #[test]
    fn a_trace_in_a_file_is_drawn_as_in_memory() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/dd.parquet");
        let (whole, source) = (file::read(&path).unwrap(), Source::open(&path).unwrap());
        let goes_on = |_| ControlFlow::Continue(());
        let excluded = None;
        let draws = [0, 1, 2].map(|seed| Draw { seed, excluded });
        let survey = Survey::read(&source, goes_on).unwrap();
        let together = survey.make(&mut Passes::new(&source, goes_on).unwrap(), &draws, || {
            Collecting::keeping(700)
        });
        for (&draw, script) in draws.iter().zip(&together.unwrap()) {
            let alone = Script::read(&whole, Whose::Recorded(draw), goes_on).unwrap();
            assert_same(&alone, script);
        }
    }

    #[test]
    fn reading_can_be_ended() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/dd.parquet");
        let source = Source::open(&path).unwrap();
        let mut done = 0;
        let ended = Script::read(&source, Whose::Other, |events| {
            done += events;
            match done > source.count() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        assert_eq!(ended.unwrap_err(), ScriptError::Stopped);
    }
}
