//! A platform of this host on which masking interrupts costs what it costs a kernel.
//!
//! Per-CPU lists mask interrupts at each allocation and each free, and every design masks them
//! where it takes the zone lock. Magazines were proposed as a way without a mask. A process has no
//! interrupts to mask, so without this, lists would be measured without the cost that the document
//! wants to save. Each mask saves the processor's flags and its end restores them (`flags.rs`). A
//! design that does not mask pays nothing.

use core::ptr::NonNull;

use brickyard::{Frame, InterruptState, Platform};

use brickyard_measure::flags::{restore, save};
use brickyard_measure::memory::FrameMemory;
use brickyard_run::named;

named! {
    /// What a mask of interrupts does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Masking {
        /// Nothing, as a process needs none.
        Nothing => "nothing",
        /// It saves and restores the flags, as a kernel does.
        Flags => "flags",
    }
}

/// The platform `P` with such masks.
#[derive(Debug, Clone, Copy)]
pub struct MaskingPlatform<P> {
    platform: P,
    masking: Masking,
}

/// That of memory with real bytes.
pub type MemoryPlatform<'a> = MaskingPlatform<&'a FrameMemory>;

impl<P> MaskingPlatform<P> {
    /// Adds these masks to a platform that has none.
    pub const fn new(platform: P, masking: Masking) -> Self {
        Self { platform, masking }
    }
}

impl<P: Platform> Platform for MaskingPlatform<P> {
    #[inline]
    fn cpu(&self) -> usize {
        self.platform.cpu()
    }

    #[inline]
    fn pin(&self) -> usize {
        self.platform.pin()
    }

    #[inline]
    fn unpin(&self) {
        self.platform.unpin();
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        self.platform.in_interrupt()
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        match self.masking {
            Masking::Nothing => InterruptState(0),
            // The flags of x86-64 are in the lower half.
            Masking::Flags => InterruptState(save() as usize),
        }
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        match self.masking {
            Masking::Nothing => {}
            Masking::Flags => restore(found.0 as u64),
        }
    }

    #[inline]
    fn relax(&self) {
        self.platform.relax();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        self.platform.run_on(cpu, work)
    }

    #[inline]
    fn ticks(&self) -> u64 {
        self.platform.ticks()
    }

    #[inline]
    fn task(&self) -> u64 {
        self.platform.task()
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        self.platform.address(frame)
    }
}

#[cfg(test)]
mod tests {
    use brickyard::OneCpu;

    use super::*;

    #[test]
    fn a_mask_returns_the_flags_only_where_it_saves_them() {
        let found = |masking| MaskingPlatform::new(OneCpu, masking).mask_interrupts().0;
        assert_eq!(found(Masking::Nothing), 0);
        // Bit 1 of the flags is always set, and interrupts (bit 9) are on in a process.
        let expected = if brickyard_measure::flags::SAVED {
            0x202
        } else {
            0
        };
        assert_eq!(found(Masking::Flags) & 0x202, expected);
        let platform = MaskingPlatform::new(OneCpu, Masking::Flags);
        let state = platform.mask_interrupts();
        platform.restore_interrupts(state);
        assert_eq!(platform.mask_interrupts().0 & 0x202, state.0 & 0x202);
    }
}
