//! The page allocator's part of page faults, with threads of this host. Each round is a cell: every
//! configuration has a turn in it with each number of threads, and the two of the document another
//! one, in which masks of interrupts cost nothing.

use crate::raw::Raw;

use brickyard_bench::faults::Faults;
use brickyard_bench::pft::{Column, once, turn};
use brickyard_measure::memory::{FRAME_BYTES, FrameMemory};
use brickyard_results::{bytes_text, counted};
use brickyard_run::memory::available;
use brickyard_run::side_by_side::cores;

use super::simulated::{FAULTS_CPU, FAULTS_SEC, FREES_CPU};
use crate::cell::Cell;
use crate::cells::configs::{MaskedConfiguration, OF_2013};
use crate::cells::timed::{MIN_ROUNDS, Round, TimedExperiment};
use crate::experiment::Parameter;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// Threads that run at once.
const THREADS: [usize; 2] = [1, 2];

/// The memory that pages are allocated from, all of it resident; little, so that a round
/// is short.
const MEMORY: usize = 128 << 20;

/// How often a turn allocates and frees three quarters of it.
const PASSES: usize = 8;

/// What can be set on this host.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "config",
        "vanilla,magazine-2013,brickyard",
        "designs, the first is the baseline; see `brickyard help designs`; and array-stack, a bare stack of pages for each thread, to show the cost of clearing alone",
    ),
    Parameter::new(
        "threads",
        "auto",
        "numbers of threads; auto: 1, 2, 3 ... one for each CPU",
    ),
    Parameter::new(
        "memory",
        "auto",
        "memory that pages are allocated from, all of it real; auto: 256M, or 16M for each of more than 16 threads",
    ),
    Parameter::new(
        "passes",
        "4",
        "how often a sample allocates and frees three quarters of the memory",
    ),
    Parameter::new(
        "masking",
        "nothing",
        "what a mask of interrupts does: nothing, or flags, what a kernel does but for `cli` (x86-64)",
    ),
];

/// The least memory per thread: a quarter of it stays free, which is more than is in caches that
/// other threads cannot reach.
const LEAST_PER_THREAD: usize = 16 << 20;

const LEAST_DEFAULT: usize = 256 << 20;

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong, or two do not fit together.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let columns: Vec<Column> = settings.list("config")?;
    let threads = settings.threads("threads", || (1..=cores()).collect())?;
    let memory = memory(settings, threads.iter().max().copied().unwrap_or(1))?;
    let passes = settings.count("passes")?;
    let masking = settings.one("masking")?;
    let suffix = settings.suffix(&["masking"]);
    let pages = (memory / FRAME_BYTES) as f64 * (passes + 1) as f64;
    let timed = TimedExperiment {
        name: "pft.host.threads",
        quick: 0,
        seconds: 0.4e-6 * pages * (columns.len() * threads.len()) as f64,
        work: move |mut round: Round<'_>| {
            let memory = FrameMemory::new(memory)?;
            let mut rows = Vec::new();
            for &threads in &threads {
                let faults = Faults {
                    memory: &memory,
                    threads,
                    pages: memory.frames().len() / 4 * 3,
                    passes,
                };
                let workload = format!("threads-{threads}{suffix}");
                let spent = round.turns(&workload, 1, &columns, |column| {
                    once(column, masking, faults)
                })?;
                for (column, spent) in spent.in_order_of(&columns) {
                    let template = round.template(&workload, column.name());
                    rows.extend([
                        template.row(&FAULTS_CPU, spent.faults_per_cpu_second()),
                        template.row(&FAULTS_SEC, spent.faults_per_second()),
                        template.row(&FREES_CPU, spent.frees_per_cpu_second()),
                    ]);
                }
            }
            Ok(rows)
        },
    };
    Ok(timed.rounds(settings.runs))
}

/// Returns the memory for so many threads.
fn memory(settings: &Settings<'_>, threads: usize) -> Result<usize, Refusal> {
    let least = threads.saturating_mul(LEAST_PER_THREAD);
    let memory = match settings.is_auto("memory") {
        true => least.max(LEAST_DEFAULT),
        false => settings.bytes("memory")?,
    };
    if memory < least {
        let why = format_args!(
            "{} is too small for {}; give at least {}",
            bytes_text(memory),
            counted(threads, "thread", "threads"),
            bytes_text(least)
        );
        return Err(wrong("memory", why));
    }
    match available() {
        Some(available) if memory > available / 2 => Err(wrong(
            "memory",
            format_args!(
                "{} would be used, but only {} MiB are available; give at most {}M, or fewer threads",
                bytes_text(memory),
                available >> 20,
                (available / 2) >> 20
            ),
        )),
        _ => Ok(memory),
    }
}

pub(super) fn cells() -> Vec<Cell> {
    let timed = TimedExperiment {
        name: "pft.host.threads",
        quick: MIN_ROUNDS,
        seconds: 1.2,
        work: rows,
    };
    timed.cells()
}

fn rows(mut round: Round<'_>) -> anyhow::Result<Vec<Raw>> {
    let memory = FrameMemory::new(MEMORY)?;
    let mut rows = Vec::new();
    for threads in THREADS {
        let faults = Faults {
            memory: &memory,
            threads,
            pages: memory.frames().len() / 4 * 3,
            passes: PASSES,
        };
        let workload = format!("threads-{threads}");
        let compared = MaskedConfiguration::each(&OF_2013);
        let spent = round.turns(&workload, 1, &compared, |config| {
            turn(config.configuration, config.masking, faults)
        })?;
        for (config, spent) in spent {
            let workload = config.workload(&workload);
            let template = round.template(&workload, config.configuration.name());
            rows.push(template.row(&FAULTS_CPU, spent.faults_per_cpu_second()));
            rows.push(template.row(&FAULTS_SEC, spent.faults_per_second()));
        }
    }
    Ok(rows)
}
