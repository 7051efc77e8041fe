//! The library in a program that has nothing: no `std`, no libc, no heap, no start files. It allocates and frees on every
//! design of the library, pages and objects, checks every invariant, and ends with exit code 0, by system calls of its own (Linux on x86-64 or aarch64).

#![no_std]
#![no_main]

mod objects;
mod runtime;

use core::arch::asm;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::slice;

use brickyard::design::Design;
use brickyard::node::{Node, Nodes};
use brickyard::sync::{Exclusive, TicketLock};
use brickyard::{
    Configuration, Experiment, FrameRange, MachinePlan, Mobility, OneCpu, Order, Request,
};

/// 32 MiB of memory that is never touched.
const PLAN: MachinePlan = MachinePlan::new(FrameRange::new(16, 16 + 8192), 1);

/// Uses a node; true if all went as it should.
struct Use;

impl Experiment<OneCpu> for Use {
    type Output = bool;

    fn run<D: Design<Platform = OneCpu>>(self, node: &Node<'_, D>) -> bool {
        let nodes = Nodes::new(slice::from_ref(node));
        let mut fine = true;
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
}

fn run() -> bool {
    let mut metadata = [MaybeUninit::uninit(); 256 * 1024];
    Configuration::ALL.into_iter().all(|configuration| {
        configuration
            .run::<Exclusive, TicketLock, _, _>(&PLAN, OneCpu, &mut metadata, Use)
            .unwrap_or(false)
    })
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

/// Called by `_start` with the stack as the calling convention wants it.
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
