//! The instructions of the sequences on aarch64.
//!
//! An addition can shift a register here, so the CPU's number is read as it is.

/// The signature, as the word of a `brk`.
#[doc(hidden)]
#[macro_export]
macro_rules! signature {
    () => {
        ".inst 0xd428bc00\n"
    };
}

/// A sequence of these lines, and those that are executed where it was left midway. They may use
/// `row`, and `here`, the address of the area.
macro_rules! sequence {
    ([$($lines:expr),*], $left:expr, $area:ident, [$($shift:ident)?], $($operand:tt)*) => {
        asm!(
            restartable![
                $left,
                "mrs {here}, tpidr_el0",
                "add {here}, {here}, {area}",
                "adrp {row}, 3b",
                "add {row}, {row}, :lo12:3b",
                "str {row}, [{here}, #8]",
                "4:",
                $($lines,)*
                "5:",
            ],
            area = in(reg) $area,
            $(shift = in(reg) $shift,)?
            here = out(reg) _,
            row = out(reg) _,
            $($operand)*
            options(nostack),
        )
    };
}

macro_rules! find_row {
    () => {
        "ldr {row:w}, [{here}, #4]
        add {row}, {rows}, {row}, lsl #16"
    };
}

macro_rules! find_row_shifted {
    () => {
        "ldr {row:w}, [{here}, #4]
        lsl {row}, {row}, {shift:x}
        add {row}, {rows}, {row}"
    };
}

macro_rules! pop_lines {
    () => {
        "ldr {top}, [{row}, {column}, lsl #3]
        ldr {object}, [{top}]
        cbz {object}, 5f
        sub {top}, {top}, #8
        str {top}, [{row}, {column}, lsl #3]"
    };
}

/// Goes to a label.
macro_rules! leave_to {
    ($label:literal) => {
        concat!("b ", $label)
    };
}

macro_rules! no_object {
    () => {
        "mov {object}, #0\n"
    };
}

macro_rules! push_lines {
    () => {
        "ldr {top}, [{row}, {column}, lsl #3]
        ldr {here}, [{top}]
        cmp {here}, {object}
        b.eq {twice}
        add {top}, {top}, #8
        tst {top}, #{sheaf_mask}
        b.eq {full}
        str {object}, [{top}]
        str {top}, [{row}, {column}, lsl #3]"
    };
}

macro_rules! replace_lines {
    () => {
        "ldr {row:w}, [{here}, #4]
        cmp {row:w}, {cpu:w}
        b.ne {no}
        ldr {row}, [{word}]
        cmp {row}, {expected}
        b.ne {no}
        str {new}, [{word}]"
    };
}
