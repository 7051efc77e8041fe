//! Which memory of the host is shared memory of the machine, and at which simulated address.
//!
//! Host addresses differ from run to run. A run must not depend on them, so each region that is
//! mapped gets the next free pages of the machine, in the order in which they were mapped. A
//! machine can also have memory that the host does not have ([`Unbacked`]): it has no contents, but
//! its lines are in caches like all others.

/// Bytes of a page of the machine; a mapped region begins at a page boundary on both sides.
pub(crate) const PAGE: usize = 4096;

/// A mapped region.
#[derive(Debug, Clone, Copy)]
struct Region {
    first: usize,
    bytes: usize,
    /// Its first address in the machine.
    simulated: usize,
}

/// Memory of a machine that has no contents, and so takes no memory of the host. Tasks access it by
/// [`current::access`](crate::current::access) and [`current::clear`](crate::current::clear).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unbacked {
    /// Its first address in the machine.
    pub(crate) first: usize,
    pub(crate) bytes: usize,
}

impl Unbacked {
    /// Returns all of it from `offset` on.
    ///
    /// # Panics
    /// If it has fewer bytes.
    #[must_use]
    pub fn from(self, offset: usize) -> Self {
        assert!(offset <= self.bytes, "{} bytes", self.bytes);
        Self {
            first: self.first + offset,
            bytes: self.bytes - offset,
        }
    }

    /// Returns the machine's address of the byte at `offset`.
    ///
    /// # Panics
    /// If it has no such byte.
    #[inline]
    pub(crate) fn at(self, offset: usize) -> usize {
        assert!(offset < self.bytes, "no byte {offset} of {}", self.bytes);
        self.first + offset
    }
}

/// An array in the host's memory whose elements have places further apart in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// The address of its first element on the host.
    pub first: *const u8,
    /// Bytes of an element.
    pub each: usize,
    /// How many elements there are.
    pub count: usize,
    /// Bytes from one element to the next in the machine, at least as many.
    pub apart: usize,
}

/// All mapped regions.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    /// Arrays within these regions that have another place, with their first address there.
    spreads: Vec<(Spread, usize)>,
    end: usize,
}

impl Regions {
    /// Maps `bytes` at `first`, which must be aligned to a page.
    pub(crate) fn add(&mut self, first: usize, bytes: usize) {
        assert!(
            first.is_multiple_of(PAGE),
            "memory to map must be aligned to a page, so that its lines are the same in every run"
        );
        let overlaps =
            |region: &Region| first < region.first + region.bytes && region.first < first + bytes;
        assert!(
            !self.regions.iter().any(overlaps),
            "the memory is mapped already"
        );
        self.regions.push(Region {
            first,
            bytes,
            simulated: self.end,
        });
        self.end += bytes.next_multiple_of(PAGE);
    }

    /// Reserves memory that the host does not have.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Unbacked {
        let first = self.end;
        self.end += bytes.next_multiple_of(PAGE);
        Unbacked { first, bytes }
    }

    /// Gives an array the first places of `over`.
    pub(crate) fn spread(&mut self, array: Spread, over: Unbacked) {
        assert!(
            array.each > 0 && array.apart >= array.each,
            "elements that do not overlap"
        );
        assert!(
            array.count * array.apart <= over.bytes,
            "a place for each of {} elements",
            array.count
        );
        self.spreads.push((array, over.first));
    }

    /// Returns the machine's address of the host's `address`, if it is in an array that has another
    /// place.
    #[inline]
    fn find_spread(&self, address: usize) -> Option<usize> {
        self.spreads.iter().find_map(|(array, simulated)| {
            let offset = address.wrapping_sub(array.first.addr());
            let inside = offset < array.each * array.count;
            inside.then(|| simulated + offset / array.each * array.apart + offset % array.each)
        })
    }

    /// Returns the machine's address of the host's `address`, or `None` where nothing is mapped.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Option<usize> {
        if let Some(simulated) = self.find_spread(address) {
            return Some(simulated);
        }
        // The region that was looked up last is kept first.
        let place = self
            .regions
            .iter()
            .position(|region| address.wrapping_sub(region.first) < region.bytes)?;
        if place > 0 {
            self.regions.swap(0, place);
        }
        let region = self.regions[0];
        Some(region.simulated + (address - region.first))
    }

    /// Bytes mapped so far, in whole pages.
    pub(crate) const fn bytes(&self) -> usize {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_contiguous_in_the_machine_whatever_their_host_addresses() {
        let mut regions = Regions::default();
        regions.add(7 * PAGE, 100);
        regions.add(3 * PAGE, PAGE + 1);
        assert_eq!(regions.find(7 * PAGE + 99), Some(99));
        assert_eq!(regions.find(7 * PAGE + 100), None);
        assert_eq!(regions.find(3 * PAGE + 1), Some(PAGE + 1));
        assert_eq!(regions.find(2 * PAGE), None);
        assert_eq!(regions.bytes(), 3 * PAGE);
    }

    #[test]
    fn elements_of_an_array_can_be_a_line_apart() {
        let mut regions = Regions::default();
        regions.add(7 * PAGE, PAGE);
        let lines = regions.reserve(3 * 64);
        assert_eq!((lines.at(0), regions.bytes()), (PAGE, 2 * PAGE));
        let array = Spread {
            first: core::ptr::without_provenance(7 * PAGE + 24),
            each: 12,
            count: 3,
            apart: 64,
        };
        regions.spread(array, lines);
        let mut at = |offset| regions.find(7 * PAGE + offset);
        assert_eq!(at(23), Some(23));
        assert_eq!([at(24), at(24 + 12 + 4)], [PAGE, PAGE + 64 + 4].map(Some));
        assert_eq!(at(24 + 35), Some(PAGE + 2 * 64 + 11));
        assert_eq!(at(24 + 36), Some(24 + 36));
    }

    #[test]
    #[should_panic(expected = "mapped already")]
    fn nothing_is_mapped_twice() {
        let mut regions = Regions::default();
        regions.add(PAGE, 2 * PAGE);
        regions.add(2 * PAGE, PAGE);
    }
}
