//! The sequences on x86-64.
//!
//! A sequence has a *descriptor* (section `__rseq_cs`): where it begins, how long it is, and where to go on if it was left midway. It begins when the descriptor's address
//! is stored in the thread's area; if the system finds the thread between begin and end when it moves it, preempts it or delivers a signal, it sends it to the third
//! address instead, before which a signature stands (the bytes of an instruction that nobody executes). There it jumps back and begins anew.
//!
//! **The row's offset**: the area begins with `cpu_id_start` and `cpu_id`, four bytes each, both below 65,536 (`registered-everywhere`). Four bytes read from
//! the third on are two zero bytes and the lower half of `cpu_id`: the CPU's number times 64 KiB, which is [`ROW_SHIFT`](super::ROW_SHIFT).

use core::arch::asm;
use core::sync::atomic::AtomicUsize;

use brickyard_slab::Pushed;

/// The text of a sequence: the descriptor from label 4 to label 5, and what happens when it is left midway: back to label 2, which comes first; then the lines. For `asm!` and `naked_asm!`.
#[doc(hidden)]
#[macro_export]
macro_rules! restartable {
    ($($line:expr),* $(,)?) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "3: .long 0, 0\n",
            ".quad 4f, 5f - 4f, 6f\n",
            ".popsection\n",
            ".pushsection __rseq_failure, \"ax\"\n",
            // ud1 edi, [rip + signature]
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "6: jmp 2f\n",
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
        /// Eleven instructions, twelve with a shift.
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
            // address of a word that can be read. The red zone is not touched.
            unsafe {
                asm!(
                    restartable![
                        "2:",
                        "lea {row}, [rip + 3b]",
                        "mov qword ptr fs:[{area} + 8], {row}",
                        "4:",
                        $($find,)*
                        "mov {top}, qword ptr [{row} + {column} * 8]",
                        "mov {object}, qword ptr [{top}]",
                        "test {object}, {object}",
                        "jz 5f",
                        "sub {top}, 8",
                        "mov qword ptr [{row} + {column} * 8], {top}",
                        "5:",
                    ],
                    area = in(reg) area,
                    rows = in(reg) rows,
                    $($operand)*
                    column = in(reg) column,
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
        /// Thirteen instructions, fourteen with a shift.
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
                        "lea {row}, [rip + 3b]",
                        "mov qword ptr fs:[{area} + 8], {row}",
                        "4:",
                        $($find,)*
                        "mov {top}, qword ptr [{row} + {column} * 8]",
                        "cmp qword ptr [{top}], {object}",
                        "je {twice}",
                        "add {top}, 8",
                        "test {top:e}, {sheaf_mask}",
                        "jz {full}",
                        "mov qword ptr [{top}], {object}",
                        "mov qword ptr [{row} + {column} * 8], {top}",
                        "5:",
                    ],
                    area = in(reg) area,
                    rows = in(reg) rows,
                    $($operand)*
                    column = in(reg) column,
                    object = in(reg) object,
                    sheaf_mask = const super::SHEAF_MASK,
                    row = out(reg) _,
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

// Rows `ROW_SHIFT` apart: see above.
pop_and_push!(
    pub pop, push, _shift: (),
    ["mov {row:e}, dword ptr fs:[{area} + 2]", "add {row}, {rows}"],
    {}
);

// Rows any power of two apart.
pop_and_push!(
    pub(super) pop_shifted, push_shifted, shift: u32,
    ["mov {row:e}, dword ptr fs:[{area} + 4]", "shl {row}, cl", "add {row}, {rows}"],
    { in("cl") shift as u8, }
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
                "lea {scratch}, [rip + 3b]",
                "mov qword ptr fs:[{area} + 8], {scratch}",
                "4:",
                "cmp {cpu:e}, dword ptr fs:[{area} + 4]",
                "jne {no}",
                "cmp qword ptr [{word}], {expected}",
                "jne {no}",
                "mov qword ptr [{word}], {new}",
                "5:",
            ],
            area = in(reg) area,
            cpu = in(reg) cpu,
            word = in(reg) word,
            expected = in(reg) expected,
            new = in(reg) new,
            scratch = out(reg) _,
            no = label { return false },
            options(nostack),
        );
    }
    true
}
