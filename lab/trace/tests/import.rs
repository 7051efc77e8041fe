//! Importing text: real text of every tool (`tests/data/`, recorded on Linux 6.18), older forms,
//! and text that is not a trace.

use core::ops::ControlFlow;
use std::fs;
use std::path::Path;

use brickyard::{MigrateType, Order};
use brickyard_trace::import::{ImportError, Imported, Options, import};
use brickyard_trace::{Flags, Lost, What};
use proptest::prelude::*;

fn imported(text: &[u8], options: &Options) -> Result<Imported, ImportError> {
    import(text, options, |_| ControlFlow::Continue(()))
}

fn sample(name: &str) -> Imported {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let imported = imported(&fs::read(path).unwrap(), &Options::default()).unwrap();
    assert_eq!(imported.bad_lines, 0, "{name}: {:?}", imported.first_bad);
    assert_eq!(imported.unknown_flags, [""; 0], "{name}");
    let seen = imported.trace.events.len() as u64 + imported.other_lines + imported.repeated;
    let lost = imported.trace.header.lost.len() as u64;
    assert_eq!(
        imported.lines,
        seen + lost,
        "{name}: every line is something"
    );
    imported
}

/// Source, CPUs, events, first task, first frame, time of the last event.
fn gist(name: &str) -> (String, u16, usize, String, u64, u64) {
    let trace = sample(name).trace;
    let first = trace.events[0];
    let task = format!("{}-{}", trace.name(first.name), first.pid);
    (
        trace.header.source.clone(),
        trace.header.cpus,
        trace.events.len(),
        task,
        first.frame,
        trace.header.duration,
    )
}

fn is(
    source: &str,
    cpus: u16,
    events: usize,
    task: &str,
    frame: u64,
    last: u64,
) -> (String, u16, usize, String, u64, u64) {
    (
        source.to_owned(),
        cpus,
        events,
        task.to_owned(),
        frame,
        last,
    )
}

#[test]
fn text_of_ftrace() {
    assert_eq!(
        gist("ftrace-trace.txt"),
        is("ftrace text", 2, 28, "rustc-20733", 0x14_b527, 1_158_000)
    );
    assert_eq!(
        gist("ftrace-no-irq-info.txt"),
        is("ftrace text", 2, 19, "rustc-20733", 0x14_b527, 967_000)
    );
    assert_eq!(
        gist("ftrace-record-tgid.txt"),
        is("ftrace text", 2, 20, "bash-20744", 0x13_fc1c, 326_000)
    );
    assert_eq!(
        gist("ftrace-x86-tsc.txt"),
        is("ftrace text", 2, 18, "bash-20744", 0x24_b3b2, 449_540)
    );
}

#[test]
fn losses_fallbacks_and_repetitions_in_trace_pipe() {
    let imported = sample("ftrace-pipe-lost.txt");
    let header = &imported.trace.header;
    assert_eq!(
        header.lost,
        [
            Lost {
                cpu: 0,
                events: 470
            },
            Lost {
                cpu: 1,
                events: 1318
            }
        ]
    );
    assert!(imported.repeated > 0);
    assert!(
        imported.out_of_order > 0,
        "it was put together out of several recordings"
    );
    let fallback = What::Fallback {
        mobility: MigrateType::Unmovable,
        from_order: Order::new(10),
        from: MigrateType::Movable,
        claimed: true,
    };
    let fallbacks = imported
        .trace
        .events
        .iter()
        .filter(|event| event.what == fallback);
    assert_eq!(fallbacks.count(), 2);
    assert!(
        imported
            .trace
            .names
            .iter()
            .any(|name| name.starts_with("kworker/"))
    );
}

/// Text as the kernel prints it: ftrace, and perf with its name of the system.
#[test]
fn blocks_that_move_between_zones_and_lists_are_read() {
    let text = "\
            bash-20744   [001] d..2. 5.000001: mm_page_alloc_zone_locked: page=000000006b pfn=0x14b527 order=3 migratetype=1 percpu_refill=1
            bash-20744   [001] d..2. 5.000002: mm_page_alloc_zone_locked: page=000000006b pfn=0x14b530 order=9 migratetype=2 percpu_refill=0
     kswapd0    88 [000]     5.000003000:               kmem:mm_page_pcpu_drain: page=0x2bc9c1 pfn=0x2bc9c1 order=0 migratetype=0
            bash-20744   [001] d..2. 5.000004: mm_page_pcpu_drain: page=000000006b pfn=0x14b527 order=99 migratetype=1
            bash-20744   [001] d..2. 5.000005: mm_page_free_batched: page=000000006b pfn=0x14b527 order=0
";
    let imported = imported(text.as_bytes(), &Options::default()).unwrap();
    let events = imported.trace.events.iter();
    let events: Vec<_> = events
        .map(|event| (event.cpu, event.frame, event.order.get(), event.what))
        .collect();
    let taken = |mobility, refill| What::Taken { mobility, refill };
    let mobility = MigrateType::Unmovable;
    let expected = [
        (1, 0x14_b527, 3, taken(MigrateType::Movable, true)),
        (1, 0x14_b530, 9, taken(MigrateType::Reclaimable, false)),
        (0, 0x2b_c9c1, 0, What::Drained { mobility }),
    ];
    assert_eq!(events, expected);
    assert_eq!((imported.bad_lines, imported.repeated), (1, 1));
}

#[test]
fn text_of_perf() {
    let trace = sample("perf-script-header-ns.txt").trace;
    assert_eq!(trace.header.source, "perf text");
    assert_eq!(trace.header.kernel, "6.18.44");
    assert_eq!(trace.header.machine, "x86_64");
    assert!(
        trace.header.command.ends_with("-- cargo check"),
        "{}",
        trace.header.command
    );
    assert_eq!(trace.header.cpus, 2);
    assert_eq!(trace.events[1].time, 93_499, "nanoseconds");
    assert!(
        trace
            .events
            .iter()
            .any(|event| event.pid == 0 && trace.name(event.name) == "swapper")
    );
    let flags = trace.header.flags.parse_names("GFP_HIGHUSER|__GFP_ACCOUNT");
    assert_eq!(
        trace.events[0].what,
        What::Alloc {
            mobility: MigrateType::Unmovable,
            flags
        }
    );

    assert_eq!(gist("perf-script-callchains.txt").3, "bash-20895");
    assert_eq!(gist("perf-script-task-events.txt").3, "bash-20895");
    assert_eq!(gist("perf-script-pid-tid.txt").3, "bash-20895");
}

#[test]
fn text_of_trace_cmd() {
    assert_eq!(
        gist("trace-cmd-report.txt").3,
        "rustc-21347",
        "the instance is not its name"
    );
    let raw = sample("trace-cmd-report-raw.txt").trace;
    assert_eq!(raw.header.source, "trace-cmd text");
    assert_eq!(
        raw.events[0].what,
        What::Alloc {
            mobility: MigrateType::Movable,
            flags: 0x14_0dca
        }
    );
}

#[test]
fn compressed_text_is_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ftrace-trace.txt");
    let packed = zstd::encode_all(fs::File::open(path).unwrap(), 3).unwrap();
    assert_eq!(
        imported(&packed, &Options::default()).unwrap(),
        sample("ftrace-trace.txt")
    );
    assert!(matches!(
        imported(&packed[..packed.len() / 2], &Options::default()),
        Err(ImportError::Io(_))
    ));
}

#[test]
fn old_kernels_have_other_type_numbers() {
    let text = b"  cc1-7 [001]  9.5: mm_page_alloc: page=ffffea0000 pfn=1307 order=0 migratetype=2 gfp_flags=GFP_KERNEL|GFP_ZERO";
    let of = |kernel: &str| {
        let options = Options {
            kernel: kernel.to_owned(),
            flags: Flags::default(),
        };
        imported(text, &options).unwrap().trace.events[0].what
    };
    let flags = Flags::canonical().parse_names("GFP_KERNEL|__GFP_ZERO");
    assert_eq!(
        of("3.10.0-1160.el7"),
        What::Alloc {
            mobility: MigrateType::Movable,
            flags
        }
    );
    assert_eq!(
        of("4.4.0"),
        What::Alloc {
            mobility: MigrateType::Reclaimable,
            flags
        }
    );
}

#[test]
fn the_kernels_own_numbers_are_used_where_its_format_is_known() {
    let text = b"  a-7 [001]  9.5: mm_page_alloc: page=1 pfn=0x1 order=0 migratetype=0 gfp_flags=GFP_X|GFP_Y|0x800";
    let flags = Flags::from_format(r#"__print_flags(f, "|", {(unsigned long)0x40u, "GFP_X"})"#);
    let options = Options {
        kernel: String::new(),
        flags,
    };
    let imported = imported(text, &options).unwrap();
    let what = What::Alloc {
        mobility: MigrateType::Unmovable,
        flags: 0x840,
    };
    assert_eq!(imported.trace.events[0].what, what);
    assert_eq!(imported.unknown_flags, ["GFP_Y"]);
}

#[test]
fn failures_have_no_frame() {
    for frame in ["0x0", "0", "0xffffffffffffffff"] {
        let text = format!(
            "  a-7 [001]  9.5: mm_page_alloc: page=(nil) pfn={frame} order=4 migratetype=1 gfp_flags=none"
        );
        let event = imported(text.as_bytes(), &Options::default())
            .unwrap()
            .trace
            .events[0];
        let what = What::Failure {
            mobility: MigrateType::Movable,
            flags: 0,
        };
        assert_eq!(
            (event.frame, event.order, event.what),
            (0, Order::new(4), what)
        );
    }
}

#[test]
fn bad_lines_are_counted_and_the_first_are_shown() {
    let good = "  a-7 [001]  9.5: mm_page_free: page=1 pfn=0x1 order=0\n";
    let bad = "  a-7 [001]  9.5: mm_page_free: page=1 pfn=0x1 order=99\n".repeat(9);
    let imported = imported(format!("# x\n{bad}{good}").as_bytes(), &Options::default()).unwrap();
    assert_eq!(
        (
            imported.bad_lines,
            imported.first_bad.len(),
            imported.trace.events.len()
        ),
        (9, 5, 1)
    );
    assert_eq!(imported.first_bad[0].line, 2);
    assert_eq!(
        imported.first_bad[0].why,
        "its order is larger than the largest there is"
    );
}

#[test]
fn an_import_without_events_says_what_is_expected() {
    for text in [
        "",
        "hello\n",
        "  a-7 [001]  9.5: sched_switch: x\n",
        "\0\0\0",
    ] {
        let error = imported(text.as_bytes(), &Options::default()).unwrap_err();
        assert!(error.to_string().contains("mm_page_alloc"), "{error}");
    }
    let nearly = "  a-7 [001]  9.5: mm_page_free: page=1 pfn=0x1\n";
    let error = imported(nearly.as_bytes(), &Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 1 is bad: it has no order="), "{error}");
}

#[test]
fn binary_files_are_named() {
    let of = |bytes: &[u8]| {
        imported(bytes, &Options::default())
            .unwrap_err()
            .to_string()
    };
    assert!(of(b"PERFILE2xxxxxxxx").contains("perf script"));
    assert!(of(b"\x17\x08Dtracing6").contains("trace-cmd report"));
    assert!(of(b"PAR1xxxxPAR1").contains("brickyard info"));
    assert!(of(&[0x1f, 0x8b, 8, 0]).contains("gzip -dc"));
}

#[test]
fn the_caller_can_stop_it() {
    let text = "  a-7 [001]  9.5: mm_page_free: page=1 pfn=0x1 order=0\n".repeat(1 << 15);
    let mut calls = 0;
    let ended = import(text.as_bytes(), &Options::default(), |progress| {
        calls += 1;
        assert_eq!(progress.events, 1 << 14);
        ControlFlow::Break(())
    });
    assert!(matches!(ended, Err(ImportError::Stopped)));
    assert_eq!(calls, 1);
}

proptest! {
    #[test]
    fn almost_valid_lines_never_panic(line in "[ a-z0-9<>./:()-]{0,30}(\\[[0-9x]{0,4}\\])?[ .0-9:]{0,12}(kmem:)?mm_page_(alloc|free|alloc_extfrag|alloc_zone_locked|pcpu_drain|free_batched): ([a-z_]{0,6}=[0-9a-fx-]{0,20} ?){0,6}(pfn=[0-9a-fx]{1,4} order=[0-9]{1,2})?") {
        let _ = imported(line.as_bytes(), &Options::default());
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = imported(&bytes, &Options::default());
    }
}
