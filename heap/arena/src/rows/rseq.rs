//! A row per CPU, by restartable sequences.
//!
//! The area is the one that the C library registers for every thread (glibc from 2.35 on). None is
//! registered here, since a thread can have only one. Only its `rseq_cs` is ever written, so all of
//! the system's rules are kept.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};

use brickyard::Platform;

use crate::Threads;
use crate::errno::keeping_errno;
use crate::thread_local::thread_pointer;

/// CPUs as rows. A thread may be moved at any moment. What it was about to do with a row then
/// begins again on the new CPU.
///
/// This [`Platform`] reads the CPU from the thread's own memory (a load), and waits by spinning
/// and then letting others run. It runs work on another CPU by going there: the calling thread
/// restricts its own affinity to that CPU, and restores it afterwards.
#[derive(Debug, Clone, Copy)]
pub struct Rseq {
    area: isize,
    cpus: usize,
}

// Weak: null where the C library has none.
global_asm!(".weak __rseq_offset", ".weak __rseq_size");

impl Rseq {
    /// Returns the area that the C library has registered. `None` if there is none: an old C
    /// library or system, one that was told not to (`glibc.pthread.rseq=0`), or a simulator such as
    /// valgrind. Makes a few system calls.
    #[must_use]
    pub fn registered() -> Option<Self> {
        let offset = weak_address!("__rseq_offset").cast::<isize>();
        let size = weak_address!("__rseq_size").cast::<u32>();
        if offset.is_null() || size.is_null() {
            return None;
        }
        // SAFETY: constants of the C library (`ptrdiff_t` and `unsigned int`), by its manual,
        // written before any code of other libraries runs.
        let (area, size) = unsafe { (*offset, *size) };
        let rseq = Self {
            area,
            cpus: possible_cpus(),
        };
        // The number is negative in a thread whose registration failed.
        (size != 0 && rseq.cpu() < rseq.cpus).then_some(rseq)
    }

    /// Returns how many CPUs the machine can have: one more than the highest number.
    #[must_use]
    pub const fn cpus(&self) -> usize {
        self.cpus
    }

    /// Returns the offset of the area from the thread pointer, which [`pop`](super::pop) needs.
    #[must_use]
    pub const fn area(&self) -> isize {
        self.area
    }
}

impl Platform for Rseq {
    #[inline]
    fn cpu(&self) -> usize {
        let word = thread_pointer().wrapping_offset(self.area + 4);
        // SAFETY: `registered-everywhere`: the word is the `cpu_id` of this thread's area. Only the
        // system writes it, and only while the thread is not running.
        let cpu = unsafe { AtomicU32::from_ptr(word.cast()) };
        // Relaxed: a thread's own word.
        cpu.load(Ordering::Relaxed) as usize
    }

    fn relax(&self) {
        Threads.relax();
    }

    /// Runs `work` with the calling thread kept on `cpu` by its affinity, which is restored
    /// afterwards. False if the thread may not go there: the CPU is offline, or not in its cpuset.
    /// Takes some microseconds, or as long as the CPU is busy with others.
    ///
    /// An affinity that somebody else gives the thread meanwhile is lost. If that takes the thread
    /// away from `cpu`, what `work` tries with the row fails. `work` may panic.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        if cpu >= self.cpus {
            return false;
        }
        let Some(found) = Affinity::of_this_thread() else {
            return false;
        };
        if !Affinity::only(cpu).set() {
            return false;
        }
        let _back = Back(found);
        work();
        true
    }

    fn ticks(&self) -> u64 {
        Threads.ticks()
    }
}

/// The most CPUs that the system counts (`CONFIG_NR_CPUS`).
const MOST_CPUS: usize = 8192;

/// The CPUs that a thread may run on.
struct Affinity([u64; MOST_CPUS / 64]);

impl Affinity {
    fn of_this_thread() -> Option<Self> {
        let mut set = Self([0; MOST_CPUS / 64]);
        // SAFETY: the system writes at most as many bytes as it is told that there are.
        let done = keeping_errno(|| unsafe {
            libc::sched_getaffinity(0, size_of_val(&set.0), set.0.as_mut_ptr().cast())
        });
        (done == 0).then_some(set)
    }

    fn only(cpu: usize) -> Self {
        let mut set = Self([0; MOST_CPUS / 64]);
        if let Some(word) = set.0.get_mut(cpu / 64) {
            *word = 1 << (cpu % 64);
        }
        set
    }

    fn set(&self) -> bool {
        // SAFETY: the system reads as many bytes as there are.
        let done = keeping_errno(|| unsafe {
            libc::sched_setaffinity(0, size_of_val(&self.0), self.0.as_ptr().cast())
        });
        done == 0
    }
}

/// Restores the thread's affinity when this is dropped.
struct Back(Affinity);

impl Drop for Back {
    fn drop(&mut self) {
        // It was this thread's a moment ago. If all those CPUs have gone offline since, the system
        // has chosen others already.
        let _ = self.0.set();
    }
}

/// Returns one more than the highest CPU number that the machine can have.
fn possible_cpus() -> usize {
    more_of(from_sysfs(), own_set())
}

/// Returns what the system tells, but no less than this thread knows: a container may be shown a
/// smaller machine than the one that it runs on.
fn more_of(told: Option<usize>, own: Option<Set>) -> usize {
    match (told, own) {
        (Some(cpus), Some(set)) if set.highest >= cpus => set.length,
        (Some(cpus), _) => cpus,
        (None, Some(set)) => set.length,
        (None, None) => MOST_CPUS,
    }
}

/// Reads it from a list such as `0-3,8-11`: its last number.
fn from_sysfs() -> Option<usize> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = open(c"/sys/devices/system/cpu/possible", flags, Mode::empty()).ok()?;
    let mut text = [0; 256];
    let read = rustix::io::read(&file, &mut text).ok()?;
    // The end of a longer one is not known.
    highest_of(text.get(..read)?.strip_suffix(b"\n")?)
}

fn highest_of(list: &[u8]) -> Option<usize> {
    let list = list.trim_ascii_end();
    let digits = list.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let start = list.len() - digits.count();
    let number: usize = str::from_utf8(&list[start..]).ok()?.parse().ok()?;
    (number < MOST_CPUS).then_some(number + 1)
}

/// The CPUs that the calling thread may run on.
struct Set {
    highest: usize,
    /// So many fit into the system's own sets: too many for the machine, but never too few.
    length: usize,
}

/// Returns it; `None` if the system refuses.
fn own_set() -> Option<Set> {
    let mut set = [0_u64; MOST_CPUS / 64];
    // SAFETY: the system writes at most as many bytes as it is told that there are. (The C
    // library's wrapper hides how many it wrote.)
    let written = keeping_errno(|| unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&set),
            set.as_mut_ptr(),
        )
    });
    let bytes = usize::try_from(written).ok().filter(|&bytes| bytes > 0)?;
    let last = set.iter().rposition(|&word| word != 0)?;
    Some(Set {
        highest: last * 64 + set[last].ilog2() as usize,
        length: bytes * 8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cpu_that_this_thread_may_run_on_is_beyond_those_that_are_possible() {
        let set = own_set().unwrap();
        assert!(set.highest < set.length);
        assert!((set.highest + 1..=set.length).contains(&possible_cpus()));
        // Where the system tells of fewer than there are, or of none.
        let own = || {
            Some(Set {
                highest: 9,
                length: 64,
            })
        };
        let found = [Some(1), Some(12), None].map(|told| more_of(told, own()));
        assert_eq!(found, [64, 12, 64]);
        assert_eq!(
            [more_of(Some(1), None), more_of(None, None)],
            [1, MOST_CPUS]
        );
    }

    #[test]
    fn the_last_number_of_a_list_counts() {
        assert_eq!(highest_of(b"0-3,8-11\n"), Some(12));
        assert_eq!(highest_of(b"0\n"), Some(1));
        assert_eq!(highest_of(b"\n"), None);
        assert_eq!(highest_of(b"0-99999999999999999999999"), None);
        assert!(own_set().unwrap().length >= from_sysfs().unwrap_or(1));
    }

    #[test]
    fn work_runs_on_every_cpu_that_the_thread_may_use() {
        let Some(rseq) = Rseq::registered() else {
            println!("skipped: no restartable sequences are registered here");
            return;
        };
        let found = Affinity::of_this_thread().unwrap();
        let mut visited = 0;
        for cpu in 0..rseq.cpus() {
            let mut seen = None;
            let ran = rseq.run_on(cpu, &mut || seen = Some(rseq.cpu()));
            assert_eq!(seen, ran.then_some(cpu));
            visited += usize::from(ran);
        }
        assert!(visited >= 1);
        assert_eq!(Affinity::of_this_thread().unwrap().0, found.0);
        assert!(!rseq.run_on(rseq.cpus(), &mut || panic!("no such CPU")));
    }
}
