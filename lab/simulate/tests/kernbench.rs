//! Jobs as tasks, and builds of them: every step of a job is executed, and what it leaves behind is
//! reclaimed when memory is short.

use brickyard_machine::Profile;
use brickyard_simulate::kernbench::{BuildRun, Kernbench};
use brickyard_simulate::{Configuration, Setting};
use brickyard_workload::jobs::{Job, JobStep, Urgency};

fn take(page: u32, order: u8) -> JobStep {
    JobStep::Take {
        page,
        order,
        mobility: Default::default(),
        urgent: Urgency::MaySleep,
    }
}

/// A job that computes 600 instructions, allocates 20 pages and a block of 8, frees half of the
/// block and 10 pages, and waits for the disk once.
fn job() -> Job {
    let mut steps = vec![JobStep::Compute { ns: 100 }];
    steps.extend((0..20).map(|page| take(page, 0)));
    steps.push(take(20, 3));
    steps.push(JobStep::Give { page: 24, order: 2 });
    steps.push(JobStep::Disk);
    steps.extend((0..10).map(|page| JobStep::Give { page, order: 0 }));
    Job {
        name: "cc1".into(),
        steps,
        pages: 28,
    }
}

fn build(cpus: usize, jobs: usize, frames: usize, configuration: Configuration) -> BuildRun {
    let build = Kernbench {
        recorded: &[job()],
        jobs,
        workers: 2 * cpus,
    };
    let setting = Setting {
        profile: Profile::by_name("metatm-2007").unwrap(),
        cpus,
        configuration,
        frames,
        seed: 1,
        more_instructions: 0,
    };
    build.run(&setting).unwrap()
}

#[test]
fn all_steps_of_all_jobs_are_executed() {
    for configuration in Configuration::ALL {
        let done = build(2, 30, 1 << 14, configuration);
        let counts = done.counts;
        assert_eq!((counts.asked, counts.failed, counts.refused), (630, 0, 0));
        assert_eq!((counts.pages, counts.given, counts.left), (840, 330, 420));
        // 1 GHz.
        assert!(
            (done.user - 30.0 * 600e-9).abs() < 1e-12,
            "{configuration}: {done:?}"
        );
        assert!(done.system > 0.0);
        // 30 jobs for four workers: at least one of them waits eight times for 5.5 ms.
        assert!(
            done.elapsed > 8.0 * 5.5e-3 && done.elapsed < 9.0 * 5.5e-3,
            "{done:?}"
        );
        assert_eq!(done, build(2, 30, 1 << 14, configuration));
    }
}

#[test]
fn what_jobs_leave_behind_is_reclaimed_when_memory_is_short() {
    for configuration in Configuration::ALL {
        // 900 jobs leave 14 pages each: three times the memory.
        let counts = build(1, 900, 1 << 12, configuration).counts;
        assert_eq!((counts.failed, counts.refused), (0, 0), "{configuration}");
        assert_eq!(counts.left, 900 * 14);
        assert!(
            counts.reclaimed > 6000 && counts.reclaimed < counts.left,
            "{counts:?}"
        );
    }
}

#[test]
fn a_build_that_needs_more_memory_is_refused_with_the_amount() {
    let greedy = Job {
        steps: (0..5000).map(|page| take(page, 0)).collect(),
        pages: 5000,
        name: "cc1".into(),
    };
    let build = Kernbench {
        recorded: &[greedy],
        jobs: 1,
        workers: 1,
    };
    let setting = Setting {
        profile: Profile::by_name("metatm-2007").unwrap(),
        cpus: 1,
        configuration: Configuration::Brickyard,
        frames: 1 << 12,
        seed: 1,
        more_instructions: 0,
    };
    let refused = build.run(&setting).unwrap_err();
    assert!(refused.to_string().contains("48 MiB"), "{refused}");
}

#[test]
fn the_zone_for_movable_pages_is_as_large_as_requested() {
    // The job requests unmovable pages, so it can only use the kernel's part.
    let jobs = [Job {
        steps: (0..5000).map(|page| take(page, 0)).collect(),
        pages: 5000,
        name: "cc1".into(),
    }];
    let build = Kernbench {
        recorded: &jobs,
        jobs: 1,
        workers: 1,
    };
    let setting = |configuration| Setting {
        profile: Profile::by_name("metatm-2007").unwrap(),
        cpus: 1,
        configuration,
        frames: 20 << 10,
        seed: 1,
        more_instructions: 0,
    };
    for (configuration, percent, fails) in [
        (Configuration::Zone2007, 20, true),
        (Configuration::Zone2007, 60, false),
        (Configuration::Combined2007, 20, true),
        (Configuration::Combined2007, 60, false),
        (Configuration::List2007, 20, false),
    ] {
        let setting = setting(configuration);
        let blueprint = setting.blueprint_of(percent);
        let counts = build.run_on(&setting, &blueprint).unwrap().counts;
        assert_eq!(
            counts.failed > 0,
            fails,
            "{configuration} {percent}: {counts:?}"
        );
    }
}
