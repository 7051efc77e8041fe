//! Variables of the environment, read without allocating.

use core::ptr::NonNull;

use crate::messages;

unsafe extern "C" {
    /// Returns a variable by name, or null: it is always null in a program that runs with the
    /// rights of another user than the one who set the environment (setuid, file capabilities).
    fn secure_getenv(name: *const core::ffi::c_char) -> *mut core::ffi::c_char;
}

/// Returns the value of an environment variable; `None` if it is not set, before the environment is
/// set up, and in a program with the rights of another user.
#[must_use]
pub fn variable(name: &core::ffi::CStr) -> Option<&'static [u8]> {
    // SAFETY: the name is a C string. Nobody changes the environment while the program is being
    // started, and later the bytes are read at once.
    let value = NonNull::new(unsafe { secure_getenv(name.as_ptr()) })?;
    // SAFETY: what `secure_getenv` returns is a C string.
    Some(unsafe { core::ffi::CStr::from_ptr(value.as_ptr()) }.to_bytes())
}

/// Returns whether a variable is on or off; `None` if it is not set, and in a program with the
/// rights of another user. What cannot be read is told.
#[must_use]
pub fn switch(name: &core::ffi::CStr) -> Option<bool> {
    let text = variable(name).filter(|text| !text.is_empty())?;
    let found = on_or_off(text);
    if found.is_none() {
        let name = name.to_str().unwrap_or_default();
        messages::say(format_args!("{name} is 1 or 0"));
    }
    found
}

/// Reads the value of a variable that is on or off; `None` if it is neither.
#[must_use]
pub fn on_or_off(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"yes" | b"on" | b"true" => Some(true),
        b"0" | b"no" | b"off" | b"false" => Some(false),
        _ => None,
    }
}

/// Reads a number in decimal digits; `None` if it is none.
#[must_use]
pub fn number(text: &[u8]) -> Option<usize> {
    str::from_utf8(text).ok()?.parse().ok()
}
