//! The library in a bare program: no `std`, no libc, no heap, no start files. The program allocates
//! and frees pages and objects, checks every invariant, and ends with exit code 0. It makes its
//! system calls by itself (Linux on x86-64 or aarch64). `cargo run --release` in this directory
//! runs it; it prints nothing if all is well.

#![no_std]
#![no_main]

mod objects;
mod runtime;

use core::arch::asm;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::slice;

use brickyard::node::{Node, Nodes};
use brickyard::{FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan};

/// 32 MiB of memory that is never touched.
const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(16, 16 + 8192), 1);

/// Uses a zone of pages. Returns true if everything went as it should.
fn run() -> bool {
    let mut metadata = [MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
    let Ok(zone) = Zone::<OneCpu>::new(&PLAN, OneCpu, &mut metadata) else {
        return false;
    };
    let node = [Node::new(0, slice::from_ref(&zone))];
    let nodes = Nodes::new(&node);
    let mut fine = zone.add(PLAN.span) == Ok(PLAN.span.len());
    for order in Order::ZERO.up_to(Order::DEFAULT_MAX) {
        for mobility in Mobility::ALL {
            match nodes.alloc(0, &Request::new(order, mobility)) {
                Ok(frame) => {
                    fine &= nodes.free(frame, order).is_ok();
                    fine &= nodes.free(frame, order).is_err();
                }
                Err(_) => fine = false,
            }
        }
    }
    nodes.drain();
    fine && nodes.check().is_ok()
}

fn exit(code: usize) -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `exit_group` takes a number, touches no memory and does not return.
    unsafe {
        asm!("syscall", in("rax") 231, in("rdi") code, options(noreturn, nostack))
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!("svc 0", in("x8") 94, in("x0") code, options(noreturn, nostack))
    }
}

/// Called by `_start`, with the stack as the calling convention requires.
extern "C" fn main() -> ! {
    exit(usize::from(!(run() && objects::run())))
}

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {main}",
    main = sym main,
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "bl {main}",
    main = sym main,
);

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}
