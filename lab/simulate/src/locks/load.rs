//! What the tasks of an experiment do: the workload's jobs, once per instance, each instance with
//! its own timing.

use brickyard_run::Dice;
use brickyard_workload::jobs::{Instances, Job, JobStep, Urgency, Workload};

/// Pages of a burst of the storm: several times what a CPU's lists hold, so that they run empty and
/// overflow again and again.
const STORM_PAGES: u32 = 128;

/// Bursts of the storm, where the number of events is not limited.
const STORM_BURSTS: usize = 160;

/// From one command's start to the next, in nanoseconds: a shell forks each one and does not wait.
/// Our choice, as lmbench measures the creation of a process on machines of that time.
const START_NS: u64 = 500_000;

/// The same for the storm, which is to begin on all CPUs at once.
const STORM_START_NS: u64 = 100;

/// Files that a kernel build compiles for each CPU, at least: a kernel has thousands, so the dozen
/// of the trace is repeated. (libFLAC has its 27, on 32 CPUs too.)
const KERNEL_FILES: usize = 4;

/// How much of each job is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its first so many allocations and frees; it then ends, and keeps what it has.
    Events(usize),
}

/// A workload, for any number of CPUs.
#[derive(Debug, Clone)]
pub struct Load {
    name: &'static str,
    jobs: Vec<Job>,
    instances: Instances,
    start_ns: u64,
}

/// What one task does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlan {
    /// When it begins, in nanoseconds of the simulated machine.
    pub begins_ns: u64,
    /// Its jobs. Without any, the task takes its jobs from the [pool](TaskSet::pool).
    pub jobs: Vec<Job>,
}

/// All tasks of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskSet {
    /// One per task.
    pub plans: Vec<TaskPlan>,
    /// Jobs that any task may take, in this order.
    pub pool: Vec<Job>,
}

impl Load {
    /// A workload of 2007 with the jobs that were cut from its trace. `bonnie` does not wait for
    /// the disk, as in the paper.
    #[must_use]
    pub fn of(workload: &Workload, jobs: &[Job], part: Part) -> Self {
        let mut jobs: Vec<Job> = jobs.iter().map(|job| first(job, part)).collect();
        if workload.name == "bonnie" {
            for job in &mut jobs {
                job.steps.retain(|step| *step != JobStep::Disk);
            }
        }
        Self {
            name: workload.name,
            jobs,
            instances: workload.instances,
            start_ns: START_NS,
        }
    }

    /// The storm: on every CPU one task that allocates pages until its lists have run empty many
    /// times, frees them all, and computes nothing: the heaviest possible use of the lock.
    #[must_use]
    pub fn storm(part: Part) -> Self {
        let bursts = match part {
            Part::Whole => STORM_BURSTS,
            Part::Events(events) => events.div_ceil(2 * STORM_PAGES as usize),
        };
        let mut steps = Vec::new();
        for first in (0..bursts as u32).map(|burst| burst * STORM_PAGES) {
            let pages = first..first + STORM_PAGES;
            steps.extend(pages.clone().map(take));
            steps.extend(pages.map(|page| JobStep::Give { page, order: 0 }));
        }
        let job = Job {
            name: "storm".to_owned(),
            pages: bursts as u32 * STORM_PAGES,
            steps,
        };
        Self {
            name: "storm",
            jobs: vec![first(&job, part)],
            instances: Instances::PerCpu(1),
            start_ns: STORM_START_NS,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the tasks for so many CPUs.
    ///
    /// Instances of one trace would run in lockstep, which real ones never do. So each one's
    /// computing times are varied, by up to half in both directions, and the tasks begin one after
    /// another. Both depend on the seed only, so that all columns are compared on the same work.
    #[must_use]
    pub fn tasks(&self, cpus: usize, seed: u64) -> TaskSet {
        let mut dice = Dice::new(seed ^ 0x006c_6f63_6b73);
        let tasks = self.instances.tasks(cpus);
        let shared = matches!(self.instances, Instances::PoolPerCpu(_));
        let plan = |task: usize, dice: &mut Dice| TaskPlan {
            begins_ns: task as u64 * self.start_ns + dice.below(self.start_ns),
            jobs: match shared {
                true => Vec::new(),
                false => self.jobs.iter().map(|job| varied(job, dice)).collect(),
            },
        };
        let plans = (0..tasks).map(|task| plan(task, &mut dice)).collect();
        let least = match self.name {
            "kernel" | "kernel-full" => KERNEL_FILES * cpus,
            _ => 0,
        };
        let repeated = self.jobs.iter().cycle();
        let pool = match shared {
            true => repeated
                .take(least.max(self.jobs.len()))
                .map(|job| varied(job, &mut dice))
                .collect(),
            false => Vec::new(),
        };
        TaskSet { plans, pool }
    }

    /// Returns the most pages that all tasks hold at once on so many CPUs, if they all reach their
    /// maximum together. What jobs leave behind is not counted: it can be reclaimed.
    #[must_use]
    pub fn pages_most(&self, cpus: usize) -> u64 {
        let most = self.jobs.iter().map(Job::most_held).max().unwrap_or(0);
        most as u64 * self.instances.tasks(cpus) as u64
    }
}

/// Returns the step that allocates one unmovable page.
fn take(page: u32) -> JobStep {
    JobStep::Take {
        page,
        order: 0,
        mobility: Default::default(),
        urgent: Urgency::MaySleep,
    }
}

/// Returns the part of a job to run.
fn first(job: &Job, part: Part) -> Job {
    let Part::Events(most) = part else {
        return job.clone();
    };
    let is_event = |step: &JobStep| matches!(step, JobStep::Take { .. } | JobStep::Give { .. });
    let mut events = 0;
    let within = |step: &&JobStep| {
        events += usize::from(is_event(step));
        events <= most
    };
    Job {
        name: job.name.clone(),
        steps: job.steps.iter().take_while(within).copied().collect(),
        pages: job.pages,
    }
}

/// Returns the job with each of its computing times varied to between a half and one and a half of
/// what it was; on average they stay the same.
fn varied(job: &Job, dice: &mut Dice) -> Job {
    let mut job = job.clone();
    for step in &mut job.steps {
        if let JobStep::Compute { ns } = step {
            *ns = *ns / 2 + dice.below(*ns + 1);
        }
    }
    job
}
