//! Whether the system gives huge pages: without being asked (`always` in
//! `/sys/kernel/mm/transparent_hugepage/enabled`), or to who asks for them (`madvise`).
//!
//! A huge page of 2 MiB comes at the first touch of any byte of it. Where the system has one at
//! hand it costs about a fifth of its 512 small ones, and the program's accesses cost less
//! afterwards. But what is not used of it is memory too, and no heap knows what a program is going
//! to use: of large buffers that are hardly touched, huge pages made 50 times the memory. So the
//! heap asks for them only where it is told to (`BRICKYARD_HUGE=1`): for pages of a span behind its
//! first 32 MiB, and for large blocks. They have to be given back whole: of one that is given back
//! in part the rest is small pages.
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
    /// Nowhere, as far as the heap reckons with it.
    Never = 0,
    /// Everywhere, but the heap is told to have none: so it tells the system.
    Unwanted,
    /// Where they are asked for, and the heap is told to ask.
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

/// Asks the system, for a heap that is told to want huge pages, or not to, or neither, and is
/// hardened or not.
pub(crate) fn find(is_wanted: Option<bool>, is_hardened: bool) {
    // The unit tests say themselves what they are about.
    if cfg!(test) {
        return;
    }
    let found = match setting() {
        Some(setting) if page_bytes() == 4096 => {
            chosen(setting, disabled(), is_wanted, is_hardened)
        }
        _ => Huge::Never,
    };
    FOUND.store(found as u8, Ordering::Relaxed);
}

/// Returns where memory may be huge pages, where the system is set so, and a process so.
fn chosen(setting: Huge, disabled: Disabled, is_wanted: Option<bool>, is_hardened: bool) -> Huge {
    let is_usual = setting == Huge::Usual && disabled == Disabled::None;
    match is_wanted {
        _ if disabled == Disabled::All => Huge::Never,
        Some(false) if is_usual => Huge::Unwanted,
        // Hardened memory changes its access by pages.
        _ if is_hardened || setting == Huge::Never => Huge::Never,
        _ if is_usual => Huge::Usual,
        Some(true) => Huge::Asked,
        _ => Huge::Never,
    }
}

/// Looks whether the process has disabled huge pages (`PR_SET_THP_DISABLE`) since they were found.
pub(crate) fn look_again() {
    if huge() != Huge::Never && disabled() == Disabled::All {
        FOUND.store(Huge::Never as u8, Ordering::Relaxed);
    }
}

/// What a process has disabled for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disabled {
    None,
    /// Huge pages that are not asked for.
    UnlessAsked,
    All,
}

fn disabled() -> Disabled {
    // SAFETY: a plain call.
    match keeping_errno(|| unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }) {
        ..=0 => Disabled::None,
        1 => Disabled::All,
        // From Linux 6.18 on: `PR_THP_DISABLE_EXCEPT_ADVISED` is set too.
        _ => Disabled::UnlessAsked,
    }
}

/// Returns what the system is set to: for pages of 2 MiB, or for all.
fn setting() -> Option<Huge> {
    let of_size = c"/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    let of_all = c"/sys/kernel/mm/transparent_hugepage/enabled";
    match choice_in(of_size) {
        // Before Linux 6.8.
        None | Some(SystemChoice::Inherited) => match choice_in(of_all)? {
            SystemChoice::Huge(found) => Some(found),
            SystemChoice::Inherited => None,
        },
        Some(SystemChoice::Huge(found)) => Some(found),
    }
}

/// What a file of the system says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SystemChoice {
    Huge(Huge),
    /// What another file says.
    Inherited,
}

fn choice_in(file: &core::ffi::CStr) -> Option<SystemChoice> {
    let mut text = [0; 64];
    let read = keeping_errno(|| {
        let file = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        rustix::io::read(&file, &mut text).ok()
    })?;
    choice_of(&text[..read])
}

/// Returns what the text of such a file says, in which the choice is in brackets.
fn choice_of(text: &[u8]) -> Option<SystemChoice> {
    let choices = [
        (&b"[always]"[..], SystemChoice::Huge(Huge::Usual)),
        (b"[madvise]", SystemChoice::Huge(Huge::Asked)),
        (b"[never]", SystemChoice::Huge(Huge::Never)),
        (b"[inherit]", SystemChoice::Inherited),
    ];
    let is_there = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    let choice = choices.into_iter().find(|(word, _)| is_there(word));
    choice.map(|(_, choice)| choice)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the mapping that `address` is in: kilobytes in huge pages, and what the kernel was
    /// told (`VmFlags`). Neighbours that were told the same are part of it, other tests' too.
    pub(crate) fn mapping_of(address: usize) -> Option<(usize, String)> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let hex = |text: &str| usize::from_str_radix(text, 16).ok();
        let mut lines = smaps.lines().skip_while(|line| {
            let range = line.split(' ').next().and_then(|word| word.split_once('-'));
            let range = range.and_then(|(start, end)| Some(hex(start)?..hex(end)?));
            !range.is_some_and(|range| range.contains(&address))
        });
        let kib = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
        let kib = kib.trim().strip_suffix(" kB")?.parse().ok()?;
        let told = lines.find_map(|line| line.strip_prefix("VmFlags:"))?;
        Some((kib, told.to_owned()))
    }

    #[test]
    fn huge_pages_are_asked_for_only_by_a_heap_that_is_told_to() {
        use Disabled::{All, UnlessAsked};
        let either = [None, Some(false), Some(true)];
        for (setting, disabled, plain, hardened) in [
            // Told neither, not to, to.
            (Huge::Asked, Disabled::None, [0, 0, 2], [0, 0, 0]),
            (Huge::Asked, UnlessAsked, [0, 0, 2], [0, 0, 0]),
            (Huge::Usual, Disabled::None, [3, 1, 3], [0, 1, 0]),
            (Huge::Usual, UnlessAsked, [0, 0, 2], [0, 0, 0]),
            (Huge::Never, Disabled::None, [0, 0, 0], [0, 0, 0]),
            (Huge::Asked, All, [0, 0, 0], [0, 0, 0]),
            (Huge::Usual, All, [0, 0, 0], [0, 0, 0]),
        ] {
            let chosen = |is_hardened| {
                either.map(|wanted| chosen(setting, disabled, wanted, is_hardened) as u8)
            };
            assert_eq!(chosen(false), plain, "{setting:?} {disabled:?}");
            assert_eq!(chosen(true), hardened, "{setting:?} {disabled:?}, hardened");
        }
    }

    #[test]
    fn the_choice_is_in_brackets() {
        let choice = |text: &str| choice_of(text.as_bytes());
        for (text, huge) in [
            ("always [madvise] never\n", Huge::Asked),
            ("[always] madvise never\n", Huge::Usual),
            ("always inherit madvise [never]\n", Huge::Never),
        ] {
            assert_eq!(choice(text), Some(SystemChoice::Huge(huge)));
        }
        let inherited = choice("always [inherit] madvise never\n");
        assert_eq!(
            (inherited, choice("")),
            (Some(SystemChoice::Inherited), None)
        );
    }
}
