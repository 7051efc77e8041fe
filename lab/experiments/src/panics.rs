//! A panic in one cell is a fault of that cell: it is told as one, once, and the others go on.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use std::panic::{PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Is this thread within [`caught`]?
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    /// The words of its last panic there.
    static WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `work` gives, or the words of its panic. (One on another thread that it began is told as
/// ever, and here too if it joins that thread.)
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    keep_words();
    let was_within = WITHIN.replace(true);
    // What a cell shares with others is locked, and whole whoever panicked.
    let done = catch_unwind(AssertUnwindSafe(work));
    WITHIN.set(was_within);
    done.map_err(|payload| {
        let words = WORDS.take();
        words.unwrap_or_else(|| words_of(payload.as_ref()).to_owned())
    })
}

/// From now on a panic within [`caught`] is not told at once.
fn keep_words() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if !WITHIN.get() {
                return usual(info);
            }
            let words = words_of(info.payload());
            let words = match info.location() {
                Some(place) => format!("{words} ({place})"),
                None => words.to_owned(),
            };
            WORDS.set(Some(words));
        }));
    });
}

fn words_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_place_are_kept() {
        assert_eq!(caught(|| 1), Ok(1));
        let words = caught(|| assert!(WITHIN.get() && 1 > 2, "one is {}", 1)).unwrap_err();
        assert!(words.starts_with("one is 1 ("), "{words}");
        assert!(words.contains("panics.rs:"), "{words}");
        // That of a thread that was joined.
        let joined = caught(|| std::panic::resume_unwind(Box::new("from afar")));
        assert_eq!(joined, Err("from afar".to_owned()));
        assert!(!WITHIN.get());
    }
}
