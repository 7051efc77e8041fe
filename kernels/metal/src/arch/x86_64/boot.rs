//! The first instructions of each CPU, and what QEMU tells. The first CPU begins in protected mode,
//! with the address of PVH's start information in ebx; the others in real mode, at a copy of
//! `trampoline` in low memory.

use core::arch::global_asm;
use core::cell::UnsafeCell;

use super::{apic, clock, ports, tables, wait};
use crate::arch::CPUS;
use crate::cpu;
use crate::memory_map::{MemoryMap, PAGE};
use crate::settings;
use crate::task::STACK;
use crate::{Boot, errand, fail};

#[repr(align(4096))]
struct Stacks(#[allow(dead_code, reason = "reached by address")] UnsafeCell<[[u8; STACK]; CPUS]>);
// SAFETY: each stack is its CPU's.
unsafe impl Sync for Stacks {}
#[unsafe(no_mangle)]
static BOOT_STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK]; CPUS]));

/// Where the trampoline is copied to: a page below 1 MiB.
const TRAMPOLINE: usize = 0x8000;

// Two tables map 512 GiB by pages of 1 GiB, in the lower and in the upper half. The first CPU fills
// them in. Then each CPU goes on to 64 bits, and takes the stack of its number, which is in edi.
global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .balign 4
    .long 4
    .long 4
    .long 18
    .asciz "Xen"
    .long _start32

    .section .text.entry, "ax"
    .code32
    .globl _start32
_start32:
    cli
    cld
    movl $pdpt, %edi
    movl $0x83, %eax
    xorl %edx, %edx
1:  movl %eax, (%edi)
    movl %edx, 4(%edi)
    addl $0x40000000, %eax
    adcl $0, %edx
    addl $8, %edi
    cmpl $pdpt + 4096, %edi
    jne 1b
    movl $pdpt + 3, pml4
    movl $pdpt + 3, pml4 + 2048
    xorl %edi, %edi
    jmp long_mode

_start_other32:
    movl $1, %edi
    lock xaddl %edi, next_cpu
    cmpl ${cpus}, %edi
    jb long_mode
2:  hlt
    jmp 2b

long_mode:
    movl %cr4, %eax
    orl $0x620, %eax
    movl %eax, %cr4
    movl $pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    andl $0xfffffff3, %eax
    orl $0x80000003, %eax
    movl %eax, %cr0
    lgdtl boot_gdt_pointer
    ljmpl $0x18, $start64
    .code64
start64:
    movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    leal 1(%edi), %eax
    shll ${stack_shift}, %eax
    leaq BOOT_STACKS(%rax), %rsp
    movl %ebx, %esi
    call {start}
    ud2

    .code16
    .globl trampoline
trampoline:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl {low} + trampoline_gdt_pointer - trampoline
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x08, ${low} + trampoline32 - trampoline
    .code32
trampoline32:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $_start_other32, %eax
    jmp *%eax
    .balign 4
trampoline_gdt_pointer:
    .word 31
    .long boot_gdt
    .globl trampoline_end
trampoline_end:
    .code64

    .section .data.boot, "aw"
    .balign 8
boot_gdt:
    .quad 0
    .quad 0x00cf9a000000ffff
    .quad 0x00cf92000000ffff
    .quad 0x00af9a000000ffff
boot_gdt_pointer:
    .word 31
    .long boot_gdt
next_cpu:
    .long 1
    .section .bss.boot, "aw", @nobits
    .balign 4096
pml4:
    .skip 4096
pdpt:
    .skip 4096
    .text
    "#,
    stack_shift = const STACK.trailing_zeros(),
    cpus = const CPUS,
    low = const TRAMPOLINE,
    start = sym start,
    options(att_syntax),
);

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    static trampoline: u8;
    static trampoline_end: u8;
}

/// Gives the CPU its tables, its words and its interrupts, which stay masked.
fn set_up(id: usize) {
    let cpu = cpu::cpu(id);
    tables::set_up(cpu, id);
    cpu.init(id, apic::set_up());
}

extern "C" fn start(id: usize, information: *const u32) -> ! {
    if id == 0 {
        first(information);
    }
    set_up(id);
    errand::go_online();
    loop {
        wait();
    }
}

/// Starts all CPUs but this one. Each takes the next number.
pub fn start_others(cpus: usize) {
    if cpus == 1 {
        return;
    }
    let (from, to) = (&raw const trampoline, &raw const trampoline_end);
    let low = core::ptr::with_exposed_provenance_mut::<u8>(TRAMPOLINE);
    // SAFETY: the first mebibyte is reserved, and the trampoline is shorter than a page.
    unsafe { core::ptr::copy_nonoverlapping(from, low, to.addr() - from.addr()) };
    apic::start_all((TRAMPOLINE / PAGE) as u8);
}

fn first(information: *const u32) -> ! {
    ports::silence_old_controllers();
    tables::fill();
    set_up(0);
    clock::measure(10_000);
    // SAFETY: QEMU's promise.
    match unsafe { read_information(information) } {
        Ok(boot) => crate::kernel(boot),
        Err(why) => fail(why),
    }
}

/// The start information of PVH: words of 32 bits, with addresses of 64.
const MAGIC: u32 = 0x336e_c578;
const VERSION: usize = 1;
const COMMAND_LINE: usize = 6;
const MAP: usize = 10;
const MAP_ENTRIES: usize = 12;

/// The longest command line.
const TEXT_MOST: usize = 4096;

/// Reads what QEMU tells.
///
/// # Safety
/// `information` is the start information of PVH, or at least memory.
unsafe fn read_information(information: *const u32) -> Result<Boot, core::fmt::Arguments<'static>> {
    if information.is_null() || !information.is_aligned() {
        return Err(format_args!("no start information: not started by PVH"));
    }
    // SAFETY: the caller's promise.
    let word = |at: usize| unsafe { information.add(at).read() };
    let address = |at: usize| word(at) as usize | (word(at + 1) as usize) << 32;
    if word(0) != MAGIC {
        return Err(format_args!("no start information: not started by PVH"));
    }
    if word(VERSION) == 0 {
        return Err(format_args!("the start information has no memory map"));
    }
    let mut map = MemoryMap::new();
    let image = (&raw const __image_start).addr();
    let image_bytes = (&raw const __image_end).addr() - image;
    let mut pushed = map.reserved.push(0, 1 << 20);
    pushed = pushed.and_then(|()| map.reserved.push(image, image_bytes));
    let entries = core::ptr::with_exposed_provenance::<u64>(address(MAP));
    for entry in 0..word(MAP_ENTRIES) as usize {
        // SAFETY: the start information says that there are so many entries of three words.
        let [from, bytes, kind] = [0, 1, 2].map(|i| unsafe { entries.add(3 * entry + i).read() });
        const MEMORY: u32 = 1;
        if kind as u32 == MEMORY {
            pushed = pushed.and_then(|()| map.memory.push(from as usize, bytes as usize));
        }
    }
    if pushed.is_err() {
        return Err(format_args!("the memory map has too many ranges"));
    }
    let cpus = ports::cpus().min(CPUS);
    let text = core::ptr::with_exposed_provenance::<u8>(address(COMMAND_LINE));
    let mut settings = settings::Settings::DEFAULT;
    if !text.is_null() {
        // SAFETY: a text that ends with a zero, by the start information.
        let len = (0..TEXT_MOST).take_while(|&at| unsafe { text.add(at).read() } != 0);
        let len = len.count();
        // SAFETY: as above; nobody writes to it.
        match settings::read(unsafe { core::slice::from_raw_parts(text, len) }) {
            Ok(read) => settings = read,
            Err(unknown) => fail(format_args!("{unknown}")),
        }
    }
    Ok(Boot {
        map,
        cpus,
        settings,
    })
}
