//! Lines on standard error, and texts to a descriptor, without allocating.

use core::fmt::{self, Write};
use std::os::fd::BorrowedFd;

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

/// Writes a line to standard error, by one call. Of a text of more than 2 KiB the rest is left out.
pub fn say(what: fmt::Arguments<'_>) {
    let mut text = Text {
        bytes: [0; 2048],
        length: 0,
    };
    let _ = writeln!(text, "brickyard: {what}");
    // No call of the C library, in which a thread could be cancelled.
    let _ = write_all(2, &text.bytes[..text.length]);
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
///
/// # Errors
/// The error number of the `write` that failed; `EBADF` if the descriptor is negative.
pub fn write_all(descriptor: i32, mut bytes: &[u8]) -> Result<(), i32> {
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
