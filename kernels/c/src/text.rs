//! Text into a buffer of the caller, as `snprintf` does.

use core::ffi::c_char;
use core::fmt::{self, Write};

use crate::error::{BY_INVALID, count};

/// A buffer that takes what fits, and counts the rest.
struct Buffer {
    at: *mut u8,
    room: usize,
    length: usize,
}

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = self.room.saturating_sub(self.length + 1).min(text.len());
        if fits > 0 {
            // SAFETY: `length + fits` is below `room`, the bytes that the buffer has.
            unsafe { self.at.add(self.length).copy_from(text.as_ptr(), fits) };
        }
        self.length += text.len();
        Ok(())
    }
}

/// Writes what fits of `text`, and a zero behind it. Returns the length of all of it, without the
/// zero.
///
/// # Safety
/// `buffer` has `bytes` bytes that can be written, or `bytes` is 0.
pub(crate) unsafe fn write(text: &impl fmt::Display, buffer: *mut c_char, bytes: usize) -> isize {
    if buffer.is_null() && bytes > 0 {
        return BY_INVALID;
    }
    let mut out = Buffer {
        at: buffer.cast(),
        room: bytes,
        length: 0,
    };
    // A buffer never fails.
    let _ = write!(out, "{text}");
    if bytes > 0 {
        let end = out.length.min(bytes - 1);
        // SAFETY: `end` is below `bytes`.
        unsafe { out.at.add(end).write(0) };
    }
    count(out.length)
}

/// Returns the text without the character at its end that was cut, if one was.
pub(crate) fn whole(text: &[u8]) -> &[u8] {
    let first = text.utf8_chunks().next();
    match first {
        // What follows a text of which only the end was cut is one incomplete character.
        Some(chunk) if chunk.valid().len() + chunk.invalid().len() == text.len() => {
            chunk.valid().as_bytes()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_fits_and_says_how_long_all_is() {
        for bytes in 0..9 {
            let mut buffer = [0x7f_u8; 10];
            // SAFETY: the buffer has ten bytes.
            let length = unsafe { write(&"brick", buffer.as_mut_ptr().cast(), bytes) };
            assert_eq!(length, 5);
            let fits = bytes.saturating_sub(1).min(5);
            assert_eq!(&buffer[..fits], &b"brick"[..fits]);
            assert!(bytes == 0 || buffer[fits] == 0);
            assert!(buffer[bytes.min(6)..].iter().all(|&byte| byte == 0x7f));
        }
        // SAFETY: a null buffer of no bytes.
        assert_eq!(unsafe { write(&"brick", core::ptr::null_mut(), 0) }, 5);
        // SAFETY: refused before it is written to.
        let refused = unsafe { write(&"brick", core::ptr::null_mut(), 1) };
        assert_eq!(refused, BY_INVALID);
    }

    #[test]
    fn a_cut_character_is_left_out() {
        let text = "slab `ä€𝄞`";
        for bytes in 0..=text.len() {
            let mut kept = bytes;
            while !text.is_char_boundary(kept) {
                kept -= 1;
            }
            assert_eq!(whole(&text.as_bytes()[..bytes]), &text.as_bytes()[..kept]);
        }
    }
}
