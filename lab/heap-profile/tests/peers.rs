//! pprof reads what is written here, and reads the same from a profile as this crate.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use brickyard_heap_profile::{Named, Order, Space, pprof, sites};

use crate::program::Program;

/// Own and cumulative bytes by function, and the total.
type Top = (BTreeMap<String, (u64, u64)>, u64);

/// Returns pprof's table of functions; `None`, with the reason printed, if there is no pprof.
fn top(folder: &Path, file: &str, index: &str) -> Option<Top> {
    let run = Command::new("go")
        .args(["tool", "pprof"])
        .args(["-top", "-unit=B", "-nodecount=1000", "-symbolize=none"])
        .arg(format!("-sample_index={index}"))
        .arg(folder.join(file))
        .env("PPROF_TMPDIR", folder)
        .env("GOTOOLCHAIN", "local")
        .output();
    let Some(run) = run
        .ok()
        .filter(|run| run.status.success() || !run.stderr.is_empty())
    else {
        println!("skipped: there is no `go tool pprof`");
        return None;
    };
    let errors = String::from_utf8_lossy(&run.stderr);
    if errors.contains("no such tool") {
        println!("skipped: {errors}");
        return None;
    }
    assert!(run.status.success(), "{errors}");
    let text = String::from_utf8(run.stdout).unwrap();
    let bytes = |word: &str| word.trim_end_matches('B').parse::<u64>().unwrap();
    let total = text
        .lines()
        .find(|line| line.starts_with("Showing nodes"))
        .unwrap();
    let total = total.split_whitespace().rev().nth(1).unwrap();
    let mut lines = text.lines().skip_while(|line| !line.contains("flat%"));
    let _head = lines.next();
    let functions = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[5..].join(" "), (bytes(words[0]), bytes(words[3])))
    });
    Some((functions.collect(), bytes(total)))
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn pprof_shows_the_same_functions_and_totals() {
    let flags = ["-g", "-O1", "-Dinsert=brickyard_insert"];
    let Some(program) = Program::built(&flags) else {
        return;
    };
    let named = Named::of(&program.profile());
    let folder = program.folder.path();
    pprof(&named, &mut File::create(folder.join("out.pb.gz")).unwrap()).unwrap();
    for (space, index) in [(Space::Live, "inuse_space"), (Space::All, "alloc_space")] {
        let Some((functions, total)) = top(folder, "out.pb.gz", index) else {
            return;
        };
        let ours = sites(&named, space, Order::Cumulative);
        let ours = ours.iter().map(|site| {
            (
                site.function.clone(),
                (site.own.bytes, site.cumulative.bytes),
            )
        });
        assert_eq!(functions, ours.collect(), "{index}");
        assert_eq!(total, named.total(space).bytes, "{index}");
        let Some((_, total)) = top(folder, "program.heap", index) else {
            return;
        };
        assert_eq!(total, named.total(space).bytes, "{index}, the text itself");
    }
}
