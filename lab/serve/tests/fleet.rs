//! Queries over the histories of many hosts: those of the book, on six hosts that are made up, by
//! DuckDB, if it can be had.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::synthetic::{Block, SyntheticHost};
use brickyard_host::Host;
use brickyard_serve::history::Store;
use brickyard_serve::sample::Sample;
use serde_json::{Value, json};

use crate::hosts::{at, folder};

const DAY: u64 = 86_400;

/// Runs each query of its input in one session, and prints what all of them return.
const SESSION: &str = "
import duckdb, json, sys
session = duckdb.connect()
print(json.dumps([session.execute(text).fetchall() for text in json.load(sys.stdin)]))
";

/// A host of so many page blocks, and what is in the block of a number.
fn made(name: &str, blocks: usize, of: impl Fn(usize) -> Block) -> SyntheticHost {
    SyntheticHost::new(name, (0..blocks).map(of).collect())
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes a host's files, which `change` may change, and adds its sample of this second.
fn add(fleet: &Path, made: &SyntheticHost, second: u64, change: impl FnOnce(&Path)) {
    let root = folder(&format!("fleet-hosts/{}", made.name));
    let mut made = made.clone();
    made.time = Some(at(second));
    made.write(&root).unwrap();
    change(&root);
    // Writing has changed the time.
    let zoneinfo = fs::File::open(root.join("proc/zoneinfo")).unwrap();
    zoneinfo.set_modified(at(second)).unwrap();
    let sample = Sample::of(&Host::at(&root)).unwrap();
    let mut store = Store::open(fleet, &made.name, 1 << 30).unwrap();
    store.add(&sample, |_, _| {}).unwrap();
    store.flush().unwrap();
}

/// Writes the histories of the six, and returns the folder that `fleet` is in.
fn fleet() -> PathBuf {
    let folder = folder("fleet");
    let fleet = folder.join("fleet");
    add(&fleet, &made("fresh", 1024, |_| Block::Free), DAY, |_| {});
    let scattered = |name| made(name, 1024, |_| Block::Single);
    add(&fleet, &scattered("fragmented"), DAY, |_| {});
    add(
        &fleet,
        &made("full", 1024, |_| Block::Cached),
        DAY,
        |root| put(root, "proc/meminfo", "MemAvailable:    2000000 kB\n"),
    );
    add(&fleet, &scattered("pinned"), DAY, |root| {
        let status = "Name:\tdatabase\nVmPin:\t    3200 kB\n";
        put(root, "proc/812/status", status);
    });
    add(&fleet, &scattered("without-root"), DAY, |root| {
        fs::remove_file(root.join("proc/kpageflags")).unwrap();
    });
    // The kernel's pages spread within the day; three blocks of four have one at the end.
    for (second, every) in [(0, 64), (3 * 3600, 16), (DAY + 3600, 4)] {
        let of = |block: usize| match block % every {
            1..4 => Block::Mixed,
            0 => Block::Free,
            _ => Block::Anonymous,
        };
        add(&fleet, &made("large", 2048, of), second, |_| {});
    }
    folder
}

/// Returns the queries of the book for DuckDB and those that are for any, by their first line.
fn queries() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/lab/fleet.md");
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```sql\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let named = blocks.map(|block| {
        let (name, query) = block.strip_prefix("-- ").unwrap().split_once('\n').unwrap();
        (name.to_owned(), query.to_owned())
    });
    named.filter(|(name, _)| name != "Spark").collect()
}

/// Runs a program to its end; `None` if it fails.
fn run(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

/// Returns a Python that has DuckDB, or why there is none.
fn python() -> Result<PathBuf, String> {
    let has = |python: &Path| run(python, &["-c", "import duckdb"]).is_some();
    let system = PathBuf::from("python3");
    if has(&system) {
        return Ok(system);
    }
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("duckdb");
    let own = venv.join("bin/python");
    if has(&own) {
        return Ok(own);
    }
    run(&system, &["-m", "venv", venv.to_str().unwrap()])
        .ok_or("python3 with the module venv is not installed")?;
    let install = "-m pip install --quiet --retries 1 --timeout 20 duckdb pytz";
    let arguments: Vec<&str> = install.split(' ').collect();
    run(&own, &arguments).ok_or("the package duckdb cannot be had")?;
    has(&own)
        .then_some(own)
        .ok_or_else(|| "the package duckdb does not run here".to_owned())
}

/// Runs all queries in the folder, and returns the rows of each.
fn answers(python: &Path, folder: &Path, queries: &[(String, String)]) -> Vec<Value> {
    let texts: Vec<&str> = queries.iter().map(|(_, query)| query.as_str()).collect();
    let input = folder.join("queries.json");
    fs::write(&input, json!(texts).to_string()).unwrap();
    let mut command = Command::new(python);
    command.args(["-c", SESSION]).current_dir(folder);
    let output = command
        .stdin(fs::File::open(input).unwrap())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_queries_of_the_book_tell_six_hosts_apart() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let (folder, queries) = (fleet(), queries());
    let rows = answers(&python, &folder, &queries);
    let of = |name: &str| {
        let place = queries.iter().position(|(own, _)| own == name).unwrap();
        rows[place].as_array().unwrap()
    };
    // The first columns: the host and the answer.
    let first = |name: &str| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let rows = of(name).iter();
        rows.map(|row| (text(&row[0]), text(&row[1]))).collect()
    };
    let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|&(host, answer)| (host.to_owned(), answer.to_owned()))
            .collect()
    };
    assert_eq!(
        first("huge pages"),
        own(&[
            ("fragmented", "by compaction"),
            ("full", "after dropping caches"),
            ("pinned", "by compaction"),
            ("without-root", "not known"),
        ])
    );
    assert_eq!(
        first("regions of 1 GiB"),
        own(&[
            ("fragmented", "by compaction"),
            ("full", "after dropping caches"),
            ("large", "no"),
            ("pinned", "by compaction, but for pinned pages"),
            ("without-root", "not known"),
        ])
    );
    assert_eq!(
        first("in the way"),
        own(&[
            ("large", "kernel"),
            ("pinned", "pinned"),
            ("without-root", "not known"),
        ])
    );
    // Of 2048 blocks 3 in 16, and in the end 3 in 4; what was 25 hours before does not count.
    assert_eq!(*of("grown"), [json!(["large", 384, 1536, 1152])]);
}
