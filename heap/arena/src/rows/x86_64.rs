//! The instructions of the sequences on x86-64: nine for `pop` and twelve for `push`, and one more
//! with a shift. Loading the operands is not counted.
//!
//! **The row's offset**: the area begins with `cpu_id_start` and `cpu_id`, four bytes each, both
//! below 65,536 (`registered-everywhere`). The four bytes from the third on are two zero bytes and
//! the lower half of `cpu_id`. Read as one number, they are the CPU's number times 64 KiB, which is
//! [`ROW_SHIFT`](super::ROW_SHIFT).

/// The signature, as `ud1 edi, [rip + signature]`.
#[doc(hidden)]
#[macro_export]
macro_rules! signature {
    () => {
        ".byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"
    };
}

/// A sequence of these lines, and those that are executed where it was left midway. They may use
/// `row`, and the shift of the rows in `cl`.
macro_rules! sequence {
    ([$($lines:expr),*], $left:expr, $area:ident, [$($shift:ident)?], $($operand:tt)*) => {
        asm!(
            restartable![
                $left,
                "lea {row}, [rip + 3b]",
                "mov qword ptr fs:[{area} + 8], {row}",
                "4:",
                $($lines,)*
                "5:",
            ],
            area = in(reg) $area,
            $(in("cl") $shift as u8,)?
            row = out(reg) _,
            $($operand)*
            options(nostack),
        )
    };
}

macro_rules! find_row {
    () => {
        "mov {row:e}, dword ptr fs:[{area} + 2]
        add {row}, {rows}"
    };
}

macro_rules! find_row_shifted {
    () => {
        "mov {row:e}, dword ptr fs:[{area} + 4]
        shl {row}, cl
        add {row}, {rows}"
    };
}

macro_rules! pop_lines {
    () => {
        "mov {top}, qword ptr [{row} + {column} * 8]
        mov {object}, qword ptr [{top}]
        test {object}, {object}
        jz 5f
        sub qword ptr [{row} + {column} * 8], 8"
    };
}

/// Goes to a label.
macro_rules! leave_to {
    ($label:literal) => {
        concat!("jmp ", $label)
    };
}

macro_rules! no_object {
    () => {
        "xor {object:e}, {object:e}\n"
    };
}

macro_rules! push_lines {
    () => {
        "mov {top}, qword ptr [{row} + {column} * 8]
        cmp qword ptr [{top}], {object}
        je {twice}
        add {top}, 8
        test {top:e}, {sheaf_mask}
        jz {full}
        mov qword ptr [{top}], {object}
        mov qword ptr [{row} + {column} * 8], {top}"
    };
}

macro_rules! replace_lines {
    () => {
        "cmp {cpu:e}, dword ptr fs:[{area} + 4]
        jne {no}
        cmp qword ptr [{word}], {expected}
        jne {no}
        mov qword ptr [{word}], {new}"
    };
}
