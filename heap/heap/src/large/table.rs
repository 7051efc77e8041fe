//! The table: addresses and lengths of mappings. It uses open addressing with linear probing in
//! mapped memory of its own, at most half full, so a lookup takes a step or two.

use core::ptr::NonNull;
use core::slice;

use brickyard_arena::Region;

/// A mapping. A free place has the address 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) address: usize,
    pub(super) bytes: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Table {
    /// A power of two of them, or none, in memory mapped for them.
    pub(super) entries: &'static mut [Entry],
    /// Entries in use, and those reserved for blocks that are being resized.
    pub(super) used: usize,
}

impl Table {
    const FIRST_CAPACITY: usize = 256;

    pub(super) const fn new() -> Self {
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

    pub(super) fn find(&mut self, address: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut index = self.home(address);
        loop {
            match self.entries[index].address {
                0 => return None,
                found if found == address => return Some(index),
                _ => index = self.next(index),
            }
        }
    }

    /// Makes room for one more. False if there is no memory for a larger table.
    pub(super) fn reserve(&mut self) -> bool {
        if (self.used + 1) * 2 > self.entries.len() && !self.enlarge() {
            return false;
        }
        self.used += 1;
        true
    }

    fn enlarge(&mut self) -> bool {
        let capacity = (self.entries.len() * 2).max(Self::FIRST_CAPACITY);
        let Ok(region) = Region::map_memory(capacity * size_of::<Entry>(), 1) else {
            return false;
        };
        // SAFETY: there is room for so many entries, and nobody else knows of it; zero is a free
        // entry.
        let larger = unsafe { slice::from_raw_parts_mut(region.leak().as_ptr().cast(), capacity) };
        let old = core::mem::replace(&mut self.entries, larger);
        for entry in old.iter().filter(|entry| entry.address != 0) {
            self.put(*entry);
        }
        if !old.is_empty() {
            // SAFETY: leaked by an earlier call, and its contents have been moved.
            drop(unsafe { Region::from_leaked(NonNull::from(&mut *old).cast(), size_of_val(old)) });
        }
        true
    }

    /// Puts an entry in. There must be room.
    pub(super) fn put(&mut self, entry: Entry) {
        let mut index = self.home(entry.address);
        while self.entries[index].address != 0 {
            index = self.next(index);
        }
        self.entries[index] = entry;
    }

    /// Takes an entry out, and moves entries behind it that would not be found any more. Its room
    /// stays reserved.
    pub(super) fn take(&mut self, address: usize) -> Option<Entry> {
        let mut hole = self.find(address)?;
        let taken = self.entries[hole];
        let mut index = self.next(hole);
        loop {
            let entry = self.entries[index];
            if entry.address == 0 {
                break;
            }
            // The entry may fill the hole if its home does not lie behind the hole, cyclically.
            let from_home = index.wrapping_sub(self.home(entry.address)) & (self.entries.len() - 1);
            let from_hole = index.wrapping_sub(hole) & (self.entries.len() - 1);
            if from_home >= from_hole {
                self.entries[hole] = entry;
                hole = index;
            }
            index = self.next(index);
        }
        self.entries[hole].address = 0;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

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
                    table.put(Entry { address, bytes });
                    model.insert(address, bytes);
                }
                Some(bytes) => {
                    assert_eq!(table.take(address).unwrap().bytes, bytes);
                    table.used -= 1;
                }
            }
            assert_eq!(table.used, model.len());
            let probe = (next(&mut state) % 700 + 1) << 12;
            let found = table.find(probe);
            let found = found.map(|index| table.entries[index].bytes);
            assert_eq!(found, model.get(&probe).copied());
        }
    }
}
