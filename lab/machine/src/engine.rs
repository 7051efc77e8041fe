//! A machine from its making to its end: tasks are given to it, it runs them, and tells what came
//! of it.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::failure::Failure;
use crate::fiber::{Exit, Fiber, Turn};
use crate::memory::{Memory, Traffic};
use crate::order::HappensBefore;
use crate::profile::Profile;
use crate::region::Regions;
use crate::state::{Handler, NEVER, Running, State, catch_up, with};
use crate::task::{Affinity, Cpu, CpuTimes, Stage, Task, TaskId, TaskTimes};
use crate::{Dice, MOST_CPUS};

/// What an access costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// What the caches say.
    Caches,
    /// Random cycles, on CPUs of random speed: each seed is another schedule.
    Random,
}

/// Whether the machine watches who has seen what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// It does not.
    Off,
    /// A guarded word that two CPUs touch with nothing in between that orders them ends the run.
    Races,
}

/// CPUs that stand still for long, as those of a virtual machine do whose host has other work.
///
/// A CPU stops at a shared access, wherever that is: no interrupt comes to it and nobody takes its
/// task from it until it goes on. One CPU at least always goes on. Only where time is
/// [random](Timing::Random).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stops {
    /// One access in so many, while the CPU is pinned or has its interrupts masked.
    pub one_in_pinned: u64,
    /// One in so many elsewhere.
    pub one_in: u64,
    /// For so many cycles at least.
    pub cycles_least: u64,
    /// For less than so many.
    pub cycles_most: u64,
}

/// A machine's making.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Which machine.
    pub profile: &'static Profile,
    /// How many CPUs it has, 1 to 256.
    pub cpus: usize,
    /// What all chance comes from.
    pub seed: u64,
    /// What an access costs.
    pub timing: Timing,
    /// What is watched.
    pub watch: Watch,
    /// Instructions that stand between two shared accesses, a cycle each.
    pub instructions_per_access: u64,
    /// The run fails after so many accesses.
    pub accesses_most: u64,
    /// Whether CPUs stand still for long.
    pub stops: Option<Stops>,
}

impl Setup {
    /// A machine of this profile, its accesses charged by its caches; no watch, no limit.
    #[must_use]
    pub const fn new(profile: &'static Profile, cpus: usize, seed: u64) -> Self {
        Self {
            profile,
            cpus,
            seed,
            timing: Timing::Caches,
            watch: Watch::Off,
            instructions_per_access: 1,
            accesses_most: u64::MAX,
            stops: None,
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When the last task ended.
    pub cycles: u64,
    /// What each CPU did.
    pub cpus: Vec<CpuTimes>,
    /// What each CPU's accesses met; empty where time is random.
    pub traffic: Vec<Traffic>,
    /// When each task ran, in the order in which they came.
    pub tasks: Vec<TaskTimes>,
    /// Shared accesses.
    pub accesses: u64,
    /// Those of them to memory that was not mapped, and cost nothing.
    pub unmapped: u64,
    /// How often the host went from one task to another.
    pub switches: u64,
    /// How often a CPU was stopped, see [`Setup::stops`].
    pub stops: u64,
}

impl Ended {
    /// What all CPUs asked of the memory.
    #[must_use]
    pub fn all_traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        for &of_cpu in &self.traffic {
            sum += of_cpu;
        }
        sum
    }
}

/// A machine that has not begun.
pub struct Machine<'a> {
    state: Box<State>,
    fibers: Vec<Option<Fiber>>,
    handler: Option<(u64, Box<dyn Fn() + 'a>)>,
}

impl core::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Machine")
            .field("setup", &self.state.setup)
            .field("tasks", &self.fibers.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Machine<'a> {
    /// A machine without tasks.
    ///
    /// # Panics
    /// Without CPUs, or with more than [`MOST_CPUS`].
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        assert!(
            (1..=MOST_CPUS).contains(&setup.cpus),
            "a machine has 1 to 256 CPUs"
        );
        let mut dice = Dice::new(setup.seed);
        let memory_seed = dice.next();
        let memory = match setup.timing {
            Timing::Caches => Some(Memory::new(setup.profile, setup.cpus, memory_seed)),
            Timing::Random => None,
        };
        let order = match setup.watch {
            Watch::Races => Some(HappensBefore::new(setup.cpus)),
            Watch::Off => None,
        };
        let tick = setup.profile.cycles(setup.profile.tick_ns);
        let cpus = (0..setup.cpus as u64).map(|number| Cpu {
            // Not all at once.
            next_tick: tick * (number + 1) / setup.cpus as u64,
            ..Cpu::default()
        });
        Self {
            state: Box::new(State {
                setup,
                cpus: cpus.collect(),
                running: 0,
                on_host: 0,
                horizon: NEVER,
                tasks: Vec::new(),
                timers: Default::default(),
                timers_set: 0,
                newcomers: Vec::new(),
                memory,
                order,
                regions: Regions::default(),
                dice,
                parked: 0,
                handler: None,
                disturbed: setup.timing == Timing::Random,
                reach: setup
                    .profile
                    .upgrade_cycles
                    .min(setup.profile.transfer_cycles),
                failure: None,
                accesses: 0,
                unmapped: 0,
                switches: 0,
                stops: 0,
            }),
            fibers: Vec::new(),
            handler: None,
        }
    }

    /// `bytes` of the host's memory from `first` on are memory of the machine, from its next page
    /// on. Accesses elsewhere cost nothing; [`Ended::unmapped`] counts them.
    ///
    /// # Panics
    /// If `first` does not begin a page of 4 KiB, or the memory is mapped already.
    pub fn map(&mut self, first: *const u8, bytes: usize) {
        self.state.regions.add(first.addr(), bytes);
        let lines = self.state.regions.bytes() / self.state.setup.profile.line_bytes;
        if let Some(memory) = &mut self.state.memory {
            memory.grow(lines);
        }
    }

    /// A task that is ready when the machine begins. Returns its number.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn task(
        &mut self,
        name: impl Into<String>,
        affinity: Affinity,
        body: impl FnOnce() + 'a,
    ) -> usize {
        if let Affinity::Cpu(cpu) = affinity {
            assert!(
                cpu < self.state.cpus.len(),
                "a task for a CPU that is there"
            );
        }
        let id = self.fibers.len();
        self.state.tasks.push(Task::new(name.into(), affinity));
        let body = move |exit: Exit| {
            with(|state| state.tasks[id].exit = Some(exit));
            body();
            catch_up();
        };
        // SAFETY: what the body borrows lives for 'a, and `run`, or dropping the machine, ends all
        // fibers before that.
        self.fibers
            .push(Some(unsafe { Fiber::new(Box::new(body)) }));
        id
    }

    /// Each CPU that runs a task is interrupted at random, every `mean` cycles on average, where
    /// interrupts are not masked: between two accesses.
    pub fn interrupts(&mut self, mean: u64, handler: impl Fn() + 'a) {
        self.handler = Some((mean, Box::new(handler)));
    }

    /// Runs all tasks to their end.
    ///
    /// # Errors
    /// [`Failure`] where they do not come to it. What was on the tasks' stacks is then leaked.
    ///
    /// # Panics
    /// If a machine runs on this thread of the host already.
    pub fn run(mut self) -> Result<Ended, Failure> {
        if let Some((mean, handler)) = &self.handler {
            let run: *const (dyn Fn() + 'a) = &raw const **handler;
            // SAFETY: only a lifetime is changed; the state with the pointer in it is gone before
            // the handler is.
            let run: *const (dyn Fn() + 'static) = unsafe { core::mem::transmute(run) };
            self.state.handler = Some(Handler { run, mean: *mean });
            self.state.disturbed = true;
            for cpu in 0..self.state.cpus.len() {
                self.state.cpus[cpu].next_interrupt = self.state.dice.below(2 * mean.max(&1));
            }
        }
        for id in 0..self.fibers.len() {
            self.state.ready(id, 0);
        }
        let running = Running::begin(self.state);
        let outcome = turns(&mut self.fibers);
        for fiber in self.fibers.drain(..).flatten() {
            fiber.abandon();
        }
        let ended = with(|state| state.ended());
        drop(running);
        outcome.map(|()| ended.expect("the state is there until `running` is dropped"))
    }
}

/// Turn after turn, the earliest CPU first.
fn turns(fibers: &mut Vec<Option<Fiber>>) -> Result<(), Failure> {
    loop {
        match with(State::next_turn).flatten() {
            None => return Ok(()),
            Some(Next::Fails(failure)) => return Err(failure),
            Some(Next::Task(id)) => {
                let newcomers = with(|state| core::mem::take(&mut state.newcomers));
                for (id, fiber) in newcomers.into_iter().flatten() {
                    fibers.resize_with(fibers.len().max(id + 1), || None);
                    fibers[id] = Some(fiber);
                }
                turn(fibers, id)?;
            }
        }
    }
}

fn turn(fibers: &mut [Option<Fiber>], id: TaskId) -> Result<(), Failure> {
    with(|state| state.on_host = id);
    let fiber = fibers[id]
        .as_mut()
        .expect("a task that is not over has its fiber");
    match catch_unwind(AssertUnwindSafe(|| fiber.go_on())) {
        Ok(Turn::Left) => {}
        Ok(Turn::Done) => {
            with(State::finish);
            if let Some(done) = fibers[id].take() {
                done.abandon();
            }
        }
        Err(panic) => {
            with(|state| {
                let (at, message) = (state.moment(), message_of(&*panic));
                state.fail(Failure::Panicked { at, message });
            });
        }
    }
    match with(|state| state.failure.take()).flatten() {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "something that is no text".to_owned())
}

/// What comes next.
enum Next {
    Task(TaskId),
    Fails(Failure),
}

impl State {
    /// The earliest CPU with a task, once all timers before it have fired. Nothing where all tasks
    /// are over.
    fn next_turn(&mut self) -> Option<Next> {
        loop {
            let timer = self.timers.peek().map(|timer| timer.0.0);
            let next = self.earliest();
            match (next, timer) {
                (Some((cpu, _)), Some(time)) if time <= self.cpus[cpu].clock => self.fire(),
                (Some((cpu, second)), timer) => {
                    self.running = cpu;
                    self.horizon = second.min(timer.map_or(NEVER, |time| (time, 0)));
                    return self.cpus[cpu].current.map(Next::Task);
                }
                (None, Some(_)) => self.fire(),
                (None, None) => {
                    let over = self.tasks.iter().all(|task| task.stage == Stage::Done);
                    return (!over).then(|| Next::Fails(Failure::Stuck(self.describe())));
                }
            }
        }
    }

    fn ended(&mut self) -> Ended {
        let cycles = self.tasks.iter().map(|task| task.times.ended).max();
        let cycles = cycles.unwrap_or(0);
        let cpus = self.cpus.iter().map(|cpu| CpuTimes {
            idle: cpu.times.idle + cycles.saturating_sub(cpu.clock),
            ..cpu.times
        });
        let memory = self.memory.as_ref();
        let traffic = (0..self.cpus.len()).filter_map(|cpu| Some(memory?.traffic(cpu)));
        Ended {
            cycles,
            cpus: cpus.collect(),
            traffic: traffic.collect(),
            tasks: self.tasks.iter().map(|task| task.times.clone()).collect(),
            accesses: self.accesses,
            unmapped: self.unmapped,
            switches: self.switches,
            stops: self.stops,
        }
    }
}
