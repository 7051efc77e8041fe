//! `brickyard bench slab`: heaps for small objects, ours and other people's, in one run.
//!
//! | file | what it holds |
//! |---|---|
//! | `work.rs` | which workloads there are, what they measure, what a row is called |
//! | `heap.rs`, `objects.rs` | what the loops allocate from, as two traits; objects as the loops have them |
//! | `contestant.rs` | who can be compared, by name |
//! | `ours.rs`, `floor.rs`, `masked.rs`, `preload.rs` | who stands behind those: our heaps, two yardsticks, a heap that masks, libraries found on this machine |
//! | `socket.rs`, `local.rs`, `remote.rs`, `swap.rs`, `tail.rs` | workloads about time |
//! | `producers.rs`, `refill.rs`, `giveback.rs` | workloads about memory |
//! | `hits.rs`, `instructions.rs` | instructions of a hit, counted by valgrind |
//! | `alternating.rs` | how much more one loop takes than another |
//! | `crowd.rs`, `ring.rs`, `link.rs` | threads at the same time, how objects pass between them, how far apart they are |
//! | `turn.rs`, `child.rs`, `mark.rs` | a turn, in a process of its own, and how that says where it is |
//! | `process.rs`, `resident.rs` | starting that process, and what it has resident |
//! | `results.rs` | the rows |
//!
//! Each turn is a process of its own, and the contestants take turns at each workload. A turn warms up before it measures, and takes the median of five
//! repeats; a row has a sample a round.

mod alternating;
mod child;
mod contestant;
pub(crate) mod crowd;
#[allow(unsafe_code, reason = "it hands out memory")]
mod floor;
#[allow(unsafe_code, reason = "it frees objects")]
mod giveback;
#[allow(unsafe_code, reason = "its contract is about memory")]
pub(crate) mod heap;
#[allow(unsafe_code, reason = "it frees objects")]
mod hits;
mod instructions;
mod link;
#[allow(unsafe_code, reason = "it frees objects")]
mod local;
mod mark;
#[allow(unsafe_code, reason = "it saves the processor's flags")]
mod masked;
#[allow(unsafe_code, reason = "it touches and frees objects")]
pub(crate) mod objects;
#[allow(unsafe_code, reason = "it frees objects")]
mod ours;
mod preload;
mod process;
#[allow(unsafe_code, reason = "it frees objects")]
mod producers;
#[allow(unsafe_code, reason = "it frees objects")]
mod refill;
#[allow(unsafe_code, reason = "it frees objects")]
mod remote;
pub(crate) mod resident;
mod results;
#[allow(unsafe_code, reason = "it hands objects over as addresses")]
mod ring;
#[allow(unsafe_code, reason = "it frees objects")]
pub(crate) mod socket;
#[allow(unsafe_code, reason = "it hands objects over as addresses")]
mod swap;
#[allow(
    unsafe_code,
    reason = "it frees objects and reads the time stamp counter"
)]
mod tail;
pub(crate) mod turn;
pub(crate) mod work;

use core::cell::RefCell;
use core::time::Duration;
use std::collections::HashMap;

use anyhow::bail;
use brickyard_report::{Results, plain_label};
use clap::Args;

use super::turns::{Round, Turns};
use crate::amount::{bytes, bytes_text};
use crate::interrupt;
use crate::misuse::{Misuse, has_twice};
use crate::output::Output;
use contestant::{Chosen, Contestant};
use crowd::Clock;
use objects::Shape;
use results::Measured;
use turn::HeapPeer;
use work::{Work, Workload};

pub(crate) use child::SlabTurn;

/// The options of `brickyard bench slab`.
#[derive(Debug, Args)]
pub(crate) struct Slab {
    /// What is compared; the first is the baseline. Without it all there is: our heaps, `system` (the system's malloc), libraries found on this machine
    /// (`jemalloc.so`, `tcmalloc.so`, `mimalloc.so`, and `brickyard.so` beside this program), and two yardsticks of fixed buffers: `floor`, inlined, and
    /// `floor-dynamic`, called as malloc is.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    config: Vec<String>,
    /// More libraries that are loaded before the system's malloc, as NAME=PATH; the column is called NAME.so. A name alone stands for a library that is found.
    /// What LD_PRELOAD says in the environment is left out.
    #[arg(long, value_delimiter = ',', value_name = "NAME=PATH,…")]
    preload: Vec<String>,
    /// What is done.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "socket,local,remote,swap,tail"
    )]
    workload: Vec<Workload>,
    /// How many threads run `socket`, and, where they are two or more, `swap`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,8",
        value_name = "N,…"
    )]
    threads: Vec<usize>,
    /// The largest batch of `local`; batches are 1, 2, 4 …
    #[arg(long, default_value_t = 16384, value_name = "N")]
    max_batch: usize,
    /// The size of the objects of `local`, `remote`, `swap` and `tail`, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "64", value_name = "BYTES,…",
        value_parser = clap::value_parser!(u32).range(i64::from(Shape::LEAST)..=i64::from(floor::MOST_BYTES)))]
    size: Vec<u32>,
    /// The memory that lives in `producers` (else 181M), and in `refill` and `giveback` (else 488M).
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    live: Option<usize>,
    /// How long `giveback` waits for memory to come back while nothing of the process runs, in seconds.
    #[arg(
        long,
        default_value_t = 10.0,
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    rest: f64,
    /// Samples of each row.
    #[arg(long, default_value_t = 5, value_name = "N")]
    samples: usize,
    /// The time that a sample takes about, in microseconds.
    #[arg(long, default_value_t = 20_000, value_name = "US")]
    sample_us: u64,
    /// What time `socket`, `local` and `swap` measure: `cpu` is for a machine that others use too.
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    clock: Clock,
    /// Count the instructions of an allocation and of a free that hit, at 64 and at 1216 bytes, under valgrind; nothing else is measured.
    #[arg(long, conflicts_with_all = ["workload", "threads", "max_batch", "size", "live", "rest", "samples", "sample_us", "clock"])]
    instructions: bool,
    #[command(flatten)]
    output: Output,
}

/// Fewer bytes hold too few objects for their resident memory to mean anything.
const LEAST_LIVE: usize = 1 << 20;

/// A sample does not take longer than this, nor a rest: ten minutes.
const MOST_SECONDS: u64 = 600;

/// What is a sample's time while nothing counts, in microseconds.
const WARM_UP_US: u64 = 1000;

/// A heap may have this many times what lives.
const MOST_TIMES: usize = 3;

/// One turn of a heap of this library or of the system, in a process of its own: what it measured, by name.
///
/// # Errors
/// Where nothing is called so, or its process fails.
pub(crate) fn turn(heap: &str, work: &Work) -> anyhow::Result<HashMap<String, f64>> {
    let chosen = contestant::choose(&[heap.to_owned()], &[], &[])?;
    let Some(contestant) = chosen.contestants.first() else {
        bail!("{}", chosen.skipped.join(", "));
    };
    Ok(process::run(contestant, work, Duration::ZERO)?.values)
}

impl Slab {
    pub(crate) fn run(&self, peers: &[&'static dyn HeapPeer]) -> anyhow::Result<()> {
        self.validate()?;
        let Chosen {
            contestants,
            skipped,
        } = contestant::choose(&self.config, &self.preload, peers)?;
        let works = self.works()?;
        self.output.check()?;
        for reason in skipped {
            eprintln!("brickyard: {reason}");
        }
        if contestants.is_empty() {
            bail!("nothing is left to be measured");
        }
        interrupt::watch()?;
        if self.instructions {
            return match instructions::count(&contestants)? {
                Some(results) => self.output.emit(&results, &plain_label),
                None => Ok(()),
            };
        }
        let mut taken = Vec::new();
        let mut failed = 0;
        for work in &works {
            match self.measure(&contestants, work, &mut failed) {
                Ok(of_work) => taken.push(of_work),
                // What was measured until then is kept.
                Err(_) if interrupt::asked() && !taken.is_empty() => break,
                Err(error) => return Err(error),
            }
            if interrupt::asked() {
                break;
            }
        }
        let results = results::results(&contestants, &works, &taken)?;
        self.emit(&results, failed)
    }

    fn emit(&self, results: &Results, failed: usize) -> anyhow::Result<()> {
        if results.rows().is_empty() {
            bail!("none of them has a row of any of these workloads");
        }
        self.output.emit(results, &plain_label)?;
        if failed > 0 {
            bail!("{failed} of the rows are not there, see above");
        }
        Ok(())
    }

    /// Options that each make sense, but not so.
    fn validate(&self) -> Result<(), Misuse> {
        for (option, twice) in [
            ("workload", has_twice(&self.workload)),
            ("threads", has_twice(&self.threads)),
            ("size", has_twice(&self.size)),
        ] {
            if twice {
                return Err(Misuse::new(format!("--{option} names a value twice")));
            }
        }
        for (option, least) in [
            ("samples", Some(self.samples)),
            ("max-batch", Some(self.max_batch)),
            ("threads", self.threads.iter().copied().min()),
        ] {
            if least == Some(0) {
                return Err(Misuse::new(format!("--{option} must be at least 1")));
            }
        }
        if !(1..=MOST_SECONDS * 1_000_000).contains(&self.sample_us) {
            return Err(Misuse::new("--sample-us must be from 1 to 600000000"));
        }
        if !(0.0..=MOST_SECONDS as f64).contains(&self.rest) {
            return Err(Misuse::new("--rest must be from 0 to 600 seconds"));
        }
        Ok(())
    }

    /// Every workload with all that it depends on, in the order of the rows.
    fn works(&self) -> Result<Vec<Work>, Misuse> {
        let mut works = Vec::new();
        for &workload in &self.workload {
            let work = Work {
                workload,
                threads: 1,
                batch: 1,
                size: Shape::LEAST,
                live: self.live.unwrap_or(workload.live()),
                sample_us: self.sample_us,
                clock: self.clock,
            };
            let threads = self.threads.iter().map(|&threads| Work { threads, ..work });
            let sizes = self.size.iter().map(|&size| Work { size, ..work });
            match workload {
                Workload::Socket => works.extend(threads),
                Workload::Local => works.extend(sizes.flat_map(|of_size| {
                    let batches = (0..usize::BITS).map(|shift| 1 << shift);
                    let batches = batches.take_while(|&batch| batch <= self.max_batch);
                    batches.map(move |batch| Work { batch, ..of_size })
                })),
                Workload::Remote | Workload::Tail | Workload::Hits => works.extend(sizes),
                Workload::Swap => {
                    let swapping = threads.filter(|work| work.threads > 1);
                    works.extend(swapping.flat_map(|of_threads| {
                        let sizes = self.size.iter();
                        sizes.map(move |&size| Work { size, ..of_threads })
                    }));
                }
                Workload::Producers | Workload::Refill | Workload::Giveback => works.push(work),
            }
        }
        if works.is_empty() {
            return Err(Misuse::new(
                "--workload swap needs two threads or more; add 2 to --threads",
            ));
        }
        self.fits(&works)?;
        Ok(works)
    }

    /// Is there memory for what is to live?
    fn fits(&self, works: &[Work]) -> Result<(), Misuse> {
        let about_memory = works.iter().filter(|work| work.workload.is_about_memory());
        let Some(most) = about_memory.map(|work| work.live).max() else {
            return Ok(());
        };
        if most < LEAST_LIVE {
            return Err(Misuse::new(format!(
                "--live {most} is too little to tell heaps apart; give at least {}",
                bytes_text(LEAST_LIVE)
            )));
        }
        match resident::available() {
            Some(available) if available / MOST_TIMES < most => Err(Misuse::new(format!(
                "a heap may have {MOST_TIMES} times the memory that lives in it, and {} MiB are available; give a --live of at most {}M",
                available >> 20,
                (available / MOST_TIMES) >> 20
            ))),
            _ => Ok(()),
        }
    }

    /// What came out of every turn at one workload: a vector for each contestant, with an entry a round, none where it takes no part. A contestant that fails is told
    /// of, counted, and not tried again.
    fn measure(
        &self,
        contestants: &[Contestant],
        work: &Work,
        failed: &mut usize,
    ) -> anyhow::Result<Vec<Vec<Option<Measured>>>> {
        let names: Vec<&str> = contestants.iter().map(|one| one.name.as_str()).collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            steps: 1,
        };
        let failing = RefCell::new(Vec::new());
        let taken = turns.take(|whose, round, step| {
            let contestant = &contestants[whose];
            let is_out = !contestant.takes_part_in(work.workload);
            let measured = if is_out || failing.borrow().contains(&whose) {
                Ok(None)
            } else {
                self.turn(contestant, work, round)
            };
            step();
            Ok(measured.unwrap_or_else(|error| {
                if !interrupt::asked() {
                    failing.borrow_mut().push(whose);
                    eprintln!("brickyard: {}, {work}: {error:#}", contestant.name);
                }
                None
            }))
        });
        *failed += failing.borrow().len();
        taken
    }

    fn turn(
        &self,
        contestant: &Contestant,
        work: &Work,
        round: Round,
    ) -> anyhow::Result<Option<Measured>> {
        // Turns share nothing that could be warmed up, but the files of the program and its libraries. Memory needs not even that.
        let sample_us = match round {
            Round::WarmUp if work.workload.is_about_memory() => return Ok(None),
            Round::WarmUp => self.sample_us.min(WARM_UP_US),
            Round::Measured(_) => self.sample_us,
        };
        let work = Work { sample_us, ..*work };
        let said = process::run(contestant, &work, Duration::from_secs_f64(self.rest))?;
        Ok(Some(Measured::of(work.workload, &said)))
    }
}
