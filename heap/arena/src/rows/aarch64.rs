//! The sequences on aarch64: see `x86_64.rs`, which tells how they work.
//!
//! Here a shifted register is part of an addition, so the CPU's number is read as it is. The signature is the word of a `brk`.

use core::arch::asm;
use core::sync::atomic::AtomicUsize;

use brickyard_slab::Pushed;

/// Puts the descriptor of the sequence from label 4 to label 5, and what happens when it is left midway: back to label 2, which comes first.
macro_rules! restartable {
    ($($line:expr),* $(,)?) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "3: .long 0, 0\n",
            ".quad 4f, 5f - 4f, 6f\n",
            ".popsection\n",
            ".pushsection __rseq_failure, \"ax\"\n",
            ".inst 0xd428bc00\n",
            "6: b 2f\n",
            ".popsection\n",
            $($line, "\n",)*
        )
    };
}

/// Defines `pop` and `push`: how the row is found, and what that needs.
macro_rules! pop_and_push {
    ($vis:vis $pop:ident, $push:ident, $shift:ident: $shift_type:ty, [$($find:literal),*], {$($operand:tt)*}) => {
        /// The last object of the sheaf in `column` of this CPU's row; null if it has none. The row then has one less.
        ///
        /// # Safety
        /// `area` is an area of all threads ([`Rseq`](super::Rseq), [`ThreadRows`](super::ThreadRows)); `rows` are rows for every number that can stand there,
        /// as far apart as the shift says ([`ROW_SHIFT`](super::ROW_SHIFT) without one), and `column` of each holds the top of a sheaf.
        #[inline(always)]
        $vis unsafe fn $pop(
            area: isize,
            (rows, $shift): (*const AtomicUsize, $shift_type),
            column: usize,
        ) -> *mut u8 {
            let object: *mut u8;
            // SAFETY: `one-store`: up to the last instruction nothing is written but the thread's own area. The caller's promise makes the row's word a top, and a top the
            // address of a word that can be read.
            unsafe {
                asm!(
                    restartable![
                        "2:",
                        "mrs {here}, tpidr_el0",
                        "add {here}, {here}, {area}",
                        "adrp {row}, 3b",
                        "add {row}, {row}, :lo12:3b",
                        "str {row}, [{here}, #8]",
                        "4:",
                        $($find,)*
                        "ldr {top}, [{row}, {column}, lsl #3]",
                        "ldr {object}, [{top}]",
                        "cbz {object}, 5f",
                        "sub {top}, {top}, #8",
                        "str {top}, [{row}, {column}, lsl #3]",
                        "5:",
                    ],
                    area = in(reg) area,
                    rows = in(reg) rows,
                    $($operand)*
                    column = in(reg) column,
                    here = out(reg) _,
                    row = out(reg) _,
                    top = out(reg) _,
                    object = out(reg) object,
                    options(nostack),
                );
            }
            object
        }

        /// Puts `object` behind the last one of the sheaf in `column` of this CPU's row, unless it is that one.
        ///
        /// # Safety
        /// As [`pop`].
        #[inline(always)]
        $vis unsafe fn $push(
            area: isize,
            (rows, $shift): (*const AtomicUsize, $shift_type),
            column: usize,
            object: *mut u8,
        ) -> Pushed {
            // SAFETY: as in `pop`. The entry behind the top is free: that it is written early is seen by nobody (`one-store`).
            unsafe {
                asm!(
                    restartable![
                        "2:",
                        "mrs {here}, tpidr_el0",
                        "add {here}, {here}, {area}",
                        "adrp {row}, 3b",
                        "add {row}, {row}, :lo12:3b",
                        "str {row}, [{here}, #8]",
                        "4:",
                        $($find,)*
                        "ldr {top}, [{row}, {column}, lsl #3]",
                        "ldr {last}, [{top}]",
                        "cmp {last}, {object}",
                        "b.eq {twice}",
                        "add {top}, {top}, #8",
                        "tst {top}, #{sheaf_mask}",
                        "b.eq {full}",
                        "str {object}, [{top}]",
                        "str {top}, [{row}, {column}, lsl #3]",
                        "5:",
                    ],
                    area = in(reg) area,
                    rows = in(reg) rows,
                    $($operand)*
                    column = in(reg) column,
                    object = in(reg) object,
                    sheaf_mask = const super::SHEAF_MASK,
                    here = out(reg) _,
                    row = out(reg) _,
                    last = out(reg) _,
                    top = out(reg) _,
                    full = label { return Pushed::Full },
                    twice = label { return Pushed::Twice },
                    options(nostack),
                );
            }
            Pushed::Done
        }
    };
}

// Rows `ROW_SHIFT` apart.
pop_and_push!(
    pub pop, push, _shift: (),
    ["ldr {row:w}, [{here}, #4]", "add {row}, {rows}, {row}, lsl #{shift}"],
    { shift = const super::ROW_SHIFT, }
);

// Rows any power of two apart.
pop_and_push!(
    pub(super) pop_shifted, push_shifted, shift: u32,
    ["ldr {row:w}, [{here}, #4]", "lsl {row}, {row}, {shift:x}", "add {row}, {rows}, {row}"],
    { shift = in(reg) shift, }
);

/// Stores `new` in `word` if the caller runs on `cpu` and the word holds `expected`.
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
    // SAFETY: `one-store`, and the word is the caller's to write while it runs on `cpu` (`row-of-its-own`).
    unsafe {
        asm!(
            restartable![
                "2:",
                "mrs {here}, tpidr_el0",
                "add {here}, {here}, {area}",
                "adrp {scratch}, 3b",
                "add {scratch}, {scratch}, :lo12:3b",
                "str {scratch}, [{here}, #8]",
                "4:",
                "ldr {scratch:w}, [{here}, #4]",
                "cmp {scratch:w}, {cpu:w}",
                "b.ne {no}",
                "ldr {scratch}, [{word}]",
                "cmp {scratch}, {expected}",
                "b.ne {no}",
                "str {new}, [{word}]",
                "5:",
            ],
            area = in(reg) area,
            cpu = in(reg) cpu,
            word = in(reg) word,
            expected = in(reg) expected,
            new = in(reg) new,
            here = out(reg) _,
            scratch = out(reg) _,
            no = label { return false },
            options(nostack),
        );
    }
    true
}
