//! The heap at a fork, and its upkeep: idle memory goes back to the system by the background thread
//! or, where a process has one thread only, in the course of its requests.

use core::ptr::from_ref;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_arena::Threads;
use brickyard_arena::rows::{Cpus, is_alone, rows_given_up};
use brickyard_slab::sheaf::closed;

use crate::background::{self, Tick};
use crate::gate::Thread;
use crate::instance::{Background, Heap, INSTANCE, ROW_WORDS, built};
use crate::{huge, sampling, seccomp, vfork};

/// Registers the handlers when the program or library is loaded, before anybody can fork. A fork
/// that has begun calls no handler that is registered meanwhile: if the heap registered them when
/// it is first used, its locks could be held at the moment of such a fork.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = begins;

extern "C" fn begins() {
    register();
}

/// Registers the handlers, if they are not. Also called when the heap has just been built: another
/// library may have used it before this one's turn to begin came.
pub(super) fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    // Relaxed: one thread loads a library, and one builds the heap. A child has inherited its
    // parent's handlers.
    if REGISTERED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the three functions live as long as the program. (A library that holds this code must
    // not be unloaded.) If registering fails for lack of memory both times, a child of a
    // multithreaded process may find a lock held, as with allocators that register no handlers.
    let failed =
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    if failed != 0 {
        REGISTERED.store(false, Ordering::Relaxed);
    }
}

unsafe extern "C" fn before_fork() {
    INSTANCE.gate.close();
}

unsafe extern "C" fn after_fork() {
    INSTANCE.gate.open();
}

unsafe extern "C" fn in_child() {
    if let Some(heap) = built()
        && let Cpus::PerThread(_) = heap.cpus
    {
        // SAFETY: a child process begins with one thread.
        unsafe { Threads.forget_others() };
    }
    // SAFETY: a child process begins with one thread, which is here. Nobody was inside the gate but
    // that thread, and others only look at large blocks then.
    unsafe { INSTANCE.large.forget_holder() };
    // SAFETY: as above.
    unsafe { vfork::forget_others() };
    BACKGROUND.forget();
    THREADS_SEEN.forget();
    INSTANCE.gate.open_in_child();
}

/// Somebody looks after the heap once so many bytes are in use or idle.
const LARGE: usize = 8 << 20;

/// The background thread visits the CPUs once in so many looks.
const LOOKS_A_VISIT: u32 = 3;

static BACKGROUND: background::Background = background::Background::new(look);

fn wants_looks(heap: &Heap) -> bool {
    heap.background == Background::Wanted
        && heap.span.bytes_in_use() + heap.span.idle_bytes() + INSTANCE.large.idle_bytes() >= LARGE
}

/// Called after a request by a slow path, outside the gate.
#[inline]
pub(super) fn has_grown(heap: &'static Heap) {
    if wants_looks(heap) {
        look_after(heap);
    }
}

/// Called after memory has come back by a slow path, outside the gate.
#[inline]
pub(super) fn has_shrunk(heap: &'static Heap, may: MayStart) {
    match may {
        MayStart::Thread if wants_looks(heap) => look_after(heap),
        _ => BACKGROUND.tell(),
    }
}

/// Has somebody look after memory: the background thread, or the caller, where it is the only
/// thread, or where there can be no background thread. A process of one thread stays one: the
/// system refuses some calls to others, and the C library takes locks in them that it does not need
/// otherwise.
fn look_after(heap: &'static Heap) {
    if rows_given_up() > 0 {
        // A thread of a child of `vfork` would be one of the child.
        return;
    }
    if THREADS_SEEN.is_one() || !BACKGROUND.call() {
        look_in_passing(heap);
    }
}

static THREADS_SEEN: ThreadsSeen = ThreadsSeen {
    first: AtomicUsize::new(0),
    several: AtomicBool::new(false),
    child: AtomicBool::new(false),
};

/// Whether slow paths have been used by one thread only, where the C library does not say that
/// there are more: one that lives by the fast paths is not seen. A thread is known by its address,
/// which may be that of another one later: then they are taken for one.
struct ThreadsSeen {
    first: AtomicUsize,
    several: AtomicBool,
    /// The process is a child of one of several threads. The C library still says so there.
    child: AtomicBool,
}

impl ThreadsSeen {
    /// Notes the calling thread. Returns true if no other has been seen.
    fn is_one(&self) -> bool {
        // Relaxed, all: a hint.
        if self.several.load(Ordering::Relaxed)
            || !is_alone() && !self.child.load(Ordering::Relaxed)
        {
            return false;
        }
        let this = from_ref(Thread::this().inside).addr();
        if self.first.load(Ordering::Relaxed) == this {
            return true;
        }
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let first = self.first.compare_exchange(0, this, success, failure);
        if first.is_err() {
            self.several.store(true, Ordering::Relaxed);
        }
        first.is_ok()
    }

    /// Forgets all, in a child process.
    fn forget(&self) {
        self.first.store(0, Ordering::Relaxed);
        self.several.store(false, Ordering::Relaxed);
        self.child.store(!is_alone(), Ordering::Relaxed);
    }
}

/// The caller looks at the clock once in so many calls.
const CALLS_A_CLOCK: u32 = 64;

/// A second's work is done in so many parts, so that no request takes long.
const PARTS: u32 = 16;

/// A caller does as many of them at most.
const PARTS_AT_ONCE: u32 = 4;

/// In a part, so many bytes of idle pages go back.
const PAGES_A_PART: usize = 1 << 20;

/// Looks after memory once a second, as any thread: gives back what has lain unused on this CPU,
/// 16 MiB of idle pages at most, and freed large blocks, these two in parts.
fn look_in_passing(heap: &'static Heap) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    /// The sixteenth of a second up to which all is done.
    static DONE: AtomicU32 = AtomicU32::new(0);
    /// The second of the last round.
    static ROUND: AtomicU32 = AtomicU32::new(0);
    // Relaxed, all: hints. (Of several threads one finds that the time has changed.)
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    if !calls.is_multiple_of(CALLS_A_CLOCK) {
        return;
    }
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` can be written. The clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    let second = now.tv_sec as u32;
    let part = now.tv_nsec as u32 / (1_000_000_000 / PARTS);
    let time = second.wrapping_mul(PARTS).wrapping_add(part);
    let before = DONE.load(Ordering::Relaxed);
    let Some((parts, done)) = parts_to_do(before, time) else {
        return;
    };
    // Another thread may fork all the same, and may not be waited for: see `closed_gate.rs`.
    let Some(_inside) = INSTANCE.gate.try_enter(0) else {
        return;
    };
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    let first = DONE.compare_exchange(before, done, success, failure);
    if first.is_err() {
        return;
    }
    BACKGROUND.may_be_had();
    if done != time {
        // There is more to do: the next call looks at the clock too.
        CALLS.store(0, Ordering::Relaxed);
    }
    let round = ROUND.load(Ordering::Relaxed);
    if !is_late(second, round, 1) {
        ROUND.store(second, Ordering::Relaxed);
        heap.slabs.trim();
        if second.is_multiple_of(LOOKS_A_VISIT) {
            heap.slabs.shrink();
        }
        INSTANCE.large.begin_look();
        heap.span.begin_round(PARTS as usize * PAGES_A_PART);
    }
    let _ = INSTANCE
        .large
        .go_on_with_look(parts as usize, PARTS as usize);
    heap.span.go_on_with_round(parts as usize * PAGES_A_PART);
}

/// Returns how many parts a caller does now, at the sixteenth of a second `time`, and up to which
/// time all is done then, where all has been done up to `before`. What is left the next ones do, up
/// to a second's work. `None` if nothing is to be done.
fn parts_to_do(before: u32, time: u32) -> Option<(u32, u32)> {
    if is_late(time, before, PARTS) {
        return None;
    }
    let left = time.wrapping_sub(before).min(PARTS);
    let parts = left.min(PARTS_AT_ONCE);
    Some((parts, time.wrapping_sub(left - parts)))
}

/// Returns true if a caller that read the time `now` comes when all has been done up to `done`: by
/// others, which were faster by `most` at most. Otherwise it is the first, perhaps after years, or
/// the clock was set back, as where a machine is restored.
fn is_late(now: u32, done: u32, most: u32) -> bool {
    done.wrapping_sub(now) <= most
}

/// Says whether a caller that frees may start a thread. The C library's loader, for one, frees with
/// locks held that a new thread needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MayStart {
    Thread,
    Nothing,
}

/// The background thread's work, about once a second.
fn look() -> Tick {
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    let Some(heap) = built() else {
        return Tick::Nothing;
    };
    sampling::write_if_wanted();
    if !seccomp::is_there() {
        huge::look_again();
    }
    let before = heap.span.bytes_in_use();
    // Relaxed: only one thread looks.
    let looks = LOOKS.fetch_add(1, Ordering::Relaxed);
    if looks.is_multiple_of(LOOKS_A_VISIT) {
        visit_cpus(heap);
    }
    let enter = || Some(INSTANCE.gate.enter(0));
    let large = {
        let _inside = enter();
        INSTANCE.large.release_by_age()
    };
    heap.span.begin_round(usize::MAX);
    let released = heap.span.end_round(enter);
    if released || large > 0 || heap.span.bytes_in_use() < before {
        Tick::Again
    } else {
        Tick::Nothing
    }
}

/// Gives what lies unused on every CPU back to slabs. CPUs on which nothing lies are not disturbed.
/// Where calls are filtered, it is the turn of the CPU that the thread happens to be on, unless
/// `BRICKYARD_VISIT` says that the filter allows more.
fn visit_cpus(heap: &'static Heap) {
    if matches!(heap.cpus, Cpus::PerCpu(_)) && !heap.visits && seccomp::is_there() {
        let _inside = INSTANCE.gate.enter(0);
        heap.slabs.trim();
        heap.slabs.shrink();
        return;
    }
    let mut visited = 0;
    for cpu in (0..heap.cpus.rows()).filter(|&cpu| holds_anything(heap, cpu)) {
        let ran = heap.cpus.run_on(cpu, &mut || {
            let _inside = INSTANCE.gate.enter(cpu);
            heap.slabs.trim();
        });
        visited += usize::from(ran);
    }
    if visited == 0 {
        // No CPU had anything, so it is the turn of what CPUs share.
        let _inside = INSTANCE.gate.enter(0);
        heap.slabs.shrink();
    }
}

/// Returns true if there is a sheaf in the row of a CPU.
fn holds_anything(heap: &Heap, cpu: usize) -> bool {
    let (rows, closed) = (heap.slabs.queues().rows(), closed());
    let words = (0..ROW_WORDS).filter_map(|column| rows.place(cpu, column));
    // SAFETY: words of the heap's rows, which are there for ever. Relaxed: a hint. A sheaf that
    // comes later is found at the next visit.
    let mut tops = words.map(|word| unsafe { (*word).load(Ordering::Relaxed) });
    tops.any(|top| top != 0 && top != closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_came_for_is_done_by_the_next_callers() {
        // Who comes often does a part each.
        for time in 100..120 {
            assert_eq!(parts_to_do(time - 1, time), Some((1, time)));
        }
        assert_eq!(parts_to_do(100, 100), None);
        // Late by a second or more: a second's work, in four calls.
        for late in [16, 17, 1000] {
            let mut done = 5000 - late;
            for left in [12, 8, 4, 0] {
                assert_eq!(parts_to_do(done, 5000), Some((4, 5000 - left)));
                done = 5000 - left;
            }
            assert_eq!(parts_to_do(done, 5000), None);
        }
        // Another thread was faster; and where the number wraps around.
        assert_eq!(parts_to_do(101, 100), None);
        assert_eq!(parts_to_do(u32::MAX, 1), Some((2, 1)));
        // The first time, after years; and after a machine was restored.
        for years in [1, 3, 5, 7, 8] {
            let time = (years * 365 * 86_400_u64 * u64::from(PARTS)) as u32;
            assert_eq!(parts_to_do(0, time), Some((4, time.wrapping_sub(12))));
            assert_eq!(parts_to_do(time, 1000), Some((4, 988)));
        }
    }
}
