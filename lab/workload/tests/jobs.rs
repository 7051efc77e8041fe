//! Traces cut into jobs: the events that are used, the time between them, and that only pages that
//! were taken are given back.

use crate::support;

use std::path::{Path, PathBuf};

use brickyard::MigrateType::{Movable, Reclaimable, Unmovable};
use brickyard::Mobility;
use brickyard_trace::file::read;
use brickyard_trace::{Event, NameId, Trace};
use brickyard_workload::jobs::suite::{HOST_INSTRUCTIONS_PER_100_NS, instructions};
use brickyard_workload::jobs::{
    Cut, How, Instances, Job, JobStep, JobsError, LIST_GAP_NS, MovableBlocks, Processes, Urgency,
    Waits, Workload, cut, own_events,
};
use proptest::prelude::*;

use support::{failed, freed, host, taken, taken_with};

/// The names of tasks in these traces, by their number.
const NAMES: [&str; 7] = [
    "brickyard",
    "make",
    "gcc",
    "cc1",
    "rustc",
    "sh",
    "kworker/0:1",
];

/// Returns the event, by this task at this time.
fn by(pid: i32, name: &str, time: u64, event: Event) -> Event {
    let place = NAMES.iter().position(|known| *known == name).unwrap();
    let name = NameId(place as u32);
    Event {
        time,
        pid,
        name,
        ..event
    }
}

/// Makes a recording of `make`.
fn recorded(events: impl IntoIterator<Item = Event>) -> Trace {
    let mut trace = host(Vec::new());
    trace.header.command = "/usr/bin/make -j1 'all of it'".into();
    trace.names = NAMES.map(String::from).into();
    trace.events = events.into_iter().collect();
    trace
}

/// The events of the recorder's child, which executes the command at time 10.
fn root() -> [Event; 2] {
    [
        by(100, "brickyard", 0, taken(90, 0, Unmovable)),
        by(100, "make", 10, freed(91, 0)),
    ]
}

const WHOLE: How = How {
    cut: Cut::Whole,
    waits: Waits::USUAL,
    processes: Processes::Command,
    movable: MovableBlocks::AsRecorded,
};

fn by_process(name: &'static str) -> How {
    How {
        cut: Cut::ByProcess(name),
        ..WHOLE
    }
}

fn one(trace: &Trace) -> Job {
    let mut jobs = cut(trace, &WHOLE).unwrap();
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

const fn compute(ns: u64) -> JobStep {
    JobStep::Compute { ns }
}

const fn take(page: u32, order: u8, mobility: Mobility) -> JobStep {
    let urgent = Urgency::MaySleep;
    JobStep::Take {
        page,
        order,
        mobility,
        urgent,
    }
}

const fn give(page: u32, order: u8) -> JobStep {
    JobStep::Give { page, order }
}

/// Checks the jobs against a plain list of pages: blocks are numbered one after another, and an
/// aligned part of a single held block is given back at a time.
fn play(jobs: &[Job]) {
    for job in jobs {
        // By page: the first page of its block; `None` once it is given back.
        let mut held: Vec<Option<u32>> = Vec::new();
        let mut before = None;
        for step in &job.steps {
            match *step {
                JobStep::Compute { ns } => {
                    assert!(ns > 0);
                    assert!(
                        !matches!(before, Some(JobStep::Compute { .. })),
                        "two steps of computing in a row"
                    );
                }
                JobStep::Disk => {}
                JobStep::Take { page, order, .. } => {
                    assert_eq!(page as usize, held.len());
                    held.resize(held.len() + (1 << order), Some(page));
                }
                JobStep::Give { page, order } => {
                    let first = held[page as usize].unwrap();
                    assert!((page - first).is_multiple_of(1 << order));
                    for given in &mut held[page as usize..][..1 << order] {
                        assert_eq!(given.take(), Some(first));
                    }
                }
            }
            before = Some(*step);
        }
        assert_eq!(job.pages as usize, held.len());
        let totals = job.totals();
        assert_eq!(totals.pages_taken, u64::from(job.pages));
        assert_eq!(totals.pages_left(), held.iter().flatten().count() as u64);
    }
}

// ---- the events that are used ----

#[test]
fn only_the_command_and_its_descendants_are_used() {
    let trace = recorded(root().into_iter().chain([
        // An older task, a younger one with another parent, and a kernel thread.
        by(50, "gcc", 11, taken(0, 0, Movable)),
        by(110, "rustc", 12, taken(1, 0, Movable)),
        by(9, "kworker/0:1", 13, taken(2, 0, Movable)),
        // A child, first with its parent's name; then it executes another program and has a child
        // itself.
        by(101, "make", 20, taken(3, 0, Movable)),
        by(101, "gcc", 21, taken(4, 0, Movable)),
        by(102, "gcc", 22, taken(5, 0, Movable)),
        by(102, "cc1", 23, taken(6, 0, Movable)),
        // A compiler with another parent: the name's last event was of another task.
        by(110, "gcc", 24, taken(7, 0, Movable)),
        by(111, "gcc", 25, taken(8, 0, Movable)),
        by(100, "make", 30, taken(9, 0, Movable)),
    ]));
    let job = one(&trace);
    assert_eq!(job.name, "make");
    let movable = Mobility::Movable;
    let steps = [
        compute(10),
        take(0, 0, movable),
        compute(1),
        take(1, 0, movable),
        compute(1),
        take(2, 0, movable),
        compute(1),
        take(3, 0, movable),
        compute(7),
        take(4, 0, movable),
    ];
    assert_eq!(job.steps, steps);
    play(&[job]);
}

#[test]
fn events_under_the_recorders_name_are_not_the_commands() {
    let job = one(&recorded(root()));
    assert_eq!((job.steps, job.pages), (Vec::new(), 0));
}

#[test]
fn named_processes_are_used_whatever_their_parent() {
    let mut trace = recorded([
        by(5, "gcc", 0, taken(0, 0, Movable)),
        by(6, "make", 5, taken(1, 0, Movable)),
        by(5, "cc1", 9, freed(0, 0)),
    ]);
    trace.header.command.clear();
    let processes = Processes::Named(&["gcc", "cc1"]);
    let jobs = cut(&trace, &How { processes, ..WHOLE }).unwrap();
    assert_eq!(jobs[0].name, "trace");
    let steps = [take(0, 0, Mobility::Movable), compute(9), give(0, 0)];
    assert_eq!(jobs[0].steps, steps);
}

#[test]
fn a_trace_without_the_command_says_what_to_do() {
    let named = |names| How {
        processes: Processes::Named(names),
        ..WHOLE
    };
    let mut trace = recorded([by(5, "make", 0, taken(0, 0, Movable))]);
    let cases = [
        (WHOLE, JobsError::NoRoot("make".into()), "brickyard record"),
        (
            named(&["perl", "awk"]),
            JobsError::NoProcess("perl, awk".into()),
            "brickyard info",
        ),
    ];
    for (how, error, advice) in cases {
        assert_eq!(cut(&trace, &how), Err(error.clone()));
        assert!(error.to_string().contains(advice), "{error}");
    }
    assert_eq!(
        cut(&recorded(root()), &by_process("cc1")),
        Err(JobsError::NoProcess("cc1".into()))
    );
    for nothing in ["", "   ", "/", "''"] {
        trace.header.command = nothing.into();
        assert_eq!(
            cut(&trace, &WHOLE),
            Err(JobsError::NoCommand),
            "{nothing:?}"
        );
    }
    assert_eq!(cut(&Trace::default(), &WHOLE), Err(JobsError::NoCommand));
}

// ---- time ----

#[test]
fn time_between_events_is_computing_and_long_times_are_waits() {
    let at = |time, page| by(100, "make", time, taken(page, 0, Movable));
    let trace = recorded(root().into_iter().chain([
        at(4_000_010, 0),
        // Events of others do not matter, nor does an event that is dropped.
        by(4, "sh", 4_500_000, taken(9, 0, Movable)),
        by(100, "make", 5_000_010, freed(77, 0)),
        at(6_000_010, 1),
        at(10_000_011, 2),
        at(10_000_011, 3),
    ]));
    let page = |page| take(page, 0, Mobility::Movable);
    let steps = [
        compute(4_000_000),
        page(0),
        compute(2_000_000),
        page(1),
        JobStep::Disk,
        page(2),
        page(3),
    ];
    let job = one(&trace);
    assert_eq!(job.steps, steps);
    let totals = job.totals();
    assert_eq!(
        (totals.compute_ns, totals.disk_waits, totals.takes),
        (6_000_000, 1, 4)
    );

    let jobs = |waits| cut(&trace, &How { waits, ..WHOLE }).unwrap();
    let totals = jobs(Waits::Never)[0].totals();
    assert_eq!((totals.compute_ns, totals.disk_waits), (10_000_001, 0));
    let totals = jobs(Waits::Above { ns: 999_999 })[0].totals();
    assert_eq!((totals.compute_ns, totals.disk_waits), (0, 4));
}

// ---- pages ----

#[test]
fn pages_freed_one_right_after_the_other_are_a_list() {
    let takes = (0..40).map(|at| by(100, "make", 20, taken(at, 0, Movable)));
    let frees = |from: u64, to: u64, pid, began: u64, gap: u64| {
        (from..to).map(move |at| by(pid, "make", began + gap * (at - from), freed(at, 0)))
    };
    let events = root()
        .into_iter()
        .chain(takes)
        // 20 in a row: 14 and 6.
        .chain(frees(0, 20, 100, 1_000, 50))
        // Too far apart.
        .chain(frees(20, 22, 100, 10_000, LIST_GAP_NS + 1))
        // Of another process.
        .chain(frees(22, 23, 100, 20_000, 0))
        .chain(frees(23, 24, 101, 20_050, 0));
    let job = one(&recorded(events));
    let freeing: Vec<&JobStep> = job
        .steps
        .iter()
        .skip_while(|step| !step.is_single_give())
        .collect();
    let lists = freeing.chunk_by(|a, b| a.is_single_give() && b.is_single_give());
    let lengths = lists
        .filter(|list| list[0].is_single_give())
        .map(<[_]>::len);
    assert_eq!(lengths.collect::<Vec<_>>(), [14, 6, 1, 1, 1, 1]);
    // The time within a list comes before it, and none is lost: from 10 to 20,050.
    assert_eq!(job.totals().compute_ns, 20_040);
    let first = job.steps.iter().position(JobStep::is_single_give).unwrap();
    assert_eq!(job.steps[first - 1], compute(1_000 - 20 + 13 * 50));
}

#[test]
fn requests_keep_their_size_mobility_and_urgency() {
    let mine = |event| by(100, "make", 10, event);
    let trace = recorded(root().into_iter().chain([
        mine(taken(0, 3, Unmovable)),
        mine(taken(8, 1, Reclaimable)),
        mine(taken_with(16, 0, Unmovable, "GFP_ATOMIC")),
        mine(failed(2, Movable)),
    ]));
    let urgent = Urgency::Atomic;
    let steps = [
        take(0, 3, Mobility::Unmovable),
        take(8, 1, Mobility::Reclaimable),
        JobStep::Take {
            page: 10,
            order: 0,
            mobility: Mobility::Unmovable,
            urgent,
        },
    ];
    let steps = [&[compute(10)][1..], &steps].concat();
    assert_eq!(one(&trace).steps, steps);
}

#[test]
fn a_page_is_given_back_once_by_whichever_task() {
    let mine = |event| by(100, "make", 10, event);
    let trace = recorded(root().into_iter().chain([
        mine(taken(0, 0, Movable)),
        by(7, "kworker/0:1", 11, freed(0, 0)),
        by(7, "kworker/0:1", 12, freed(0, 0)),
        mine(freed(0, 0)),
        // The event of its free was lost: another task takes it, or the command again.
        mine(taken(1, 0, Movable)),
        by(4, "sh", 13, taken(1, 0, Movable)),
        mine(taken(2, 0, Movable)),
        mine(taken(2, 0, Movable)),
    ]));
    let page = |page| take(page, 0, Mobility::Movable);
    let steps = [
        page(0),
        give(0, 0),
        page(1),
        give(1, 0),
        page(2),
        give(2, 0),
        page(3),
    ];
    let job = one(&trace);
    assert_eq!(job.steps, steps);
    play(&[job]);
}

#[test]
fn parts_of_blocks_and_several_blocks_are_given_back_in_aligned_parts() {
    let mine = |event| by(100, "make", 10, event);
    let trace = recorded(root().into_iter().chain([
        mine(taken(0, 3, Movable)),
        // A part from the middle.
        mine(freed(4, 1)),
        mine(taken(8, 0, Movable)),
        mine(taken(9, 0, Movable)),
        // The rest of the block, both pages, and six pages that no job holds.
        mine(freed(0, 4)),
    ]));
    let steps = [
        take(0, 3, Mobility::Movable),
        give(4, 1),
        take(8, 0, Mobility::Movable),
        take(9, 0, Mobility::Movable),
        give(0, 2),
        give(6, 1),
        give(8, 0),
        give(9, 0),
    ];
    let job = one(&trace);
    assert_eq!(job.steps, steps);
    assert_eq!(job.totals().pages_left(), 0);
    play(&[job]);
}

/// Kernels of the documents' time had no folios; blocks of the kernel itself stay as they are.
#[test]
fn movable_blocks_are_split_where_that_is_asked_for() {
    let mine = |event| by(100, "make", 10, event);
    let trace = recorded(root().into_iter().chain([
        mine(taken(0, 2, Movable)),
        mine(taken(8, 1, Unmovable)),
        mine(freed(0, 1)),
        mine(freed(8, 1)),
        mine(freed(2, 1)),
    ]));
    let how = How {
        movable: MovableBlocks::Single,
        ..WHOLE
    };
    let jobs = cut(&trace, &how).unwrap();
    let mut steps: Vec<JobStep> = (0..4)
        .map(|page| take(page, 0, Mobility::Movable))
        .collect();
    steps.push(take(4, 1, Mobility::Unmovable));
    steps.extend([give(0, 0), give(1, 0), give(4, 1), give(2, 0), give(3, 0)]);
    assert_eq!(jobs[0].steps, steps);
    assert_eq!(jobs[0].pages, 6);
    play(&jobs);
    // As recorded, it is one block.
    assert_eq!(one(&trace).steps[0], take(0, 2, Mobility::Movable));
}

#[test]
fn a_block_that_overlaps_another_splits_it() {
    let mine = |event| by(100, "make", 10, event);
    // Later blocks overlap both ends of the first; no kernel does so.
    let trace = recorded(root().into_iter().chain([
        mine(taken(4, 3, Movable)),
        mine(taken(0, 3, Movable)),
        mine(taken(10, 2, Movable)),
        mine(freed(0, 4)),
    ]));
    let job = one(&trace);
    let gives: Vec<JobStep> = job
        .steps
        .iter()
        .copied()
        .filter(|step| matches!(step, JobStep::Give { .. }))
        .collect();
    let of_the_first = [give(0, 2), give(6, 1)];
    let rest = [give(8, 3), give(4, 1), give(16, 2)];
    assert_eq!(gives, [&of_the_first[..], &rest[..]].concat());
    play(&[job]);
}

#[test]
fn the_largest_frame_numbers_are_cut() {
    let last = |order| Event {
        frame: u64::MAX,
        ..taken(0, order, Movable)
    };
    let end = Event {
        frame: u64::MAX - 1,
        ..freed(0, 2)
    };
    let mine = |event| by(100, "make", u64::MAX, event);
    let trace = recorded(
        root()
            .into_iter()
            .chain([mine(last(0)), mine(last(3)), mine(end)]),
    );
    assert_eq!(cut(&trace, &WHOLE).unwrap()[0].totals().takes, 2);
    assert_eq!(instructions(u64::MAX), u64::MAX);
}

// ---- jobs ----

#[test]
fn a_job_begins_where_a_process_executes_the_program() {
    let compiler = |pid, time, page| {
        [
            by(pid, "make", time, taken(page, 0, Unmovable)),
            by(pid, "cc1", time + 5, taken(page + 1, 0, Movable)),
            by(pid, "cc1", time + 9, freed(page, 0)),
        ]
    };
    let after = [
        // The first job's page is freed while the third runs.
        by(9, "kworker/0:1", 71, freed(2, 0)),
        by(100, "make", 80, freed(12, 0)),
        by(100, "make", 90, taken(50, 2, Reclaimable)),
    ];
    let events = root()
        .into_iter()
        .chain(compiler(101, 20, 1))
        .chain(compiler(102, 40, 11));
    let trace = recorded(events.chain(compiler(103, 60, 21)).chain(after));
    let jobs = cut(&trace, &by_process("cc1")).unwrap();
    play(&jobs);
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["cc1 1", "cc1 2", "cc1 3"]);
    let (kernel, own) = (Mobility::Unmovable, Mobility::Movable);
    // Events before the first compiler are in the first job; events after a compiler, up to the
    // next one, in its job.
    assert_eq!(
        jobs[0].steps,
        [
            compute(10),
            take(0, 0, kernel),
            compute(5),
            take(1, 0, own),
            compute(4),
            give(0, 0),
            compute(11),
            take(2, 0, kernel),
            compute(5),
            // The end of the job's own time; these frees came later.
            give(2, 0),
            give(1, 0),
        ]
    );
    assert_eq!(
        jobs[1].steps,
        [
            take(0, 0, own),
            compute(15),
            take(1, 0, kernel),
            compute(5),
            give(1, 0),
            give(0, 0),
        ]
    );
    assert_eq!(
        jobs[2].steps,
        [
            take(0, 0, own),
            compute(25),
            take(1, 2, Mobility::Reclaimable)
        ]
    );
    // One whole job has the same pages and the same time.
    let whole = one(&trace).totals();
    let sum = |of: fn(&Job) -> u64| jobs.iter().map(of).sum::<u64>();
    assert_eq!(whole.compute_ns, sum(|job| job.totals().compute_ns));
    assert_eq!(whole.takes, sum(|job| job.totals().takes));
    assert_eq!(whole.gives, sum(|job| job.totals().gives));
}

#[test]
fn a_child_with_its_parents_name_is_no_new_job() {
    let trace = recorded(root().into_iter().chain([
        by(101, "make", 20, taken(0, 0, Movable)),
        by(101, "gcc", 21, taken(1, 0, Movable)),
        by(102, "gcc", 22, taken(2, 0, Movable)),
        by(102, "cc1", 23, taken(3, 0, Movable)),
        by(103, "make", 24, taken(4, 0, Movable)),
        by(103, "gcc", 25, taken(5, 0, Movable)),
    ]));
    assert_eq!(cut(&trace, &by_process("gcc")).unwrap().len(), 2);
}

// ---- a trace with only the command's events ----

#[test]
fn a_trimmed_trace_has_no_other_events_and_the_same_jobs() {
    let trace = recorded(root().into_iter().chain([
        by(110, "rustc", 12, taken(1, 0, Movable)),
        by(101, "make", 20, taken(2, 1, Movable)),
        by(101, "cc1", 21, freed(90, 0)),
        by(110, "rustc", 22, freed(1, 0)),
        by(7, "kworker/0:1", 23, freed(3, 0)),
        by(8, "sh", 24, taken(2, 0, Movable)),
        by(8, "sh", 25, freed(2, 0)),
    ]));
    let own = own_events(&trace).unwrap();
    assert_eq!(own.names, ["brickyard", "make", "cc1", "others"]);
    let found: Vec<(i32, u64, &str)> = own
        .events
        .iter()
        .map(|event| (event.pid, event.time, own.name(event.name)))
        .collect();
    let expected = [
        (100, 0, "brickyard"),
        (100, 10, "make"),
        (101, 20, "make"),
        (101, 21, "cc1"),
        (0, 23, "others"),
        (0, 24, "others"),
    ];
    assert_eq!(found, expected);
    assert_eq!(own.header, trace.header);
    for how in [WHOLE, by_process("cc1")] {
        assert_eq!(cut(&own, &how), cut(&trace, &how));
    }
    assert_eq!(own_events(&own).unwrap(), own);
    assert_eq!(
        own_events(&host(Vec::new())).unwrap_err(),
        JobsError::NoCommand
    );
}

/// Events of few tasks and few frames, so that all cases occur: lost frees, parts, overlapping
/// blocks.
fn any_trace() -> impl Strategy<Value = Trace> {
    let one = (
        98..106_i32,
        0..NAMES.len(),
        0..3000_u64,
        0..32_u64,
        0..4_u8,
        0..4_u8,
    );
    prop::collection::vec(one, 0..120).prop_map(|events| {
        let mut time = 20;
        let events: Vec<Event> = events
            .into_iter()
            .map(|(pid, name, gap, frame, order, kind)| {
                time += gap;
                let event = match kind {
                    0 | 1 => taken(frame, order, Movable),
                    2 => freed(frame, order),
                    _ => failed(order, Unmovable),
                };
                by(pid, NAMES[name], time, event)
            })
            .collect();
        recorded(root().into_iter().chain(events))
    })
}

proptest! {
    #[test]
    fn pages_are_given_back_once_and_time_is_kept(trace in any_trace(), above in 0..4000_u64) {
        let whole = cut(&trace, &How { waits: Waits::Never, ..WHOLE }).unwrap();
        play(&whole);
        let own = own_events(&trace).unwrap();
        let last = own.events.iter().rfind(|event| own.name(event.name) != "others").unwrap();
        prop_assert_eq!(whole[0].totals().compute_ns, last.time - 10);
        for cut_by in [Cut::Whole, Cut::ByProcess("cc1"), Cut::ByProcess("make")] {
            let how = How { cut: cut_by, waits: Waits::Above { ns: above }, ..WHOLE };
            let jobs = cut(&trace, &how);
            prop_assert_eq!(cut(&own, &how), jobs.clone());
            let Ok(jobs) = jobs else { continue };
            play(&jobs);
            let sum = |of: fn(&Job) -> u64| jobs.iter().map(of).sum::<u64>();
            prop_assert_eq!(sum(|job| job.totals().takes), whole[0].totals().takes);
            prop_assert_eq!(sum(|job| job.totals().pages_given), whole[0].totals().pages_given);
            prop_assert!(sum(|job| job.totals().compute_ns) <= whole[0].totals().compute_ns);
        }
        // In single frames the same pages are taken and given back.
        let single = cut(&trace, &How { movable: MovableBlocks::Single, ..WHOLE }).unwrap();
        play(&single);
        let (single, whole) = (single[0].totals(), whole[0].totals());
        prop_assert_eq!(single.pages_taken, whole.pages_taken);
        prop_assert_eq!(single.pages_given, whole.pages_given);
        prop_assert_eq!(single.takes, whole.pages_taken);
    }

    #[test]
    fn no_command_text_panics(command in ".{0,40}") {
        let mut trace = recorded(root());
        trace.header.command = command;
        let _ = cut(&trace, &WHOLE);
    }
}

// ---- the workloads of the documents ----

fn all() -> impl Iterator<Item = Workload> {
    Workload::ALL.into_iter().chain([Workload::EXTRACT])
}

fn committed(workload: &Workload) -> Trace {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    read(&root.join(workload.trace)).unwrap()
}

#[test]
fn every_workload_has_its_trace_and_its_jobs() {
    for workload in all() {
        let trace = committed(&workload);
        let jobs = cut(&trace, &workload.how()).unwrap();
        play(&jobs);
        let name = workload.name;
        let expected = match name {
            "pmake" => 27,
            "kernel-full" => 6,
            "kernel" => 12,
            _ => 1,
        };
        assert_eq!(jobs.len(), expected, "{name}");
        let sum = |of: fn(&Job) -> u64| jobs.iter().map(of).sum::<u64>();
        let (taken, given) = (
            sum(|job| job.totals().pages_taken),
            sum(|job| job.totals().pages_given),
        );
        let left = sum(|job| job.totals().pages_left());
        assert!(
            taken > 200 && taken - given == left,
            "{name}: {taken} {given} {left}"
        );
        let compute = sum(|job| job.totals().compute_ns);
        assert!(
            compute > 0 && compute < trace.header.duration,
            "{name}: {compute}"
        );
        // Processes give nearly all pages back; files and kernel memory stay.
        if !matches!(name, "find" | "bonnie" | "dd" | "extract") {
            assert!(
                left * 20 < taken,
                "{name}: {left} of {taken} pages are left"
            );
        }
        for job in &jobs {
            assert!(job.totals().takes > 0, "{name}: {}", job.name);
        }
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_committed_traces_have_no_events_of_other_programs() {
    for workload in all() {
        let trace = committed(&workload);
        let foreign = ["rustc", "cargo", "node", "tmux: server"];
        if workload.name != "dd" {
            assert!(
                trace.start.is_empty() && trace.end.is_empty(),
                "{}",
                workload.name
            );
            assert_eq!(own_events(&trace).unwrap(), trace, "{}", workload.name);
            assert!(
                !trace
                    .names
                    .iter()
                    .any(|name| foreign.contains(&name.as_str()))
            );
        }
        assert_eq!(
            cut(&own_events(&trace).unwrap(), &workload.how()),
            cut(&trace, &workload.how())
        );
    }
}

/// At 5.5 ms a wait, `find` would not end in the 1.059 s that the document has for 32 CPUs if it
/// read each of its 333 to 751 files from the disk.
#[test]
fn the_files_that_are_read_are_in_memory() {
    for name in [
        "find",
        "pmake",
        "mab",
        "config",
        "objdump",
        "kernel-full",
        "kernel",
    ] {
        let workload = Workload::by_name(name).unwrap();
        let jobs = cut(&committed(&workload), &workload.how()).unwrap();
        assert!(
            jobs.iter().all(|job| job.totals().disk_waits == 0),
            "{name}"
        );
    }
    // Nor does a warm `find` take page cache for its 4.5 MB.
    let workload = Workload::by_name("find").unwrap();
    let totals = cut(&committed(&workload), &workload.how()).unwrap()[0].totals();
    assert!(
        totals.pages_taken < 1000 && totals.pages_left() < 200,
        "{totals:?}"
    );
}

/// Linux 2.6 had the page cache in single frames: 32 MB are 8192 of them, each taken and given
/// back.
#[test]
fn dd_takes_its_file_in_single_frames() {
    let workload = Workload::by_name("dd").unwrap();
    let trace = committed(&workload);
    let how = How {
        movable: MovableBlocks::AsRecorded,
        ..workload.how()
    };
    let takes = |how| cut(&trace, how).unwrap()[0].totals().takes;
    let movable = |job: &Job, more: u8| {
        let large = |step: &&JobStep| matches!(step, JobStep::Take { order, mobility: Mobility::Movable, .. } if *order >= more);
        job.steps.iter().filter(large).count()
    };
    assert_eq!(movable(&cut(&trace, &how).unwrap()[0], 2), 2048);
    let jobs = cut(&trace, &workload.how()).unwrap();
    assert_eq!(movable(&jobs[0], 1), 0);
    assert_eq!(takes(&workload.how()), takes(&how) + 3 * 2048);
}

#[test]
fn unpacked_files_stay_in_the_page_cache() {
    let jobs = cut(&committed(&Workload::EXTRACT), &Workload::EXTRACT.how()).unwrap();
    let totals = jobs[0].totals();
    // 20 MB of files stay; the pages of both programs and of the pipe between them are given back.
    let left = totals.pages_left();
    assert!((4500..6500).contains(&left), "{totals:?}");
    assert!(totals.pages_taken - left > 3000, "{totals:?}");
    assert_eq!(totals.disk_waits, 0);
    assert!(
        (100_000_000..400_000_000).contains(&totals.compute_ns),
        "{totals:?}"
    );
}

#[test]
fn instances_are_those_of_2007() {
    let tasks = |name: &str, cpus| Workload::by_name(name).unwrap().instances.tasks(cpus);
    for cpus in [1, 8, 16, 32] {
        for fixed in ["find", "dpunish", "bonnie"] {
            assert_eq!(tasks(fixed, cpus), 32, "{fixed}");
        }
        for twice in ["pmake", "kernel-full", "kernel"] {
            assert_eq!(tasks(twice, cpus), 2 * cpus, "{twice}");
        }
        for each in ["mab", "config"] {
            assert_eq!(tasks(each, cpus), cpus, "{each}");
        }
        for alone in ["objdump", "dd"] {
            assert_eq!(tasks(alone, cpus), 1, "{alone}");
        }
    }
    assert_eq!(Instances::Fixed(usize::MAX).tasks(9), usize::MAX);
    assert_eq!(Instances::PerCpu(usize::MAX).tasks(9), usize::MAX);
    let error = Workload::by_name("fnid").unwrap_err().to_string();
    assert!(error.contains("fnid"));
    for workload in all() {
        assert!(error.contains(workload.name), "{error}");
        assert_eq!(workload.trace, format!("traces/{}.parquet", workload.name));
    }
}

#[test]
fn computing_time_becomes_instructions() {
    let ns = |ns| instructions(ns) * 100;
    for time in [0, 1, 7, 99, 100, 101, 12_345_678] {
        let exact = time * HOST_INSTRUCTIONS_PER_100_NS;
        assert!(ns(time) <= exact && exact < ns(time) + 100, "{time}");
    }
}
