//! How long one request waits for others, in all: for whoever is in a cache, who does not answer, or who has frames in hand.
//!
//! A request looks everywhere up to 64 times in each zone, and after each reclaim again. Each of these looks may meet
//! somebody who stands still, and it is mostly the same one. So the waits are counted for the request as a whole, and
//! who has let it wait in vain is tried from then on, and no longer waited for.

use core::cell::Cell;

use brickyard_sync::PATIENCE;

use crate::Platform;

/// Calls of [`Platform::relax`] that one request makes at most while it looks everywhere.
pub const WAITS_MOST: u32 = 16 * PATIENCE;

/// CPUs that are asked in vain by one request, at most, before it asks none any more. A platform may wait for the answer.
pub const UNANSWERED_MOST: u32 = 16;

/// CPUs that are remembered as standing still. Of more than these, the number of waits is all that is known.
const STUCK_MOST: usize = 4;

const NOBODY: u32 = u32::MAX;

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

    /// Lets `go_in` wait for `cpu`, so often as it is told, each time with a call of what it is given.
    pub(crate) fn wait_for<R>(
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
    pub(crate) fn run_on(&self, cpu: usize, platform: &impl Platform, work: &mut dyn FnMut()) {
        if self.is_stuck(cpu) || self.unanswered.get() == UNANSWERED_MOST {
            return;
        }
        if !platform.run_on(cpu, work) {
            self.unanswered.set(self.unanswered.get() + 1);
            self.remember(cpu);
        }
    }

    /// Waits, at `least` so often, until `arrived` what is on its way; or until it is clear that whoever has it in hand
    /// stands still. It is asked rarely, since to look costs more than to wait.
    pub(crate) fn wait_for_moves(
        &self,
        least: u32,
        platform: &impl Platform,
        arrived: impl Fn() -> bool,
    ) {
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
