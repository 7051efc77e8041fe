//! CPUs on one thread, each of which can be stopped before any atomic access.
//!
//! A party is one CPU, task or interrupt that executes calls of the allocator, on a stack of its
//! own. The first party runs until it reaches its stopping point, then the next one does. When the
//! last has come to its own, the first goes on to its end, then the next. So two parties and two
//! numbers are one interleaving with two switches.

use core::cell::{Cell, RefCell};
use core::ptr::{self, NonNull};

use brickyard::{Frame, InterruptState, Platform};
use brickyard_machine::seam::before_each_access;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// The most parties, and the number of the one that sets up and checks, which nobody stops.
pub(crate) const PARTIES: usize = 64;
const OBSERVER: usize = PARTIES;

/// A call that makes more accesses than this has no end.
const ACCESSES_MOST: u64 = 4_000_000;

/// The stopping point of a party that is not stopped.
pub(crate) const NEVER: u64 = u64::MAX;

/// The bytes of a frame.
pub(crate) const FRAME_SHIFT: u32 = 12;

/// Who the parties after the first are to it, and what stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Other CPUs. A CPU that waits lets the others run.
    Cpus,
    /// Other CPUs, for which the first stands still until they are done.
    Stands,
    /// Tasks of a higher priority on the same CPU. A pinned or masked task goes on.
    Tasks,
    /// Interrupts of the same CPU. A masked task goes on.
    Interrupt,
}

impl Mode {
    pub(crate) const ALL: [Self; 4] = [Self::Cpus, Self::Stands, Self::Tasks, Self::Interrupt];

    /// Returns true if the second party may be stopped too.
    pub(crate) fn has_pairs(self) -> bool {
        matches!(self, Self::Cpus | Self::Tasks)
    }

    /// Returns true if nothing excuses a refusal while a frame is free.
    pub(crate) fn serves_single_frames(self) -> bool {
        matches!(self, Self::Cpus | Self::Tasks)
    }
}

/// What is known of a party.
struct Party {
    cpu: Cell<usize>,
    home: Cell<usize>,
    interrupt: Cell<bool>,
    pinned: Cell<u32>,
    masked: Cell<u32>,
    accesses: Cell<u64>,
    waits: Cell<u64>,
    // Accesses left before it stops.
    left: Cell<Option<u64>>,
    // Invariant `yielder-on-stack`: it is on the party's own stack, and is there as long as the party
    // is `running`.
    exit: Cell<*const Yielder<(), ()>>,
}

/// All parties of a thread, and who runs.
struct Machine {
    all: [Party; PARTIES + 1],
    now: Cell<usize>,
    mode: Cell<Mode>,
    // How many there are.
    count: Cell<usize>,
}

thread_local! {
    static MACHINE: Machine = const { Machine {
        all: [const { Party {
            cpu: Cell::new(0),
            home: Cell::new(0),
            interrupt: Cell::new(false),
            pinned: Cell::new(0),
            masked: Cell::new(0),
            accesses: Cell::new(0),
            waits: Cell::new(0),
            left: Cell::new(None),
            exit: Cell::new(ptr::null()),
        } }; PARTIES + 1],
        now: Cell::new(OBSERVER),
        mode: Cell::new(Mode::Cpus),
        count: Cell::new(0),
    } };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    static MEMORY: Cell<usize> = const { Cell::new(0) };
}

fn with<R>(of: impl FnOnce(&Party) -> R) -> R {
    MACHINE.with(|machine| of(&machine.all[machine.now.get()]))
}

/// Returns the party that runs.
pub(crate) fn party() -> usize {
    MACHINE.with(|machine| machine.now.get())
}

/// Returns true if the running party is an interrupt.
pub(crate) fn in_interrupt() -> bool {
    with(|party| party.interrupt.get())
}

/// Returns how often the running party has waited since it began.
pub(crate) fn waits() -> u64 {
    with(|party| party.waits.get())
}

/// Puts the observer on a CPU, and ends whatever ran. Called when a party has failed, too.
pub(crate) fn observe(cpu: usize) {
    MACHINE.with(|machine| {
        machine.now.set(OBSERVER);
        machine.count.set(0);
    });
    with(|party| {
        party.cpu.set(cpu);
        party.pinned.set(0);
        party.masked.set(0);
    });
}

/// Looks at something as the observer, whom nobody stops, and lets the running party go on.
pub(crate) fn at_once<R>(look: impl FnOnce() -> R) -> R {
    let running = MACHINE.with(|machine| machine.now.replace(OBSERVER));
    let seen = look();
    MACHINE.with(|machine| machine.now.set(running));
    seen
}

/// Lets another party run, if the running one is not the observer.
fn switch() {
    let exit = with(|party| party.exit.get());
    // SAFETY: `yielder-on-stack`: the caller is that party, which runs.
    unsafe { (*exit).suspend(()) }
}

fn before_access() {
    let stops = MACHINE.with(|machine| {
        if machine.now.get() == OBSERVER {
            return false;
        }
        let party = &machine.all[machine.now.get()];
        party.accesses.set(party.accesses.get() + 1);
        assert!(party.accesses.get() < ACCESSES_MOST, "a call has no end");
        let Some(left) = party.left.get() else {
            return false;
        };
        let masked = party.masked.get() > 0;
        let held = masked || party.pinned.get() > 0;
        // Where it is held on another CPU, it keeps that one's parties from running.
        let away = party.cpu.get() != party.home.get() && held;
        let goes_on = match machine.mode.get() {
            Mode::Cpus | Mode::Stands => away,
            Mode::Tasks => away || held,
            Mode::Interrupt => away || masked,
        };
        if goes_on {
            return false;
        }
        party.left.set(left.checked_sub(1));
        left == 0
    });
    if stops {
        switch();
    }
}

/// Runs `work` for each party; party `i` stops before its access number `stops[i]` of those at
/// which it can be stopped, or not at all for [`NEVER`]. Returns how many such accesses each has
/// made, if it has not stopped.
pub(crate) fn run(mode: Mode, stops: &[u64], work: impl Fn(usize)) -> Vec<Option<u64>> {
    MACHINE.with(|machine| {
        machine.mode.set(mode);
        machine.count.set(stops.len());
        for (number, party) in machine.all[..stops.len()].iter().enumerate() {
            let others = matches!(mode, Mode::Cpus | Mode::Stands);
            let cpu = if others { number } else { 0 };
            party.cpu.set(cpu);
            party.home.set(cpu);
            party.interrupt.set(mode == Mode::Interrupt && number > 0);
            party.pinned.set(0);
            party.masked.set(0);
            party.accesses.set(0);
            party.waits.set(0);
            party.left.set(Some(stops[number]));
        }
    });
    let work = &work;
    let mut stacks: Vec<_> = (0..stops.len())
        .map(|number| {
            let kept = STACKS.with_borrow_mut(Vec::pop);
            let stack = kept.unwrap_or_default();
            let body = move |exit: &Yielder<(), ()>, ()| {
                MACHINE.with(|machine| machine.all[number].exit.set(ptr::from_ref(exit)));
                work(number);
            };
            // SAFETY: `work` outlives `stacks`, in which each coroutine ends or is dropped.
            Some(unsafe { Coroutine::with_stack_unchecked(stack, body) })
        })
        .collect();
    before_each_access(before_access, || take_turns(&mut stacks));
    let made = |(party, &stop): (&Party, &u64)| party.left.get().map(|left| stop - left);
    let made = MACHINE.with(|machine| machine.all.iter().zip(stops).map(made).collect());
    observe(0);
    made
}

/// Resumes each party in turn until all have ended.
fn take_turns(stacks: &mut [Option<Coroutine<(), (), ()>>]) {
    let mut next = 0;
    while let Some(place) = (next..next + stacks.len())
        .map(|place| place % stacks.len())
        .find(|&place| stacks[place].is_some())
    {
        MACHINE.with(|machine| machine.now.set(place));
        let coroutine = stacks[place].as_mut().expect("found above");
        if let CoroutineResult::Return(()) = coroutine.resume(()) {
            let ended = stacks[place].take().expect("found above");
            STACKS.with_borrow_mut(|kept| kept.push(ended.into_stack()));
            with(|party| {
                let (pinned, masked) = (party.pinned.get(), party.masked.get());
                assert_eq!((pinned, masked), (0, 0), "pins and masks left behind");
                party.home.set(usize::MAX);
            });
        }
        next = place + 1;
    }
}

/// The platform of all parties.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpus;

impl Platform for Cpus {
    fn cpu(&self) -> usize {
        with(|party| party.cpu.get())
    }

    fn pin(&self) -> usize {
        with(|party| party.pinned.set(party.pinned.get() + 1));
        self.cpu()
    }

    fn unpin(&self) {
        with(|party| party.pinned.set(party.pinned.get().wrapping_sub(1)));
    }

    fn in_interrupt(&self) -> bool {
        in_interrupt()
    }

    fn mask_interrupts(&self) -> InterruptState {
        with(|party| InterruptState(party.masked.replace(party.masked.get() + 1) as usize))
    }

    fn restore_interrupts(&self, found: InterruptState) {
        with(|party| party.masked.set(found.0 as u32));
    }

    fn relax(&self) {
        let may_switch = MACHINE.with(|machine| {
            let party = &machine.all[machine.now.get()];
            party.waits.set(party.waits.get() + 1);
            let occupies = party.cpu.get() != party.home.get();
            machine.now.get() != OBSERVER && machine.mode.get() == Mode::Cpus && !occupies
        });
        if may_switch {
            switch();
        }
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        with(|party| {
            let (pinned, masked) = (party.pinned.get(), party.masked.get());
            let may_wait = !party.interrupt.get() && pinned == 0 && masked == 0;
            assert!(may_wait, "`run_on` by a caller that may not sleep");
        });
        // A party there may be inside its slot.
        let inside = |machine: &Machine| {
            let mut others = (0..machine.count.get()).filter(|other| *other != machine.now.get());
            others.any(|other| {
                let other = &machine.all[other];
                other.home.get() == cpu && other.pinned.get() + other.masked.get() > 0
            })
        };
        while MACHINE.with(inside) {
            if MACHINE.with(|machine| machine.mode.get() != Mode::Cpus) {
                return false;
            }
            self.relax();
        }
        let here = with(|party| party.cpu.replace(cpu));
        work();
        with(|party| party.cpu.set(here));
        true
    }

    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        NonNull::new(ptr::with_exposed_provenance_mut(
            MEMORY.get() + (frame.number() << FRAME_SHIFT),
        ))
    }
}

/// Makes the memory of frames from 0 to `frames`, for the life of the thread.
pub(crate) fn back(frames: usize) {
    if MEMORY.get() == 0 {
        // Aligned for the largest block, which slabs rely on.
        let align = 4 << 20;
        let memory = vec![0_u8; (frames << FRAME_SHIFT) + align].leak();
        let start = memory.as_mut_ptr().expose_provenance();
        MEMORY.set(start.next_multiple_of(align));
    }
}
