//! RISC-V below OpenSBI, on QEMU's `virt` machine, in supervisor mode without paging: memory is
//! reached at its own address. `tp` points to the CPU's words.

mod boot;
mod devices;
mod sbi;
mod trap;

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::cpu::Cpu;

pub use boot::start_others;
pub use devices::{exit, put};
pub use trap::new_frame;

/// The name.
pub const NAME: &str = "riscv64";

/// `sstatus`: interrupts are allowed.
const SIE: usize = 1 << 1;

/// Reads a word of the running CPU by one instruction.
#[inline(always)]
pub fn cpu_word<const OFFSET: usize>() -> usize {
    let word;
    // Invariant `cpu-register`: `tp` points to the CPU's words, and `OFFSET` is one of them.
    // SAFETY: by `cpu-register`.
    unsafe {
        asm!(
            "ld {}, {offset}(tp)",
            out(reg) word,
            offset = const OFFSET,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// Returns the running CPU, for callers that cannot be moved.
pub fn this_cpu() -> &'static Cpu {
    let cpu: *const Cpu;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, tp", out(reg) cpu, options(nomem, nostack, preserves_flags)) }
    // SAFETY: `cpu-register`; the words are static.
    unsafe { &*cpu }
}

/// Returns true if interrupts are allowed.
#[inline(always)]
pub fn irqs_on() -> bool {
    let status: usize;
    // SAFETY: reads a register.
    unsafe { asm!("csrr {}, sstatus", out(reg) status, options(nostack)) }
    status & SIE != 0
}

/// Allows interrupts.
pub fn irq_enable() {
    // SAFETY: the trap handler is set up.
    unsafe { asm!("csrsi sstatus, 2", options(nostack)) }
}

/// Masks interrupts.
pub fn irq_disable() {
    // SAFETY: takes away no more than that.
    unsafe { asm!("csrci sstatus, 2", options(nostack)) }
}

/// Masks interrupts, and returns whether they were allowed.
#[inline]
pub fn irq_save() -> bool {
    let status: usize;
    // SAFETY: as above, in one instruction.
    unsafe { asm!("csrrci {}, sstatus, 2", out(reg) status, options(nostack)) }
    status & SIE != 0
}

/// Restores what [`irq_save`] returned.
#[inline]
pub fn irq_restore(on: bool) {
    if on {
        irq_enable();
    }
}

/// Waits for an interrupt.
pub fn wait() {
    // SAFETY: no more than that.
    unsafe { asm!("wfi", options(nostack)) }
}

/// Returns a clock.
pub fn ticks() -> u64 {
    let time;
    // SAFETY: reads a counter.
    unsafe { asm!("rdtime {}", out(reg) time, options(nomem, nostack)) }
    time
}

static PER_SECOND: AtomicU64 = AtomicU64::new(10_000_000);

/// Returns how many ticks a second has.
pub fn ticks_per_second() -> u64 {
    // Relaxed: set before the other CPUs start.
    PER_SECOND.load(Ordering::Relaxed)
}

/// Has the CPU's timer interrupt it once, after so many microseconds.
pub fn arm_timer(microseconds: u64) {
    sbi::set_timer(ticks() + microseconds * ticks_per_second() / 1_000_000);
}

/// Interrupts a CPU.
pub fn poke(cpu: &Cpu) {
    sbi::send_ipi(cpu.hardware.get());
}

/// Waits a little for another CPU.
///
/// Where QEMU counts instructions, one host thread runs the CPUs in turn, and a CPU keeps its turn
/// until the next timer: QEMU 7 takes a pause instruction of this architecture for no reason to go
/// on to the next CPU. Waiting for an interrupt is one, also if interrupts are masked.
pub fn relax() {
    const WAITS_PER_TURN: u64 = 256;
    static WAITS: AtomicU64 = AtomicU64::new(0);
    core::hint::spin_loop();
    // Relaxed: any CPU's waits count.
    let waits = WAITS.fetch_add(1, Ordering::Relaxed);
    if waits.is_multiple_of(WAITS_PER_TURN) {
        wait();
    }
}

/// Returns where the memory at a physical address is reached.
#[inline(always)]
pub fn direct_map(address: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(address)
}
