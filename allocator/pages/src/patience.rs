//! How far one request goes to get at what others hold, and how long it waits for them, in all: for
//! whoever is in a cache, who does not answer, or who has frames in hand.
//!
//! A request looks everywhere up to 64 times in each zone, and after each reclaim again. Each of
//! these looks may meet somebody who stands still, and it is mostly the same one. So the waits are
//! counted for the request as a whole, and who has let it wait in vain is tried from then on, and
//! no longer waited for.

use core::cell::Cell;

use brickyard_sync::PATIENCE;

use crate::{Context, Frame, Order, Platform};

/// Calls of [`Platform::relax`] that one request makes at most while it looks everywhere.
pub const WAITS_MOST: u32 = 16 * PATIENCE;

/// CPUs that are asked in vain by one request, at most, before it asks none any more. A platform
/// may wait for the answer.
pub const UNANSWERED_MOST: u32 = 16;

/// CPUs that are remembered as standing still. Of more than these, the number of waits is all that
/// is known.
const STUCK_MOST: usize = 4;

const NOBODY: u32 = u32::MAX;

/// What a drain has brought to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// So many frames.
    pub frames: usize,
    /// How many caches hold something, and could not be entered for as long as the caller waits:
    /// somebody is inside.
    pub left_out: usize,
}

impl Drained {
    /// All of a cache.
    #[must_use]
    pub const fn of(frames: usize) -> Self {
        Self {
            frames,
            left_out: 0,
        }
    }

    /// Nothing of a cache that somebody is in.
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

/// How far a drain may go, by what its caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The own CPU's frames at most: the caller is in an interrupt and waits for nobody.
    Own,
    /// What locks lead to: the caller may spin, but not wait for another CPU to take an interrupt,
    /// since that CPU may be waiting for this one.
    Locks,
    /// Everything; other CPUs may be interrupted.
    All,
}

impl Reach {
    /// The reach of a caller in this context on this platform.
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

/// What is left of one request's patience.
#[derive(Debug)]
pub struct Patience {
    left: Cell<u32>,
    unanswered: Cell<u32>,
    stuck: [Cell<u32>; STUCK_MOST],
    moves_stuck: Cell<bool>,
}

impl Patience {
    /// All of it.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            left: Cell::new(WAITS_MOST),
            unanswered: Cell::new(0),
            stuck: [const { Cell::new(NOBODY) }; STUCK_MOST],
            moves_stuck: Cell::new(false),
        }
    }

    /// Lets `go_in` wait for `cpu`, so often as it is told, each time with a call of what it is
    /// given.
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

    /// Runs `work` on `cpu`, unless it has left the request without an answer before.
    pub fn run_on(&self, cpu: usize, platform: &impl Platform, work: &mut dyn FnMut()) {
        if self.is_stuck(cpu) || self.unanswered.get() == UNANSWERED_MOST {
            return;
        }
        if !platform.run_on(cpu, work) {
            self.unanswered.set(self.unanswered.get() + 1);
            self.remember(cpu);
        }
    }

    /// Waits, at `least` so often, until `arrived` what is on its way; or until it is clear that
    /// whoever has it in hand stands still. It is asked rarely, since to look costs more than to
    /// wait.
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

/// How often a request for one frame looks everywhere at most.
pub const LOOKS_MOST: u32 = 64;

/// How often a request does so that may not have what is free, since that is below a mark: frames
/// on their way may lift the zone above it, but no more than so many times is reclaim put off.
pub const LOOKS_BELOW_A_MARK: u32 = 4;

/// What a look everywhere has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// This.
    Found(Frame),
    /// Nothing that the request may have was free all the while.
    Nothing,
    /// Nothing; but frames came and went meanwhile, or somebody has some in hand.
    Unsettled,
    /// The same, and what is free is below a mark.
    UnsettledBelowAMark,
}

/// Looks everywhere until something is found, or nothing was free all the while
/// (`order-0-succeeds`), but [`LOOKS_MOST`] times at most; once for orders above 0 and in an
/// interrupt. Between two looks `wait` is called with the number of the look.
pub fn look_everywhere(
    order: Order,
    reach: Reach,
    look: impl Fn() -> Look,
    wait: impl Fn(u32),
) -> Option<Frame> {
    let looks = match order {
        Order::ZERO if reach != Reach::Own => LOOKS_MOST,
        _ => 1,
    };
    let mut below_a_mark = 0;
    for number in 1..=looks {
        match look() {
            Look::Found(frame) => return Some(frame),
            Look::Nothing => return None,
            Look::Unsettled => {}
            Look::UnsettledBelowAMark => {
                below_a_mark += 1;
                if below_a_mark == LOOKS_BELOW_A_MARK {
                    return None;
                }
            }
        }
        if number < looks {
            wait(number);
        }
    }
    None
}
