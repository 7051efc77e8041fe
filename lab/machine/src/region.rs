//! Which memory of the host is shared memory of the machine, and at which simulated address.
//!
//! Host addresses differ from run to run. A run must not depend on them, so each region that is
//! mapped gets the next free pages of the machine, in the order in which they were mapped.

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

/// All mapped regions.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
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

    /// Returns the machine's address of the host's `address`, or `None` where nothing is mapped.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Option<usize> {
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
    #[should_panic(expected = "mapped already")]
    fn nothing_is_mapped_twice() {
        let mut regions = Regions::default();
        regions.add(PAGE, 2 * PAGE);
        regions.add(2 * PAGE, PAGE);
    }
}
