//! What was done in a round, and printing it.

use core::sync::atomic::{AtomicU64, Ordering};

use brickyard_boot_test::Totals;

use crate::console::println;
use crate::cpu::{self, Counts};
use crate::objects;

/// What was done in a round, by whom.
pub struct RoundFigures {
    /// Tasks.
    pub tasks: Totals,
    /// Interrupts of timers.
    pub timers: Totals,
    /// Interrupts from CPUs.
    pub pokes: Totals,
}

impl RoundFigures {
    /// Returns nothing done yet.
    pub const fn new() -> Self {
        Self {
            tasks: Totals::new(),
            timers: Totals::new(),
            pokes: Totals::new(),
        }
    }
}

/// What CPUs have done, summed up.
#[derive(Clone, Copy)]
pub struct CpuSums([u64; 7]);

impl CpuSums {
    /// Returns the sums of the first `cpus` CPUs so far.
    pub fn of(cpus: usize) -> Self {
        let sum = |of: fn(&Counts) -> &AtomicU64| {
            // Relaxed: counts.
            let counts = cpu::all(cpus).map(|cpu| of(&cpu.counts).load(Ordering::Relaxed));
            counts.sum()
        };
        Self([
            sum(|counts| &counts.timers),
            sum(|counts| &counts.pokes),
            sum(|counts| &counts.nested),
            sum(|counts| &counts.preemptions),
            sum(|counts| &counts.moves),
            sum(|counts| &counts.put_off),
            sum(|counts| &counts.errands),
        ])
    }

    fn since(&self, before: &Self) -> [u64; 7] {
        core::array::from_fn(|i| self.0[i] - before.0[i])
    }
}

/// Prints a round.
pub fn print(
    done: &RoundFigures,
    objects: &objects::Counts,
    cpus: usize,
    before: &CpuSums,
    refused_late: usize,
) {
    let [timers, pokes, nested, preemptions, moves, put_off, errands] =
        CpuSums::of(cpus).since(before);
    let deepest = cpu::all(cpus).map(|cpu| cpu.counts.deepest.load(Ordering::Relaxed));
    let deepest = deepest.max().unwrap_or(0);
    let count = |what: &AtomicU64| what.load(Ordering::Relaxed);
    println!("  tasks: {}", done.tasks.get());
    println!("  timer interrupts: {}", done.timers.get());
    println!("  interrupts from CPUs: {}", done.pokes.get());
    println!(
        "  objects: {} taken, {} of them in interrupts, {} refused",
        count(&objects.taken),
        count(&objects.in_interrupts),
        count(&objects.refused),
    );
    println!(
        "  {timers} timer interrupts and {pokes} from CPUs, {nested} nested (up to {deepest} deep)"
    );
    println!(
        "  {preemptions} preemptions, {moves} moves to another CPU, {put_off} put off by pins, \
         {errands} errands on other CPUs, refused_late {refused_late}"
    );
}
