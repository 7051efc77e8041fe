//! What `storm`, `pft` and `kernbench` share: the options for machines and allocators, and the
//! runs, on several threads of the host.

use brickyard::FRAMES_MOST;
use brickyard_machine::{MOST_CPUS, Profile, UnknownProfile};
use brickyard_report::bytes_text;
use brickyard_report::{Host, counted};
use brickyard_run::side_by_side::Follow;
use brickyard_run::{bar, interrupt};
use brickyard_simulate::setting::{FRAME_BYTES, MEMORY, whole_mib};
use brickyard_simulate::{Configuration, RunError, Setting};
use clap::Args;

use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};

/// The default configurations.
const CONFIGS: &str = "vanilla,magazine-2013,brickyard";

/// The options that these experiments have in common.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// The configurations to compare; the first is the baseline. See `brickyard configs`: `vanilla`
    /// is Linux 2.6 up to 2.6.23; what the document of 2013 calls vanilla, Linux 3.9, is
    /// `list-2007` here.
    #[arg(long, value_delimiter = ',', default_value = CONFIGS, value_name = "NAMES")]
    config: Vec<Configuration>,
    /// Numbers of CPUs, 1 to 256.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32,64",
        value_name = "NUMBERS"
    )]
    cpus: Vec<usize>,
    /// Runs of each row, each with its own seed.
    #[arg(long, default_value_t = 5, value_name = "N")]
    runs: usize,
    /// The seed of the first run; each further run has the next number.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Memory of the machine; only its metadata is taken from the host.
    /// [default: 1G, more where the CPUs need it; in a storm at least 256M a CPU]
    #[arg(long, value_parser = zone_bytes, value_name = "BYTES")]
    memory: Option<usize>,
    /// How many runs at once. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// A row of runs: an experiment on a number of CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) cpus: usize,
    /// Frames that it needs.
    pub(crate) needed: usize,
    /// Frames that it has if the user does not say otherwise.
    pub(crate) usual: usize,
}

/// The results of one line's runs, by configuration, in the order of seeds.
pub(crate) type Samples<R> = Vec<Vec<R>>;

/// Parses an option that names a profile.
pub(crate) fn profile(name: &str) -> Result<&'static Profile, UnknownProfile> {
    Profile::by_name(name)
}

/// Checks that a simulated machine can have these numbers of CPUs.
pub(super) fn check_cpus(cpus: &[usize]) -> Result<(), Misuse> {
    match cpus.iter().find(|cpus| !(1..=MOST_CPUS).contains(*cpus)) {
        Some(cpus) => Err(Misuse::new(format!(
            "--cpus {cpus}: a simulated machine has 1 to {MOST_CPUS} CPUs"
        ))),
        None => Ok(()),
    }
}

/// Runs `one` on each of `inputs`, on `jobs` threads, with a progress bar. Ctrl-C ends the work
/// after the runs in progress.
pub(super) fn each<A: Sync, R: Send>(
    inputs: &[A],
    jobs: Option<usize>,
    one: impl Fn(&A) -> R + Sync,
) -> Vec<Option<R>> {
    let runs = inputs.len();
    let work = |place: usize, mut follow: Follow<'_>| {
        let done = one(&inputs[place]);
        follow.goes_on(1);
        done
    };
    let done = bar::runs(runs, jobs, runs as u64, work);
    let mut done: Vec<_> = done.into_iter().map(Some).collect();
    // Those that were not begun.
    done.resize_with(runs, || None);
    done
}

impl Setup {
    pub(crate) fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    pub(crate) fn configs(&self) -> &[Configuration] {
        &self.config
    }

    /// Checks the options' values and their combination.
    pub(crate) fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([
            ("config", has_twice(&self.config)),
            ("cpus", has_twice(&self.cpus)),
        ])?;
        at_least_one([("runs", Some(self.runs)), ("jobs", self.jobs)])?;
        check_cpus(&self.cpus)
    }

    /// Returns the machine's memory for these lines, in bytes.
    ///
    /// # Errors
    /// Where the user has given less than one of them needs.
    fn memory(&self, lines: &[Line]) -> Result<usize, Misuse> {
        let least = lines.iter().max_by_key(|line| line.needed);
        let Some(&Line { cpus, needed, .. }) = least else {
            return Ok(self.memory.unwrap_or(MEMORY));
        };
        let usual = lines.iter().map(|line| line.usual).max().unwrap_or(needed);
        match self.memory {
            None if usual > FRAMES_MOST => Err(Misuse::new(format!(
                "{} would need {} frames, but one zone has at most {FRAMES_MOST}; use \
                 fewer CPUs or pages",
                counted(cpus, "CPU", "CPUs"),
                usual
            ))),
            None => Ok(usual.saturating_mul(FRAME_BYTES)),
            Some(memory) if memory >= needed.saturating_mul(FRAME_BYTES) => Ok(memory),
            Some(memory) => Err(Misuse::new(format!(
                "--memory {} is too small for {}; give at least {}",
                bytes_text(memory),
                counted(cpus, "CPU", "CPUs"),
                bytes_text(whole_mib(needed))
            ))),
        }
    }

    /// Runs `one` with each seed, on each line with each configuration; line by line and seed by
    /// seed, so that the results can be compared even if the user interrupts the work.
    ///
    /// # Errors
    /// Where a run fails, or none was done.
    pub(crate) fn measure<R: Send>(
        &self,
        profile: &'static Profile,
        lines: &[Line],
        one: impl Fn(usize, &Setting) -> Result<R, RunError> + Sync,
    ) -> anyhow::Result<Vec<Samples<R>>> {
        let frames = self.memory(lines)? / FRAME_BYTES;
        let mut inputs = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            for run in 0..self.runs as u64 {
                for (column, &configuration) in self.config.iter().enumerate() {
                    let setting = Setting {
                        profile,
                        cpus: line.cpus,
                        configuration,
                        frames,
                        seed: self.seed.wrapping_add(run),
                    };
                    inputs.push((place, column, setting));
                }
            }
        }
        interrupt::watch()?;
        let done = each(&inputs, self.jobs, |(place, _, setting)| {
            one(*place, setting)
        });
        let columns = || self.config.iter().map(|_| Vec::new()).collect();
        let mut samples: Vec<Samples<R>> = lines.iter().map(|_| columns()).collect();
        for ((place, column, _), result) in inputs.iter().zip(done) {
            if let Some(result) = result {
                samples[*place][*column].push(result?);
            }
        }
        if samples.iter().flatten().all(Vec::is_empty) {
            anyhow::bail!("interrupted before the first run was done");
        }
        Ok(samples)
    }
}

/// Returns what results name as the host: the simulated machine, since nothing ran on the host's
/// kernel.
pub(crate) fn simulated(profile: &Profile) -> Host {
    Host {
        kernel: "none (simulated)".into(),
        cpu: profile.name.into(),
        ..Host::unknown()
    }
}
