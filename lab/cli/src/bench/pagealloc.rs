//! `brickyard bench pagealloc`: the table of the magazine patches of 2013, and with `--goals` every
//! row that the default configuration has a goal for.

use core::time::Duration;

use anyhow::bail;
use brickyard::Mobility;
use brickyard_bench::best_peer::{best_peers, text};
use brickyard_bench::conditions::Conditions;
use brickyard_bench::contestant::Contestant;
use brickyard_bench::instructions::{Instructions, LARGEST_BATCH, Turn};
use brickyard_bench::machine::{Bulk, FRAME_BYTES, Level, Lock, Slots};
use brickyard_bench::masking::Masking;
use brickyard_bench::pagealloc::PageAlloc as Measurement;
use brickyard_bench::peer::Peer;
use brickyard_bench::schedule::{Api, Freed, Orders, Schedule, Workload, goals, sensible};
use brickyard_measure::choice::Choice;
use brickyard_report::{Results, bytes_text};
use brickyard_run::{bar, interrupt};
use clap::Args;

use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::choice::choice;
use brickyard_measure::command::misuse::{Misuse, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;

/// What is compared if the user names nothing.
const CONFIGS: &str =
    "brickyard,list-2007,magazine-2013,vanilla,two-kinds-2005,zone-2007,combined-2007";

/// The options of `brickyard bench pagealloc`.
#[derive(Debug, Args)]
pub(crate) struct PageAlloc {
    /// What is compared; the first is the baseline. Configurations (see `brickyard configs`), and
    /// two yardsticks: `fetch-add`, whose allocation is one uncontended atomic fetch-add and whose
    /// free is nothing, and `array-stack`, a bare stack of frame numbers without a lock.
    #[arg(long, value_delimiter = ',', default_value = CONFIGS, value_name = "NAMES",
        default_value_if("peers", "true", "brickyard"))]
    config: Vec<String>,
    /// Also measure every peer, another project's allocator. Below the table, each row then has the
    /// best of them and how it compares with the baseline. Only `brickyard-peers` has peers, see
    /// the folder `peers`.
    #[arg(long)]
    peers: bool,
    /// Measure the rows that the default configuration has goals for, instead of all combinations
    /// of the other options.
    #[arg(long, conflicts_with_all = ["orders", "max_batch", "threads", "api", "free", "fill", "slots"])]
    goals: bool,
    /// Only count the instructions of an allocation and of a free under valgrind, loop included, at
    /// the zone and at the node, for single pages in batches of 1, 64 and 16384.
    #[arg(long, conflicts_with_all = ["goals", "orders", "threads", "api", "free", "fill", "samples", "sample_us", "lock", "bulk"])]
    instructions: bool,
    /// The orders, such as 0-4,9.
    #[arg(long, default_value = "0-4,9", value_name = "ORDERS")]
    orders: Orders,
    /// The largest batch; batches are 1, 2, 4 … and below 128 MiB.
    #[arg(long, default_value_t = 16384, value_name = "N")]
    max_batch: usize,
    /// How many threads run in parallel.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_name = "N,…")]
    threads: Vec<usize>,
    /// The calls that allocate and free a batch.
    #[arg(long, value_parser = choice(Api::ALL), value_delimiter = ',', default_value = "single")]
    api: Vec<Api>,
    /// How a batch is freed.
    #[arg(long, value_parser = choice(Freed::ALL), value_delimiter = ',', default_value = "same")]
    free: Vec<Freed>,
    /// How much of the memory is allocated beforehand, in percent: all of it is, page by page, and
    /// then the rest is freed, chosen at random.
    #[arg(long, value_delimiter = ',', default_value = "0", value_name = "PERCENT,…",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    fill: Vec<u8>,
    /// The level that requests enter at; `zone` only with the ticket lock.
    #[arg(long, value_parser = choice(Level::ALL), value_delimiter = ',', default_value = "node", default_value_if("instructions", "true", "zone,node"))]
    level: Vec<Level>,
    /// How a CPU accesses its lists: exclusively, or through a lock that other CPUs may try.
    #[arg(long, value_parser = choice(Slots::ALL), value_delimiter = ',', default_value = "exclusive")]
    slots: Vec<Slots>,
    /// How many samples of each row.
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    /// The least time of a sample's loop, in microseconds.
    #[arg(long, default_value_t = 1000, value_name = "US")]
    sample_us: u64,
    /// The memory of the machine (only its metadata is real).
    #[arg(long, default_value = "1G", value_parser = zone_bytes, value_name = "BYTES")]
    memory: usize,
    /// The mobility of the requests.
    #[arg(long, value_parser = choice(<Mobility as Choice>::ALL), default_value = "unmovable")]
    mobility: Mobility,
    /// The lock of the zones and magazines.
    #[arg(long, value_parser = choice(Lock::ALL), default_value = "ticket")]
    lock: Lock,
    /// How long the zone lock is held in a bulk operation.
    #[arg(long, value_parser = choice(Bulk::ALL), default_value = "hold")]
    bulk: Bulk,
    /// What a mask of interrupts does: nothing, or what a kernel does but for `cli` (x86-64).
    #[arg(long, value_parser = choice(Masking::ALL), default_value = "nothing")]
    masking: Masking,
    #[command(flatten)]
    output: Output,
}

impl PageAlloc {
    pub(crate) fn run(&self, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        let contestants = Contestant::named(&self.columns(peers)?, peers)
            .map_err(|why| Misuse::new(format!("--config: {why}")))?;
        self.validate()?;
        if self.instructions {
            return self.count(&contestants);
        }
        let (workloads, left_out) = sensible(self.requested(), self.memory / FRAME_BYTES);
        self.fits(&workloads, &left_out)?;
        self.output.check()?;
        for reason in left_out {
            eprintln!("brickyard: {reason}");
        }
        interrupt::watch()?;
        let measurement = Measurement {
            contestants: &contestants,
            workloads: &workloads,
            conditions: self.conditions(),
            samples: self.samples,
            least: Duration::from_micros(self.sample_us),
        };
        let results = measurement.run(&bar::Steps::default())?;
        if results.rows().is_empty() {
            bail!("no batch could be allocated; give more --memory, less --fill or lower --orders");
        }
        self.emit(&results, peers)
    }

    /// Returns the names of all columns.
    fn columns(&self, peers: &[&'static dyn Peer]) -> Result<Vec<String>, Misuse> {
        let mut names = self.config.clone();
        if self.peers {
            if peers.is_empty() {
                let why = "--peers: this program has none; run `cargo run --release -- bench \
                           pagealloc --peers` in the folder `peers`";
                return Err(Misuse::new(why));
            }
            for peer in peers {
                if !names.iter().any(|name| name == peer.name()) {
                    names.push(peer.name().to_owned());
                }
            }
        }
        Ok(names)
    }

    /// Counts instructions instead.
    fn count(&self, contestants: &[Contestant]) -> anyhow::Result<()> {
        self.has_room_for(self.max_batch.min(LARGEST_BATCH))?;
        self.output.check()?;
        interrupt::watch()?;
        let measurement = Instructions {
            contestants,
            levels: &self.level,
            slots: &self.slots,
            most_batch: self.max_batch,
            conditions: self.conditions(),
        };
        match measurement.count(&bar::Steps::default())? {
            Some(results) => self.emit(&results, &[]),
            None => Ok(()),
        }
    }

    fn emit(&self, results: &Results, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        let peers: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        let first = self.config[0].as_str();
        let label = |workload: &str, metric: &str| workload.replacen("batch", metric, 1);
        let best = match peers.contains(&first) {
            true => String::new(),
            false => text(first, &best_peers(results, first, &peers, &label)),
        };
        self.output.emit_with(results, &label, &best)
    }

    const fn conditions(&self) -> Conditions {
        Conditions {
            frames: self.memory / FRAME_BYTES,
            mobility: self.mobility,
            lock: self.lock,
            bulk: self.bulk,
            masking: self.masking,
        }
    }

    /// Fails if the options do not fit together.
    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([
            ("config", has_twice(&self.config)),
            ("threads", has_twice(&self.threads)),
            ("api", has_twice(&self.api)),
            ("free", has_twice(&self.free)),
            ("fill", has_twice(&self.fill)),
            ("level", has_twice(&self.level)),
            ("slots", has_twice(&self.slots)),
        ])?;
        if self.threads.contains(&0) || self.samples == 0 || self.max_batch == 0 {
            let why = "--threads, --samples and --max-batch must be at least 1";
            return Err(Misuse::new(why));
        }
        if self.level.contains(&Level::Zone) && self.lock != Lock::Ticket {
            let why = "--level zone works only with --lock ticket; leave one of the two out";
            return Err(Misuse::new(why));
        }
        Ok(())
    }

    /// Returns the workloads that the options name.
    fn requested(&self) -> Vec<Workload> {
        if self.goals {
            return goals(&self.level);
        }
        let schedule = Schedule {
            slots: self.slots.clone(),
            fill: self.fill.clone(),
            level: self.level.clone(),
            threads: self.threads.clone(),
            api: self.api.clone(),
            freed: self.free.clone(),
            orders: self.orders.0.clone(),
            least_batch: 1,
            most_batch: self.max_batch,
        };
        schedule.workloads()
    }

    /// Fails if there is nothing to measure, or too little memory for it.
    fn fits(&self, workloads: &[Workload], left_out: &[String]) -> Result<(), Misuse> {
        if workloads.is_empty() {
            let why = left_out.join("; ");
            return Err(Misuse::new(format!(
                "nothing is left to measure: {why}; add --orders 0, an even number to --threads, a lower --fill or more --memory"
            )));
        }
        self.has_room_for(workloads.iter().map(Workload::pages).max().unwrap_or(0))
    }

    /// Fails if there is too little memory for so many pages at once.
    fn has_room_for(&self, most: usize) -> Result<(), Misuse> {
        // Twice the largest batch of all threads; a configuration with a zone for movable pages has
        // half of the memory for the others.
        let needed = most.saturating_mul(4 * FRAME_BYTES);
        if self.memory < needed {
            return Err(Misuse::new(format!(
                "--memory {} is too small for these batches; give at least {}M, or a lower --max-batch",
                bytes_text(self.memory),
                needed.div_ceil(1 << 20)
            )));
        }
        Ok(())
    }
}

/// The options of a process that `--instructions` starts.
#[derive(Debug, Args)]
pub(crate) struct PageAllocTurn {
    #[arg(long)]
    config: String,
    #[arg(long, value_parser = choice(Level::ALL))]
    level: Level,
    #[arg(long, value_parser = choice(Slots::ALL))]
    slots: Slots,
    #[arg(long)]
    batch: usize,
    #[arg(long)]
    rounds: usize,
    #[arg(long, value_parser = zone_bytes)]
    memory: usize,
    #[arg(long, value_parser = choice(<Mobility as Choice>::ALL))]
    mobility: Mobility,
    #[arg(long, value_parser = choice(Masking::ALL))]
    masking: Masking,
}

impl PageAllocTurn {
    pub(crate) fn run(&self, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        let conditions = Conditions {
            frames: self.memory / FRAME_BYTES,
            mobility: self.mobility,
            masking: self.masking,
            ..Conditions::USUAL
        };
        let turn = Turn {
            level: self.level,
            slots: self.slots,
            batch: self.batch,
            rounds: self.rounds,
        };
        for contestant in Contestant::named(core::slice::from_ref(&self.config), peers)? {
            turn.run(&contestant, &conditions)?;
        }
        Ok(())
    }
}
