//! What the heap tells on standard error or writes to a descriptor, without allocating.

use core::fmt::{self, Write};
use core::ptr::NonNull;
use std::os::fd::BorrowedFd;

use brickyard_slab::Finding;
use brickyard_slab::debug::Moment;
use rustix::io::Errno;

/// A text of at most 2048 bytes, made without allocating.
struct Text {
    bytes: [u8; 2048],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

/// Writes a line to standard error, by one call.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    let mut text = Text {
        bytes: [0; 2048],
        length: 0,
    };
    let _ = writeln!(text, "brickyard: {what}");
    // No call of the C library, in which a thread could be cancelled.
    let _ = write_all(2, &text.bytes[..text.length]);
}

/// Prints what checks have found.
pub(crate) fn report(finding: &Finding) {
    say(format_args!("{finding}"));
}

/// Ends the process if a bad free was found when its caller had long gone on: of an object that was
/// free already, or of an address inside one, which lay in a queue until now. (One that is found at
/// the free ends the process too, with a line of its own; see [`complain`].)
pub(crate) fn end_if_late(finding: &Finding) {
    if finding.moment == Moment::Flush {
        say(format_args!("found late: {finding}"));
        // SAFETY: ends the process.
        unsafe { libc::abort() }
    }
}

/// Prints what is wrong with `memory` and aborts the process, as every C library does for a bad
/// free.
pub(crate) fn complain(what: &str, memory: NonNull<u8>) -> ! {
    say(format_args!("{what}: {memory:p}"));
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

/// Writes a text to a descriptor, piece by piece, without allocating. It is no point at which a
/// thread is cancelled.
///
/// # Errors
/// The error number of the `write` that failed. Where one is interrupted, it goes on.
pub fn print(descriptor: i32, text: &impl fmt::Display) -> Result<(), i32> {
    let mut pieces = Pieces {
        descriptor,
        bytes: [0; 1024],
        length: 0,
        failed: None,
    };
    let done = write!(pieces, "{text}").and_then(|()| pieces.flush());
    match (done, pieces.failed) {
        (Ok(()), _) => Ok(()),
        (Err(fmt::Error), Some(number)) => Err(number),
        (Err(fmt::Error), None) => Err(libc::EIO),
    }
}

/// What is gathered until a piece is full.
struct Pieces {
    descriptor: i32,
    bytes: [u8; 1024],
    length: usize,
    failed: Option<i32>,
}

impl Pieces {
    fn flush(&mut self) -> fmt::Result {
        let done = write_all(self.descriptor, &self.bytes[..self.length]);
        self.length = 0;
        done.map_err(|number| {
            self.failed = Some(number);
            fmt::Error
        })
    }
}

/// Writes bytes to a descriptor. Where one `write` is interrupted, it goes on.
pub(crate) fn write_all(descriptor: i32, mut bytes: &[u8]) -> Result<(), i32> {
    if descriptor < 0 {
        return Err(libc::EBADF);
    }
    // SAFETY: it is not negative. Whether it is open the system says.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.raw_os_error()),
        }
    }
    Ok(())
}

impl Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.length == self.bytes.len() {
                self.flush()?;
            }
            let room = &mut self.bytes[self.length..];
            let fits = rest.len().min(room.len());
            room[..fits].copy_from_slice(&rest[..fits]);
            self.length += fits;
            rest = &rest[fits..];
        }
        Ok(())
    }
}
