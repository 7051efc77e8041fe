//! What all experiments have in common: the machine, its CPUs, the allocator, the memory and the
//! seed.

use brickyard::FrameRange;
use brickyard::node::movable::Sizing;
use brickyard_designs::classics::{Configuration, MachinePlan};
use brickyard_machine::{Failure, MOST_CPUS, Profile, Setup};
use thiserror::Error;

use crate::build::Blueprint;
use crate::instructions;
use crate::lock::LockKind;

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 4096;

/// Default memory, where no more is needed.
pub const MEMORY: usize = 1 << 30;

/// Returns the default memory of a machine in frames: what the experiment needs, and at least
/// 1 GiB.
#[must_use]
pub const fn usual_frames(needed: usize) -> usize {
    let needed = whole_mib(needed);
    (if needed > MEMORY { needed } else { MEMORY }) / FRAME_BYTES
}

/// Returns the bytes of so many frames, rounded up to whole MiB.
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
    /// CPUs, 1 to 256. Each runs one task, unless the experiment does otherwise.
    pub cpus: usize,
    /// The allocator, with ticket locks, and slots that only their CPU enters.
    pub configuration: Configuration,
    /// Memory, in frames of 4 KiB.
    pub frames: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Instructions of an access more, or fewer, than were counted: 0, except where it is asked
    /// what hangs on the count.
    pub more_instructions: i8,
}

/// Why an experiment has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Too few or too many CPUs.
    #[error("a simulated machine has 1 to {MOST_CPUS} CPUs, not {0}")]
    Cpus(usize),
    /// The experiment would run out of memory.
    #[error("with CPUs: {cpus}, this needs {} MiB of memory, but there are only {} MiB", mib(*.needed), mib(*.frames))]
    Memory {
        /// CPUs.
        cpus: usize,
        /// Frames that there are.
        frames: usize,
        /// Frames that are needed.
        needed: usize,
    },
    /// The run failed.
    #[error("{configuration}, CPUs: {cpus}, seed {seed}: {failure}")]
    Failed {
        /// Which allocator.
        configuration: &'static str,
        /// CPUs.
        cpus: usize,
        /// The seed, which reproduces it.
        seed: u64,
        /// What happened.
        failure: Failure,
    },
}

/// Returns the MiB of so many frames, rounded up.
const fn mib(frames: usize) -> usize {
    frames.div_ceil((1 << 20) / FRAME_BYTES)
}

impl Setting {
    /// Checks that the machine is possible and has `needed` frames.
    ///
    /// # Errors
    /// [`RunError::Cpus`] or [`RunError::Memory`] where not.
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

    /// Returns the machine's setup, with accesses charged by its caches.
    #[must_use]
    pub fn machine(&self) -> Setup {
        Setup {
            instructions_per_thousand: instructions::per_thousand(self.configuration)
                .saturating_add_signed(1000 * i64::from(self.more_instructions)),
            ..Setup::new(self.profile, self.cpus, self.seed)
        }
    }

    /// Returns the allocator to build, with all its memory free. A zone for movable pages has half
    /// of it, where the configuration has one.
    #[must_use]
    pub const fn blueprint(&self) -> Blueprint {
        let span = FrameRange::new(0, self.frames);
        let mut blueprint = Blueprint::new(self.configuration, MachinePlan::new(span, self.cpus));
        blueprint.locks = LockKind::LINUX_TICKET;
        blueprint
    }

    /// Returns the same, but where the configuration has a zone for movable pages, the other zone
    /// has `kernel_core` per cent of the memory, rounded up to whole blocks. Any other
    /// configuration has one zone, whatever the number.
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
    ///     more_instructions: 0,
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

    /// Returns the error for a run that failed.
    pub(crate) const fn failed(&self, failure: Failure) -> RunError {
        RunError::Failed {
            configuration: self.configuration.name(),
            cpus: self.cpus,
            seed: self.seed,
            failure,
        }
    }

    /// Converts cycles to seconds of this machine.
    #[must_use]
    pub const fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / (self.profile.megahertz as f64 * 1e6)
    }
}
