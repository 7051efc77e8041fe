//! A sheaf that one caller holds alone, so that it can be changed by more than one store.

use core::ptr::NonNull;

use brickyard_sync::{AtomicUsize, Ordering, prefetch, prefetch_to_write};

use crate::layout::{SHEAF_BYTES, SHEAF_WORDS, WORD_BYTES};
use crate::rows::word_at;

#[repr(C, align(1024))]
struct Closed([AtomicUsize; SHEAF_WORDS]);

static CLOSED_SHEAF: Closed = Closed([const { AtomicUsize::new(0) }; SHEAF_WORDS]);

/// Returns the top of a sheaf that is empty and full at once: the address of its last word, which
/// is 0.
#[must_use]
pub fn closed() -> usize {
    CLOSED_SHEAF.0.as_ptr().expose_provenance() + SHEAF_BYTES - WORD_BYTES
}

/// Returns how many objects lie in the sheaf with this top, in a row of a cache whose sheaves have
/// room for `capacity`. The sheaf is not looked at.
pub(super) fn in_sheaf(top: usize, capacity: usize) -> u64 {
    if top == 0 || top == closed() {
        return 0;
    }
    ((top % SHEAF_BYTES).saturating_sub(sentinel(capacity)) / WORD_BYTES) as u64
}

/// A sheaf that belongs to the holder of this value (`sheaf-in-one-place`). It cannot be copied. It
/// can be lost, which loses its memory and what it holds.
#[derive(Debug)]
#[must_use = "a sheaf that is dropped is lost"]
pub(super) struct Sheaf {
    address: usize,
}

/// The bytes of a cache line, as far as fetching one in advance is concerned.
const LINE: usize = 64;

/// The word that holds the link, and in a bit that no address of a sheaf has, [`AWAY`].
const LINK: usize = 0;
/// The word that holds the top while no row does.
const TOP: usize = 1;

/// Returns where the sentinel of a sheaf of `capacity` entries stands, in bytes from its begin.
/// That is the top of an empty sheaf.
pub(super) const fn sentinel(capacity: usize) -> usize {
    SHEAF_BYTES - (capacity + 1) * WORD_BYTES
}

/// A sheaf gives so many objects to an empty one at most: two cache lines.
const SOME: usize = 16;

/// The bit of a link that says that the objects were away from home.
const AWAY: usize = 1;

impl Sheaf {
    /// Makes an empty sheaf in `memory`.
    ///
    /// # Safety
    /// The memory has a sheaf's size and alignment. It belongs to the caller until the sheaf is
    /// given up.
    pub(super) unsafe fn make(memory: NonNull<u8>, capacity: usize) -> Self {
        let first = memory.cast::<AtomicUsize>();
        for word in 0..SHEAF_WORDS {
            // SAFETY: inside the memory, which is the caller's; see above.
            unsafe { first.add(word).write(AtomicUsize::new(0)) };
        }
        let address = memory.as_ptr().expose_provenance();
        let sheaf = Self { address };
        sheaf.set(TOP, address + sentinel(capacity));
        sheaf
    }

    /// Returns the sheaf at an address that a list held.
    ///
    /// # Safety
    /// The caller has just taken it from there.
    pub(super) const unsafe fn at(address: usize) -> Self {
        Self { address }
    }

    /// Returns the sheaf whose top a row held; `None` if the row was closed or held 0.
    ///
    /// # Safety
    /// The caller has just exchanged that word for another.
    pub(super) unsafe fn of_row(top: usize) -> Option<Self> {
        if top == 0 || top == closed() {
            return None;
        }
        let sheaf = Self {
            address: top & !(SHEAF_BYTES - 1),
        };
        sheaf.set(TOP, top);
        Some(sheaf)
    }

    pub(super) const fn address(&self) -> usize {
        self.address
    }

    fn word(&self, at: usize) -> &AtomicUsize {
        debug_assert!(at & !(SHEAF_BYTES - 1) == self.address);
        // SAFETY: `sheaf-words`: the address lies in this sheaf.
        unsafe { word_at(at) }
    }

    fn get(&self, word: usize) -> usize {
        // Relaxed: the sheaf is the caller's. The lock or the row that it came through has ordered
        // this.
        self.word(self.address + word * WORD_BYTES)
            .load(Ordering::Relaxed)
    }

    fn set(&self, word: usize, value: usize) {
        // Relaxed: see `get`. What the sheaf goes through next publishes it.
        self.word(self.address + word * WORD_BYTES)
            .store(value, Ordering::Relaxed);
    }

    /// Returns the address of the last entry in use, or of the sentinel.
    pub(super) fn top(&self) -> usize {
        self.get(TOP)
    }

    pub(super) fn is_empty(&self) -> bool {
        // Relaxed: see `get`.
        self.word(self.top()).load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_full(&self) -> bool {
        (self.top() + WORD_BYTES).is_multiple_of(SHEAF_BYTES)
    }

    /// Takes the last object.
    pub(super) fn pop(&self) -> Option<usize> {
        let top = self.top();
        // Relaxed: see `get`.
        let object = self.word(top).load(Ordering::Relaxed);
        if object == 0 {
            return None;
        }
        self.set(TOP, top - WORD_BYTES);
        Some(object)
    }

    /// Puts an object behind the last one. There must be room.
    pub(super) fn push(&self, object: usize) {
        debug_assert!(!self.is_full());
        let next = self.top() + WORD_BYTES;
        // Relaxed: see `get`.
        self.word(next).store(object, Ordering::Relaxed);
        self.set(TOP, next);
    }

    /// Returns how many more objects it can hold.
    pub(super) fn room(&self) -> usize {
        let last = self.address + SHEAF_BYTES - WORD_BYTES;
        (last - self.top()) / WORD_BYTES
    }

    /// Moves the last half of what it holds, or [`SOME`] objects, to an empty sheaf of the same
    /// cache, in their order.
    pub(super) fn give_some(&self, empty: &Self) {
        let (top, to) = (self.top(), empty.top());
        debug_assert!(empty.is_empty());
        // Both sentinels stand at the same place.
        let held = (top - (to % SHEAF_BYTES + self.address)) / WORD_BYTES;
        let bytes = held.div_ceil(2).min(SOME) * WORD_BYTES;
        for offset in (WORD_BYTES..=bytes).step_by(WORD_BYTES) {
            // Relaxed, both: see `get`.
            let object = self.word(top - bytes + offset).load(Ordering::Relaxed);
            empty.word(to + offset).store(object, Ordering::Relaxed);
        }
        self.set(TOP, top - bytes);
        empty.set(TOP, to + bytes);
    }

    /// Fetches all entries, the last ones first, which are needed first. A sheaf that another CPU
    /// has written is in that CPU's cache. So its lines come all at once, instead of each when its
    /// first entry is wanted.
    pub(super) fn fetch(&self, capacity: usize) {
        self.lines(capacity).for_each(prefetch);
    }

    /// Fetches the lines of entries that will be written, the first ones first.
    pub(super) fn fetch_to_write(&self, capacity: usize) {
        self.lines(capacity).rev().for_each(prefetch_to_write);
    }

    /// Returns the addresses of the cache lines of its entries, the last ones first.
    fn lines(&self, capacity: usize) -> impl DoubleEndedIterator<Item = usize> {
        let from = sentinel(capacity) / LINE;
        let address = self.address;
        let lines = from..SHEAF_BYTES / LINE;
        lines.rev().map(move |line| address + line * LINE)
    }

    /// Returns the address of the next sheaf in a list, or 0.
    pub(super) fn link(&self) -> usize {
        self.get(LINK) & !AWAY
    }

    /// Returns true if it was put into a list as one of objects that were away from home.
    pub(super) fn was_away(&self) -> bool {
        self.get(LINK) & AWAY != 0
    }

    pub(super) fn set_link(&self, link: usize, was_away: bool) {
        debug_assert!(link & AWAY == 0);
        self.set(LINK, link | usize::from(was_away));
    }

    /// Returns the last object, or 0.
    pub(super) fn last(&self) -> usize {
        // Relaxed: see `get`.
        self.word(self.top()).load(Ordering::Relaxed)
    }
}
