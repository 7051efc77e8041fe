//! The program that callgrind measures for `src/instructions.rs`: the library allocates and frees
//! pages on real hardware, in the bursts of the storm, on one CPU.
//!
//! `instructions CONFIGURATION hot|deep PAGES`; the configuration `bare` allocates nothing, so that
//! the cost of the loops themselves can be subtracted. All that is to be counted happens in
//! functions with `take_burst` and `give_burst` in their names.

use core::error::Error;
use core::hint::black_box;
use core::mem::MaybeUninit;

use brickyard_classics_hardware::{Configuration, Experiment, LabZone, MachinePlan};
use brickyard_hardware::node::{Node, Nodes};
use brickyard_hardware::sync::{Exclusive, TicketLock};
use brickyard_hardware::{Frame, FrameRange, Mobility, OneCpu, Order, Request};
use brickyard_run::Dice;

struct Bursts {
    most: u64,
    pages: usize,
    subject: Subject,
}

#[derive(Clone, Copy, PartialEq)]
enum Subject {
    Allocator,
    Bare,
}

#[inline(never)]
fn take_burst<Z: LabZone>(nodes: &Nodes<'_, Z>, out: &mut [Frame]) {
    for slot in out {
        *slot = nodes
            .alloc(0, &Request::page(Mobility::Movable))
            .expect("the memory is far larger than a burst");
    }
}

#[inline(never)]
fn give_burst<Z: LabZone>(nodes: &Nodes<'_, Z>, frames: &[Frame]) {
    for &frame in frames {
        nodes
            .free(frame, Order::ZERO)
            .expect("the page was allocated");
    }
}

#[inline(never)]
fn bare_take_burst(out: &mut [Frame]) {
    for (number, slot) in out.iter_mut().enumerate() {
        *slot = black_box(Frame::new(number));
    }
}

#[inline(never)]
fn bare_give_burst(frames: &[Frame]) {
    for &frame in frames {
        black_box(frame);
    }
}

impl Experiment<OneCpu> for Bursts {
    type Output = ();

    fn run<Z: LabZone<Platform = OneCpu>>(self, node: &Node<'_, Z>) {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let mut dice = Dice::new(1);
        let mut held = vec![Frame::new(0); self.most as usize];
        let mut left = self.pages;
        while left > 0 {
            let pages = (1 + dice.below(self.most) as usize).min(left);
            left -= pages;
            let burst = &mut held[..pages];
            match self.subject {
                Subject::Allocator => take_burst(&nodes, burst),
                Subject::Bare => bare_take_burst(burst),
            }
            for place in (1..pages).rev() {
                burst.swap(place, dice.below(place as u64 + 1) as usize);
            }
            match self.subject {
                Subject::Allocator => give_burst(&nodes, burst),
                Subject::Bare => bare_give_burst(burst),
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, shape, pages] = &arguments[..] else {
        return Err(
            "give a configuration or `bare`, `hot` or `deep`, and a number of pages".into(),
        );
    };
    let most = match shape.as_str() {
        "hot" => 24,
        "deep" => 2000,
        _ => return Err("the shape must be `hot` or `deep`".into()),
    };
    let (configuration, subject) = match name.as_str() {
        "bare" => (Configuration::Vanilla, Subject::Bare),
        name => (name.parse()?, Subject::Allocator),
    };
    let bursts = Bursts {
        most,
        pages: pages.parse()?,
        subject,
    };
    let plan = MachinePlan::new(FrameRange::new(0, 1 << 18), 1);
    let bytes = configuration.bytes::<Exclusive, TicketLock, OneCpu>(&plan);
    let mut memory = vec![MaybeUninit::uninit(); bytes];
    configuration.run::<Exclusive, TicketLock, _, _>(&plan, OneCpu, &mut memory, bursts)?;
    Ok(())
}
