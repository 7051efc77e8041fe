//! The smallest embedder: one zone, in static memory, with the four calls that every kernel needs.
//! Its size is what the library adds to a program at least.

#![no_std]
#![no_main]

#[path = "../../../../examples/freestanding/src/runtime.rs"]
mod runtime;

use core::hint::black_box;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;

use brickyard::{FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan};

/// 32 MiB of memory that is never touched.
const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 8192), 1);
const BYTES: usize = Zone::<OneCpu>::bytes(&PLAN);

static mut METADATA: [MaybeUninit<u8>; BYTES] = [MaybeUninit::uninit(); BYTES];

/// Makes a zone, and takes and frees a block.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let metadata: *mut [MaybeUninit<u8>] = &raw mut METADATA;
    // SAFETY: this runs once, and nothing else uses the memory.
    let metadata = unsafe { &mut *metadata };
    let plan = black_box(&PLAN);
    if let Ok(zone) = Zone::<OneCpu>::new(plan, OneCpu, metadata) {
        let zone = black_box(&zone);
        let _ = black_box(zone.add(black_box(plan.span)));
        let request = Request::new(black_box(Order::HUGE), Mobility::Movable);
        if let Ok(frame) = zone.alloc(black_box(&request)) {
            let _ = black_box(zone.free(black_box(frame), black_box(Order::HUGE)));
        }
    }
    stop()
}

fn stop() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    stop()
}
