//! Whether the system gives huge pages: without being asked (`always` in
//! `/sys/kernel/mm/transparent_hugepage/enabled`), or where the heap asks for them (`madvise`).
//!
//! A huge page of 2 MiB comes at the first touch of any byte of it. Where the system has one at
//! hand it costs about a fifth of its 512 small ones, and the program's accesses cost less
//! afterwards. But what is not used of it is memory too. So only what a program uses much of is
//! made of them: pages of a span behind its first 32 MiB, and large blocks. They have to be given
//! back whole: of one that is given back in part the rest is small pages.
//!
//! The system is asked once, while the heap is built, when files are opened anyway: later a filter
//! of system calls might end the process for it. Only the background thread looks again whether the
//! process has disabled them since, where there is no filter.

use core::sync::atomic::{AtomicU8, Ordering};

use brickyard_arena::page_bytes;
use brickyard_arena::rows::keeping_errno;
use rustix::fs::{Mode, OFlags};

/// The bytes of a huge page.
pub(crate) const BYTES: usize = 2 << 20;

/// Where the memory of this process may be huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Huge {
    /// Nowhere.
    Never = 0,
    /// Everywhere, but the heap is told to have none: so it tells the system.
    Unwanted,
    /// Where they are asked for.
    Asked,
    /// Everywhere.
    Usual,
}

/// What was found.
static FOUND: AtomicU8 = AtomicU8::new(Huge::Never as u8);

/// Returns where memory may be huge pages.
#[inline]
pub(crate) fn huge() -> Huge {
    // Relaxed, here and below: written while the heap is built, and changed to `Never` at most.
    match FOUND.load(Ordering::Relaxed) {
        1 => Huge::Unwanted,
        2 => Huge::Asked,
        3 => Huge::Usual,
        _ => Huge::Never,
    }
}

/// Asks the system, for a heap that wants huge pages or not, and is hardened or not.
pub(crate) fn find(is_wanted: bool, is_hardened: bool) {
    // The unit tests say themselves what they are about.
    if cfg!(test) {
        return;
    }
    // Hardened memory changes its access by pages.
    let found = if page_bytes() != 4096 || is_disabled() {
        Huge::Never
    } else {
        match setting() {
            Some(Huge::Usual) if !is_wanted => Huge::Unwanted,
            Some(_) if !is_wanted || is_hardened => Huge::Never,
            found => found.unwrap_or(Huge::Never),
        }
    };
    FOUND.store(found as u8, Ordering::Relaxed);
}

/// Looks whether the process has disabled huge pages (`PR_SET_THP_DISABLE`) since they were found.
pub(crate) fn look_again() {
    if huge() != Huge::Never && is_disabled() {
        FOUND.store(Huge::Never as u8, Ordering::Relaxed);
    }
}

/// Returns true if the process has no huge pages, whatever the system is set to.
fn is_disabled() -> bool {
    // SAFETY: a plain call.
    let disabled = keeping_errno(|| unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) });
    disabled > 0
}

/// Returns what the system is set to.
fn setting() -> Option<Huge> {
    let file = c"/sys/kernel/mm/transparent_hugepage/enabled";
    let mut text = [0; 64];
    let read = keeping_errno(|| {
        let file = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        rustix::io::read(&file, &mut text).ok()
    })?;
    of_setting(&text[..read])
}

/// Returns what the text of the file says, in which the choice is in brackets.
fn of_setting(text: &[u8]) -> Option<Huge> {
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    match (has(b"[always]"), has(b"[madvise]")) {
        (true, _) => Some(Huge::Usual),
        (_, true) => Some(Huge::Asked),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_in_brackets() {
        let setting = |text: &str| of_setting(text.as_bytes());
        assert_eq!(setting("always [madvise] never\n"), Some(Huge::Asked));
        assert_eq!(setting("[always] madvise never\n"), Some(Huge::Usual));
        assert_eq!(setting("always madvise [never]\n"), None);
        assert_eq!(setting(""), None);
    }
}
