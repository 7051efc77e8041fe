//! When the profile is written, and where: at the end of the process, at a signal, and when the
//! program asks.
//!
//! It is written beside its file, and takes the file's name when it is whole: a disk that is full
//! leaves the last one as it was.

use core::ffi::c_int;
use core::sync::atomic::Ordering;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open, rename, unlink};

use super::profile::Profile;
use super::{is_nested, sampled};
use crate::build::{INSTANCE, number, variable};
use crate::life;
use crate::report::print;

/// The longest name of a file, with the 0 at its end.
const NAME_BYTES: usize = 4096;

/// What is not written yet is beside the file, under this ending.
const PART: &[u8] = b".part";

/// Writes the profile at the end of the process.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    if let Some(profile) = sampled().and_then(|sampled| sampled.profile()) {
        profile.write_or_complain();
    }
}

/// Writes the profile of this process to a descriptor, in the text format that `pprof` reads.
///
/// # Errors
/// An error number: `ENODATA` if there is none (`BRICKYARD_PROFILE` is not set), `EBUSY` if it is
/// called by a handler that has interrupted the heap, or while another thread forks; or that of the
/// `write` that failed.
pub fn write_profile(descriptor: i32) -> Result<(), i32> {
    let Some(profile) = sampled().and_then(|sampled| sampled.profile()) else {
        return Err(libc::ENODATA);
    };
    profile.write_to(descriptor)
}

/// Has a signal ask for the profile, if the environment names one.
pub(super) fn watch() {
    let wanted = variable(c"BRICKYARD_PROFILE_SIGNAL").filter(|text| !text.is_empty());
    let Some(text) = wanted else {
        return;
    };
    let signal = match text {
        b"USR1" | b"SIGUSR1" => Some(libc::SIGUSR1),
        b"USR2" | b"SIGUSR2" => Some(libc::SIGUSR2),
        _ => number(text).and_then(|number| c_int::try_from(number).ok()),
    };
    // SAFETY: an action that is zero but for what is set is one. The handler lives as long as the
    // program.
    let failed = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(
            signal.unwrap_or(0),
            &raw const action,
            core::ptr::null_mut(),
        )
    };
    if failed != 0 {
        life::say(format_args!(
            "BRICKYARD_PROFILE_SIGNAL is USR1, USR2 or the number of a signal that can be caught"
        ));
    }
}

extern "C" fn on_signal(_signal: c_int) {
    let Some(profile) = sampled().and_then(|sampled| sampled.profile()) else {
        return;
    };
    // Relaxed, here and below: whoever looks next writes it.
    profile.is_wanted.store(true, Ordering::Relaxed);
    if !is_nested(0) {
        profile.write_if_wanted();
    }
}

/// A name of a file, with a 0 at its end.
struct Name {
    bytes: [u8; NAME_BYTES],
    length: usize,
}

impl Name {
    /// Returns the name in `pattern`, in which `%p` stands for the number of the process and `%n`
    /// for `count`; `None` if it is too long.
    fn of(pattern: &[u8], count: u64) -> Option<Self> {
        let mut name = Self {
            bytes: [0; NAME_BYTES],
            length: 0,
        };
        let mut rest = pattern;
        while let Some((&first, behind)) = rest.split_first() {
            match (first, behind.first()) {
                (b'%', Some(b'p')) => name.push_number(std::process::id().into())?,
                (b'%', Some(b'n')) => name.push_number(count)?,
                (b'%', Some(b'%')) => name.push(b"%")?,
                _ => {
                    name.push(&[first])?;
                    rest = behind;
                    continue;
                }
            }
            rest = &behind[1..];
        }
        Some(name)
    }

    /// Adds bytes, if there is room for them and two words more.
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length + bytes.len();
        self.bytes.get_mut(self.length..end)?.copy_from_slice(bytes);
        self.length = end;
        (end < NAME_BYTES).then_some(())
    }

    fn push_number(&mut self, mut number: u64) -> Option<()> {
        let mut digits = [0; 20];
        let mut first = digits.len();
        while first == digits.len() || number > 0 {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.push(&digits[first..])
    }

    /// The rest is zero, of which the first ends the name.
    fn as_c(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Profile {
    /// Writes it to its file, if a signal has asked for it.
    pub(super) fn write_if_wanted(&self) {
        if self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed) {
            self.write_or_complain();
        }
    }

    fn write_or_complain(&self) {
        brickyard_arena::rows::keeping_errno(|| match self.write_file() {
            Ok(()) => {}
            // Somebody is inside: the next sample writes it.
            Err(libc::EBUSY) => self.is_wanted.store(true, Ordering::Relaxed),
            // The system's text for the error would need memory.
            Err(number) => life::say(format_args!(
                "the profile cannot be written to {}: error {number} of the system",
                self.file().escape_ascii()
            )),
        });
    }

    /// Writes it to its file.
    fn write_file(&self) -> Result<(), i32> {
        let count = self.written.fetch_add(1, Ordering::Relaxed) + 1;
        let name = Name::of(self.file(), count).ok_or(libc::ENAMETOOLONG)?;
        let mut part = Name::of(self.file(), count).ok_or(libc::ENAMETOOLONG)?;
        part.push(PART).ok_or(libc::ENAMETOOLONG)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let open = open(part.as_c(), flags, mode);
        let file: OwnedFd = open.map_err(|error| error.raw_os_error())?;
        let done = self.write_to(file.as_raw_fd());
        drop(file);
        let done = done
            .and_then(|()| rename(part.as_c(), name.as_c()).map_err(|error| error.raw_os_error()));
        if done.is_err() {
            // What there is of it is of no use.
            let _ = unlink(part.as_c());
        }
        done
    }

    /// Writes it to a descriptor.
    fn write_to(&self, descriptor: i32) -> Result<(), i32> {
        // In a handler that has interrupted the heap the lock may be held by this very thread.
        if is_nested(0) {
            return Err(libc::EBUSY);
        }
        let _inside = INSTANCE.gate.try_enter(0).ok_or(libc::EBUSY)?;
        print(descriptor, &self.text())?;
        super::maps::copy_to(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers_where_the_pattern_says() {
        let name = |pattern: &[u8]| {
            let name = Name::of(pattern, 12)?;
            Some(name.as_c().to_str().unwrap().to_owned())
        };
        let process = std::process::id();
        assert_eq!(name(b"/tmp/a.heap").unwrap(), "/tmp/a.heap");
        assert_eq!(name(b"a.%p.%n").unwrap(), format!("a.{process}.12"));
        assert_eq!(name(b"100%%p %").unwrap(), "100%p %");
        assert_eq!(name(&[b'a'; NAME_BYTES - 1]).unwrap().len(), NAME_BYTES - 1);
        assert_eq!(name(&[b'a'; NAME_BYTES]), None);
        let mut almost = Name::of(&[b'a'; NAME_BYTES - 3], 1).unwrap();
        assert_eq!(almost.push(PART), None);
    }
}
