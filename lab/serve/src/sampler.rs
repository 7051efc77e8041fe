//! Takes samples: the lists at each interval, the frames in parts as the budget allows, the
//! kernel's own table of types at a tenth of that pace.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use brickyard::Order;
use brickyard_host::flags::{Pass, PassStep};
use brickyard_host::look::{Depth, Look};
use brickyard_host::pagetypeinfo::PageTypes;
use brickyard_host::{Host, HostError};
use brickyard_trace::record::fallbacks::{Tally, Tracing};
use rustix::time::{ClockId, clock_gettime};

use crate::budget::Budget;
use crate::process;
use crate::sample::{Cost, Fallbacks, Reading, Sample, Source, pool_free};

/// pagetypeinfo is read once in so many samples: the kernel locks a zone while it counts.
const TYPES_EVERY: u32 = 10;
/// What a budget saves: so long a rest is never made up for.
const SAVED: Duration = Duration::from_secs(60);
/// CPU time that the first pass may take at once, so that there soon is one; the budget pays for it
/// afterwards.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Whether a process's requests that fell back are counted.
#[derive(Debug)]
pub enum Fallen {
    /// They are.
    Traced(Box<Tracing>),
    /// They are not, for this reason.
    Untraced(String),
}

/// What became of a step over the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frames {
    /// A part was read.
    Part,
    /// The pass is complete, and there is a new reading.
    Analysed,
    /// They cannot be read.
    Withheld,
}

/// What takes samples of one host.
#[derive(Debug)]
pub struct Sampler {
    host: Host,
    budget: Budget,
    began: Instant,
    /// When the budget was last filled.
    filled: Instant,
    /// When the last sample was taken.
    sampled: Instant,
    samples: u32,
    page_types: Option<Arc<PageTypes>>,
    types_withheld: Option<String>,
    pass: Option<(Instant, Pass)>,
    frames_withheld: Option<String>,
    /// Frames of a pass, by zoneinfo.
    frames: u64,
    reading: Option<Arc<Reading>>,
    /// What is left of [`AT_ONCE`].
    at_once: Duration,
    fallen: Fallen,
    tally: Tally,
    /// CPU time of the process when this began.
    cpu_before: Duration,
}

/// Returns the CPU time of this thread.
fn thread_cpu() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

pub(crate) fn duration(time: rustix::time::Timespec) -> Duration {
    // The kernel's times of CPUs are not negative.
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}

impl Sampler {
    /// Creates one that takes this share of a CPU, 0 to 1.
    #[must_use]
    pub fn new(host: Host, share: f64, fallen: Fallen) -> Self {
        let now = Instant::now();
        let mut sampler = Self {
            host,
            budget: Budget::new(share, SAVED),
            began: now,
            filled: now,
            sampled: now,
            samples: 0,
            page_types: None,
            types_withheld: None,
            pass: None,
            frames_withheld: None,
            frames: 0,
            reading: None,
            at_once: AT_ONCE,
            fallen,
            tally: Tally::default(),
            cpu_before: process::cpu(),
        };
        sampler.read_types();
        sampler.tally = Tally::new(sampler.type_names());
        sampler
    }

    /// Returns the names of types by the kernel's numbers.
    fn type_names(&self) -> Vec<String> {
        let types = self
            .page_types
            .as_deref()
            .map(|types| types.free.as_slice());
        let Some([first, ..]) = types else {
            return Vec::new();
        };
        let rows = types.unwrap_or_default().iter();
        let of_first = rows.take_while(|row| (row.node, &row.zone) == (first.node, &first.zone));
        of_first.map(|row| row.kind.clone()).collect()
    }

    fn read_types(&mut self) {
        match self.host.page_types() {
            Ok(types) => {
                self.page_types = Some(Arc::new(types));
                self.types_withheld = None;
            }
            Err(why) => {
                self.page_types = None;
                self.types_withheld = Some(why.to_string());
            }
        }
    }

    /// Takes a sample: some milliseconds.
    ///
    /// # Errors
    /// If zoneinfo or buddyinfo cannot be read.
    pub fn sample(&mut self) -> Result<Sample, HostError> {
        let before = thread_cpu();
        if self.samples > 0 && self.samples.is_multiple_of(TYPES_EVERY) {
            self.read_types();
        }
        self.samples = self.samples.wrapping_add(1);
        let mut look = Look::at(&self.host, Depth::Lists, || 0, |_, _| {})?;
        look.page_types = self.page_types.as_deref().cloned();
        self.frames = look
            .zones
            .iter()
            .map(|zone| zone.info.end_pfn())
            .max()
            .unwrap_or(0);
        let vmstat = self.host.vmstat();
        let (counters, vmstat_withheld) = match vmstat {
            Ok(counters) => (counters, None),
            Err(why) => (Default::default(), Some(why.to_string())),
        };
        let meminfo = self.host.meminfo().unwrap_or_default();
        let available = meminfo.get("MemAvailable");
        let pool_free = pool_free(&meminfo, &look);
        let fallbacks = self.fallbacks();
        let hidden = self.host.processes_are_hidden();
        let sources = vec![
            Source {
                name: "vmstat",
                withheld: vmstat_withheld,
            },
            Source {
                name: "kpageflags",
                withheld: self.frames_withheld.clone(),
            },
            Source {
                name: "pagetypeinfo",
                withheld: self.types_withheld.clone(),
            },
            Source {
                name: "tracing",
                withheld: self.untraced(),
            },
            Source {
                name: "processes",
                withheld: hidden.then(|| "hidepid hides those of other users".to_owned()),
            },
        ];
        let progress = self.progress();
        // Lists have half of what the time brings at most, so that frames always go on.
        let brought = self.sampled.elapsed().mul_f64(self.budget.share() / 2.0);
        self.sampled = Instant::now();
        self.budget
            .take(thread_cpu().saturating_sub(before).min(brought));
        Ok(Sample {
            look,
            counters,
            available: available.map(|kib| kib.saturating_mul(1024)),
            pool_free,
            page_types: self.page_types.clone(),
            reading: self.reading.clone(),
            progress,
            fallbacks,
            fallbacks_lost: self.tally.lost,
            sources,
            cost: self.cost(),
        })
    }

    fn untraced(&self) -> Option<String> {
        match &self.fallen {
            Fallen::Traced(_) => None,
            Fallen::Untraced(why) => Some(why.clone()),
        }
    }

    fn fallbacks(&mut self) -> Option<Arc<Vec<Fallbacks>>> {
        if let Fallen::Untraced(_) = self.fallen {
            return None;
        }
        self.read_fallbacks();
        let counts = self.tally.counts();
        let counts = counts.map(|(process, mobility, from, count)| Fallbacks {
            process: process.to_owned(),
            mobility,
            from,
            count,
        });
        Some(Arc::new(counts.collect()))
    }

    /// Empties the kernel's buffers, which are small.
    fn read_fallbacks(&mut self) {
        if let Fallen::Traced(tracing) = &mut self.fallen {
            tracing.read_into(&mut self.tally);
        }
    }

    fn progress(&self) -> Option<f64> {
        if self.frames_withheld.is_some() {
            return None;
        }
        let read = self.pass.as_ref().map_or(0, |(_, pass)| pass.frames());
        Some((read as f64 / self.frames.max(1) as f64).min(1.0))
    }

    fn cost(&self) -> Cost {
        let cpu = process::cpu();
        let since = self.began.elapsed().as_secs_f64().max(1e-3);
        Cost {
            cpu,
            share: cpu.saturating_sub(self.cpu_before).as_secs_f64() / since,
            budget: self.budget.share(),
            resident: process::resident(),
        }
    }

    /// Reads parts of the frames while the budget allows; analyses them when the pass is complete.
    /// Returns true if there is a new reading. To be called about once a second.
    pub fn read_frames(&mut self) -> bool {
        self.budget.pass(self.filled.elapsed());
        self.filled = Instant::now();
        let mut before = thread_cpu();
        self.read_fallbacks();
        while self.budget.allows() || self.reading.is_none() && !self.at_once.is_zero() {
            let step = self.step();
            let now = thread_cpu();
            self.budget.take(now.saturating_sub(before));
            self.at_once = self.at_once.saturating_sub(now.saturating_sub(before));
            before = now;
            match step {
                Frames::Analysed => return true,
                Frames::Part => {}
                Frames::Withheld => return false,
            }
        }
        false
    }

    /// Reads all frames at once. Returns true if there is a new reading.
    pub fn read_all_frames(&mut self) -> bool {
        loop {
            match self.step() {
                Frames::Analysed => return true,
                Frames::Part => {}
                Frames::Withheld => return false,
            }
        }
    }

    /// Reads the next part of the frames.
    fn step(&mut self) -> Frames {
        match self.try_step() {
            Ok(frames) => {
                self.frames_withheld = None;
                frames
            }
            Err(why) => {
                self.frames_withheld = Some(why);
                self.pass = None;
                Frames::Withheld
            }
        }
    }

    fn try_step(&mut self) -> Result<Frames, String> {
        if self.pass.is_none() {
            let pass = self.host.pass().map_err(|why| why.to_string())?;
            self.pass = Some((Instant::now(), pass));
        }
        let Some((began, pass)) = &mut self.pass else {
            return Ok(Frames::Part);
        };
        let step = pass.step().map_err(|why| format!("kpageflags: {why}"))?;
        if step == PassStep::Read {
            return Ok(Frames::Part);
        }
        let took = began.elapsed();
        let Some((_, pass)) = self.pass.take() else {
            return Ok(Frames::Part);
        };
        let runs = pass.finish();
        if runs.is_empty() {
            return Err("kpageflags is empty".to_owned());
        }
        let types = self.page_types.as_deref();
        let block_order = types.and_then(|types| Order::try_new(types.page_block_order));
        let look = Look::of_runs(&self.host, block_order, runs);
        let mut look = look.map_err(|why| why.to_string())?;
        look.page_types = types.cloned();
        self.reading = Some(Arc::new(Reading::of(&self.host, &look, took)));
        Ok(Frames::Analysed)
    }
}
