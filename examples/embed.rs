//! An embedder in about forty lines: a kernel's platform, a zone in static memory, a request, a
//! free, and a look at the state.
//!
//! Run it with `cargo run --example embed`.

use core::mem::MaybeUninit;

use brickyard::node::{Node, Nodes};
use brickyard::stats::BuddyInfo;
use brickyard::sync::Shared;
use brickyard::{
    FrameRange, InterruptState, Mobility, Order, Platform, Request, Zone, ZoneKind, ZonePlan,
};

/// What a kernel tells the allocator. Here: one CPU, and interrupts that exist only on paper.
struct Kernel;

impl Platform for Kernel {
    fn cpu(&self) -> usize {
        0 // read it from the per-CPU register
    }
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(0) // save the flags, then `cli`
    }
    fn restore_interrupts(&self, _found: InterruptState) {} // restore the flags
}

/// A zone with stashes that other CPUs may drain.
type KernelZone<'m> = Zone<'m, Kernel, Shared>;

/// 64 MiB from frame 0 on, for one CPU. `BYTES` is a constant, so the memory can be static.
const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 16 * 1024), 1);
const BYTES: usize = KernelZone::bytes(&PLAN);

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut metadata = [MaybeUninit::uninit(); BYTES];
    let zones = [KernelZone::new(&PLAN, Kernel, &mut metadata)?];
    zones[0].add(FrameRange::new(256, 16 * 1024))?; // what the firmware calls memory
    zones[0].reserve(FrameRange::new(1000, 1600))?; // the kernel's own image
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);

    let page = nodes.alloc(0, &Request::page(Mobility::Movable))?;
    let huge = nodes.alloc(0, &Request::new(Order::HUGE, Mobility::Movable))?;
    println!("page {page}, huge page {huge}");
    nodes.free(page, Order::ZERO)?;
    nodes.free(huge, Order::HUGE)?;
    if let Err(refused) = nodes.free(huge, Order::HUGE) {
        println!("a second free is refused: {refused}");
    }
    nodes.drain();
    let state: Vec<_> = nodes.snapshots().collect();
    print!("{}", BuddyInfo(&state));
    Ok(())
}
