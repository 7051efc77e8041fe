//! The walk from a call frame to its caller's, by the tables of loaded objects. It takes no lock
//! and asks for no memory, so it may begin anywhere: in a signal handler, or in a request that
//! another library's unwinder makes under its lock.
//!
//! A stack may be a coroutine's, whose outermost frame returns to anything. So the system is asked
//! of each page whether it can be read; only the heap's own frames, which are there for certain,
//! are read without.

use core::arch::asm;
use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance};

use brickyard_arena::page_bytes;
use brickyard_arena::rows::keeping_errno;
use gimli::{CfaRule, Operation, Register, RegisterRule, UnwindContext, UnwindContextStorage};
use gimli::{UnwindExpression, UnwindTableRow};

use crate::objects::{Entry, Frames, Object};
use crate::sampled;

/// The registers that have numbers in tables, with the instruction as the last; the most of them
/// that a function saves, or a signal's frame; the number of the end of the stack.
#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(crate) const REGISTERS: usize = 17;
    pub(crate) const SAVED: usize = 17;
    pub(crate) const SP: usize = 7;
}
#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const REGISTERS: usize = 33;
    pub(crate) const SAVED: usize = 24;
    pub(crate) const SP: usize = 31;
}

use numbers::{REGISTERS, SAVED, SP};

const IP: usize = REGISTERS - 1;

/// The registers of a frame, as far as they are known: others are 0.
type Registers = [usize; REGISTERS];

/// Returns the calling function's registers, of those that functions leave as they are.
#[inline(always)]
fn registers_here() -> Registers {
    let mut registers = [0; REGISTERS];
    // SAFETY: writes words of the array, each at its number.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov qword ptr [{to} + 3 * 8], rbx",
            "mov qword ptr [{to} + 6 * 8], rbp",
            "mov qword ptr [{to} + 7 * 8], rsp",
            "mov qword ptr [{to} + 12 * 8], r12",
            "mov qword ptr [{to} + 13 * 8], r13",
            "mov qword ptr [{to} + 14 * 8], r14",
            "mov qword ptr [{to} + 15 * 8], r15",
            "lea {at}, [rip]",
            "mov qword ptr [{to} + 16 * 8], {at}",
            to = in(reg) registers.as_mut_ptr(),
            at = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "stp x19, x20, [{to}, #19 * 8]",
            "stp x21, x22, [{to}, #21 * 8]",
            "stp x23, x24, [{to}, #23 * 8]",
            "stp x25, x26, [{to}, #25 * 8]",
            "stp x27, x28, [{to}, #27 * 8]",
            "stp x29, x30, [{to}, #29 * 8]",
            "mov {at}, sp",
            "str {at}, [{to}, #31 * 8]",
            "adr {at}, .",
            "str {at}, [{to}, #32 * 8]",
            to = in(reg) registers.as_mut_ptr(),
            at = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
    registers
}

/// Returns the registers that a signal has interrupted.
///
/// # Safety
/// `context` is what the system passes to a handler.
unsafe fn registers_at(context: *const c_void) -> Registers {
    // SAFETY: the caller's promise.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    // The places of rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and rip.
    #[cfg(target_arch = "x86_64")]
    let all =
        [13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16].map(|at| machine.gregs[at]);
    #[cfg(target_arch = "aarch64")]
    let all: [_; REGISTERS] = core::array::from_fn(|number| match number {
        IP => machine.pc,
        SP => machine.sp,
        _ => machine.regs[number],
    });
    all.map(|register| register as usize)
}

/// The memory of a stack.
struct Memory {
    /// Words may lie anywhere. Invariant `still-to-return`: otherwise they belong to frames of the
    /// heap's in which the calling thread is.
    is_asked: bool,
    /// The page that the system has read last; at first none.
    page: usize,
}

impl Memory {
    fn word(&mut self, address: usize) -> Option<usize> {
        if !address.is_multiple_of(size_of::<usize>()) {
            return None;
        }
        let page = address & !(page_bytes() - 1);
        if self.is_asked && self.page != page {
            if !can_be_read(address) {
                return None;
            }
            self.page = page;
        }
        // SAFETY: `still-to-return`; or the system could read its page a moment ago, which belongs
        // to a stack that the calling thread is on.
        Some(unsafe { with_exposed_provenance::<usize>(address).read_volatile() })
    }
}

/// Returns true if the system can read a word. It is asked by a call that every filter allows, and
/// that fails in any case: to change the mask of signals in a way that there is none of, to a mask
/// that stands there.
fn can_be_read(address: usize) -> bool {
    const NO_WAY: i32 = -1;
    let mask = with_exposed_provenance::<c_void>(address);
    // SAFETY: a call that changes nothing; of what cannot be read the system tells.
    keeping_errno(|| unsafe {
        let (old, bytes) = (null_mut::<c_void>(), size_of::<u64>());
        libc::syscall(libc::SYS_rt_sigprocmask, NO_WAY, mask, old, bytes);
        *libc::__errno_location() == libc::EINVAL
    })
}

/// Gimli's memory for rules, on the stack. Code that keeps its rules, and takes them back behind a
/// return, does so once at a time.
struct Small;

impl UnwindContextStorage<usize> for Small {
    type Rules = [(Register, RegisterRule<usize>); SAVED];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

/// See the [module](self).
pub(crate) struct Walk {
    registers: Registers,
    /// The instruction is one that was interrupted, and none behind a call.
    is_exact: bool,
    memory: Memory,
    context: UnwindContext<usize, Small>,
}

impl Walk {
    fn new(registers: Registers, is_asked: bool) -> Self {
        Self {
            registers,
            is_exact: true,
            memory: Memory { is_asked, page: 1 },
            context: UnwindContext::new_in(),
        }
    }

    /// Begins in the calling function, of the heap, in which the thread stays as long as it walks
    /// through frames of the heap's.
    #[inline(always)]
    pub(crate) fn here() -> Self {
        Self::new(registers_here(), false)
    }

    /// Begins where a signal came.
    ///
    /// # Safety
    /// `context` is what the system passes to a handler.
    pub(crate) unsafe fn interrupted(context: *const c_void) -> Self {
        // SAFETY: passed on.
        Self::new(unsafe { registers_at(context) }, true)
    }

    /// Leaves the frames of the heap.
    pub(crate) fn leaves_heap(&mut self) {
        self.memory.is_asked = true;
    }

    /// Returns the return address, or the instruction that was interrupted.
    pub(crate) fn instruction(&self) -> usize {
        self.registers[IP]
    }

    /// Returns the lowest address of the frame.
    pub(crate) fn frame(&self) -> usize {
        self.registers[SP]
    }

    /// Goes to the caller's frame; `None` if that cannot be told.
    pub(crate) fn step(&mut self) -> Option<()> {
        // A return address may be the first of what follows the call.
        let address = self.instruction().wrapping_sub(usize::from(!self.is_exact));
        let sampled = sampled()?;
        let (frames, entry) = match sampled.own.contains(address) {
            true => sampled.own.entry(address)?,
            false if sampled.has_loader => Object::of(address)?.entry(address)?,
            false => return None,
        };
        let (registers, memory) = (&self.registers, &mut self.memory);
        let row =
            entry.unwind_info_for_address(&frames.0, &frames.1, &mut self.context, address as u64);
        let row = row.ok()?;
        let above = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => sum(registers, *register, *offset)?,
            CfaRule::Expression(it) => value(it, (&frames, &entry), registers, memory, 0)?,
        };
        let mut caller = *registers;
        caller[SP] = above;
        for (register, rule) in row.registers() {
            let Some(place) = caller.get_mut(usize::from(register.0)) else {
                continue;
            };
            let at = |offset: i64| above.wrapping_add_signed(offset as isize);
            *place = match rule {
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(offset) => memory.word(at(*offset))?,
                RegisterRule::ValOffset(offset) => at(*offset),
                RegisterRule::Register(other) => sum(registers, *other, 0)?,
                RegisterRule::ValExpression(it) => {
                    value(it, (&frames, &entry), registers, memory, above)?
                }
                RegisterRule::Expression(it) => {
                    let address = value(it, (&frames, &entry), registers, memory, above)?;
                    memory.word(address)?
                }
                // Of the return address: there is no caller.
                _ => 0,
            };
        }
        let returns = usize::from(entry.cie().return_address_register().0);
        caller[IP] = *caller.get(returns)?;
        if cfg!(target_arch = "aarch64") {
            // Without the signature that it may have, above the bits of addresses.
            caller[IP] &= (1 << 48) - 1;
        }
        // Each frame lies above those it called, or is empty and has called none. A signal may have
        // come on another stack.
        let is_signal = entry.is_signal_trampoline();
        if !is_signal && (above < self.frame() || above == self.frame() && !self.is_exact) {
            return None;
        }
        (self.registers, self.is_exact) = (caller, is_signal);
        Some(())
    }
}

fn sum(registers: &Registers, register: Register, offset: i64) -> Option<usize> {
    let register = registers.get(usize::from(register.0))?;
    Some(register.wrapping_add_signed(offset as isize))
}

/// Returns the value of an expression: a register, to which is added, and from which words are
/// followed. (Others are those of the linker's stubs, which call nothing.)
fn value(
    expression: &UnwindExpression<usize>,
    (frames, entry): (&Frames, &Entry),
    registers: &Registers,
    memory: &mut Memory,
    mut value: usize,
) -> Option<usize> {
    let expression = expression.get(&frames.0).ok()?;
    let mut operations = expression.operations(entry.cie().encoding());
    while let Some(operation) = operations.next().ok()? {
        value = match operation {
            Operation::RegisterOffset {
                register, offset, ..
            } => sum(registers, register, offset)?,
            Operation::PlusConstant { value: more } => value.wrapping_add(more as usize),
            Operation::Deref { size: 8, .. } => memory.word(value)?,
            _ => return None,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_where_there_is_memory_and_no_further() {
        let page = page_bytes();
        let region = brickyard_arena::Region::map_addresses(2 * page, page).unwrap();
        region.commit(0..page).unwrap();
        let start = region.start().addr().get();
        // SAFETY: the page can be written, and nobody else knows of it.
        unsafe { region.at(page - 8).cast::<usize>().write(7) };
        let mut memory = Walk::new([0; REGISTERS], true).memory;
        assert_eq!(memory.word(start + page - 8), Some(7));
        assert_eq!(memory.word(start), Some(0));
        for nowhere in [start + page, start + 1, 0, usize::MAX - 7] {
            assert_eq!(memory.word(nowhere), None, "{nowhere:#x}");
        }
    }
}
