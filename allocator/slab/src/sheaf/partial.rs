//! The partial list: slabs with free objects, and which objects those are, a bit each. All of it is
//! behind the depot's lock.
//!
//! Invariant `on-the-partial-list`: a slab is on its depot's list exactly if one of its bits is
//! set. When its last object comes back, it leaves the list and gives its pages back. A slab
//! without a set bit is on no list. So a slab with all bits set has never been touched; `untouched`
//! counts those.

use brickyard_sync::prefetch_to_write;

use super::depot::Depot;
use super::words::Sheaf;
use crate::cache_info::CacheInfo;
use crate::error::FreeFault;
use crate::homes::Homes;
use crate::pages::Pages;
use crate::slab_list::Gone;

/// Puts a new slab on the partial list: all of its objects are free.
pub(super) fn begin(depot: &Depot, pages: &Pages<'_>, info: &CacheInfo, head: usize, colour: u32) {
    let record = depot.slabs.add(pages, info, head, colour);
    let mut left = info.geometry.objects;
    for word in &record.free {
        let here = left.min(64);
        word.set(if here == 64 {
            u64::MAX
        } else {
            (1 << here) - 1
        });
        left -= here;
    }
    depot.counts.slabs_new.add(1);
    depot.untouched.add(1);
}

/// Takes slabs off the partial list of which no object was ever taken.
pub(super) fn take_untouched(depot: &Depot, pages: &Pages<'_>, info: &CacheInfo) -> Gone {
    let mut gone = Gone::default();
    let mut next = depot.slabs.first_partial();
    while depot.untouched.get() > 0
        && let Some(head) = next
    {
        let record = pages.record(head);
        next = (record.next.get() as usize).checked_sub(1);
        if record.out.get() == 0 {
            depot.untouched.set(depot.untouched.get() - 1);
            end(depot, pages, info, head);
            gone.push(pages, head);
        }
    }
    gone
}

/// Removes a slab that has all of its objects: it is a slab no longer.
fn end(depot: &Depot, pages: &Pages<'_>, info: &CacheInfo, head: usize) {
    depot.slabs.unlink(pages, head);
    depot.slabs.remove(pages, info, head);
    depot.counts.slabs_gone.add(1);
}

/// The CPU that objects are taken for, where pages have homes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taker<'m> {
    homes: Homes<'m>,
    cpu: usize,
    /// For so many CPUs a slab is kept apart each.
    cpus: usize,
    /// So many slabs more may be looked at for one that is at home on this CPU.
    looks: usize,
}

/// So many slabs are looked at, at most, for one that is at home on the taker's CPU: for one such
/// slab, and for all that a sheaf is filled from.
const LOOKS: [usize; 2] = [8, 32];

/// A slab is kept apart for no more CPUs than this.
const CPUS: usize = 16;

/// One part in so many of a cache's objects may be free in slabs that are at home elsewhere, and a
/// slab for each CPU, but for [`CPUS`] at most.
const ELSEWHERE_PART: u64 = 8;

impl<'m> Taker<'m> {
    pub(super) fn new(homes: Homes<'m>, cpu: usize, cpus: usize) -> Self {
        let [_, looks] = LOOKS;
        Self {
            homes,
            cpu,
            cpus: cpus.min(CPUS),
            looks,
        }
    }

    /// Returns the slab to take objects from: one that is at home here. If there is none among the
    /// first, the one with most free objects serves where much lies free, so that what is taken
    /// comes to lie together; otherwise `None`, and a new slab will keep the CPUs apart.
    fn choose(&mut self, depot: &Depot, pages: &Pages<'_>, info: &CacheInfo) -> Option<usize> {
        let first = depot.slabs.first_partial()?;
        let mut fullest = (u32::MAX, first);
        let mut next = Some(first);
        let [each, _] = LOOKS;
        for _ in 0..each.min(self.looks) {
            let Some(head) = next else { break };
            let record = pages.record(head);
            let out = record.out.get();
            if out == 0 || self.homes.is_on(head, self.cpu) {
                return Some(head);
            }
            fullest = fullest.min((out, head));
            self.looks -= 1;
            next = (record.next.get() as usize).checked_sub(1);
        }
        let (_, fullest) = fullest;
        let a_slab = u64::from(info.geometry.objects);
        let all = u64::from(depot.slabs.count()) * a_slab;
        let free = all - depot.slabs.out.get() + depot.in_barn(info);
        (free > all / ELSEWHERE_PART + a_slab * self.cpus as u64).then_some(fullest)
    }

    /// Makes this CPU the home of a slab of which it has just got objects.
    fn settle(&self, info: &CacheInfo, head: usize) {
        if !self.homes.is_on(head, self.cpu) {
            let frames = usize::from(info.geometry.pages);
            self.homes.settle(head, frames, self.cpu);
        }
    }
}

/// Takes up to `want` objects off the partial list and hands each to `each`, in the order of their
/// addresses within a slab.
fn take(
    depot: &Depot,
    pages: &Pages<'_>,
    info: &CacheInfo,
    mut want: usize,
    mut taker: Option<Taker<'_>>,
    mut each: impl FnMut(usize),
) {
    while want > 0 {
        let head = match &mut taker {
            Some(taker) => taker.choose(depot, pages, info),
            None => depot.slabs.first_partial(),
        };
        let Some(head) = head else {
            return;
        };
        let record = pages.record(head);
        let first = pages.address_of(head) + record.colour.get() as usize;
        let mut taken = 0;
        for (i, word) in record.free.iter().enumerate() {
            let mut bits = word.get();
            while bits != 0 && taken < want {
                let index = i * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                each(first + index * info.geometry.stride as usize);
                taken += 1;
            }
            word.set(bits);
        }
        want -= taken;
        depot.counts.filled.add(taken as u64);
        depot.slabs.out.add(taken as u64);
        let before = record.out.get();
        if before == 0 {
            depot.untouched.set(depot.untouched.get() - 1);
        }
        if let Some(taker) = &taker {
            taker.settle(info, head);
        }
        let out = before + taken as u32;
        record.out.set(out);
        if out == info.geometry.objects {
            depot.slabs.unlink(pages, head);
        }
    }
}

/// Takes one object.
pub(super) fn take_one(depot: &Depot, pages: &Pages<'_>, info: &CacheInfo) -> Option<usize> {
    let mut found = None;
    take(depot, pages, info, 1, None, |object| found = Some(object));
    found
}

/// Fills a sheaf as far as there are objects. Their first lines are fetched into the cache, all at
/// once: callers write to them soon, one after the other.
pub(super) fn fill(
    depot: &Depot,
    pages: &Pages<'_>,
    info: &CacheInfo,
    sheaf: &Sheaf,
    taker: Option<Taker<'_>>,
) {
    take(depot, pages, info, sheaf.room(), taker, |object| {
        prefetch_to_write(object);
        sheaf.push(object)
    });
}

/// Puts an object back: number `index` of the slab that begins at page `head`. Returns the slab if
/// it is empty now.
fn put(
    depot: &Depot,
    pages: &Pages<'_>,
    info: &CacheInfo,
    head: usize,
    index: usize,
) -> Result<Option<usize>, FreeFault> {
    let record = pages.record(head);
    let (word, bit) = (&record.free[index / 64], 1 << (index % 64));
    let bits = word.get();
    if bits & bit != 0 {
        return Err(FreeFault::DoubleFree);
    }
    word.set(bits | bit);
    let out = record.out.get();
    record.out.set(out - 1);
    depot.slabs.out.add(u64::MAX);
    depot.counts.flushed.add(1);
    if out == info.geometry.objects {
        depot.slabs.link(pages, head);
    }
    if out > 1 {
        return Ok(None);
    }
    end(depot, pages, info, head);
    Ok(Some(head))
}

/// Puts one object back. Returns the slab if it is empty now and its pages are to be given back.
pub(super) fn give_one(
    depot: &Depot,
    pages: &Pages<'_>,
    info: &CacheInfo,
    head: usize,
    index: usize,
) -> Result<Option<usize>, FreeFault> {
    let put = put(depot, pages, info, head, index);
    put.inspect_err(|_| depot.counts.refused.add(1))
}

/// Puts one of many objects back. A bad one is counted and returned as an error.
pub(super) fn give(
    depot: &Depot,
    pages: &Pages<'_>,
    info: &CacheInfo,
    head: usize,
    index: usize,
    gone: &mut Gone,
) -> Result<(), FreeFault> {
    if let Some(head) = give_one(depot, pages, info, head, index)? {
        gone.push(pages, head);
    }
    Ok(())
}

/// Returns true if the object is free in its slab.
pub(super) fn is_free(pages: &Pages<'_>, head: usize, index: usize) -> bool {
    pages.record(head).free[index / 64].get() & (1 << (index % 64)) != 0
}
