//! The tables of a CPU: segments, the stacks that interrupts and exceptions enter on, and the one
//! table of interrupts.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::apic;
use super::trap::{self, CODE};
use crate::arch::CPUS;
use crate::cpu::Cpu;

/// The segment of a CPU's stacks.
const TASK_STATE: u16 = 0x20;
/// The bytes of a stack that interrupts or exceptions enter on.
const STACK: usize = 16 << 10;
/// The entry stack of interrupts, and that of exceptions.
const INTERRUPTS: usize = 1;
const EXCEPTIONS: usize = 2;

#[repr(C, align(16))]
struct Tables {
    segments: [u64; 6],
    task_state: [u32; 28],
    stacks: [[u8; STACK]; 2],
}

impl Tables {
    const NEW: Self = Self {
        segments: [
            0,
            0x00cf_9a00_0000_ffff,
            0x00cf_9200_0000_ffff,
            0x00af_9a00_0000_ffff,
            0,
            0,
        ],
        task_state: [0; 28],
        stacks: [[0; STACK]; 2],
    };
}

struct All(UnsafeCell<[Tables; CPUS]>);
// SAFETY: each CPU accesses its own.
unsafe impl Sync for All {}
static ALL: All = All(UnsafeCell::new([Tables::NEW; CPUS]));

struct Gates(UnsafeCell<[[u64; 2]; 256]>);
// SAFETY: written by the boot CPU before the others start.
unsafe impl Sync for Gates {}
static GATES: Gates = Gates(UnsafeCell::new([[0; 2]; 256]));

/// What `lgdt` and `lidt` read.
#[repr(C, packed)]
struct Pointer(u16, u64);

fn gate(vector: usize, handler: usize, stack: usize) {
    let handler = handler as u64;
    const INTERRUPT_GATE: u64 = 0x8e;
    let low = handler & 0xffff
        | CODE << 16
        | (stack as u64) << 32
        | INTERRUPT_GATE << 40
        | (handler >> 16 & 0xffff) << 48;
    // SAFETY: the boot CPU alone, before interrupts are allowed.
    unsafe { (*GATES.0.get())[vector] = [low, handler >> 32] }
}

/// Fills the table of interrupts. For the boot CPU.
pub fn fill() {
    for vector in 0..32 {
        gate(vector, trap::exception_entry(vector), EXCEPTIONS);
    }
    gate(apic::TIMER.into(), trap::timer_entry(), INTERRUPTS);
    gate(apic::POKE.into(), trap::poke_entry(), INTERRUPTS);
    gate(apic::SPURIOUS.into(), trap::spurious_entry(), INTERRUPTS);
}

/// Has the calling CPU use its tables, and find its words.
pub fn set_up(cpu: &'static Cpu, id: usize) {
    // SAFETY: the CPU's own tables; nobody else has a reference to them.
    let tables = unsafe { &mut *ALL.0.get().cast::<Tables>().add(id) };
    let tops = tables
        .stacks
        .each_ref()
        .map(|stack| stack.as_ptr_range().end);
    for (i, top) in tops.into_iter().enumerate() {
        let top = top.expose_provenance() as u64 & !15;
        tables.task_state[9 + 2 * i] = top as u32;
        tables.task_state[10 + 2 * i] = (top >> 32) as u32;
    }
    // No map of ports.
    tables.task_state[25] = 104 << 16;
    let at = (&raw const tables.task_state).addr() as u64;
    const AVAILABLE: u64 = 0x89;
    tables.segments[4] = 103 | (at & 0xff_ffff) << 16 | AVAILABLE << 40 | (at >> 24 & 0xff) << 56;
    tables.segments[5] = at >> 32;
    let segments = Pointer(47, (&raw const tables.segments).expose_provenance() as u64);
    let gates = Pointer(4095, GATES.0.get().expose_provenance() as u64);
    let words = core::ptr::from_ref(cpu).expose_provenance() as u64;
    const GS_BASE: u32 = 0xc000_0101;
    // SAFETY: the tables are static and as the CPU expects them; `cpu-words` begins to hold here.
    unsafe {
        asm!(
            "lgdt [{}]",
            "lidt [{}]",
            "ltr {:x}",
            in(reg) &segments,
            in(reg) &gates,
            in(reg) TASK_STATE,
            options(nostack)
        );
        asm!(
            "wrmsr",
            in("ecx") GS_BASE,
            in("eax") words as u32,
            in("edx") (words >> 32) as u32,
            options(nostack)
        );
    }
}
