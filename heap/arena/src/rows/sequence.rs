//! The restartable sequences: what they do, for every processor. Their instructions are in
//! `x86_64.rs` and `aarch64.rs`.
//!
//! A sequence has a *descriptor* (section `__rseq_cs`): its begin, its length, and an abort
//! address. The sequence begins when the descriptor's address is stored in the thread's area. If
//! the system moves or preempts the thread, or delivers a signal to it, between begin and end, it
//! sends the thread to the abort address. There the thread leaves the sequence as one that found
//! nothing to take, no room, or another word. Before the abort address stands a signature (the
//! bytes of an instruction that nobody executes).
//!
//! Nothing begins anew by itself, since it might for ever: a debugger that steps through a sequence
//! preempts the thread at each of its instructions.

use core::arch::asm;
use core::sync::atomic::AtomicUsize;

use brickyard_slab::Pushed;

/// The text of a sequence: the descriptor from label 4 to label 5; the first line, as the abort
/// code; and then the other lines. For `asm!` and `naked_asm!`.
#[doc(hidden)]
#[macro_export]
macro_rules! restartable {
    ($left:expr, $($line:expr),* $(,)?) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "3: .long 0, 0\n",
            ".quad 4f, 5f - 4f, 6f\n",
            ".popsection\n",
            ".pushsection __rseq_failure, \"ax\"\n",
            $crate::signature!(),
            "6: ", $left, "\n",
            ".popsection\n",
            $($line, "\n",)*
        )
    };
}

/// Defines `pop` and `push`: how the row is found, and by which shift.
macro_rules! pop_and_push {
    ($vis:vis $pop:ident, $push:ident, $shift:ident: $type:ty, $find:ident, $operand:tt) => {
        /// Takes the last object of the sheaf in `column` of this CPU's row. The sheaf then has one
        /// less. Null if it has none, or if the thread was interrupted midway, which is rare.
        ///
        /// # Safety
        /// `area` is an area of all threads ([`Rseq`](super::Rseq),
        /// [`ThreadRows`](super::ThreadRows)). `rows` are rows for every number that can stand
        /// there, as far apart as the shift says ([`ROW_SHIFT`](super::ROW_SHIFT) without one).
        /// `column` of each holds the top of a sheaf.
        #[inline(always)]
        $vis unsafe fn $pop(
            area: isize,
            (rows, $shift): (*const AtomicUsize, $type),
            column: usize,
        ) -> *mut u8 {
            let object: *mut u8;
            // SAFETY: `one-store`: up to the last instruction nothing is written but the thread's
            // own area. The caller's promise makes the row's word a top, and a top the address of a
            // word that can be read. The red zone is not touched.
            unsafe {
                sequence!(
                    [$find!(), pop_lines!()],
                    concat!(no_object!(), leave_to!("5f")),
                    area,
                    $operand,
                    rows = in(reg) rows,
                    column = in(reg) column,
                    top = out(reg) _,
                    object = out(reg) object,
                );
            }
            object
        }

        /// Puts `object` behind the last one of the sheaf in `column` of this CPU's row, unless it
        /// is that one. It is full also if the thread was interrupted midway, which is rare.
        ///
        /// # Safety
        /// The conditions of [`pop`].
        #[inline(always)]
        $vis unsafe fn $push(
            area: isize,
            (rows, $shift): (*const AtomicUsize, $type),
            column: usize,
            object: *mut u8,
        ) -> Pushed {
            // SAFETY: as in `pop`. The entry behind the top is free, so nobody sees that it is
            // written early (`one-store`).
            unsafe {
                sequence!(
                    [$find!(), push_lines!()],
                    leave_to!("{full}"),
                    area,
                    $operand,
                    rows = in(reg) rows,
                    column = in(reg) column,
                    object = in(reg) object,
                    sheaf_mask = const super::SHEAF_MASK,
                    top = out(reg) _,
                    full = label { return Pushed::Full },
                    twice = label { return Pushed::Twice },
                );
            }
            Pushed::Done
        }
    };
}

// Rows `ROW_SHIFT` apart, as the instructions assume.
const _: () = assert!(super::ROW_SHIFT == 16);
pop_and_push!(pub pop, push, _shift: (), find_row, []);

// Rows any power of two apart.
pop_and_push!(pub(super) pop_shifted, push_shifted, shift: u32, find_row_shifted, [shift]);

/// Stores `new` in `word` if the caller runs on `cpu`, the word holds `expected`, and nothing
/// interrupts the thread midway. Returns true if it did.
///
/// # Safety
/// `area` as in [`pop`]; `word` is a word of the row of `cpu`.
#[inline]
pub unsafe fn replace(
    area: isize,
    cpu: u32,
    word: *const AtomicUsize,
    expected: usize,
    new: usize,
) -> bool {
    // SAFETY: `one-store`. The word is the caller's to write while it runs on `cpu`
    // (`row-of-its-own`).
    unsafe {
        sequence!(
            [replace_lines!()],
            leave_to!("{no}"),
            area,
            [],
            cpu = in(reg) cpu,
            word = in(reg) word,
            expected = in(reg) expected,
            new = in(reg) new,
            no = label { return false },
        );
    }
    true
}
