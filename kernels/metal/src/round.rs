//! One round: tasks and interrupts use a new system at once, then all is checked. Rounds alternate
//! between the two kinds of slots.

use core::sync::atomic::Ordering;

use brickyard::Platform;

use crate::console::println;
use crate::metadata::MetadataRoom;
use crate::platform::Machine;
use crate::report::{self, CpuSums};
use crate::system::{self, Slots};
use crate::{Boot, arch, cpu, fail, scheduler, task, workers};

/// Runs a round on the boot CPU, outside all tasks. Fails the kernel if something is found.
pub fn run<A: Slots>(boot: &Boot, room: &mut MetadataRoom, number: u64, seed: u64) {
    let (system, frames) = system::build::<A>(boot, room, seed);
    // Release: pairs with the acquire in `Slots::system`.
    A::place().store(
        core::ptr::from_ref(system).cast_mut().cast(),
        Ordering::Release,
    );
    let before = CpuSums::of(boot.cpus);
    cpu::all(boot.cpus).for_each(|cpu| cpu.seed(seed));
    scheduler::set_work(workers::interrupt::<A>);
    let tasks = workers::spawn::<A>(boot.cpus);
    while !(0..tasks).all(task::is_gone) {
        arch::wait();
    }
    scheduler::end_work();

    system.caches.conclude(system.slabs);
    match system.test.conclude(frames) {
        Ok(figures) => system.done.tasks.add(&figures),
        Err(finding) => fail(format_args!("{finding}")),
    }
    let refused_late = system.test.zone.refused_late();
    println!(
        "round {number}, {} slots, stashes of up to {} %: {frames} frames, all free again at the end",
        A::NAME,
        system::sizes(seed).percent
    );
    let objects = &system.caches.counts;
    report::print(system.done, objects, boot.cpus, &before, refused_late);
    if refused_late != 0 {
        fail(format_args!("{refused_late} frees were refused late"));
    }
    if Machine.cpu() != 0 {
        fail(format_args!("the boot CPU's own task has moved"));
    }
}
