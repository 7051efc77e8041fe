//! Writes the profile to its file: at the end of the process, at a signal, and when the program
//! asks.
//!
//! It is written beside its file, and takes the file's name when it is whole: a disk that is full
//! leaves the last one as it was. It takes no name of what is no file: a device, a pipe, a link.
//! One thread writes at a time, in memory that is not its stack, which may be small. Nothing is
//! held while it writes, so a slow reader keeps nobody waiting.

use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering;
use std::os::fd::{AsRawFd, OwnedFd};

use brickyard_arena::environment::{number, variable};
use brickyard_arena::messages::{print, say};
use brickyard_arena::rows::keeping_errno;
use rustix::fs::{FileType, Mode, OFlags, lstat, open, rename, unlink};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::maps;
use crate::profile::Profile;
use crate::writer::{Buffers, NAME_BYTES, WriterTurn};
use crate::{Sampled, sampled};

/// Writes the profile at the end of the process.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    let Some(profile) = sampled().and_then(Sampled::profile) else {
        return;
    };
    if profile.is_nested() {
        profile.complain(libc::EBUSY);
        return;
    }
    profile.writer.is_wanted.store(true, Ordering::Relaxed);
    profile.write_if_wanted();
}

/// Writes the profile of this process to a descriptor, in the text format that `pprof` reads.
///
/// # Errors
/// An error number: `ENODATA` if there is none (`BRICKYARD_PROFILE` is not set), `EBUSY` if it is
/// called by a handler that has interrupted the heap, while another thread writes it, or while
/// another thread forks for seconds; or that of the `write` that failed.
pub fn write_profile(descriptor: i32) -> Result<(), i32> {
    let Some(profile) = sampled().and_then(Sampled::profile) else {
        return Err(libc::ENODATA);
    };
    if profile.is_nested() {
        return Err(libc::EBUSY);
    }
    let mut turn = WriterTurn::of(&profile.writer).ok_or(libc::EBUSY)?;
    profile.write_to(descriptor, &mut turn.buffers().piece)
}

/// Has a signal ask for the profile, if the environment names one.
pub(crate) fn watch() {
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
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(
            signal.unwrap_or(0),
            &raw const action,
            core::ptr::null_mut(),
        )
    };
    if failed != 0 {
        say(format_args!(
            "BRICKYARD_PROFILE_SIGNAL is USR1, USR2 or the number of a signal that can be caught"
        ));
    }
}

extern "C" fn on_signal(_signal: c_int) {
    let Some(profile) = sampled().and_then(Sampled::profile) else {
        return;
    };
    // Relaxed, here and below: whoever looks next writes it.
    profile.writer.is_wanted.store(true, Ordering::Relaxed);
    if !profile.is_nested() {
        profile.write_if_wanted();
    }
}

/// A name of a file that is being made, with zeros behind it.
struct Name<'b> {
    bytes: &'b mut [u8; NAME_BYTES],
    length: usize,
}

impl<'b> Name<'b> {
    /// Returns the name in `pattern`, in which `%p` stands for the number of the process and `%n`
    /// for `count`; `None` if it is too long.
    fn of(bytes: &'b mut [u8; NAME_BYTES], pattern: &[u8], count: u64) -> Option<Self> {
        bytes.fill(0);
        let mut name = Self { bytes, length: 0 };
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

    /// Adds bytes, if there is room for them and a 0.
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
    fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(self.bytes).unwrap_or_default()
    }
}

/// Makes a file of this name that nobody else has. One that an ended process of the same number has
/// left is removed.
fn create(name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let made = match open(name, flags, mode) {
        Err(Errno::EXIST) => unlink(name).and_then(|()| open(name, flags, mode))?,
        made => made?,
    };
    // A program that has closed its standard error must not write into the profile.
    if made.as_raw_fd() <= 2 {
        return fcntl_dupfd_cloexec(&made, 3);
    }
    Ok(made)
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Does `work`, in which the calling thread cannot be cancelled: it may be any of the program's.
fn not_cancelled<T>(work: impl FnOnce() -> T) -> T {
    const DISABLE: c_int = 1;
    let mut before = 0;
    // SAFETY: a plain call; the state can be written.
    let _ = unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let done = work();
    // SAFETY: as above, with what it was.
    let _ = unsafe { pthread_setcancelstate(before, &raw mut before) };
    done
}

/// Returns true if there is something of this name that is no file.
fn is_other_than_file(name: &CStr) -> bool {
    lstat(name).is_ok_and(|status| FileType::from_raw_mode(status.st_mode) != FileType::RegularFile)
}

impl Profile {
    /// Writes it to its file, if somebody has asked for it, and nobody else does so already: who
    /// writes looks again at the end.
    pub(crate) fn write_if_wanted(&self) {
        let is_wanted = || self.writer.is_wanted.load(Ordering::Relaxed);
        while is_wanted()
            && let Some(mut turn) = WriterTurn::of(&self.writer)
            && self.writer.is_wanted.swap(false, Ordering::Relaxed)
        {
            let done = keeping_errno(|| not_cancelled(|| self.write_file(turn.buffers())));
            if let Err(number) = done {
                self.complain(number);
            }
        }
    }

    /// Says that it cannot be written. (The system's text for the error would need memory.)
    fn complain(&self, number: i32) {
        if number == libc::EEXIST {
            say(format_args!(
                "the profile cannot be written to {}: that is there, and no file",
                self.file().escape_ascii()
            ));
            return;
        }
        say(format_args!(
            "the profile cannot be written to {}: error {number} of the system",
            self.file().escape_ascii()
        ));
    }

    /// Writes it to its file.
    fn write_file(&self, buffers: &mut Buffers) -> Result<(), i32> {
        let Buffers { name, part, piece } = buffers;
        let count = self.writer.count.load(Ordering::Relaxed) + 1;
        let name = Name::of(name, self.file(), count).ok_or(libc::ENAMETOOLONG)?;
        if is_other_than_file(name.as_c()) {
            return Err(libc::EEXIST);
        }
        let mut part = Name::of(part, self.file(), count).ok_or(libc::ENAMETOOLONG)?;
        let beside = part.push(b".part.");
        beside
            .and_then(|()| part.push_number(std::process::id().into()))
            .ok_or(libc::ENAMETOOLONG)?;
        let file = create(part.as_c()).map_err(Errno::raw_os_error)?;
        let done = self.write_to(file.as_raw_fd(), piece);
        drop(file);
        let done =
            done.and_then(|()| rename(part.as_c(), name.as_c()).map_err(Errno::raw_os_error));
        match done {
            Ok(()) => self.writer.count.store(count, Ordering::Relaxed),
            // What there is of it is of no use.
            Err(_) => drop(unlink(part.as_c())),
        }
        done
    }

    /// Writes it to a descriptor.
    fn write_to(&self, descriptor: i32, piece: &mut [u8]) -> Result<(), i32> {
        let text = self.text();
        print(descriptor, &text).map_err(|number| text.error().unwrap_or(number))?;
        maps::copy_to(descriptor, piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers_where_the_pattern_says() {
        let mut bytes = [1; NAME_BYTES];
        let mut name = |pattern: &[u8]| {
            let name = Name::of(&mut bytes, pattern, 12)?;
            Some(name.as_c().to_str().unwrap().to_owned())
        };
        let process = std::process::id();
        assert_eq!(name(b"/tmp/a.heap").unwrap(), "/tmp/a.heap");
        assert_eq!(name(b"a.%p.%n").unwrap(), format!("a.{process}.12"));
        assert_eq!(name(b"100%%p %").unwrap(), "100%p %");
        assert_eq!(name(&[b'a'; NAME_BYTES - 1]).unwrap().len(), NAME_BYTES - 1);
        assert_eq!(name(&[b'a'; NAME_BYTES]), None);
        let mut almost = Name::of(&mut bytes, &[b'a'; NAME_BYTES - 3], 1).unwrap();
        assert_eq!(almost.push(b".part"), None);
    }

    #[test]
    fn what_an_ended_process_left_is_replaced_and_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("profile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (part, other) = (folder.join("a.part"), folder.join("other"));
        std::fs::write(&other, "other").unwrap();
        std::os::unix::fs::symlink(&other, &part).unwrap();
        let name = std::ffi::CString::new(part.as_os_str().as_encoded_bytes()).unwrap();
        let made = create(&name).unwrap();
        assert!(rustix::io::write(&made, b"new").is_ok());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "other");
        assert_eq!(std::fs::read_to_string(&part).unwrap(), "new");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
