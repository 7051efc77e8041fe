//! Text to the serial line, one line at a time, from any CPU and any context.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch;

static BUSY: AtomicBool = AtomicBool::new(false);

/// So often somebody waits for the line. A CPU that failed in the middle of one must not keep the
/// others from saying so.
const WAITS_MOST: u32 = 1_000_000;

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(arch::put);
        Ok(())
    }
}

/// Writes a line. Interrupts are masked meanwhile, so that none waits for what it has interrupted.
pub fn line(text: fmt::Arguments<'_>) {
    let found = arch::irq_save();
    let mut waits = 0;
    // Acquire: pairs with the release below; one writer at a time.
    while BUSY.swap(true, Ordering::Acquire) && waits < WAITS_MOST {
        arch::relax();
        waits += 1;
    }
    // The serial line reports no errors.
    let _ = Serial.write_fmt(format_args!("{text}\n"));
    BUSY.store(false, Ordering::Release);
    arch::irq_restore(found);
}

macro_rules! println {
    ($($text:tt)*) => { $crate::console::line(format_args!($($text)*)) };
}
pub(crate) use println;
