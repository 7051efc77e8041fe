//! From a running kernel to the picture: a trace is recorded on this host, and goes through `info`,
//! `replay` and the page.

use std::fs;
use std::path::Path;

use brickyard_trace::record::Tracefs;
use rustix::process::geteuid;

use crate::command::{brickyard, printed};

/// Returns the standard output of a run that must succeed.
fn done(arguments: &[&str]) -> String {
    printed(&brickyard(arguments))
}

#[test]
fn a_trace_of_this_host_is_recorded_summarized_and_replayed() {
    let missing = if !geteuid().is_root() {
        Some("recording needs root")
    } else if !Tracefs::find()
        .is_ok_and(|found| found.path().join("events/kmem/mm_page_alloc").exists())
    {
        Some("this kernel has no tracefs with kmem events")
    } else if !Path::new("/proc/kpageflags").exists() {
        Some("this kernel has no /proc/kpageflags")
    } else {
        None
    };
    if let Some(missing) = missing {
        println!("skipped: {missing}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, page) = (path("live.parquet"), path("live.html"));
    done(&[
        "record",
        "-o",
        &trace,
        "--",
        "sh",
        "-c",
        "ls -R /usr/lib > /dev/null",
    ]);

    let info = done(&["info", &trace, "--format", "json"]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert!(info.is_object());

    // On the recorded host, in its recorded state, and on a small machine.
    let table = done(&["replay", &trace, "--config", "list-2007,brickyard"]);
    assert!(table.contains("replayed on that host"), "{table}");
    let small = [
        "replay",
        &trace,
        "--config",
        "list-2007,brickyard",
        "--memory",
        "64M",
        "--every",
        "0.1",
        "--html",
        &page,
    ];
    let table = done(&small);
    assert!(table.contains("an allocation, median"), "{table}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("list-2007") && page.contains("brickyard"));
}
