//! The heap profile: for each stack that has asked for memory, how many samples and bytes it asked
//! for, and how many of them are in use.
//!
//! A request is sampled with the probability `1 - exp(-bytes / period)`: readers of the profile
//! scale by that. Its memory is noted by its address until it is freed.
//!
//! The tables are used under a lock, by threads inside the heap, during which no fork begins: so a
//! child process finds them as they should be. Stacks and their addresses are never forgotten.
//! There is room for [`STACKS`]; requests of others are counted without a stack.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::slice;
use std::io;

use brickyard::Platform;
use brickyard::sync::{Locked, TestAndSetLock};
use brickyard_arena::address_table::{Known, Table};
use brickyard_arena::environment::{number, variable};
use brickyard_arena::messages::say;
use brickyard_arena::{Region, Threads};

use crate::Host;
use crate::countdown::Countdown;
use crate::stack::{DEPTH, Stack};
use crate::writer::{Writer, table};

/// So many stacks are told apart. Their tables have addresses from the start, and memory as they
/// fill.
pub(crate) const STACKS: usize = 1 << 16;

/// The mean number of bytes between samples, where the environment does not say.
const PERIOD: usize = 512 << 10;

/// Samples of a stack, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    const fn add(&mut self, bytes: u64) {
        self.samples += 1;
        self.bytes += bytes;
    }

    const fn remove(&mut self, bytes: u64) {
        self.samples = self.samples.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A stack, and what it has asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub(crate) live: Amount,
    pub(crate) all: Amount,
    hash: u64,
    /// Where its addresses begin, and how many there are.
    first: u32,
    depth: u32,
}

/// A sample in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    address: usize,
    bytes: usize,
    site: usize,
}

// SAFETY: all of its numbers are 0 then.
unsafe impl Known for Sample {
    const NOTHING: Self = Self {
        address: 0,
        bytes: 0,
        site: 0,
    };

    fn address(&self) -> usize {
        self.address
    }
}

struct Tables {
    samples: Table<Sample>,
    /// Of these `used` are in use; the first is that of all stacks for which there is no room.
    sites: &'static mut [Site],
    used: usize,
    /// From hashes to the numbers of sites; 0 is nothing. Twice as many as sites.
    index: &'static mut [u32],
    frames: &'static mut [usize],
    frames_used: usize,
}

/// See the [module](self).
pub(crate) struct Profile {
    host: &'static dyn Host,
    gaps: Countdown,
    file: &'static [u8],
    lock: Locked<TestAndSetLock, ()>,
    tables: UnsafeCell<Tables>,
    pub(crate) writer: Writer,
}

// SAFETY: only a holder of the lock uses the tables; no thread owns their memory.
unsafe impl Sync for Profile {}

/// Copies bytes to memory that stays.
fn kept(bytes: &[u8]) -> io::Result<&'static [u8]> {
    let memory = Region::map_for_ever(bytes.len())?;
    for (place, &byte) in memory.iter_mut().zip(bytes) {
        place.write(byte);
    }
    let memory: &'static [MaybeUninit<u8>] = memory;
    // SAFETY: a mapping is zero where it was not written.
    Ok(unsafe { slice::from_raw_parts(memory.as_ptr().cast(), bytes.len()) })
}

fn period() -> usize {
    let wanted = variable(c"BRICKYARD_PROFILE_PERIOD").filter(|text| !text.is_empty());
    match wanted.map(number) {
        Some(Some(period)) if period > 0 => period,
        None => PERIOD,
        Some(_) => {
            say(format_args!(
                "BRICKYARD_PROFILE_PERIOD is a number of bytes above 0; {PERIOD} is used"
            ));
            PERIOD
        }
    }
}

impl Profile {
    /// Begins a profile to be written to `file`.
    pub(crate) fn new(file: &[u8], host: &'static dyn Host) -> io::Result<Self> {
        // SAFETY: all of these are numbers.
        let (sites, index, frames) = unsafe {
            let frames = STACKS * DEPTH / 2;
            (table(STACKS)?, table(STACKS * 2)?, table(frames)?)
        };
        Ok(Self {
            host,
            gaps: Countdown::new(period() as u64, Threads.ticks())?,
            file: kept(file)?,
            lock: Locked::new(()),
            tables: UnsafeCell::new(Tables {
                samples: Table::new(),
                sites,
                used: 1,
                index,
                frames,
                frames_used: 0,
            }),
            writer: Writer::new()?,
        })
    }

    /// Counts a request; returns true if it is to be sampled.
    #[inline]
    pub(crate) fn is_due(&self, cpu: usize, bytes: usize) -> bool {
        self.gaps.is_due(cpu, bytes)
    }

    /// Returns the mean number of bytes between samples.
    pub(crate) const fn period(&self) -> u64 {
        self.gaps.mean()
    }

    /// Returns where it is to be written.
    pub(crate) const fn file(&self) -> &'static [u8] {
        self.file
    }

    fn with_tables<R>(&self, work: impl FnOnce(&mut Tables) -> R) -> R {
        let _held = self.lock.lock(|| Threads.relax());
        // SAFETY: the lock is held as long as `work` runs, so this is the only reference.
        work(unsafe { &mut *self.tables.get() })
    }

    /// Notes that a sampled request got this memory. `mark` lies in the frame of the heap's
    /// function that was called.
    pub(crate) fn allocated<T>(&self, memory: NonNull<u8>, bytes: usize, mark: &T) {
        let stack = Stack::of_caller(mark);
        self.with_tables(|tables| {
            // Without room for the sample it would never be seen freed, so it is not counted.
            if tables.samples.reserve() {
                let site = tables.site_of(stack.frames());
                let address = memory.addr().get();
                tables.samples.put(Sample {
                    address,
                    bytes,
                    site,
                });
                tables.sites[site].live.add(bytes as u64);
                tables.sites[site].all.add(bytes as u64);
            }
        });
    }

    /// Takes the sample of memory out, if it is one's. It counts as in use until it is
    /// [forgotten](Self::forget).
    pub(crate) fn take(&self, memory: NonNull<u8>) -> Option<Sample> {
        self.with_tables(|tables| tables.samples.take(memory.addr().get()))
    }

    /// Puts a sample that was taken out back.
    pub(crate) fn put_back(&self, sample: Sample) {
        self.with_tables(|tables| tables.samples.put(sample));
    }

    /// Counts a sample that was taken out as freed.
    pub(crate) fn forget(&self, sample: Sample) {
        self.with_tables(|tables| {
            tables.samples.unreserve();
            tables.sites[sample.site].live.remove(sample.bytes as u64);
        });
    }

    /// Notes that memory has another size from now on, if it is a sample's.
    pub(crate) fn stays(&self, memory: NonNull<u8>, bytes: usize) {
        self.with_tables(|tables| {
            if let Some(sample) = tables.samples.take(memory.addr().get()) {
                let live = &mut tables.sites[sample.site].live.bytes;
                *live = live.saturating_sub(sample.bytes as u64) + bytes as u64;
                tables.samples.put(Sample { bytes, ..sample });
            }
        });
    }

    /// Returns true if the calling thread is inside the heap, which would wait for itself.
    pub(crate) fn is_nested(&self) -> bool {
        self.host.depth() > 0
    }

    /// Calls `work` for each stack that has asked for memory, with its addresses. Nothing is held
    /// meanwhile. Fails if `work` does, or as `busy` says if another thread forks for long.
    pub(crate) fn each_site<E>(
        &self,
        busy: impl Fn() -> E,
        mut work: impl FnMut(&Site, &[usize]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = 0;
        loop {
            let mut found = None;
            let has_looked = self.host.inside(&mut || {
                found = self.with_tables(|tables| tables.site_from(next));
            });
            if !has_looked {
                return Err(busy());
            }
            let Some((number, site, stack)) = found else {
                return Ok(());
            };
            work(&site, stack.frames())?;
            next = number + 1;
        }
    }
}

impl Tables {
    fn frames_of(&self, site: &Site) -> &[usize] {
        let first = site.first as usize;
        &self.frames[first..first + site.depth as usize]
    }

    /// Returns the first site from `number` on that has asked for memory, with number and stack.
    fn site_from(&self, number: usize) -> Option<(usize, Site, Stack)> {
        let rest = &self.sites[number.min(self.used)..self.used];
        let found = rest.iter().position(|site| site.all.samples > 0)?;
        let site = rest[found];
        let mut stack = Stack::EMPTY;
        stack.set(self.frames_of(&site).iter().copied());
        Some((number + found, site, stack))
    }

    /// Returns the number of the site of a stack, which is made if there is none.
    fn site_of(&mut self, frames: &[usize]) -> usize {
        let hash = hash(frames);
        let mask = self.index.len() - 1;
        let mut place = hash as usize & mask;
        // At most half of the index is in use, so there is an end.
        while self.index[place] != 0 {
            let number = self.index[place] as usize;
            let site = &self.sites[number];
            if site.hash == hash && self.frames_of(site) == frames {
                return number;
            }
            place = (place + 1) & mask;
        }
        let (number, first) = (self.used, self.frames_used);
        if number == self.sites.len() || first + frames.len() > self.frames.len() {
            return 0;
        }
        self.frames[first..first + frames.len()].copy_from_slice(frames);
        self.frames_used += frames.len();
        self.sites[number] = Site {
            live: Amount::default(),
            all: Amount::default(),
            hash,
            first: first as u32,
            depth: frames.len() as u32,
        };
        self.used += 1;
        self.index[place] = number as u32;
        number
    }
}

/// Returns a number of 64 bits for addresses.
fn hash(frames: &[usize]) -> u64 {
    frames.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, &frame| {
        (hash ^ frame as u64)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(29)
    })
}
