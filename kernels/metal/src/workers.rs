//! What tasks and interrupts do in a round: three workers a CPU on pages, one on objects, and one
//! task that takes ranges of memory away and gives them back.

use brickyard::{Frame, FrameRange, Order, Platform};
use brickyard_boot_test::{Dice, Figures, Finding, RangeChange, TaskPlan, Worker};

use crate::cpu::{Cpu, current_task};
use crate::platform::Machine;
use crate::scheduler::{self, InterruptKind};
use crate::system::{Slots, System};
use crate::task::{self, TASKS};
use crate::{arch, fail};

/// The workers on pages, for each CPU.
const WORKERS: usize = 3;

/// The room for requests of many frames.
const BULK: usize = 320;

/// One step in so many interrupts some CPU.
const STEPS_PER_POKE: u64 = 8;

/// Makes the tasks of a round for so many CPUs. Returns how many there are.
pub fn spawn<A: Slots>(cpus: usize) -> usize {
    let pages = WORKERS * cpus;
    let tasks = pages + cpus + 1;
    assert!(tasks <= TASKS, "{tasks} tasks");
    for id in 0..pages {
        task::spawn(id, worker::<A>);
    }
    for id in pages..pages + cpus {
        task::spawn(id, object_worker::<A>);
    }
    task::spawn(tasks - 1, range_worker::<A>);
    tasks
}

fn judge<R>(result: Result<R, Finding>) -> R {
    match result {
        Ok(done) => done,
        Err(finding) => fail(format_args!("{finding}")),
    }
}

/// Returns the plan of a worker. The seed says how much all of them together want: a half to twice
/// of what there is; and whether they ask for huge pages now and then, or most of the time.
fn plan<A: Slots>(system: &System<A>, id: usize) -> TaskPlan {
    let span = system.test.oracle.span();
    let wanted = span.len() * (1 + system.seed as usize % 4) / 2;
    TaskPlan {
        most_held: (wanted / (WORKERS * system.cpus)).max(Order::DEFAULT_MAX.frames()),
        limit: Some(span.start.plus(span.len() / 2)),
        huge_percent: if system.seed.is_multiple_of(3) { 50 } else { 2 },
        steps_per_flood: 8000,
        ..TaskPlan::new(system.seed).task(id as u16 + 1)
    }
}

extern "C" fn worker<A: Slots>(id: usize) -> ! {
    let system = A::system();
    let plan = plan(system, id);
    let mut dice = Dice::new(!plan.seed);
    let mut bulk = [Frame::new(0); BULK];
    let mut worker = Worker::new(system.test, plan);
    for _ in 0..system.steps {
        if !judge(worker.step(&mut bulk)) {
            break;
        }
        if dice.one_in(STEPS_PER_POKE) {
            scheduler::poke_some(system.cpus, dice.draw());
        }
    }
    system.done.tasks.add(&judge(worker.finish()));
    current_task().finish()
}

extern "C" fn object_worker<A: Slots>(id: usize) -> ! {
    let system = A::system();
    let mut dice = Dice::new(system.seed ^ (id as u64) << 24);
    system.caches.work(dice.draw(), 4 * system.steps, || {
        if dice.one_in(4 * STEPS_PER_POKE) {
            scheduler::poke_some(system.cpus, dice.draw());
        }
        !system.test.oracle.is_stopped()
    });
    current_task().finish()
}

/// Takes ranges away until the workers have mostly ended, one after the other.
extern "C" fn range_worker<A: Slots>(id: usize) -> ! {
    let system = A::system();
    let test = &system.test;
    let span = test.oracle.span();
    let mut dice = Dice::new(system.seed ^ !(id as u64));
    let mut figures = Figures::default();
    for _ in 0..system.steps / 100 {
        if test.oracle.is_stopped() {
            break;
        }
        figures += judge(test.refuse_range(Order::HUGE, id as u16 + 1));
        let change = RangeChange::ALL[dice.below(3) as usize];
        let start = span.start.plus(dice.below(span.len() as u64) as usize);
        // A few frames, or some page blocks.
        let most = if dice.one_in(2) { 64 } else { 2048 };
        let range = FrameRange::at(start, 1 + dice.below(most) as usize);
        let mut tries = 40;
        figures += judge(test.change_range(change, range, id as u16 + 1, || {
            arch::wait();
            tries -= 1;
            tries > 0
        }));
    }
    system.done.tasks.add(&figures);
    current_task().finish()
}

/// What every interrupt does, at any depth.
pub fn interrupt<A: Slots>(cpu: &'static Cpu, kind: InterruptKind) {
    let system = A::system();
    let found = arch::irq_save();
    let (seed, more) = (cpu.draw(), cpu.draw());
    arch::irq_restore(found);
    let figures = judge(system.test.interrupt(seed));
    match kind {
        InterruptKind::Timer => system.done.timers.add(&figures),
        InterruptKind::Poke => system.done.pokes.add(&figures),
    }
    if more & 3 == 0 {
        system.caches.interrupt(more >> 2);
    }
    if kind == InterruptKind::Timer && more >> 40 & 3 == 0 {
        scheduler::poke_some(system.cpus, more >> 44);
    }
    debug_assert!(Machine.cpu() == cpu.id.get(), "interrupts do not move");
}
