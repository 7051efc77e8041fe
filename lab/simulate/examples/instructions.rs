//! Counts the instructions of a page in every design by callgrind, and its accesses on the machine,
//! and prints both as `src/instructions.csv`.
//!
//! With arguments (`CONFIGURATION hot|deep PAGES`) it is the program that callgrind runs: the library
//! allocates and frees pages on real hardware, in the bursts of the storm, on one CPU. The
//! configuration `bare` allocates nothing: the cost of the loops, which is subtracted. All that is
//! counted happens in functions with `take_burst` and `give_burst` in their names.

use core::hint::black_box;
use core::mem::MaybeUninit;

use anyhow::{Error, bail};
use brickyard_designs_hardware::classics::{Configuration, Experiment, LabZone, MachinePlan};
use brickyard_hardware::node::{Node, Nodes};
use brickyard_hardware::sync::{Exclusive, TicketLock};
use brickyard_hardware::{Frame, FrameRange, Mobility, OneCpu, Order, Request};
use brickyard_machine::Profile;
use brickyard_measure::callgrind;
use brickyard_run::Dice;
use brickyard_simulate::Configuration as Simulated;
use brickyard_simulate::setting::{Setting, usual_frames};
use brickyard_simulate::storm::{Shape, Storm};

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

/// The shapes of storm that one CPU serves.
const SHAPES: [Shape; 2] = [Shape::Hot, Shape::Deep];

/// The pages that are counted.
const PAGES: usize = 100_000;

/// The profile does not matter: accesses are counted, not their time.
const MACHINE: &Profile = Profile::METATM_2007;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => count(),
        [name, shape, pages] => burst(name, shape.parse().map_err(Error::msg)?, pages.parse()?),
        _ => bail!("give nothing, or a configuration or `bare`, a shape, and a number of pages"),
    }
}

/// Prints the table.
fn count() -> anyhow::Result<()> {
    println!("configuration,shape,instructions,accesses");
    let bare: Vec<f64> = SHAPES
        .iter()
        .map(|shape| instructions("bare", *shape))
        .collect::<Result<_, _>>()?;
    for configuration in Simulated::ALL {
        for (shape, bare) in SHAPES.into_iter().zip(&bare) {
            let instructions = instructions(configuration.name(), shape)? - bare;
            println!(
                "{configuration},{shape},{instructions:.1},{:.2}",
                accesses(configuration, shape)?
            );
        }
    }
    Ok(())
}

/// Returns the instructions of a page.
fn instructions(name: &str, shape: Shape) -> anyhow::Result<f64> {
    let of = |function: &str| {
        callgrind::of_one_that_costs(PAGES, |pages| {
            let mut command = callgrind::this_program(&callgrind::launcher(function))?;
            command.args([name, shape.name(), &pages.to_string()]);
            Ok(command)
        })
    };
    Ok(of("take_burst")? + of("give_burst")?)
}

/// Returns the accesses of a page.
fn accesses(configuration: Simulated, shape: Shape) -> anyhow::Result<f64> {
    let storm = Storm {
        shape,
        pages: 2 * PAGES,
    };
    let setting = Setting {
        profile: MACHINE,
        cpus: 1,
        configuration,
        frames: usual_frames(storm.frames_needed(1)),
        seed: 1,
        more_instructions: 0,
    };
    let run = storm.run(&setting)?;
    Ok(run.accesses as f64 / run.pages as f64)
}

/// Allocates and frees, for callgrind to count.
fn burst(name: &str, shape: Shape, pages: usize) -> anyhow::Result<()> {
    let (configuration, subject) = match name {
        "bare" => (Configuration::Vanilla, Subject::Bare),
        name => (name.parse()?, Subject::Allocator),
    };
    let bursts = Bursts {
        most: shape.burst_most() as u64,
        pages,
        subject,
    };
    let plan = MachinePlan::new(FrameRange::new(0, 1 << 18), 1);
    let bytes = configuration.bytes::<Exclusive, TicketLock, OneCpu>(&plan);
    let mut memory = vec![MaybeUninit::uninit(); bytes];
    configuration.run::<Exclusive, TicketLock, _, _>(&plan, OneCpu, &mut memory, bursts)?;
    Ok(())
}
