//! Charging an access, and what may come between two accesses: another CPU, an interrupt,
//! preemption.

use core::ops::Range;

use crate::engine::Timing;
use crate::failure::Failure;
use crate::seam::AccessKind;
use crate::state::{State, catch_up, suspend, with};
use crate::task::{Cpu, Spent, Watched};

/// The longest that a CPU waits for a write to the line it spins on before it polls again, in
/// cycles.
const PARKED_MOST: u64 = 50_000;

/// The parts of a cycle that instructions are charged in: thousandths of a percent.
const PARTS: u64 = 100_000;

/// Cycles between two polls of a condition that reads more than one line.
const PAUSE: u64 = 10;

/// The outcome of [`State::try_access`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// The access is charged, and can be made now.
    Charged,
    /// Another CPU goes first, something comes in between, or the run ends.
    Blocked,
}

/// Charges an access that the running task is about to make. Returns when it may be made, and
/// before any other CPU does anything. Returns false if no machine runs on this thread of the host.
#[inline]
pub(crate) fn charge(address: usize, kind: AccessKind) -> bool {
    let attempt = with(|state| state.try_access(address, kind));
    if attempt == Some(Attempt::Blocked) {
        charge_blocked(|state| state.regions.find(address), kind);
    }
    attempt.is_some()
}

/// Charges an access to memory that the host does not have, as [`charge`] does.
pub(crate) fn charge_unbacked(at: usize, kind: AccessKind) {
    charge_blocked(|_| Some(at), kind);
}

#[inline(never)]
fn charge_blocked(find: impl FnOnce(&mut State) -> Option<usize>, kind: AccessKind) {
    if with(State::is_disturbed) == Some(true) {
        disturb();
    }
    catch_up();
    let simulated = with(find).flatten();
    if with(|state| state.access(simulated, kind)) == Some(false) {
        suspend();
    }
}

/// Charges the clearing of memory that the host does not have, and that the caller has to itself.
pub(crate) fn clear(range: Range<usize>) {
    catch_up();
    with(|state| {
        let line_bytes = state.setup.profile.line_bytes;
        let first = (range.start / line_bytes) as u32;
        let end = range.end.div_ceil(line_bytes) as u32;
        state.accesses += u64::from(end - first);
        let (core, now) = (state.core(), state.now());
        let cycles = match &mut state.memory {
            Some(memory) => memory.clear(core, first..end, now),
            None => u64::from(end - first) * state.setup.profile.clear_line_cycles,
        };
        // Both threads of a core clear through its fill buffers.
        let cycles = if state.is_core_shared() {
            2 * cycles
        } else {
            cycles
        };
        state.spend(cycles, Spent::System);
    });
}

/// Runs the interrupt handler if an interrupt is due, else preempts the task where it may be.
#[cold]
fn disturb() {
    let handler = with(State::enter_interrupt).flatten();
    if let Some(handler) = handler {
        // SAFETY: the machine keeps the handler as long as it runs, and no borrow of the state is
        // held here.
        unsafe { (*handler)() };
        with(State::leave_interrupt);
        return;
    }
    catch_up();
    if with(State::preempt) == Some(true) {
        suspend();
    }
}

/// One pause of a running task that spins until another CPU does something.
pub(crate) fn spin() {
    if with(State::wait) == Some(true) {
        suspend();
        with(State::unpark);
    }
}

impl State {
    /// Charges the access at once where nothing comes before it.
    ///
    /// A CPU that is ahead of others by less than they need to fetch a line may still access lines
    /// in its own caches: what the others do meanwhile cannot take the lines away earlier. That
    /// saves the host most of its task switches.
    #[inline]
    fn try_access(&mut self, address: usize, kind: AccessKind) -> Attempt {
        if self.disturbed {
            return Attempt::Blocked;
        }
        let simulated = self.regions.find(address);
        if !self.is_earliest() {
            let (Some(at), Some(memory)) = (simulated, &self.memory) else {
                return Attempt::Blocked;
            };
            // What the other thread of a core does to its caches takes effect at once.
            let alone = self.cores == self.cpus.len();
            let near = alone && self.now() < self.horizon.0.saturating_add(self.reach);
            let line = (at / self.setup.profile.line_bytes) as u32;
            if !near || !memory.would_hit(self.core(), line, kind) {
                return Attempt::Blocked;
            }
        }
        if self.access(simulated, kind) {
            Attempt::Charged
        } else {
            Attempt::Blocked
        }
    }

    /// Whether an interrupt is due, or the task is to be preempted here.
    fn is_disturbed(&mut self) -> bool {
        let random = self.is_random();
        let cpu = &self.cpus[self.running];
        if cpu.masked || cpu.interrupts > 0 {
            return false;
        }
        let due = self.handler.is_some() && cpu.clock >= cpu.next_interrupt;
        due || (random && cpu.pins == 0 && self.dice.next() & 0x7f == 0)
    }

    /// Enters an interrupt, if one is due; returns its handler.
    fn enter_interrupt(&mut self) -> Option<*const (dyn Fn() + 'static)> {
        let handler = self.handler?;
        let now = self.now();
        if now < self.cpu().next_interrupt {
            return None;
        }
        let gap = 1 + self.dice.below(2 * handler.mean.max(1));
        let cpu = self.cpu();
        cpu.next_interrupt = now + gap;
        cpu.interrupts += 1;
        let cycles = self.setup.profile.mask_cycles;
        self.spend(cycles, Spent::Interrupt);
        Some(handler.run)
    }

    fn leave_interrupt(&mut self) {
        self.cpu().interrupts -= 1;
    }

    /// Puts the task back into the queue; returns false where it cannot be preempted.
    fn preempt(&mut self) -> bool {
        let may = self.cpu().is_preemptible();
        if may {
            self.requeue();
        }
        may
    }

    /// Charges an access; returns false where the run ends here.
    #[inline]
    fn access(&mut self, simulated: Option<usize>, kind: AccessKind) -> bool {
        self.accesses += 1;
        if self.accesses > self.setup.accesses_most {
            self.no_end();
            return false;
        }
        let count = self.count();
        count.steps.accesses += 1;
        if count.steps.all() > count.most {
            self.too_long();
            return false;
        }
        // What is left of a cycle is charged to a later access: nothing is rounded.
        let parts = self.setup.instructions_per_thousand * self.percent();
        let cpu = &mut self.cpus[self.running];
        cpu.parts += parts;
        let instructions = cpu.parts / PARTS;
        cpu.parts %= PARTS;
        let (core, now) = (self.core(), self.now());
        let cycles = match (simulated, &mut self.memory) {
            (None, _) => {
                self.unmapped += 1;
                instructions
            }
            (Some(at), Some(memory)) => {
                let line = (at / self.setup.profile.line_bytes) as u32;
                let cpu = &mut self.cpus[self.running];
                cpu.watched.touch(line);
                let cycles = memory.access(core, line, kind, now);
                if self.parked > 0 && kind != AccessKind::Load {
                    self.wake_parked(line, now + cycles);
                }
                instructions + cycles
            }
            (Some(_), None) => self.random_cycles() + self.stop_cycles(),
        };
        self.spend(cycles, Spent::System);
        true
    }

    #[cold]
    fn no_end(&mut self) {
        let (accesses, what) = (self.accesses, self.describe());
        self.fail(Failure::NoEnd { accesses, what });
    }

    #[cold]
    fn too_long(&mut self) {
        let most = self.count().most;
        self.fail(Failure::TooLong {
            at: self.moment(),
            most,
            what: self.describe(),
        });
    }

    /// Returns for how many cycles the CPU stops before this access: mostly 0.
    fn stop_cycles(&mut self) -> u64 {
        let Some(stops) = self.setup.stops else {
            return 0;
        };
        let now = self.now();
        let one_in = if self.cpu().is_preemptible() {
            stops.one_in
        } else {
            stops.one_in_pinned
        };
        let others = self.cpus.len() - 1;
        if !self.dice.chance(one_in) || self.stopped(now) >= others {
            return 0;
        }
        let more = stops.cycles_most.saturating_sub(stops.cycles_least).max(1);
        let cycles = stops.cycles_least + self.dice.below(more);
        self.cpu().stopped_until = now + cycles;
        self.stops += 1;
        cycles
    }

    /// Returns how many CPUs are stopped at this time.
    pub(crate) fn stopped(&self, time: u64) -> usize {
        let stopped = |cpu: &&Cpu| cpu.stopped_until > time;
        self.cpus.iter().filter(stopped).count()
    }

    /// Returns the random cost of an access: mostly one to four cycles, now and then many, rarely
    /// so many that the other CPUs get far ahead; multiplied by this CPU's present slowness.
    fn random_cycles(&mut self) -> u64 {
        let roll = self.dice.next();
        if roll & 0xff == 0 {
            // The CPU's speed changes, to between full speed and 1/64 of it.
            let slowness = 1 << self.dice.below(7);
            self.cpu().slowness = slowness;
        }
        let cycles = match (roll >> 8) & 0x3ff {
            0 => 1 + self.dice.below(20_000),
            1..=15 => 1 + self.dice.below(300),
            _ => 1 + ((roll >> 20) & 3),
        };
        cycles * self.cpu().slowness.max(1)
    }

    /// Makes the running CPU wait for another: until the line that it polls is written, if it polls
    /// one line only, else for a moment. Returns true where its task is to be suspended.
    fn wait(&mut self) -> bool {
        let count = self.count();
        count.steps.waits += 1;
        if count.steps.all() > count.most {
            self.too_long();
            return true;
        }
        let cpu = &mut self.cpus[self.running];
        cpu.spins += 1;
        let watched = core::mem::take(&mut cpu.watched);
        if self.setup.timing == Timing::Random {
            let cycles = 1 + self.dice.below(100) * self.cpu().slowness.max(1);
            self.spend(cycles, Spent::System);
            return false;
        }
        if let (Watched::Line(line), Some(memory)) = (watched, &self.memory)
            && memory.holds(self.core(), line)
        {
            let cpu = &mut self.cpus[self.running];
            cpu.parked = Some((line, cpu.clock));
            cpu.clock += PARKED_MOST;
            self.parked += 1;
            return true;
        }
        self.spend(PAUSE, Spent::System);
        false
    }

    /// Ends the wait for a write to a line, and accounts it.
    fn unpark(&mut self) {
        let running = self.running;
        if let Some((_, since)) = self.cpu().parked.take() {
            self.parked -= 1;
            let waited = self.now() - since;
            self.account(running, waited, Spent::System);
        }
    }

    /// Ends the wait of the CPUs that wait for a write to `line`, at the time `written`.
    fn wake_parked(&mut self, line: u32, written: u64) {
        for number in 0..self.cpus.len() {
            let cpu = &mut self.cpus[number];
            let Some((watched, since)) = cpu.parked else {
                continue;
            };
            let at = written.max(since);
            if watched == line && at < cpu.clock {
                cpu.clock = at;
                self.comes_at(at, number);
            }
        }
    }
}
