//! The designs of 2008 on Dumazet's machine, simulated: `socketallocbench` alone and with eight
//! tasks, remote frees, and memory by the number of CPUs and nodes. Two things are assumed of the
//! benchmark, and varied: how many deferred files come back together, and how many instructions
//! come between two accesses to shared memory.

use brickyard_machine::Profile;
use brickyard_results::Metric;
use brickyard_run::named;
use brickyard_simulate::slabs::memory::{self, CPUS_PER_NODE};
use brickyard_simulate::slabs::remote::RemoteFrees;
use brickyard_simulate::slabs::socket::{Files, SocketBench};
use brickyard_simulate::slabs::{
    Design, INSTRUCTIONS, OTHER_INSTRUCTIONS, Purpose, SlabFailed, SlabSetting,
};

use crate::cell::{Cell, Scale};
use crate::cells::rows::RowTemplate;
use crate::experiment::Parameter;
use crate::raw::Method;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// Dumazet's.
const MACHINE: &Profile = Profile::BL460C_G1;

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

/// What can be set on a simulated machine.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "load",
        "socket,remote",
        "what is done with objects: socket, `socketallocbench` with a task on each CPU; remote, every other CPU allocates and the next one frees; memory, what the caches of sockets keep when nothing is in use",
    ),
    Parameter::new(
        "config",
        "slqb-2008,slub-2008,slab-2008,brickyard-slab",
        "designs, the first is the baseline: SLQB, SLUB and SLAB of 2008, and the library's",
    ),
    Parameter::new(
        "cpus",
        "8",
        "numbers of CPUs, 1 to 256; remote takes 2 at least",
    ),
    Parameter::new(
        "files",
        "at-once,deferred",
        "how a socket's file is freed: at-once; or with all others of a millisecond, deferred, of four, deferred-4-ms, or of ten, deferred-10-ms",
    ),
    Parameter::new(
        "instructions",
        "4",
        "instructions between two accesses to shared memory, an assumption",
    ),
    Parameter::new(
        "nodes",
        "1",
        "numbers of nodes that the memory of load=memory is divided into",
    ),
];

named! {
    /// What is done with objects.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Load {
        Socket => "socket",
        Remote => "remote",
        Memory => "memory",
    }
}

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong, or two do not fit together.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let machine = settings.profile()?;
    let loads = settings.list::<Load>("load")?;
    let designs = settings.named("config", &Design::ALL, Design::name)?;
    let cpus = settings.cpus("cpus")?;
    let files = settings.list::<Files>("files")?;
    let instructions = settings.counts("instructions")?;
    let nodes = settings.counts("nodes")?;
    if loads.contains(&Load::Remote) && cpus.contains(&1) {
        return Err(wrong("cpus", "load=remote takes 2 at least"));
    }
    if loads.contains(&Load::Memory) && nodes.iter().max() > cpus.iter().min() {
        return Err(wrong("nodes", "each has a CPU at least"));
    }
    let mut cells = Vec::new();
    for load in loads {
        for &cpus in &cpus {
            for &instructions in &instructions {
                for run in 1..=settings.runs {
                    for &design in &designs {
                        let instructions = instructions as u64;
                        let run = Run {
                            machine,
                            cpus,
                            instructions,
                            design,
                            run,
                        };
                        match load {
                            Load::Socket => {
                                cells.extend(files.iter().map(|&files| run.socket(files)))
                            }
                            Load::Remote => cells.push(run.remote()),
                            Load::Memory if run.run > 1 => {}
                            Load::Memory => {
                                cells.extend(nodes.iter().map(|&nodes| run.kept(nodes)))
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(cells)
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
                let of = |cpus| Run::usual(design, cpus, run).socket(files);
                cells.extend(SOCKET_CPUS.map(of));
            }
            cells.push(Run::usual(design, REMOTE_CPUS, run).remote());
        }
        for design in COMPARED {
            for instructions in OTHER_INSTRUCTIONS {
                let run = Run {
                    instructions,
                    ..Run::usual(design, 8, run)
                };
                cells.extend([Files::AtOnce, Files::Deferred].map(|files| run.socket(files)));
                cells.push(Run { cpus: 1, ..run }.socket(Files::AtOnce));
            }
        }
    }
    for design in Design::ALL {
        for cpus in MEMORY_CPUS {
            let run = Run::usual(design, cpus, 1);
            cells.push(run.kept(1));
            if cpus > CPUS_PER_NODE {
                cells.push(run.kept(cpus / CPUS_PER_NODE));
            }
        }
    }
    cells
}

/// A run of a design.
#[derive(Debug, Clone, Copy)]
struct Run {
    machine: &'static Profile,
    cpus: usize,
    instructions: u64,
    design: Design,
    run: u32,
}

/// What a run measured.
type Values = Vec<(Metric<'static>, f64)>;

impl Run {
    /// On the document's machine, with the usual number of instructions.
    const fn usual(design: Design, cpus: usize, run: u32) -> Self {
        Self {
            machine: MACHINE,
            cpus,
            instructions: INSTRUCTIONS,
            design,
            run,
        }
    }

    /// Returns the instructions between two accesses, where they are not the usual ones.
    fn swept(&self, with: char) -> String {
        match self.instructions {
            INSTRUCTIONS => String::new(),
            instructions => format!("{with}instructions-{instructions}"),
        }
    }

    /// `socketallocbench`. A quick run has those that take less than a tenth of a second, and the
    /// document's load.
    fn socket(self, files: Files) -> Cell {
        let Self {
            cpus, design, run, ..
        } = self;
        // With deferred files, a batch of them.
        let sockets = files.batch().max(500);
        let is_judged_at_once = files == Files::AtOnce && design != Design::Slab;
        let is_usual = self.instructions == INSTRUCTIONS;
        let is_quick = !files.is_long() && (is_usual || is_judged_at_once);
        let (name, design) = (files.name(), design.name());
        self.cell(
            format!("socket-{cpus}.{name}{}.{design}.{run}", self.swept('.')),
            format!("socket cpus-{cpus} {name}{}", self.swept(' ')),
            Scale::quick_if(run <= QUICK_RUNS && is_quick),
            1.6e-5 * (cpus * (sockets + 2 * files.batch())) as f64,
            move |setting| {
                let measured = SocketBench { sockets, files }.run(setting)?;
                Ok(vec![
                    (SOCKET, measured.socket),
                    (PAIR, measured.pair),
                    (LINES, measured.lines),
                ])
            },
        )
    }

    fn remote(self) -> Cell {
        let Self {
            cpus, design, run, ..
        } = self;
        let design = design.name();
        self.cell(
            format!("remote-{cpus}{}.{design}.{run}", self.swept('.')),
            format!("remote cpus-{cpus}{}", self.swept(' ')),
            Scale::quick_if(run <= QUICK_RUNS),
            0.1 * cpus as f64 / REMOTE_CPUS as f64,
            |setting| {
                let load = RemoteFrees {
                    objects: REMOTE_OBJECTS,
                };
                let measured = load.run(setting)?;
                Ok(vec![(OBJECT, measured.object), (LINES, measured.lines)])
            },
        )
    }

    /// The memory of so many nodes. Nothing in it is left to chance, so there is one run.
    fn kept(self, nodes: usize) -> Cell {
        let cpus = self.cpus;
        let design = self.design.name();
        self.cell(
            format!("memory-{cpus}-{nodes}{}.{design}", self.swept('.')),
            format!("memory cpus-{cpus} nodes-{nodes}{}", self.swept(' ')),
            Scale::quick_if(cpus == 8 && nodes > 1),
            0.01 * cpus as f64,
            move |setting| {
                let measured = memory::run(setting, nodes)?;
                let kib = |bytes: u64| bytes as f64 / 1024.0;
                Ok(vec![
                    (METADATA, kib(measured.metadata)),
                    (KEPT, kib(measured.kept)),
                    (QUEUED, measured.queued as f64),
                    (TRIMMED, kib(measured.trimmed)),
                ])
            },
        )
    }

    fn cell(
        self,
        name: String,
        workload: String,
        scale: Scale,
        seconds: f64,
        work: impl Fn(&SlabSetting) -> Result<Values, SlabFailed> + Send + Sync + 'static,
    ) -> Cell {
        Cell {
            name: format!("slab.{}.{name}", self.machine.name),
            kind: Method::Simulated,
            scale,
            seconds,
            work: Box::new(move |context| {
                let values = work(&SlabSetting {
                    profile: self.machine,
                    cpus: self.cpus,
                    design: self.design,
                    instructions: self.instructions,
                    seed: context.seed_of(self.run),
                    purpose: Purpose::Measure,
                })?;
                let template = RowTemplate {
                    machine: self.machine.name,
                    workload: &workload,
                    config: self.design.name(),
                    run: self.run,
                };
                let row = |(metric, value): &(Metric<'_>, f64)| template.row(metric, *value);
                Ok(values.iter().map(row).collect::<Vec<_>>().into())
            }),
        }
    }
}
