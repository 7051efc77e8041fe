//! The designs of 2008 on Dumazet's machine, simulated: `socketallocbench` alone and with eight
//! tasks, remote frees, and memory by the number of CPUs and nodes. Two things are assumed of the
//! benchmark, and varied: how many deferred files come back together, and how many instructions
//! come between two accesses to shared memory.

use brickyard_machine::Profile;
use brickyard_results::Metric;
use brickyard_simulate::slabs::memory::{self, CPUS_PER_NODE};
use brickyard_simulate::slabs::remote::RemoteFrees;
use brickyard_simulate::slabs::socket::{Files, SocketBench};
use brickyard_simulate::slabs::{Design, INSTRUCTIONS, OTHER_INSTRUCTIONS, Purpose, SlabSetting};

use crate::cell::{Cell, Context, Scale};
use crate::cells::rows::RowTemplate;
use crate::raw::{Method, Raw};

const MACHINE: &str = "bl460c-g1";

/// The document's: alone, and all CPUs of the machine.
const SOCKET_CPUS: [usize; 2] = [1, 8];

const REMOTE_CPUS: usize = 8;

/// CPUs whose memory is measured, as one node and as nodes of [`CPUS_PER_NODE`].
const MEMORY_CPUS: [usize; 6] = [1, 2, 4, 8, 16, 32];

const RUNS: u32 = 5;
const QUICK_RUNS: u32 = 2;

/// The designs that the document compares: those whose instructions are varied.
const COMPARED: [Design; 3] = [Design::Slqb, Design::Slub, Design::Slab];

/// Objects of each pair of CPUs.
const REMOTE_OBJECTS: usize = 1500;

const SOCKET: Metric<'static> = Metric::lower("socket", "ns");
const PAIR: Metric<'static> = Metric::lower("allocator", "ns");
const OBJECT: Metric<'static> = Metric::lower("object", "ns");
const LINES: Metric<'static> = Metric::lower("lines", "lines");
const METADATA: Metric<'static> = Metric::lower("metadata", "KiB");
const KEPT: Metric<'static> = Metric::lower("kept", "KiB");
const QUEUED: Metric<'static> = Metric::lower("queued", "objects");
const TRIMMED: Metric<'static> = Metric::lower("trimmed", "KiB");

/// Returns the sockets that are counted: with deferred files, a batch of them.
fn sockets(files: Files) -> usize {
    files.batch().max(500)
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for run in 1..=RUNS {
        for design in Design::ALL {
            for files in Files::ALL {
                // Two runs of the long ones show whether the length decides.
                if files.is_long() && run > QUICK_RUNS {
                    continue;
                }
                let of = |cpus| Sockets::new(files, cpus).cell(design, run);
                cells.extend(SOCKET_CPUS.map(of));
            }
            cells.push(remote(design, run));
        }
        for design in COMPARED {
            for instructions in OTHER_INSTRUCTIONS {
                cells.extend([Files::AtOnce, Files::Deferred].map(|files| {
                    let sockets = Sockets {
                        instructions,
                        ..Sockets::new(files, 8)
                    };
                    sockets.cell(design, run)
                }));
            }
        }
    }
    for design in Design::ALL {
        for cpus in MEMORY_CPUS {
            cells.push(kept(design, cpus, 1));
            if cpus > CPUS_PER_NODE {
                cells.push(kept(design, cpus, cpus / CPUS_PER_NODE));
            }
        }
    }
    cells
}

fn setting(
    context: &Context<'_>,
    design: Design,
    cpus: usize,
    run: u32,
) -> anyhow::Result<SlabSetting> {
    Ok(SlabSetting {
        profile: Profile::by_name(MACHINE)?,
        cpus,
        design,
        instructions: INSTRUCTIONS,
        seed: context.seed_of(run),
        purpose: Purpose::Measure,
    })
}

/// Returns rows of one workload.
fn rows(workload: &str, design: Design, run: u32, values: &[(Metric<'_>, f64)]) -> Vec<Raw> {
    let template = RowTemplate {
        machine: MACHINE,
        workload,
        config: design.name(),
        run,
    };
    let values = values.iter();
    values
        .map(|(metric, value)| template.row(metric, *value))
        .collect()
}

/// `socketallocbench` under some assumptions.
#[derive(Debug, Clone, Copy)]
struct Sockets {
    files: Files,
    cpus: usize,
    instructions: u64,
}

impl Sockets {
    /// With the usual number of instructions.
    const fn new(files: Files, cpus: usize) -> Self {
        Self {
            files,
            cpus,
            instructions: INSTRUCTIONS,
        }
    }

    /// Returns a run of a design. A quick run has those that take less than a tenth of a second,
    /// and the document's load.
    fn cell(self, design: Design, run: u32) -> Cell {
        let Self {
            files,
            cpus,
            instructions,
        } = self;
        let is_usual = instructions == INSTRUCTIONS;
        let is_judged_at_once = files == Files::AtOnce && design != Design::Slab;
        let is_quick = !files.is_long() && (is_usual || is_judged_at_once);
        let swept = |with: char| match is_usual {
            true => String::new(),
            false => format!("{with}instructions-{instructions}"),
        };
        let name = files.name();
        let workload = format!("socket cpus-{cpus} {name}{}", swept(' '));
        Cell {
            name: format!(
                "slab.{MACHINE}.socket-{cpus}.{name}{}.{}.{run}",
                swept('.'),
                design.name()
            ),
            kind: Method::Simulated,
            scale: Scale::quick_if(run <= QUICK_RUNS && is_quick),
            seconds: 1.6e-5 * (cpus * (sockets(files) + 2 * files.batch())) as f64,
            work: Box::new(move |context| {
                let bench = SocketBench {
                    sockets: sockets(files),
                    files,
                };
                let measured = bench.run(&SlabSetting {
                    instructions,
                    ..setting(&context, design, cpus, run)?
                })?;
                let values = [
                    (SOCKET, measured.socket),
                    (PAIR, measured.pair),
                    (LINES, measured.lines),
                ];
                Ok(rows(&workload, design, run, &values).into())
            }),
        }
    }
}

fn remote(design: Design, run: u32) -> Cell {
    Cell {
        name: format!(
            "slab.{MACHINE}.remote-{REMOTE_CPUS}.{}.{run}",
            design.name()
        ),
        kind: Method::Simulated,
        scale: Scale::quick_if(run <= QUICK_RUNS),
        seconds: 0.1,
        work: Box::new(move |context| {
            let load = RemoteFrees {
                objects: REMOTE_OBJECTS,
            };
            let measured = load.run(&setting(&context, design, REMOTE_CPUS, run)?)?;
            let workload = format!("remote cpus-{REMOTE_CPUS}");
            let values = [(OBJECT, measured.object), (LINES, measured.lines)];
            Ok(rows(&workload, design, run, &values).into())
        }),
    }
}

fn kept(design: Design, cpus: usize, nodes: usize) -> Cell {
    Cell {
        name: format!("slab.{MACHINE}.memory-{cpus}-{nodes}.{}", design.name()),
        kind: Method::Simulated,
        scale: Scale::quick_if(cpus == 8 && nodes > 1),
        seconds: 0.01 * cpus as f64,
        work: Box::new(move |context| {
            let measured = memory::run(&setting(&context, design, cpus, 1)?, nodes)?;
            let kib = |bytes: u64| bytes as f64 / 1024.0;
            let workload = format!("memory cpus-{cpus} nodes-{nodes}");
            let values = [
                (METADATA, kib(measured.metadata)),
                (KEPT, kib(measured.kept)),
                (QUEUED, measured.queued as f64),
                (TRIMMED, kib(measured.trimmed)),
            ];
            Ok(rows(&workload, design, 1, &values).into())
        }),
    }
}
