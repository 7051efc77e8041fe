//! What all experiments begin with: which machine, how many CPUs, which allocator, how much memory,
//! which seed.

use brickyard::FrameRange;
use brickyard::node::movable::Sizing;
use brickyard_classics::{Configuration, MachinePlan};
use brickyard_machine::{Failure, MOST_CPUS, Profile, Setup};
use thiserror::Error;

use crate::build::Blueprint;
use crate::instructions;

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 4096;

/// Memory where nobody names any, and no more is needed.
pub const MEMORY: usize = 1 << 30;

/// Frames of a machine whose memory nobody gives: enough for what is done, and 1 GiB at least.
#[must_use]
pub const fn usual_frames(needed: usize) -> usize {
    let needed = whole_mib(needed);
    (if needed > MEMORY { needed } else { MEMORY }) / FRAME_BYTES
}

/// Bytes of so many frames, in whole MiB.
#[must_use]
pub const fn whole_mib(frames: usize) -> usize {
    let bytes = frames.saturating_mul(FRAME_BYTES);
    bytes.div_ceil(1 << 20).saturating_mul(1 << 20)
}

/// A machine with an allocator.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Which machine.
    pub profile: &'static Profile,
    /// CPUs, 1 to 256. Each runs one task, where the experiment does not say otherwise.
    pub cpus: usize,
    /// The allocator: ticket locks, and slots that only their CPU enters.
    pub configuration: Configuration,
    /// Memory, in frames of 4 KiB.
    pub frames: usize,
    /// What all chance comes from.
    pub seed: u64,
}

/// Why an experiment has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// Too few or too many CPUs.
    #[error("a simulated machine has 1 to {MOST_CPUS} CPUs, not {0}")]
    Cpus(usize),
    /// The experiment would run out of memory.
    #[error("{cpus} CPUs need {} MiB of memory for this, and there are {} MiB", mib(*.needed), mib(*.frames))]
    Memory {
        /// CPUs.
        cpus: usize,
        /// Frames that there are.
        frames: usize,
        /// Frames that are needed.
        needed: usize,
    },
    /// The run did not come to its end.
    #[error("{configuration} with {cpus} CPUs, seed {seed}: {failure}")]
    Failed {
        /// Which allocator.
        configuration: &'static str,
        /// CPUs.
        cpus: usize,
        /// By which it can be had again.
        seed: u64,
        /// What happened.
        failure: Failure,
    },
}

/// Rounded up.
const fn mib(frames: usize) -> usize {
    frames.div_ceil((1 << 20) / FRAME_BYTES)
}

impl Setting {
    /// Is there such a machine, and has it `needed` frames?
    ///
    /// # Errors
    /// [`RunError`] where not.
    pub fn check(&self, needed: usize) -> Result<(), RunError> {
        if self.cpus == 0 || self.cpus > MOST_CPUS {
            return Err(RunError::Cpus(self.cpus));
        }
        if self.frames < needed {
            return Err(RunError::Memory {
                cpus: self.cpus,
                frames: self.frames,
                needed,
            });
        }
        Ok(())
    }

    /// The machine, with accesses that cost what its caches say.
    #[must_use]
    pub const fn machine(&self) -> Setup {
        Setup {
            instructions_per_access: instructions::per_access(self.configuration),
            ..Setup::new(self.profile, self.cpus, self.seed)
        }
    }

    /// The allocator, with all its memory free. A zone for movable pages has half of it, where the
    /// configuration has one.
    #[must_use]
    pub const fn blueprint(&self) -> Blueprint {
        let span = FrameRange::new(0, self.frames);
        Blueprint::new(self.configuration, MachinePlan::new(span, self.cpus))
    }

    /// The same, with `kernel_core` per cent of its memory for the kernel too where the
    /// configuration has a zone for movable pages, rounded up to whole blocks. Any other has one
    /// zone, whatever the number.
    ///
    /// ```
    /// use brickyard_machine::Profile;
    /// use brickyard_simulate::{Configuration, Setting};
    ///
    /// let setting = Setting {
    ///     profile: Profile::by_name("metatm-2007")?,
    ///     cpus: 4,
    ///     configuration: Configuration::Zone2007,
    ///     frames: 100 << 10,
    ///     seed: 1,
    /// };
    /// let (kernel, movable) = setting.blueprint_of(60).plan.zones(Configuration::Zone2007);
    /// assert_eq!(kernel.span.len(), 60 << 10);
    /// assert_eq!(movable.map(|zone| zone.span.len()), Some(40 << 10));
    /// # Ok::<(), brickyard_machine::UnknownProfile>(())
    /// ```
    #[must_use]
    pub const fn blueprint_of(&self, kernel_core: u8) -> Blueprint {
        let mut blueprint = self.blueprint();
        blueprint.plan.sizing = Sizing::KernelCorePercent(kernel_core);
        blueprint
    }

    /// The error of a run that failed.
    pub(crate) const fn failed(&self, failure: Failure) -> RunError {
        RunError::Failed {
            configuration: self.configuration.name(),
            cpus: self.cpus,
            seed: self.seed,
            failure,
        }
    }

    /// Cycles in seconds of this machine.
    #[must_use]
    pub const fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / (self.profile.megahertz as f64 * 1e6)
    }
}
