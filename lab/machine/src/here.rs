//! What a task asks of the machine that it runs on.
//!
//! Where no machine runs on this thread of the host, there is one CPU, time stands still, and
//! nobody waits.

use core::cell::Cell;
use core::mem::transmute;

use crate::failure::Failure;
use crate::fiber::{Exit, Fiber};
use crate::state::{State, catch_up, suspend, with};
use crate::task::{Affinity, Spent, Stage, Steps, Task, TaskId};

/// Does the caller run on a simulated machine?
#[must_use]
pub fn is_simulated() -> bool {
    with(|_| ()).is_some()
}

/// The CPU that runs the caller.
#[inline]
#[must_use]
pub fn cpu() -> usize {
    with(|state| state.running).unwrap_or(0)
}

/// How many CPUs there are.
#[must_use]
pub fn cpus() -> usize {
    with(|state| state.cpus.len()).unwrap_or(1)
}

/// The caller's own number, in the order in which tasks came.
#[must_use]
pub fn task() -> usize {
    with(|state| state.running_id()).unwrap_or(0)
}

/// Cycles since the machine began.
#[inline]
#[must_use]
pub fn now() -> u64 {
    with(|state| state.now()).unwrap_or(0)
}

/// So many instructions of the kernel, a cycle each.
#[inline]
pub fn work(instructions: u64) {
    with(|state| state.spend(instructions, Spent::System));
}

/// So many cycles as a user: the task may be preempted meanwhile, and the ticks of the clock come
/// out of it.
pub fn compute(cycles: u64) {
    let mut left = cycles;
    while left > 0 {
        // An errand may have come since it computed last.
        while with(|state| state.is_called_away()) == Some(true) {
            yield_now();
        }
        let Some(chunk) = with(|state| state.begin_computing(left)) else {
            return;
        };
        catch_up();
        let Some((done, away)) = with(|state| state.end_computing(chunk)) else {
            return;
        };
        left -= done;
        if away {
            yield_now();
        }
        if std::thread::panicking() {
            return;
        }
    }
}

/// Keeps the caller on its CPU until [`unpin`]; nests. Returns the CPU.
#[inline]
pub fn pin() -> usize {
    with(|state| {
        state.cpu().pins += 1;
        state.running
    })
    .unwrap_or(0)
}

/// Ends a [`pin`]. Where another CPU has an errand for this one, it is run now.
#[inline]
pub fn unpin() {
    let away = with(|state| {
        let cpu = state.cpu();
        debug_assert!(cpu.pins > 0, "unpinned more often than pinned");
        cpu.pins -= 1;
        state.is_called_away()
    });
    if away == Some(true) {
        yield_now();
    }
}

/// Keeps interrupts away from this CPU. Returns whether they were kept away already, for
/// [`restore`].
#[inline]
pub fn mask() -> bool {
    with(|state| {
        let cycles = state.setup.profile.mask_cycles;
        state.spend(cycles, Spent::System);
        core::mem::replace(&mut state.cpu().masked, true)
    })
    .unwrap_or(false)
}

/// Back to what [`mask`] found.
#[inline]
pub fn restore(found: bool) {
    with(|state| {
        debug_assert!(state.cpu().masked, "restored without a mask");
        state.cpu().masked = found;
    });
}

/// What the caller has done so far: the task, or in an interrupt all interrupts of its CPU.
#[must_use]
pub fn steps() -> Steps {
    with(|state| state.count().steps).unwrap_or_default()
}

/// Runs `work`, in which the caller may take so many [steps](Steps) at most, whatever others do
/// meanwhile: one more ends the run. What an errand does on another CPU is not counted.
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

/// Runs `work` in a task that may not wait while it lasts: where it sleeps, or sends another CPU on
/// an errand, the run ends.
pub fn atomically<R>(work: impl FnOnce() -> R) -> R {
    let set = |atomic| {
        with(|state| core::mem::replace(&mut state.running_task().atomic, atomic)).unwrap_or(false)
    };
    let before = set(true);
    let result = work();
    set(before);
    result
}

/// How many CPUs stand still just now, and how often one was stopped so far.
#[must_use]
pub fn stopped() -> (usize, u64) {
    with(|state| (state.stopped(state.now()), state.stops)).unwrap_or((0, 0))
}

/// Does the caller run in an interrupt, or with interrupts masked?
#[inline]
#[must_use]
pub fn in_interrupt() -> bool {
    with(|state| {
        let cpu = state.cpu();
        cpu.masked || cpu.interrupts > 0
    })
    .unwrap_or(false)
}

/// Waits for the disk: it always takes as long.
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

/// Ends the run with what the caller has found.
pub fn fail(message: impl Into<String>) {
    let told = with(|state| {
        let (at, message) = (state.moment(), message.into());
        state.fail(Failure::Told { at, message });
    });
    if told.is_some() {
        suspend();
    }
}

/// Runs `work` on another CPU, before its tasks go on, and waits for it. The CPU is called away
/// from what it computes; in the kernel it finishes first.
///
/// False, and nothing run, where there is no such CPU, or the caller cannot wait: it is pinned or
/// in an interrupt. Who has said that it [may not wait](atomically) ends the run.
pub fn run_on(cpu: usize, work: &mut dyn FnMut()) -> bool {
    if with(|state| state.running_task().atomic && state.cpu().interrupts == 0) == Some(true) {
        fail(format!("sends CPU {cpu} on an errand, and may not wait"));
        return false;
    }
    let may = with(|state| state.cpu().is_preemptible() && cpu < state.cpus.len());
    if may == Some(false) {
        return false;
    }
    if may.is_none() || with(|state| state.running) == Some(cpu) {
        // As it would be as an errand.
        pin();
        work();
        unpin();
        return true;
    }
    let done = Cell::new(false);
    let (work, done_here): (*mut dyn FnMut(), *const Cell<bool>) = (work, &raw const done);
    // SAFETY: only a lifetime is changed: the caller waits below until the errand has run, so what
    // it points to is there.
    let work: *mut (dyn FnMut() + 'static) = unsafe { transmute(work) };
    catch_up();
    with(|state| {
        let waiter = state.running_id();
        let id = state.newcomer(
            format!("errand of CPU {}", state.running),
            Affinity::Cpu(cpu),
        );
        state.tasks[id].errand = true;
        let body = move |exit: Exit| {
            with(|state| state.tasks[id].exit = Some(exit));
            pin();
            // SAFETY: as above, and nobody else runs it meanwhile.
            unsafe { (*work)() };
            unpin();
            // SAFETY: the waiter's stack is there until this is true and it is woken.
            unsafe { (*done_here).set(true) };
            catch_up();
            with(|state| {
                let now = state.now();
                if state.tasks[waiter].stage == Stage::Waiting {
                    state.ready(waiter, now);
                }
            });
        };
        // SAFETY: it borrows nothing but what the pointers above answer for.
        let fiber = unsafe { Fiber::new(Box::new(body)) };
        state.newcomers.push((id, fiber));
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
    /// A task that comes while the machine runs; its fiber is to follow.
    fn newcomer(&mut self, name: String, affinity: Affinity) -> TaskId {
        let id = self.tasks.len();
        self.tasks.push(Task::new(name, affinity));
        id
    }

    /// The running CPU computes for `most` cycles, or until its next tick. Returns when it began.
    fn begin_computing(&mut self, most: u64) -> u64 {
        let random = self.is_random();
        let cpu = self.cpu();
        let now = cpu.clock;
        let tick = cpu.next_tick.saturating_sub(now).max(1);
        cpu.spins = 0;
        cpu.computes_since = Some(now);
        cpu.clock += if random { most } else { most.min(tick) };
        now
    }

    /// It has; says for how many cycles, and whether the task must leave the CPU to another one.
    fn end_computing(&mut self, began: u64) -> (u64, bool) {
        let random = self.is_random();
        let (running, profile) = (self.running, self.setup.profile);
        self.cpu().computes_since = None;
        let done = self.now() - began;
        self.account(running, done, Spent::User);
        let now = self.now();
        if !random && now >= self.cpu().next_tick {
            self.cpu().next_tick += profile.cycles(profile.tick_ns).max(1);
            self.spend(profile.tick_cycles, Spent::Interrupt);
        }
        let called = self.is_called_away();
        let cpu = self.cpu();
        let over = cpu.clock >= cpu.slice_end && !cpu.queue.is_empty();
        (done, called || over && cpu.is_preemptible())
    }

    /// Does an errand wait for the running CPU, which what runs there makes room for?
    fn is_called_away(&mut self) -> bool {
        let is_errand = self.running_task().errand;
        let cpu = self.cpu();
        cpu.urgent && cpu.is_preemptible() && !is_errand
    }
}
