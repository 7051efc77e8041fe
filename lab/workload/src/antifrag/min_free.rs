//! The claim of 2007 about `min_free_kbytes`: with a high value, large blocks can be allocated for
//! a time, since the memory kept free is in one piece at first. That ends when memory pressure
//! splits it; and raising the value later does not help, since what is kept free then is in pieces.
//!
//! One machine goes through the load of the protocol and through moments of pressure. At each
//! moment the free huge pages above the min mark are counted, by taking them and giving them back:
//! without reclaim, which would change what is looked at.

use brickyard::{Context, Frame, Mobility, Request};
use brickyard_designs::classics::LabZone;
use brickyard_run::named;

use super::programs::{all_begun, warmed_up};
use super::stage::Stage;
use crate::pages::{PageId, Role};
use crate::replay::Watcher;

named! {
    /// The value of `min_free_kbytes` over a run, the control first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum MinFree {
        /// Linux's default.
        Low => "low",
        /// Four blocks of the highest order, from boot on.
        HighFromBoot => "high from boot",
        /// The default at first, and four blocks once the load has run for a minute.
        RaisedLater => "raised later",
    }
}

/// The moments at which huge pages are counted, in order.
pub const MOMENTS: [&str; 6] = [
    "one build done",
    "seven trees copied",
    "a minute under load",
    "two minutes under load",
    "after pressure",
    "a minute later",
];

/// The time between two moments under load.
const MINUTE: u64 = 60_000_000_000;

/// The bursts of pressure, and the time that each lasts. Assumed.
const BURSTS: usize = 4;
const BURST: u64 = 5_000_000_000;

impl<Z: LabZone> Stage<'_, '_, '_, Z> {
    /// Runs the experiment. Returns the huge pages counted at each of [`MOMENTS`], or fewer if the
    /// watcher ended it.
    pub(super) fn with_min_free(
        &mut self,
        min_free: MinFree,
        watcher: &mut impl Watcher,
    ) -> Vec<usize> {
        let high = 4 * self.machine.max_order.frames() * self.machine.frame_bytes / 1024;
        let set = |kbytes| {
            self.plain
                .set_min_free_kbytes(kbytes, self.machine.frame_bytes)
        };
        let memory = self.machine.frames() * self.machine.frame_bytes / 1024;
        set(match min_free {
            MinFree::HighFromBoot => high,
            _ => brickyard::watermark::min_free_kbytes(memory),
        });
        let begun = warmed_up(self.protocol);
        let started = all_begun(self.protocol);
        let mut counted = Vec::new();
        for until in [begun, started, started + MINUTE] {
            if !self.run_to(until, watcher) {
                return counted;
            }
            counted.push(self.count_free());
        }
        if min_free == MinFree::RaisedLater {
            set(high);
        }
        if !self.run_to(self.now + MINUTE, watcher) {
            return counted;
        }
        counted.push(self.count_free());
        if self.press(watcher) {
            counted.push(self.count_free());
            if self.run_to(self.now + MINUTE, watcher) {
                counted.push(self.count_free());
            }
        }
        counted
    }

    fn release_every_other(&self, taken: &[Frame], from: usize) {
        let part = taken.iter().skip(from).step_by(2);
        part.for_each(|&frame| {
            self.kernel.release(frame);
        });
    }

    /// Counts the free huge pages above the min mark.
    fn count_free(&self) -> usize {
        let request = Request::new(self.machine.huge_order, Mobility::Movable);
        let take = || self.kernel.take_if_free(self.nodes, &request, Role::Held);
        let taken: Vec<Frame> = core::iter::from_fn(take).collect();
        taken.iter().for_each(|&frame| {
            self.kernel.release(frame);
        });
        taken.len()
    }

    /// Puts memory under pressure, some times: a device takes all that requests which cannot wait
    /// may have, and gives back every other page; the load goes on in these; then the device gives
    /// back the rest. Returns false if the watcher ended it.
    fn press(&mut self, watcher: &mut impl Watcher) -> bool {
        let request = Request::page(Mobility::Unmovable).in_context(Context::Atomic);
        (0..BURSTS).all(|_| {
            let take = || {
                let taken =
                    self.kernel
                        .take(self.nodes, 0, &request, Role::Kernel, 0, PageId::NONE);
                taken.ok()
            };
            let taken: Vec<Frame> = core::iter::from_fn(take)
                .take(self.machine.frames())
                .collect();
            self.release_every_other(&taken, 0);
            let goes_on = self.run_to(self.now + BURST, watcher);
            self.release_every_other(&taken, 1);
            goes_on
        })
    }
}
