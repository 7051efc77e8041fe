//! What a task can request of the machine that it runs on.
//!
//! Where no machine runs on this thread of the host, there is one CPU, the time is always 0, and no
//! call waits.

use core::cell::Cell;
use core::mem::transmute;

use crate::charge;
use crate::failure::Failure;
use crate::fiber::{Exit, Fiber};
use crate::memory::Traffic;
use crate::region::Unbacked;
use crate::seam::AccessKind;
use crate::state::{State, catch_up, suspend, with};
use crate::task::{Affinity, Spent, Stage, Steps, Task, TaskId};

/// Whether the caller runs on a simulated machine.
#[must_use]
pub fn is_simulated() -> bool {
    with(|_| ()).is_some()
}

/// Returns the CPU that runs the caller.
#[inline]
#[must_use]
pub fn cpu() -> usize {
    with(|state| state.running).unwrap_or(0)
}

/// Returns how many CPUs there are.
#[must_use]
pub fn cpus() -> usize {
    with(|state| state.cpus.len()).unwrap_or(1)
}

/// Returns the number of the caller's task, in the order in which tasks were added.
#[must_use]
pub fn task() -> usize {
    with(|state| state.running_id()).unwrap_or(0)
}

/// Returns the cycles since the machine began.
#[inline]
#[must_use]
pub fn now() -> u64 {
    with(|state| state.now()).unwrap_or(0)
}

/// Returns what the accesses of all CPUs have found so far; nothing where time is random.
#[must_use]
pub fn traffic_of_all() -> Traffic {
    let sum = with(|state| {
        let mut sum = Traffic::default();
        if let Some(memory) = &state.memory {
            for core in 0..state.cores {
                sum += memory.traffic(core);
            }
        }
        sum
    });
    sum.unwrap_or_default()
}

/// Spends so many instructions in the kernel, a cycle each if no other thread shares the core.
#[inline]
pub fn work(instructions: u64) {
    with(|state| {
        let cycles = state.instructions(instructions);
        state.spend(cycles, Spent::System);
    });
}

/// Accesses the word at `offset` of memory that the host does not have. Costs what an access to any
/// other memory costs.
pub fn access(memory: Unbacked, offset: usize, kind: AccessKind) {
    charge::charge_unbacked(memory.at(offset), kind);
}

/// Clears `bytes` from `offset` on of memory that the host does not have, and that no other CPU
/// accesses meanwhile ([`CacheSystem::clear`](crate::CacheSystem::clear)).
pub fn clear(memory: Unbacked, offset: usize, bytes: usize) {
    if bytes > 0 {
        let last = memory.at(offset + bytes - 1);
        charge::clear(memory.at(offset)..last + 1);
    }
}

/// Returns the traffic of the caller's core so far, both of its threads; none where accesses take
/// random time.
#[must_use]
pub fn traffic() -> Traffic {
    let of_cpu = |state: &mut State| Some(state.memory.as_ref()?.traffic(state.core()));
    with(of_cpu).flatten().unwrap_or_default()
}

/// Computes so many instructions in user mode, a cycle each if no other thread shares the core.
/// Meanwhile the task may be preempted and timer ticks come, which take cycles of their own.
pub fn compute(instructions: u64) {
    let mut left = instructions;
    while left > 0 {
        // A remote call may have come since it computed last.
        while with(|state| state.must_yield()) == Some(true) {
            yield_now();
        }
        let Some((began, percent)) = with(|state| state.begin_computing(left)) else {
            return;
        };
        catch_up();
        let Some((done, away)) = with(|state| state.end_computing(began, percent)) else {
            return;
        };
        left = left.saturating_sub(done);
        if away {
            yield_now();
        }
        if std::thread::panicking() {
            return;
        }
    }
}

/// Pins the caller to its CPU until [`unpin`]; nests. Returns the CPU.
#[inline]
pub fn pin() -> usize {
    with(|state| {
        state.cpu().pins += 1;
        state.running
    })
    .unwrap_or(0)
}

/// Ends a [`pin`]. A remote call that waits for this CPU runs now.
#[inline]
pub fn unpin() {
    let away = with(|state| {
        let cpu = state.cpu();
        debug_assert!(cpu.pins > 0, "unpinned more often than pinned");
        cpu.pins -= 1;
        state.must_yield()
    });
    if away == Some(true) {
        yield_now();
    }
}

/// Masks interrupts on this CPU. Returns whether they were masked already, for [`restore`].
#[inline]
pub fn mask() -> bool {
    with(|state| {
        let cycles = state.setup.profile.mask_cycles;
        state.spend(cycles, Spent::System);
        core::mem::replace(&mut state.cpu().masked, true)
    })
    .unwrap_or(false)
}

/// Restores the interrupt state that [`mask`] returned.
#[inline]
pub fn restore(found: bool) {
    with(|state| {
        debug_assert!(state.cpu().masked, "restored without a mask");
        let cycles = state.setup.profile.mask_cycles;
        state.spend(cycles, Spent::System);
        state.cpu().masked = found;
    });
}

/// Returns the steps so far of the caller's task, or in an interrupt those of all interrupts of its
/// CPU.
#[must_use]
pub fn steps() -> Steps {
    with(|state| state.count().steps).unwrap_or_default()
}

/// Runs `work`, in which the caller may take at most `most` [steps](Steps): one more ends the run.
/// What other CPUs do meanwhile is not counted, nor what a remote call does there.
pub fn within<R>(most: u64, work: impl FnOnce() -> R) -> R {
    let before = with(|state| {
        let count = state.count();
        let limit = count.steps.all().saturating_add(most).min(count.most);
        core::mem::replace(&mut count.most, limit)
    });
    let result = work();
    if let Some(before) = before {
        with(|state| state.count().most = before);
    }
    result
}

/// Runs `work`, during which the caller's task may not wait: if it sleeps, or makes a remote call,
/// the run ends.
pub fn atomically<R>(work: impl FnOnce() -> R) -> R {
    let set = |atomic| {
        with(|state| core::mem::replace(&mut state.running_task().atomic, atomic)).unwrap_or(false)
    };
    let before = set(true);
    let result = work();
    set(before);
    result
}

/// Returns how many CPUs are stopped now, and how often one was stopped so far.
#[must_use]
pub fn stopped() -> (usize, u64) {
    with(|state| (state.stopped(state.now()), state.stops)).unwrap_or((0, 0))
}

/// Whether the caller runs in an interrupt, or with interrupts masked.
#[inline]
#[must_use]
pub fn in_interrupt() -> bool {
    with(|state| {
        let cpu = state.cpu();
        cpu.masked || cpu.interrupts > 0
    })
    .unwrap_or(false)
}

/// Waits for a disk request, which always takes the profile's `disk_ns`.
pub fn disk() {
    let cycles = with(|state| state.setup.profile.cycles(state.setup.profile.disk_ns));
    if let Some(cycles) = cycles {
        sleep(cycles);
    }
}

/// Sleeps for so many cycles.
pub fn sleep(cycles: u64) {
    catch_up();
    if with(|state| state.sleep(cycles)).is_some() {
        suspend();
    }
}

/// Lets the next task in the queue run.
pub fn yield_now() {
    catch_up();
    if with(State::requeue).is_some() {
        suspend();
    }
}

/// Ends the run with a failure that the caller has found.
pub fn fail(message: impl Into<String>) {
    let reported = with(|state| {
        let (at, message) = (state.moment(), message.into());
        state.fail(Failure::Reported { at, message });
    });
    if reported.is_some() {
        suspend();
    }
}

/// Runs `work` on another CPU, ahead of the tasks in its queue, and waits for it: a remote call. It
/// interrupts what the CPU computes; a task in the kernel leaves it first.
///
/// Returns false, and runs nothing, where there is no such CPU, or where the caller cannot wait
/// because it is pinned, has interrupts masked or is in an interrupt. A caller that [may not
/// wait](atomically) ends the run.
pub fn run_on(cpu: usize, work: &mut dyn FnMut()) -> bool {
    if with(|state| state.running_task().atomic && state.cpu().interrupts == 0) == Some(true) {
        fail(format!(
            "makes a remote call to CPU {cpu}, but may not wait"
        ));
        return false;
    }
    let may = with(|state| state.cpu().is_preemptible() && cpu < state.cpus.len());
    if may == Some(false) {
        return false;
    }
    if may.is_none() || with(|state| state.running) == Some(cpu) {
        // Pinned, as a remote call is.
        pin();
        work();
        unpin();
        return true;
    }
    let done = Cell::new(false);
    let (work, done_here): (*mut dyn FnMut(), *const Cell<bool>) = (work, &raw const done);
    // SAFETY: only a lifetime is changed: the caller waits below until the remote call has run, so
    // what it points to is alive.
    let work: *mut (dyn FnMut() + 'static) = unsafe { transmute(work) };
    catch_up();
    with(|state| {
        let waiter = state.running_id();
        let id = state.add_task(
            format!("remote call of CPU {}", state.running),
            Affinity::Cpu(cpu),
        );
        state.tasks[id].remote_call = true;
        let body = move |exit: Exit| {
            with(|state| state.tasks[id].exit = Some(exit));
            pin();
            // SAFETY: as above, and nothing else runs it meanwhile.
            unsafe { (*work)() };
            unpin();
            // SAFETY: the waiter's stack is alive until this is true and it is woken.
            unsafe { (*done_here).set(true) };
            catch_up();
            with(|state| {
                let now = state.now();
                if state.tasks[waiter].stage == Stage::Waiting {
                    state.ready(waiter, now);
                }
            });
        };
        // SAFETY: it borrows nothing beyond the pointers above.
        let fiber = unsafe { Fiber::new(Box::new(body)) };
        state.new_fibers.push((id, fiber));
        let at = state.now() + state.setup.profile.ipi_cycles;
        state.push_urgent(cpu, id, at);
    });
    while !done.get() {
        if with(State::block).is_none() || std::thread::panicking() {
            break;
        }
        suspend();
    }
    true
}

impl State {
    /// Adds a task while the machine runs; the caller adds its fiber.
    fn add_task(&mut self, name: String, affinity: Affinity) -> TaskId {
        let id = self.tasks.len();
        self.tasks.push(Task::new(name, affinity));
        id
    }

    /// Makes the running CPU compute `most` instructions, or until its next tick. Returns the time
    /// at which it began, and how long an instruction takes, in percent of a cycle: as the other
    /// thread of the core is now.
    fn begin_computing(&mut self, most: u64) -> (u64, u64) {
        let random = self.is_random();
        let (percent, most) = (self.percent(), self.instructions(most));
        let cpu = self.cpu();
        let now = cpu.clock;
        let tick = cpu.next_tick.saturating_sub(now).max(1);
        cpu.spins = 0;
        cpu.computes_since = Some(now);
        cpu.clock += if random { most } else { most.min(tick) };
        (now, percent)
    }

    /// Ends what [`begin_computing`](Self::begin_computing) began. Returns how many instructions it
    /// computed, and whether the task must yield the CPU to another one.
    fn end_computing(&mut self, began: u64, percent: u64) -> (u64, bool) {
        let random = self.is_random();
        let (running, core, profile) = (self.running, self.core(), self.setup.profile);
        self.cpu().computes_since = None;
        let cycles = self.now() - began;
        self.account(running, cycles, Spent::User);
        // Rounded up, so that each call gets on.
        let done = (cycles * 100).div_ceil(percent);
        if let Some(memory) = &mut self.memory {
            memory.compute(core, done);
        }
        let now = self.now();
        if !random && now >= self.cpu().next_tick {
            self.cpu().next_tick += profile.cycles(profile.tick_ns).max(1);
            self.spend(profile.tick_cycles, Spent::Interrupt);
        }
        let called = self.must_yield();
        let cpu = self.cpu();
        let over = cpu.clock >= cpu.slice_end && !cpu.queue.is_empty();
        (done, called || over && cpu.is_preemptible())
    }

    /// Whether a remote call waits for the running CPU, and the running task must yield to it.
    fn must_yield(&mut self) -> bool {
        let is_remote_call = self.running_task().remote_call;
        let cpu = self.cpu();
        cpu.urgent && cpu.is_preemptible() && !is_remote_call
    }
}
