//! A table from addresses to what is known of them, in mapped memory of its own: open addressing
//! with linear probing, at most half full, so a lookup takes a step or two.
//!
//! It is not shared: who has it holds a lock.

use core::ptr::NonNull;
use core::slice;

use crate::Region;

/// What is known of an address.
///
/// # Safety
/// All bytes zero are [`Known::NOTHING`].
pub unsafe trait Known: Copy + 'static {
    /// A free place, whose address is 0.
    const NOTHING: Self;

    /// Returns the address.
    fn address(&self) -> usize;
}

/// A table of entries by their addresses: see the [module](self).
#[derive(Debug)]
pub struct Table<E: 'static> {
    /// A power of two of them, or none, in memory mapped for them.
    entries: &'static mut [E],
    /// Entries in use, and those for which room is reserved.
    used: usize,
}

impl<E: Known> Table<E> {
    const FIRST_CAPACITY: usize = 256;

    /// Returns one without entries, and without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: &mut [],
            used: 0,
        }
    }

    /// Returns where an address belongs.
    const fn home(&self, address: usize) -> usize {
        // Fibonacci hashing of the page number.
        let mixed = (address >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) & (self.entries.len() - 1)
    }

    fn next(&self, index: usize) -> usize {
        (index + 1) & (self.entries.len() - 1)
    }

    fn find(&self, address: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut index = self.home(address);
        loop {
            match self.entries[index].address() {
                0 => return None,
                found if found == address => return Some(index),
                _ => index = self.next(index),
            }
        }
    }

    /// Makes room for one more. False if there is no memory for a larger table.
    #[must_use = "without room nothing may be put in"]
    pub fn reserve(&mut self) -> bool {
        if (self.used + 1) * 2 > self.entries.len() && !self.enlarge() {
            return false;
        }
        self.used += 1;
        true
    }

    /// Gives up the room of an entry that was taken out, or is not put in.
    pub const fn unreserve(&mut self) {
        self.used -= 1;
    }

    /// Returns how many entries there are, with those reserved.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Returns the entry of an address.
    #[must_use]
    pub fn get(&self, address: usize) -> Option<E> {
        self.find(address).map(|index| self.entries[index])
    }

    fn enlarge(&mut self) -> bool {
        let capacity = (self.entries.len() * 2).max(Self::FIRST_CAPACITY);
        let Ok(region) = Region::map_memory(capacity * size_of::<E>(), 1) else {
            return false;
        };
        // SAFETY: there is room for so many entries, and nobody else knows of it. Zeros are an
        // entry (`Known`), a free one.
        let larger = unsafe { slice::from_raw_parts_mut(region.leak().as_ptr().cast(), capacity) };
        let old = core::mem::replace(&mut self.entries, larger);
        for entry in old.iter().filter(|entry| entry.address() != 0) {
            self.put(*entry);
        }
        if !old.is_empty() {
            // SAFETY: leaked by an earlier call, and its contents have been moved.
            drop(unsafe { Region::from_leaked(NonNull::from(&mut *old).cast(), size_of_val(old)) });
        }
        true
    }

    /// Puts an entry in, for which [room is reserved](Self::reserve): without room it panics, or
    /// looks for a place for ever.
    pub fn put(&mut self, entry: E) {
        let mut index = self.home(entry.address());
        while self.entries[index].address() != 0 {
            index = self.next(index);
        }
        self.entries[index] = entry;
    }

    /// Takes an entry out, and moves entries behind it that would not be found any more. Its room
    /// stays reserved.
    pub fn take(&mut self, address: usize) -> Option<E> {
        let mut hole = self.find(address)?;
        let taken = self.entries[hole];
        let mut index = self.next(hole);
        loop {
            let entry = self.entries[index];
            if entry.address() == 0 {
                break;
            }
            // The entry may fill the hole if its home does not lie behind the hole, cyclically.
            let from_home =
                index.wrapping_sub(self.home(entry.address())) & (self.entries.len() - 1);
            let from_hole = index.wrapping_sub(hole) & (self.entries.len() - 1);
            if from_home >= from_hole {
                self.entries[hole] = entry;
                hole = index;
            }
            index = self.next(index);
        }
        self.entries[hole] = E::NOTHING;
        Some(taken)
    }
}

impl<E: Known> Default for Table<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    struct Entry {
        address: usize,
        of: usize,
    }

    // SAFETY: both are 0 then.
    unsafe impl Known for Entry {
        const NOTHING: Self = Self { address: 0, of: 0 };

        fn address(&self) -> usize {
            self.address
        }
    }

    fn next(state: &mut u64) -> usize {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*state >> 33) as usize
    }

    #[test]
    fn the_table_agrees_with_a_map() {
        let mut table = Table::new();
        let mut model = HashMap::new();
        let mut state = 1;
        for _ in 0..40_000 {
            // Few addresses, close together: long chains.
            let address = (next(&mut state) % 700 + 1) << 12;
            match model.remove(&address) {
                None => {
                    let bytes = next(&mut state);
                    assert!(table.reserve());
                    table.put(Entry { address, of: bytes });
                    model.insert(address, bytes);
                }
                Some(bytes) => {
                    assert_eq!(table.take(address).unwrap().of, bytes);
                    table.unreserve();
                }
            }
            assert_eq!(table.used(), model.len());
            let probe = (next(&mut state) % 700 + 1) << 12;
            let found = table.get(probe).map(|entry| entry.of);
            assert_eq!(found, model.get(&probe).copied());
        }
    }
}
