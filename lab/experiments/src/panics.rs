//! A panic in one cell is a failure of that cell: it is reported once, and the others go on.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use std::panic::{PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is within [`caught`].
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    /// The message of its last panic there.
    static WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the result of `work`, or the message of its panic. (A panic on a thread that it started
/// is printed as usual, and also returned here if `work` joins that thread and panics with it.)
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    keep_words();
    let was_within = WITHIN.replace(true);
    // What cells share is behind locks, and stays consistent if one panics.
    let done = catch_unwind(AssertUnwindSafe(work));
    WITHIN.set(was_within);
    done.map_err(|payload| {
        let words = WORDS.take();
        words.unwrap_or_else(|| words_of(payload.as_ref()).to_owned())
    })
}

/// Installs a panic hook that keeps the message of a panic within [`caught`] instead of printing
/// it.
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
    text.unwrap_or("without a message")
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
        // The panic of a thread that was joined.
        let joined = caught(|| std::panic::resume_unwind(Box::new("from afar")));
        assert_eq!(joined, Err("from afar".to_owned()));
        assert!(!WITHIN.get());
    }
}
