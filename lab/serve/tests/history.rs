//! The history: what is written is read, nothing that was there is lost, and it stays within its
//! size.

use std::fs;
use std::path::Path;

use brickyard_host::blocks::BlockKind;
use brickyard_serve::frames::BlockRun;
use brickyard_serve::history::{Store, TABLES, read};

use crate::hosts::{at, folder, sample};

const ALL: u64 = 1 << 40;

/// Adds a sample of the host `web` with so many mixed blocks.
fn add(store: &mut Store, of: &str, mixed: usize, second: u64) {
    store
        .add(&sample("web", of, mixed, second), |_, _| {})
        .unwrap();
}

fn names(folder: &Path, table: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.join(table)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the seconds of all samples of `web`.
fn seconds(folder: &Path) -> Vec<u64> {
    let read = read::hosts(folder, Some("web"), at(0)..at(1 << 20), 1 << 20).unwrap();
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    read.rows
        .iter()
        .map(|row| row.time / 1000 - crate::hosts::BEGIN)
        .collect()
}

#[test]
fn samples_are_read_as_they_were_added() {
    let folder = folder("history/read");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    for minute in 0..130 {
        add(&mut store, "read", minute as usize / 10, minute * 60);
    }
    store.flush().unwrap();
    // A file an hour.
    for table in TABLES {
        let wanted = ["05", "06", "07"].map(|hour| format!("web-20261127T{hour}0000Z.parquet"));
        assert_eq!(names(&folder, table), wanted);
    }
    assert_eq!(
        seconds(&folder),
        (0..130).map(|minute| minute * 60).collect::<Vec<_>>()
    );
    let of = read::hosts(&folder, None, at(3600)..at(3720), 100)
        .unwrap()
        .rows;
    assert_eq!(of.len(), 2);
    let row = &of[0];
    assert_eq!(
        (row.host.as_str(), row.kernel.as_str()),
        ("web", "6.18.0-made")
    );
    assert_eq!(row.get("blocks_mixed"), Some(6.0));
    assert_eq!(row.get("blocks_free"), Some(58.0));
    assert_eq!(row.get("free_bytes"), Some(58.0 * 2_097_152.0));
    assert_eq!(row.get("use_slab_bytes"), Some(6.0 * 4096.0));
    assert_eq!(row.get("compaction_stalls"), Some(3.0));
    assert_eq!(row.get("huge_pool_least"), row.get("huge_free"));
    assert_eq!(row.get("available_bytes"), None, "it has no meminfo");
    assert_eq!(row.get("nothing of the kind"), None);
}

#[test]
fn of_many_samples_every_nth_is_read() {
    let folder = folder("history/thin");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    for second in 0..100 {
        add(&mut store, "thin", 1, second);
    }
    store.flush().unwrap();
    let read = read::hosts(&folder, None, at(0)..at(1000), 30).unwrap();
    assert_eq!((read.one_in, read.rows.len()), (4, 25));
}

#[test]
fn the_map_of_a_time_is_the_newest_before_it() {
    let folder = folder("history/map");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    // In three hours, so in three files.
    for (second, mixed) in [(0, 1), (4000, 2), (4060, 3), (8000, 4)] {
        add(&mut store, "map", mixed, second);
    }
    store.flush().unwrap();
    let mixed = |second| {
        let map = read::map(&folder, "web", at(second)).unwrap()?;
        assert_eq!(map.order, 9);
        let [first, rest] = map.runs.as_slice() else {
            panic!("{:?}", map.runs)
        };
        assert_eq!((first.first, first.kind), (0, BlockKind::Mixed));
        assert_eq!(
            *rest,
            BlockRun {
                first: first.blocks,
                blocks: 64 - first.blocks,
                kind: BlockKind::Free
            }
        );
        Some(first.blocks)
    };
    let times = [0, 3999, 4000, 4059, 4060, 7999, 8000, 1 << 30];
    assert_eq!(times.map(mixed), [1, 1, 2, 2, 3, 3, 4, 4].map(Some));
    let before = at(0) - core::time::Duration::from_secs(1);
    assert_eq!(read::map(&folder, "web", before).unwrap(), None);
    assert_eq!(read::map(&folder, "other", at(9000)).unwrap(), None);
    assert_eq!(read::span(&folder, "web"), Some((at(0), at(8000))));
}

#[test]
fn a_map_that_is_older_than_its_files_first_sample_is_found() {
    let folder = folder("history/older");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    let reading = sample("web", "older", 5, 100).reading;
    let mut later = sample("web", "older", 5, 160);
    later.reading = reading;
    store.add(&later, |_, map| assert!(map.is_some())).unwrap();
    assert_eq!(
        read::map(&folder, "web", at(100)).unwrap().unwrap().runs[0].blocks,
        5
    );
    assert_eq!(read::map(&folder, "web", at(99)).unwrap(), None);
    // The same reading is not written twice.
    store.add(&later, |_, map| assert!(map.is_none())).unwrap();
}

#[test]
fn maps_of_a_time_are_read_one_by_one() {
    let folder = folder("history/maps");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    let added = [(0, 1), (60, 2), (4000, 3), (4060, 4), (8000, 5)];
    for (second, mixed) in added {
        add(&mut store, "maps", mixed, second);
    }
    store.flush().unwrap();
    let times = read::map_times(&folder, "web", at(60)..at(8000)).unwrap();
    assert!(times.faults.is_empty());
    let wanted = [60, 4000, 4060].map(|second| (crate::hosts::BEGIN + second) * 1000);
    assert_eq!(times.found, wanted);
    let mut mixed = Vec::new();
    let faults = read::maps(&folder, "web", &[wanted[0], wanted[2]], |map| {
        mixed.push(map.runs[0].blocks);
    });
    assert!(faults.unwrap().is_empty());
    assert_eq!(mixed, [2, 4]);
    // A damaged file is named.
    let file = folder.join("blocks").join(&names(&folder, "blocks")[1]);
    fs::write(&file, "PAR1").unwrap();
    let times = read::map_times(&folder, "web", at(0)..at(9000)).unwrap();
    assert_eq!((times.found.len(), times.faults.len()), (3, 1));
    let faults = read::maps(&folder, "web", &times.found, |_| {}).unwrap();
    assert!(faults[0].to_string().contains(file.to_str().unwrap()));
    assert_eq!(read::names(&folder).unwrap(), ["web"]);
}

#[test]
fn what_was_written_before_the_clock_was_put_back_is_found() {
    let folder = folder("history/overlap");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    for second in [4000, 4060, 6000] {
        add(&mut store, "overlap", 1, second);
    }
    store.flush().unwrap();
    for second in [1000, 4580, 4640, 5000] {
        add(&mut store, "overlap", 1, second);
    }
    store.flush().unwrap();
    assert_eq!(names(&folder, "hosts").len(), 3);
    let read = read::hosts(&folder, None, at(5500)..at(7000), 100).unwrap();
    assert_eq!(
        read.rows.len(),
        1,
        "6000 is in a file that began before the next one's"
    );
}

#[test]
fn the_oldest_files_of_this_host_alone_make_room() {
    let folder = folder("history/room");
    let mut other = Store::open(&folder, "web-1", ALL).unwrap();
    other
        .add(&sample("web-1", "room", 1, 0), |_, _| {})
        .unwrap();
    let mut store = Store::open(&folder, "web", 60_000).unwrap();
    for hour in 0..12 {
        add(&mut store, "room", 1, hour * 3600);
        assert!(store.bytes() <= 60_000);
    }
    let seconds = seconds(&folder);
    assert_eq!(seconds.last(), Some(&(11 * 3600)));
    assert!((1..12).contains(&seconds.len()), "{seconds:?}");
    // Even with no room at all the current file stays.
    let mut store = Store::open(&folder, "web", 1).unwrap();
    add(&mut store, "room", 1, 13 * 3600);
    assert_eq!(self::seconds(&folder), [13 * 3600]);
    assert!(names(&folder, "hosts").contains(&"web-1-20261127T050000Z.parquet".to_owned()));
}

#[test]
fn restarts_and_a_clock_that_is_put_back_lose_nothing() {
    let folder = folder("history/clock");
    for second in [0, 60, 60, 30, 4000, 10] {
        // Not flushed: what was added is in a file at once, since it is the first of the process.
        let mut store = Store::open(&folder, "web", ALL).unwrap();
        add(&mut store, "clock", 1, second);
    }
    assert_eq!(seconds(&folder), [0, 10, 30, 60, 60, 4000]);
    assert_eq!(names(&folder, "hosts").len(), 6);
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    add(&mut store, "clock", 1, 8000);
    add(&mut store, "clock", 1, 7000);
    add(&mut store, "clock", 1, 7001);
    drop(store);
    assert_eq!(
        seconds(&folder).len(),
        9 - 1,
        "the last was not written yet"
    );
}

#[test]
fn while_it_cannot_be_written_samples_are_kept() {
    let folder = folder("history/full");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    add(&mut store, "full", 1, 0);
    // As if the disk were full: the folder is not one any more.
    let (hosts, away) = (folder.join("hosts"), folder.join("away"));
    fs::rename(&hosts, &away).unwrap();
    fs::write(&hosts, "").unwrap();
    for second in [400, 460, 520, 5000] {
        let why = store
            .add(&sample("web", "full", 1, second), |_, _| {})
            .unwrap_err();
        assert!(why.to_string().contains("hosts"), "{why}");
        // In the next minute nothing is tried, and what failed has not been made good.
        add(&mut store, "full", 1, second + 15);
        assert!(store.is_behind(), "{second}");
    }
    fs::remove_file(&hosts).unwrap();
    fs::rename(&away, &hosts).unwrap();
    add(&mut store, "full", 1, 5060);
    assert!(!store.is_behind());
    store.flush().unwrap();
    let all = [0, 400, 415, 460, 475, 520, 535, 5000, 5015, 5060];
    assert_eq!(seconds(&folder), all);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_told_at_once() {
    let folder = folder("history/file");
    let file = folder.join("taken");
    fs::write(&file, "").unwrap();
    let why = Store::open(&file, "web", ALL).unwrap_err().to_string();
    assert!(why.contains("taken"), "{why}");
}

#[test]
fn a_damaged_file_is_named_and_the_others_are_read() {
    let folder = folder("history/damaged");
    for second in [0, 4000, 8000] {
        let mut store = Store::open(&folder, "web", ALL).unwrap();
        add(&mut store, "damaged", 1, second);
    }
    let names = names(&folder, "hosts");
    let path = folder.join("hosts").join(&names[1]);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let read = read::hosts(&folder, None, at(0)..at(9000), 100).unwrap();
    assert_eq!(read.rows.len(), 2);
    assert!(
        read.faults[0].to_string().contains(&names[1]),
        "{:?}",
        read.faults
    );
    assert!(
        read::hosts(&folder.join("none"), None, at(0)..at(9000), 100)
            .unwrap()
            .rows
            .is_empty()
    );
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn no_damage_makes_it_panic() {
    let folder = folder("history/hostile");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    for second in 0..5 {
        add(&mut store, "hostile", 1, second);
    }
    store.flush().unwrap();
    for table in ["hosts", "blocks"] {
        let path = folder.join(table).join(&names(&folder, table)[0]);
        let bytes = fs::read(path).unwrap();
        assert!(read::check_bytes(bytes.clone()).is_ok());
        let mut refused = 0;
        // The fuzzer tries more: `history_file`.
        for at in (0..bytes.len()).step_by(13) {
            for value in [0xff, bytes[at] ^ 1] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                refused += u32::from(read::check_bytes(damaged).is_err());
            }
        }
        assert!(refused > 10, "{refused}");
    }
}

#[test]
fn samples_at_short_intervals_are_all_kept() {
    let folder = folder("history/short");
    let mut store = Store::open(&folder, "web", ALL).unwrap();
    let mut one = sample("web", "short", 1, 0);
    for second in 0..1700 {
        one.look.time = at(second);
        store.add(&one, |_, _| {}).unwrap();
    }
    store.flush().unwrap();
    assert_eq!(seconds(&folder), (0..1700).collect::<Vec<_>>());
    assert_eq!(names(&folder, "hosts").len(), 3, "a file ends early");
}

#[test]
fn what_is_from_the_future_goes_first() {
    let folder = folder("history/future");
    let years = 4 * 365 * 86_400;
    for second in [0, 3600, years, years + 3600, 7200] {
        let mut store = Store::open(&folder, "web", ALL).unwrap();
        add(&mut store, "future", 1, second);
    }
    let store = Store::open(&folder, "web", ALL).unwrap();
    let most = store.bytes() * 3 / 5;
    let mut store = Store::open(&folder, "web", most).unwrap();
    add(&mut store, "future", 1, 10_800);
    let kept = read::hosts(&folder, None, at(0)..at(2 * years), 100)
        .unwrap()
        .rows;
    let kept: Vec<_> = kept
        .iter()
        .map(|row| row.time / 1000 - crate::hosts::BEGIN)
        .collect();
    assert!(kept.contains(&7200) && kept.contains(&10_800), "{kept:?}");
    assert!(kept.iter().all(|&second| second < years), "{kept:?}");
}

#[test]
fn a_folder_or_a_pipe_in_place_of_a_file_stops_nothing() {
    let folder = folder("history/strange");
    let mut store = Store::open(&folder, "web", 1).unwrap();
    add(&mut store, "strange", 1, 0);
    fs::create_dir(folder.join("hosts/web-20000101T000000Z.parquet")).unwrap();
    let pipe = folder.join("hosts/web-20261127T045500Z.parquet");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    add(&mut store, "strange", 1, 4000);
    add(&mut store, "strange", 1, 8000);
    let read = read::hosts(
        &folder,
        None,
        at(0) - core::time::Duration::from_secs(1 << 30)..at(9000),
        100,
    );
    let read = read.unwrap();
    assert_eq!(read.rows.len(), 1, "the rest made room");
    assert_eq!(read.faults.len(), 2, "{:?}", read.faults);
}

#[test]
fn a_host_that_gets_another_name_begins_another_file() {
    let folder = folder("history/name");
    let mut store = Store::open(&folder, "localhost", ALL).unwrap();
    store
        .add(&sample("localhost", "name", 1, 0), |_, _| {})
        .unwrap();
    store.add(&sample("web", "name", 1, 60), |_, _| {}).unwrap();
    store.flush().unwrap();
    assert_eq!(
        names(&folder, "hosts"),
        [
            "localhost-20261127T050000Z.parquet",
            "web-20261127T050100Z.parquet"
        ]
    );
    assert_eq!(seconds(&folder), [60]);
}
