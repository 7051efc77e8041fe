//! Patience: how far one request goes to get frames that other CPUs hold, and how long it waits for
//! them in all. It waits for a CPU that is in a cache, that does not answer, or that has frames in
//! hand.
//!
//! A request looks everywhere up to 64 times in each zone, and again after each reclaim. Each of
//! these looks may meet a CPU that stands still, and mostly it is the same one. So the waits are
//! counted for the request as a whole, over all zones. A CPU that the request has waited for
//! without success is still tried from then on, but no longer waited for. Outside these looks, a
//! request waits for nobody.

use core::cell::Cell;

use brickyard_sync::PATIENCE;

use crate::{Context, Frame, Order, Platform};

/// The most calls of [`Platform::relax`] that one request makes, in all zones together.
pub const WAITS_MOST: u32 = 16 * PATIENCE;

/// The most CPUs that one request asks without success before it asks no more. A platform may wait
/// for the answer.
pub const UNANSWERED_MOST: u32 = 16;

/// The most CPUs that are remembered as standing still. Waits for any others are only counted.
const STUCK_MOST: usize = 4;

const NOBODY: u32 = u32::MAX;

/// What a drain has brought to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// The number of frames.
    pub frames: usize,
    /// The number of caches that hold something but could not be entered: another CPU was inside
    /// for as long as the caller waits.
    pub left_out: usize,
}

impl Drained {
    /// Returns the result of draining a whole cache.
    #[must_use]
    pub const fn of(frames: usize) -> Self {
        Self {
            frames,
            left_out: 0,
        }
    }

    /// The result for a cache that another CPU is inside of: no frames.
    pub const LEFT_OUT: Self = Self {
        frames: 0,
        left_out: 1,
    };
}

impl core::iter::Sum for Drained {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            frames: sum.frames + one.frames,
            left_out: sum.left_out + one.left_out,
        })
    }
}

/// How far a drain may go, depending on what its caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// At most the frames of the caller's CPU: the caller is in an interrupt and waits for no other
    /// CPU.
    Own,
    /// Whatever locks give access to. The caller may spin, but may not wait for another CPU to take
    /// an interrupt, since that CPU may be waiting for this one.
    Locks,
    /// Everything. Other CPUs may be interrupted.
    All,
}

impl Reach {
    /// Returns the reach of a caller in this context on this platform.
    #[must_use]
    pub fn of(context: Context, platform: &impl Platform) -> Self {
        match context {
            Context::Interrupt => Self::Own,
            _ if platform.in_interrupt() => Self::Own,
            Context::Atomic => Self::Locks,
            Context::MaySleep => Self::All,
        }
    }
}

/// The rest of one request's patience.
#[derive(Debug)]
pub struct Patience {
    left: Cell<u32>,
    unanswered: Cell<u32>,
    stuck: [Cell<u32>; STUCK_MOST],
    moves_stuck: Cell<bool>,
    // Looks have ended since this was last asked, and frames came and went until the last.
    gave_up: Cell<bool>,
}

impl Patience {
    /// Returns the full patience that a request starts with.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            left: Cell::new(WAITS_MOST),
            unanswered: Cell::new(0),
            stuck: [const { Cell::new(NOBODY) }; STUCK_MOST],
            moves_stuck: Cell::new(false),
            gave_up: Cell::new(false),
        }
    }

    /// Calls `go_in`, which may wait for `cpu`. `go_in` gets the most waits allowed and a function
    /// to call at each wait. If it fails, `cpu` is no longer waited for.
    pub fn wait_for<R>(
        &self,
        cpu: usize,
        platform: &impl Platform,
        go_in: impl FnOnce(u32, &mut dyn FnMut()) -> Option<R>,
    ) -> Option<R> {
        let most = match self.is_stuck(cpu) {
            true => 0,
            false => self.left.get().min(PATIENCE),
        };
        let mut waited = 0;
        let inside = go_in(most, &mut || {
            waited += 1;
            platform.relax();
        });
        self.left.set(self.left.get().saturating_sub(waited));
        if inside.is_none() {
            self.remember(cpu);
        }
        inside
    }

    /// Runs `work` on `cpu`, unless that CPU has kept this request waiting without success before.
    pub fn run_on(&self, cpu: usize, platform: &impl Platform, work: &mut dyn FnMut()) {
        if self.is_stuck(cpu) || self.unanswered.get() == UNANSWERED_MOST {
            return;
        }
        if !platform.run_on(cpu, work) {
            self.unanswered.set(self.unanswered.get() + 1);
            self.remember(cpu);
        }
    }

    /// Waits until `arrived` says that the frames in transit have arrived, and at least `least`
    /// times. Gives up after [`PATIENCE`] waits, when the CPU that has the frames in hand evidently
    /// stands still; later calls then wait only `least` times. In any case it stops when the
    /// patience is used up. `arrived` is called rarely, since a look costs more than a wait.
    pub fn wait_for_moves(&self, least: u32, platform: &impl Platform, arrived: impl Fn() -> bool) {
        let most = match self.moves_stuck.get() {
            true => least,
            false => PATIENCE,
        };
        for waited in 1..=most {
            if self.left.get() == 0 {
                return;
            }
            self.left.set(self.left.get() - 1);
            platform.relax();
            if waited >= least && waited.is_power_of_two() && arrived() {
                return;
            }
        }
        self.moves_stuck.set(true);
    }

    /// Returns true if [`Looks`] have ended since the last call, and frames came and went until the
    /// last of them: nothing is known of that zone.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up.take()
    }

    fn is_stuck(&self, cpu: usize) -> bool {
        self.stuck.iter().any(|stuck| stuck.get() == cpu as u32)
    }

    fn remember(&self, cpu: usize) {
        if self.is_stuck(cpu) {
            return;
        }
        if let Some(place) = self.stuck.iter().find(|stuck| stuck.get() == NOBODY) {
            place.set(cpu as u32);
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

/// The most times that a request for one frame looks everywhere.
pub const LOOKS_MOST: u32 = 64;

/// The most such looks for a request that may not have what is free because it is below a mark.
/// Frames in transit may lift the zone above the mark, but reclaim is delayed no longer than this.
pub const LOOKS_BELOW_A_MARK: u32 = 4;

/// The result of looking everywhere once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A frame was found.
    Found(Frame),
    /// Nothing that the request may have was free at any time during the look.
    Nothing,
    /// Nothing was found, but frames came and went meanwhile, or another CPU has some in hand.
    Unsettled,
    /// Nothing was found, but frames came and went meanwhile, or another CPU has some in hand; and
    /// what is free is below a mark.
    UnsettledBelowAMark,
}

/// The looks of a request at all of a zone, one after the other, until one finds something or says
/// that nothing was free (`order-0-succeeds`): at most [`LOOKS_MOST`], and one for orders above 0
/// and in an interrupt.
///
/// ```
/// use brickyard::patience::{LOOKS_MOST, Look, Looks, Patience, Reach};
/// use brickyard::Order;
///
/// let patience = Patience::new();
/// let mut looks = Looks::new(Order::ZERO, Reach::All, &patience);
/// // The zone is looked at, and frames come and go; before the next look, others are waited for.
/// while let Some(number) = looks.again(Look::Unsettled) {
///     assert!(number < LOOKS_MOST);
/// }
/// ```
#[derive(Debug)]
pub struct Looks<'p> {
    patience: &'p Patience,
    most: u32,
    made: u32,
    below_a_mark: u32,
}

impl<'p> Looks<'p> {
    /// Returns the looks of a request of this order and reach, of which none has been made.
    #[must_use]
    pub fn new(order: Order, reach: Reach, patience: &'p Patience) -> Self {
        Self {
            patience,
            most: match order {
                Order::ZERO if reach != Reach::Own => LOOKS_MOST,
                _ => 1,
            },
            made: 0,
            below_a_mark: 0,
        }
    }

    /// Takes the result of the look that was made. Returns its number, from 1 on, if another is to
    /// follow after a wait.
    pub fn again(&mut self, look: Look) -> Option<u32> {
        self.made += 1;
        match look {
            Look::Found(_) | Look::Nothing => return None,
            Look::Unsettled => {}
            Look::UnsettledBelowAMark => self.below_a_mark += 1,
        }
        let goes_on = self.made < self.most && self.below_a_mark < LOOKS_BELOW_A_MARK;
        if !goes_on {
            self.patience.gave_up.set(true);
        }
        goes_on.then_some(self.made)
    }
}
