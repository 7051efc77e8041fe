//! Setting up a machine, giving it tasks, running them to their end, and the result.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::failure::Failure;
use crate::fiber::{Exit, Fiber, Turn};
use crate::footprint::Footprint;
use crate::memory::{CacheSystem, Traffic};
use crate::order::HappensBefore;
use crate::profile::Profile;
use crate::region::{Regions, Spread, Unbacked};
use crate::state::{Handler, NEVER, Running, State, catch_up, with};
use crate::task::{Affinity, Cpu, CpuTimes, Stage, Task, TaskId, TaskTimes};
use brickyard_run::Dice;

use crate::MOST_CPUS;

/// What an access costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// What the simulated caches make it cost.
    Caches,
    /// Random cycles, on CPUs of random speed: each seed gives another schedule.
    Random,
}

/// Whether the machine checks that accesses to guarded words are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// No checks.
    Off,
    /// Two unordered accesses to a guarded word, of which one writes, end the run.
    Races,
}

/// Long stops of CPUs, as those of virtual CPUs whose host has other work.
///
/// A CPU can stop at any shared access. Until it continues it takes no interrupt, and its task
/// cannot be taken from it. At least one CPU always runs. Only where time is
/// [random](Timing::Random).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stops {
    /// A CPU that is pinned or has interrupts masked stops at one access in this many.
    pub one_in_pinned: u64,
    /// Any other CPU stops at one access in this many.
    pub one_in: u64,
    /// Shortest stop, in cycles.
    pub cycles_least: u64,
    /// Longest stop, in cycles, exclusive.
    pub cycles_most: u64,
}

/// The configuration of a machine.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Which machine.
    pub profile: &'static Profile,
    /// How many CPUs it has, 1 to 256.
    pub cpus: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// What an access costs.
    pub timing: Timing,
    /// What is checked.
    pub watch: Watch,
    /// What computing displaces from the caches; none if it displaces nothing.
    pub footprint: Option<Footprint>,
    /// Instructions around a thousand shared accesses, at a cycle each, spread evenly over them.
    pub instructions_per_thousand: u64,
    /// The run fails after this many accesses.
    pub accesses_most: u64,
    /// Long stops of CPUs, if there are any.
    pub stops: Option<Stops>,
}

impl Setup {
    /// A machine of this profile, with accesses charged by its caches, no checks and no limit.
    #[must_use]
    pub const fn new(profile: &'static Profile, cpus: usize, seed: u64) -> Self {
        Self {
            profile,
            cpus,
            seed,
            timing: Timing::Caches,
            watch: Watch::Off,
            footprint: None,
            instructions_per_thousand: 1000,
            accesses_most: u64::MAX,
            stops: None,
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// When the last task ended.
    pub cycles: u64,
    /// What each CPU did.
    pub cpus: Vec<CpuTimes>,
    /// What each core's accesses found, those of both its threads; empty where time is random.
    pub traffic: Vec<Traffic>,
    /// When each task ran, in the order in which they were added.
    pub tasks: Vec<TaskTimes>,
    /// Shared accesses.
    pub accesses: u64,
    /// Those of them to memory that was not mapped, which cost only their instructions.
    pub unmapped: u64,
    /// How often the host switched from one task to another.
    pub switches: u64,
    /// How often a CPU was stopped, see [`Setup::stops`].
    pub stops: u64,
}

impl Ended {
    /// Returns the sum of all cores' traffic.
    #[must_use]
    pub fn all_traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        for &of_cpu in &self.traffic {
            sum += of_cpu;
        }
        sum
    }
}

/// A machine that does not run yet.
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
            Timing::Caches => {
                let memory =
                    CacheSystem::new(setup.profile, setup.profile.cores(setup.cpus), memory_seed);
                Some(match setup.footprint {
                    Some(footprint) => memory.with_footprint(footprint),
                    None => memory,
                })
            }
            Timing::Random => None,
        };
        let order = match setup.watch {
            Watch::Races => Some(HappensBefore::new(setup.cpus)),
            Watch::Off => None,
        };
        let tick = setup.profile.cycles(setup.profile.tick_ns);
        let cpus = (0..setup.cpus as u64).map(|number| Cpu {
            // Ticks are spread evenly over the CPUs.
            next_tick: tick * (number + 1) / setup.cpus as u64,
            ..Cpu::default()
        });
        Self {
            state: Box::new(State {
                setup,
                cores: setup.profile.cores(setup.cpus),
                cpus: cpus.collect(),
                running: 0,
                on_host: 0,
                horizon: NEVER,
                tasks: Vec::new(),
                timers: Default::default(),
                timers_set: 0,
                new_fibers: Vec::new(),
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

    /// Maps `bytes` of the host's memory from `first` on, at the machine's next free page. Accesses
    /// to memory that is not mapped cost only their instructions; [`Ended::unmapped`] counts them.
    ///
    /// # Panics
    /// If `first` is not aligned to a page of 4 KiB, or the memory is mapped already.
    pub fn map(&mut self, first: *const u8, bytes: usize) {
        self.state.regions.add(first.addr(), bytes);
        self.grow();
    }

    /// Reserves `bytes` of the machine's memory from its next free page on, which the host does not
    /// have: only its lines are simulated, and only those take memory that are accessed.
    pub fn reserve(&mut self, bytes: usize) -> Unbacked {
        let reserved = self.state.regions.reserve(bytes);
        self.grow();
        reserved
    }

    /// Gives the elements of an array in mapped memory places of their own in `over`: element `i`
    /// at `i * array.apart`. What the array had in the machine before is not accessed any more.
    ///
    /// # Panics
    /// If the elements would overlap, or `over` is too small for them.
    pub fn spread(&mut self, array: Spread, over: Unbacked) {
        self.state.regions.spread(array, over);
    }

    /// Makes lines of all memory.
    fn grow(&mut self) {
        let lines = self.state.regions.bytes() / self.state.setup.profile.line_bytes;
        if let Some(memory) = &mut self.state.memory {
            memory.grow(lines);
        }
    }

    /// Adds a task that is ready when the machine begins. Returns its number.
    ///
    /// # Panics
    /// If the affinity is to a CPU that the machine does not have.
    pub fn task(
        &mut self,
        name: impl Into<String>,
        affinity: Affinity,
        body: impl FnOnce() + 'a,
    ) -> usize {
        if let Affinity::Cpu(cpu) = affinity {
            assert!(
                cpu < self.state.cpus.len(),
                "a task is bound to CPU {cpu}, which the machine does not have"
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

    /// Interrupts each CPU that runs a task at random, every `mean` cycles on average, between two
    /// accesses and only where interrupts are not masked.
    pub fn interrupts(&mut self, mean: u64, handler: impl Fn() + 'a) {
        self.handler = Some((mean, Box::new(handler)));
    }

    /// Runs all tasks to their end.
    ///
    /// # Errors
    /// [`Failure`] where the run does not complete. What was on the tasks' stacks is then leaked.
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

/// Runs turn after turn, the earliest CPU first, until all tasks have ended or one has failed.
fn turns(fibers: &mut Vec<Option<Fiber>>) -> Result<(), Failure> {
    loop {
        match with(State::next_turn).flatten() {
            None => return Ok(()),
            Some(Next::Fails(failure)) => return Err(failure),
            Some(Next::Task(id)) => {
                let new_fibers = with(|state| core::mem::take(&mut state.new_fibers));
                for (id, fiber) in new_fibers.into_iter().flatten() {
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
        .expect("a task that has not ended has its fiber");
    match catch_unwind(AssertUnwindSafe(|| fiber.resume())) {
        Ok(Turn::Suspended) => {}
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
        .unwrap_or_else(|| "a value that is not a string".to_owned())
}

/// The next turn.
enum Next {
    Task(TaskId),
    Fails(Failure),
}

impl State {
    /// Fires all timers that are due, then chooses the earliest CPU with a task. Returns `None`
    /// once all tasks have ended.
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
                    return (!over).then(|| Next::Fails(Failure::Deadlock(self.describe())));
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
        let traffic = (0..self.cores).filter_map(|core| Some(memory?.traffic(core)));
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
