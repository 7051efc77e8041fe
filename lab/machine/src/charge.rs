//! What an access costs, and what may come between two accesses: another CPU, an interrupt,
//! preemption.

use crate::engine::Timing;
use crate::failure::Failure;
use crate::seam::AccessKind;
use crate::state::{State, catch_up, suspend, with};
use crate::task::{Cpu, Spent, Watched};

/// Cycles that a CPU waits for a write to the line it spins on before it looks again by itself.
const PARKED_MOST: u64 = 50_000;

/// Cycles of a pause between two looks at something that takes more than one line to see.
const PAUSE: u64 = 10;

/// How an access can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is charged, and can be made now.
    Free,
    /// Others go first, or something comes in between.
    Blocked,
}

/// An access is about to be made by the running task. Returns when it may be made, and before any
/// other CPU does anything.
#[inline]
pub(crate) fn charge(address: usize, kind: AccessKind) {
    if with(|state| state.try_access(address, kind)) != Some(Way::Blocked) {
        return;
    }
    blocked(address, kind);
}

#[inline(never)]
fn blocked(address: usize, kind: AccessKind) {
    if with(State::is_disturbed) == Some(true) {
        disturb();
    }
    catch_up();
    let simulated = with(|state| state.regions.find(address)).flatten();
    if with(|state| state.access(simulated, kind)) == Some(false) {
        suspend();
    }
}

/// An interrupt comes, or the task is taken from its CPU.
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

/// The running task waits for another CPU.
pub(crate) fn spin() {
    if with(State::wait) == Some(true) {
        suspend();
        with(State::unpark);
    }
}

impl State {
    /// Makes the access at once where nothing comes before it.
    ///
    /// A CPU that is ahead of others by less than it takes them to get hold of a line may go on
    /// with lines that lie in its own caches: what the others do meanwhile cannot reach it earlier.
    /// That spares the host most of its switches.
    #[inline]
    fn try_access(&mut self, address: usize, kind: AccessKind) -> Way {
        if self.disturbed {
            return Way::Blocked;
        }
        let simulated = self.regions.find(address);
        if !self.is_earliest() {
            let (Some(at), Some(memory)) = (simulated, &self.memory) else {
                return Way::Blocked;
            };
            let near = self.now() < self.horizon.0.saturating_add(self.reach);
            let line = (at / self.setup.profile.line_bytes) as u32;
            if !near || !memory.would_hit(self.running, line, kind) {
                return Way::Blocked;
            }
        }
        if self.access(simulated, kind) {
            Way::Free
        } else {
            Way::Blocked
        }
    }

    fn is_disturbed(&mut self) -> bool {
        let random = self.is_random();
        let cpu = &self.cpus[self.running];
        if cpu.masked || cpu.interrupts > 0 {
            return false;
        }
        let due = self.handler.is_some() && cpu.clock >= cpu.next_interrupt;
        due || (random && cpu.pins == 0 && self.dice.next() & 0x7f == 0)
    }

    /// The handler, if an interrupt is due.
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

    /// Takes the task from its CPU; false where that cannot be.
    fn preempt(&mut self) -> bool {
        let may = self.cpu().is_preemptible();
        if may {
            self.requeue();
        }
        may
    }

    /// Charges an access; false where the run ends here.
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
        let instructions = self.setup.instructions_per_access;
        let now = self.now();
        let cycles = match (simulated, &mut self.memory) {
            (None, _) => {
                self.unmapped += 1;
                instructions
            }
            (Some(at), Some(memory)) => {
                let line = (at / self.setup.profile.line_bytes) as u32;
                let cpu = &mut self.cpus[self.running];
                cpu.watched.touch(line);
                let cycles = memory.access(self.running, line, kind, now);
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

    /// For how long the CPU stands still before this access; mostly it does not.
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

    /// How many CPUs stand still at this time.
    pub(crate) fn stopped(&self, time: u64) -> usize {
        let stopped = |cpu: &&Cpu| cpu.stopped_until > time;
        self.cpus.iter().filter(stopped).count()
    }

    /// Mostly a cycle, now and then many, rarely so many that the CPU stands still while all others
    /// work; all of it by how slow this CPU is just now.
    fn random_cycles(&mut self) -> u64 {
        let roll = self.dice.next();
        if roll & 0xff == 0 {
            // Priorities change: each CPU between full speed and 1/64 of it.
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

    /// The running CPU waits: until the line that it looked at is written, if it looked at one
    /// only. True where it is to be left until then.
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
            && memory.holds(self.running, line)
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

    fn unpark(&mut self) {
        let running = self.running;
        if let Some((_, since)) = self.cpu().parked.take() {
            self.parked -= 1;
            let waited = self.now() - since;
            self.account(running, waited, Spent::System);
        }
    }

    /// CPUs that wait for a write to `line` look again once it is written.
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
