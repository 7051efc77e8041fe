//! Who allocated an object, and who freed it last.
//!
//! Both records stand behind the object, where a large overflow can overwrite them. They hold an
//! address that is followed when a report is printed. Invariant `sealed`: each record is sealed by
//! a sum of its words. A record whose seal does not fit is reported as overwritten and never
//! followed.

use core::fmt;
use core::panic::Location;
use core::ptr::{NonNull, from_ref, with_exposed_provenance};

use brickyard::Platform;
use brickyard_sync::GuardedU64;

/// The caller that allocated or freed an object, with place and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Track {
    /// The place in the source: the caller of the cache's method.
    pub caller: &'static Location<'static>,
    /// The CPU ([`Platform::cpu`]).
    pub cpu: usize,
    /// The task ([`Platform::task`]).
    pub task: u64,
    /// The time, by [`Platform::ticks`].
    pub time: u64,
}

impl Track {
    /// Returns the track of the caller, now.
    pub(crate) fn now(platform: &impl Platform, caller: &'static Location<'static>) -> Self {
        Self {
            caller,
            cpu: platform.cpu(),
            task: platform.task(),
            time: platform.ticks(),
        }
    }
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            caller,
            cpu,
            task,
            time,
        } = self;
        write!(f, "{caller}, CPU {cpu}, task {task}, time {time}")
    }
}

/// The last user that allocated or freed an object, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// This cache is not tracked, or it is not known which object it is.
    Untracked,
    /// Nobody, since the object's slab was made.
    Nobody,
    /// The record has been written over.
    Overwritten,
    /// This one.
    By(Track),
}

impl User {
    /// Returns the track, if it is known.
    #[must_use]
    pub const fn track(&self) -> Option<Track> {
        match self {
            Self::By(track) => Some(*track),
            _ => None,
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untracked => f.write_str("(not tracked: add U to the cache's checks)"),
            Self::Nobody => f.write_str("nobody since its slab was made"),
            Self::Overwritten => f.write_str("(the record has been overwritten)"),
            Self::By(track) => track.fmt(f),
        }
    }
}

/// A track in memory. If all words are 0, it is nobody's.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Stored {
    caller: GuardedU64,
    task: GuardedU64,
    time: GuardedU64,
    /// The CPU, and above it the seal.
    cpu_and_seal: GuardedU64,
}

/// The bytes of a track.
pub(crate) const TRACK_BYTES: usize = size_of::<Stored>();

fn seal(caller: u64, task: u64, time: u64, cpu: u32) -> u64 {
    // Odd numbers without a pattern: each word moves all bits above its lowest one.
    let sum = caller.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ task.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        ^ time.wrapping_mul(0x1656_67b1_9e37_79f9)
        ^ u64::from(cpu).wrapping_mul(0x27d4_eb2f_1656_67c5);
    sum >> 32
}

impl Stored {
    /// Returns the track at an address.
    ///
    /// # Safety
    /// [`Stored::clear`] has written one there, and the memory is still its slab's.
    pub(crate) unsafe fn at<'s>(address: NonNull<u8>) -> &'s Self {
        // SAFETY: the caller's promise; tracks stand at multiples of a word.
        unsafe { address.cast().as_ref() }
    }

    /// Writes a record of nobody.
    ///
    /// # Safety
    /// The memory is the caller's to write, and aligned to a word.
    pub(crate) unsafe fn clear(address: NonNull<u8>) {
        let nobody = Self {
            caller: GuardedU64::new(0),
            task: GuardedU64::new(0),
            time: GuardedU64::new(0),
            cpu_and_seal: GuardedU64::new(0),
        };
        // SAFETY: the caller's promise.
        unsafe { address.cast().write(nobody) };
    }

    pub(crate) fn set(&self, track: &Track) {
        let caller = from_ref(track.caller).expose_provenance() as u64;
        let cpu = track.cpu as u32;
        self.caller.set(caller);
        self.task.set(track.task);
        self.time.set(track.time);
        let seal = seal(caller, track.task, track.time, cpu);
        self.cpu_and_seal.set(seal << 32 | u64::from(cpu));
    }

    pub(crate) fn user(&self) -> User {
        let (caller, task, time) = (self.caller.get(), self.task.get(), self.time.get());
        let cpu_and_seal = self.cpu_and_seal.get();
        if caller | task | time | cpu_and_seal == 0 {
            return User::Nobody;
        }
        let cpu = cpu_and_seal as u32;
        if caller == 0 || cpu_and_seal >> 32 != seal(caller, task, time, cpu) {
            return User::Overwritten;
        }
        let caller = with_exposed_provenance::<Location<'static>>(caller as usize);
        // SAFETY: by `sealed`: the seal fits, so the word is what `set` wrote. That is the address
        // of a location that lives for ever.
        let caller = unsafe { &*caller };
        User::By(Track {
            caller,
            cpu: cpu as usize,
            task,
            time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_somebody_wrote_over_is_not_followed() {
        let mut memory = [0_u64; 4];
        let at = NonNull::from(&mut memory).cast::<u8>();
        let track = Track {
            caller: Location::caller(),
            cpu: 3,
            task: 77,
            time: 1 << 40,
        };
        // SAFETY: the memory is as large as a track, and aligned.
        unsafe {
            Stored::clear(at);
            let stored = Stored::at(at);
            assert_eq!(stored.user(), User::Nobody);
            stored.set(&track);
            assert_eq!(stored.user(), User::By(track));
            for byte in 0..TRACK_BYTES {
                let found = at.add(byte).read();
                at.add(byte).write(found ^ 0x41);
                assert_eq!(stored.user(), User::Overwritten, "{byte}");
                at.add(byte).write(found);
            }
            at.write_bytes(0x41, TRACK_BYTES);
            assert_eq!(stored.user(), User::Overwritten);
        }
    }
}
