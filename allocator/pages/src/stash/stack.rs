//! An array of blocks: the building part of a CPU's stash.

use brickyard_sync::{AtomicU64, GuardedU32, Ordering};

/// An array with a limit, pushed and popped at its end. A hit knows the length of `E`; whatever
/// treats arrays of all lengths alike gets them as slices.
#[derive(Debug)]
pub(super) struct Stack<E: ?Sized = [GuardedU32]> {
    // In bits 0..16 the number of entries; in 16..28 how many more it may hold now, see `share.rs`;
    // in 28..64 the number ever freed to it, modulo 2^36. They share one word, so that a hit reads
    // and writes only one. The CPU that is inside writes it; others peek.
    word: AtomicU64,
    entries: E,
}

/// An array of up to `N` entries, a power of two.
pub(super) type StackOf<const N: usize> = Stack<[GuardedU32; N]>;

/// One entry, room for one, and one entry ever freed.
const ENTRY: u64 = 1;
const ROOM: u64 = 1 << 16;
const FREED: u64 = 1 << 28;

/// All room.
const ROOMS: u64 = FREED - ROOM;

/// What a free adds to the word: few enough bits for an operand of one instruction.
const PUSHED: u64 = FREED + ENTRY - ROOM;

const fn entries_of(word: u64) -> u32 {
    word as u16 as u32
}

const fn room_of(word: u64) -> u32 {
    ((word & ROOMS) >> ROOM.trailing_zeros()) as u32
}

const fn freed_of(word: u64) -> u32 {
    (word >> FREED.trailing_zeros()) as u32
}

impl<const N: usize> StackOf<N> {
    pub(super) const fn new() -> Self {
        assert!(N.is_power_of_two() && N as u64 <= ROOMS / ROOM);
        Self {
            word: AtomicU64::new(0),
            entries: [const { GuardedU32::new(0) }; N],
        }
    }
}

impl<E: AsRef<[GuardedU32]> + ?Sized> Stack<E> {
    #[inline(always)]
    pub(super) fn word(&self) -> u64 {
        // Relaxed: exact for the CPU that is inside, else a hint.
        self.word.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        entries_of(self.word())
    }

    /// Returns how many more entries it may hold.
    #[inline(always)]
    pub(super) fn room(&self) -> u32 {
        room_of(self.word())
    }

    /// Returns how many entries it may hold; 0 until it is first used.
    pub(super) fn limit(&self) -> u32 {
        self.len() + self.room()
    }

    /// Sets how many entries it may hold, which is no less than it holds.
    pub(super) fn set_limit(&self, limit: u32) {
        let most = self.entries.as_ref().len();
        debug_assert!(
            self.len() <= limit && limit as usize <= most,
            "`within-share`"
        );
        let word = self.word();
        let room = limit.saturating_sub(entries_of(word));
        self.set_word(word - u64::from(room_of(word)) * ROOM + u64::from(room) * ROOM);
    }

    /// Returns the number of entries, for a drainer that goes in only if there are any. Also
    /// returns the number ever freed to the array.
    pub(super) fn peek(&self) -> (u32, u32) {
        // Acquire: pairs with the release in `set_word`. A CPU that sees that frames have left sees
        // that their move has begun. A CPU that sees that one was freed sees that frame.
        let word = self.word.load(Ordering::Acquire);
        (entries_of(word), freed_of(word))
    }

    #[inline(always)]
    pub(super) fn set_word(&self, word: u64) {
        // Release: pairs with the acquire in `peek`.
        self.word.store(word, Ordering::Release);
    }

    /// Sets the number of entries, which is no more than it may hold.
    pub(super) fn set_len(&self, len: u32) {
        let limit = self.limit();
        debug_assert!(len <= limit, "`within-share`");
        let room = limit.saturating_sub(len);
        let freed = self.word() & !(FREED - 1);
        self.set_word(freed + u64::from(room) * ROOM + u64::from(len) * ENTRY);
    }

    #[inline(always)]
    pub(super) fn entry(&self, place: u32) -> &GuardedU32 {
        // A place is always less than there are entries. The mask only tells the compiler so.
        let entries = self.entries.as_ref();
        &entries[place as usize & (entries.len() - 1)]
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<u32> {
        let word = self.word();
        if entries_of(word) == 0 {
            return None;
        }
        let entry = self.entry(word as u32 - 1).get();
        self.set_word(word + ROOM - ENTRY);
        Some(entry)
    }

    /// Adds a freed entry at the end. There must be room.
    #[inline(always)]
    pub(super) fn push(&self, entry: u32) {
        let word = self.word();
        debug_assert!(room_of(word) > 0, "a full stack is emptied before");
        self.entry(word as u32).set(entry);
        self.set_word(word.wrapping_add(PUSHED));
    }

    /// Adds a freed entry at the end, if there is room and it is not the one at the end already;
    /// `None` if it was not added. It may refuse an entry that could be added.
    #[inline(always)]
    pub(super) fn push_if(&self, entry: u32) -> Option<()> {
        let word = self.word();
        // If the stack is empty, the entry compared is not one of its own.
        let last = self.entry((word as u32).wrapping_sub(1)).get();
        if word & ROOMS == 0 || last == entry {
            return None;
        }
        self.entry(word as u32).set(entry);
        self.set_word(word.wrapping_add(PUSHED));
        Some(())
    }

    /// Adds freed entries at the end. There must be room for all of them.
    pub(super) fn push_all(&self, entries: impl Iterator<Item = usize>) {
        let mut word = self.word();
        for entry in entries {
            debug_assert!(room_of(word) > 0, "a full stack is emptied before");
            self.entry(word as u32).set(entry as u32);
            word = word.wrapping_add(PUSHED);
        }
        self.set_word(word);
    }

    /// Takes out the last entry of which `wanted` is true.
    pub(super) fn take_last(&self, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let place = (0..self.len()).rfind(|&place| wanted(self.entry(place).get()))?;
        let last = self.pop()?;
        let taken = self.entry(place).get();
        self.entry(place).set(last);
        Some(taken)
    }

    /// Returns true if `entry` is the one at the end.
    pub(super) fn ends_with(&self, entry: u32) -> bool {
        // Below an empty stack lies what was popped last, and that block is in use.
        let len = self.len();
        len > 0 && self.entry(len - 1).get() == entry
    }

    /// Returns true if it may hold no more entries.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Forgets all entries, and has to be given a limit anew.
    pub(super) fn reset(&self) {
        self.set_word(self.word() & !(FREED - 1));
    }

    /// Returns the first `count` entries, no more than there are.
    pub(super) fn first(&self, count: u32) -> &[GuardedU32] {
        let entries = self.entries.as_ref();
        // The minimum only tells the compiler that it is in range.
        &entries[..entries.len().min(count as usize)]
    }

    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.first(self.len()).iter().map(GuardedU32::get)
    }

    /// Writes an entry for each bit of a word behind the first `len` entries: `offset` plus the
    /// number of the bit, the highest first, so that they are popped in rising order. Returns the
    /// new length, which the caller sets.
    pub(super) fn write_word(&self, len: u32, offset: u32, mut bits: u64) -> u32 {
        let new = len + bits.count_ones();
        let places = self.entries.as_ref().get(len as usize..);
        let places = places.unwrap_or_default();
        if bits == !0
            && let Some(places) = places.first_chunk::<{ u64::BITS as usize }>()
        {
            for (place, bit) in places.iter().rev().zip(0..) {
                place.set(offset + bit);
            }
            return new;
        }
        for place in places {
            if bits == 0 {
                break;
            }
            let bit = bits.ilog2();
            place.set(offset + bit);
            bits &= !(1 << bit);
        }
        new
    }

    /// Removes the first `gone` entries.
    pub(super) fn shift(&self, gone: u32) {
        let entries = self.first(self.len());
        let stay = &entries[entries.len().min(gone as usize)..];
        for (to, from) in entries.iter().zip(stay) {
            to.set(from.get());
        }
        self.set_len(stay.len() as u32);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_ever_freed_stays_known_whatever_else_changes() {
        let stack = StackOf::<64>::new();
        // One free short of the end of that count.
        stack.set_word(!(FREED - 1));
        stack.set_limit(3);
        let freed = || stack.word() >> FREED.trailing_zeros();
        stack.push(7);
        assert_eq!((freed(), stack.len(), stack.room()), (0, 1, 2));
        stack.push_all([8, 9].into_iter());
        assert_eq!((freed(), stack.len(), stack.room()), (2, 3, 0));
        stack.shift(1);
        assert_eq!((freed(), stack.len(), stack.room()), (2, 2, 1));
        assert_eq!(stack.pop(), Some(9));
        stack.set_len(0);
        assert_eq!((freed(), stack.len(), stack.room()), (2, 0, 3));
        stack.reset();
        assert_eq!((freed(), stack.limit()), (2, 0));
    }

    #[test]
    fn words_are_popped_in_rising_order_wherever_they_lie() {
        for len in [0, 1, 63, 64] {
            for bits in [!0, !0 << 1, 1 << 63, 0b1011] {
                let stack = StackOf::<128>::new();
                stack.set_limit(128);
                let new = stack.write_word(len, 640, bits);
                assert_eq!(new, len + bits.count_ones());
                stack.set_len(new);
                let expected = (0..64).filter(|bit| bits >> bit & 1 != 0);
                for bit in expected {
                    assert_eq!(stack.pop(), Some(640 + bit), "{len} {bits:x}");
                }
                assert_eq!(stack.len(), len);
            }
        }
    }
}
