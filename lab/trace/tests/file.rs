//! The trace file: what is written is read back, and everything else is refused.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use brickyard::Order;
use brickyard_trace::file::{ReadError, WriteError, Writer, read, read_bytes, write};
use brickyard_trace::{Event, Header, NameId, PageState, PageUse, StateRun, Trace, What};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use tempfile::TempDir;

fn written(trace: &Trace) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    write(&path, trace).unwrap();
    (folder, path)
}

fn bytes_of(trace: &Trace) -> Vec<u8> {
    let (_folder, path) = written(trace);
    fs::read(path).unwrap()
}

/// The same small trace each time.
fn small() -> Trace {
    let config = ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let mut trace = common::trace().new_tree(&mut runner).unwrap().current();
    trace.events.truncate(40);
    trace
}

fn event(time: u64, frame: u64) -> Event {
    Event {
        time,
        frame,
        what: What::Free,
        pid: 1,
        name: NameId(0),
        cpu: 0,
        order: Order::ZERO,
    }
}

fn run(frame: u64, frames: u64, order: u8) -> StateRun {
    StateRun {
        time: 0,
        frame,
        frames,
        order,
        state: PageState::of(PageUse::Free),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(trace in common::trace()) {
        let (_folder, path) = written(&trace);
        prop_assert_eq!(read(&path).unwrap(), trace);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_bytes(&bytes);
        let mut framed = b"PAR1".to_vec();
        framed.extend(bytes);
        framed.extend(b"PAR1");
        prop_assert!(read_bytes(&framed).is_err());
    }
}

#[test]
fn several_row_groups_and_calls_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    let names = vec!["a".to_owned(), "b".to_owned()];
    let count = (1 << 19) + 1000;
    let events: Vec<Event> = (0..count)
        .map(|i| Event {
            name: NameId(u32::from(i > 5)),
            ..event(i, i * 3)
        })
        .collect();
    let mut writer = Writer::create(&path).unwrap();
    writer.start(&[run(0, 4, 1)]).unwrap();
    writer.start(&[run(4, 4, 2)]).unwrap();
    for (index, events) in events.chunks(7777).enumerate() {
        writer.events(events, &names[..(index + 1).min(2)]).unwrap();
    }
    writer.end(&[run(2, 1, 0)]).unwrap();
    assert!(!path.exists(), "not before it is complete");
    writer.finish(&Header::default()).unwrap();
    let trace = read(&path).unwrap();
    assert_eq!(trace.names, names);
    assert!(trace.events == events);
    assert_eq!(trace.start, [run(0, 4, 1), run(4, 4, 2)]);
    assert_eq!(trace.end, [run(2, 1, 0)]);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left beside it"
    );
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_most_compressible_trace_is_not_refused() {
    let trace = Trace {
        names: vec!["a".to_owned()],
        events: vec![event(0, 0); 3 << 20],
        ..Trace::default()
    };
    let (_folder, path) = written(&trace);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(trace.events.len() as u64 / bytes < 128, "{bytes} bytes");
    assert!(read(&path).unwrap() == trace);
}

#[test]
fn a_dropped_writer_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, "older").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.events(&[event(0, 0)], &[]).unwrap();
    drop(writer);
    assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn devices_are_not_replaced_and_directories_not_written() {
    let null = Path::new("/dev/null");
    if null.exists() {
        write(null, &small()).unwrap();
        assert!(!fs::metadata(null).unwrap().is_file());
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        write(folder.path(), &small()),
        Err(WriteError::Io { .. })
    ));
    let missing = folder.path().join("no/such/folder");
    assert!(matches!(
        write(&missing, &small()),
        Err(WriteError::Io { .. })
    ));
}

/// An error and its causes, as the command prints them.
fn whole(error: &dyn core::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", whole(cause)));
    error.to_string() + &cause.unwrap_or_default()
}

#[test]
fn what_cannot_be_written_has_its_reason_once() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| {
        let error = Writer::create(path).unwrap_err();
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let message = whole(&error);
        let start = format!("cannot write {}: ", path.display());
        let why = message.strip_prefix(&start).map(str::to_owned);
        why.unwrap_or_else(|| panic!("{message}"))
    };
    assert_eq!(
        message(folder.path()),
        "it is a directory: name a file in it"
    );
    let missing = folder.path().join("no");
    assert_eq!(
        message(&missing.join("file")),
        format!("there is no folder {}", missing.display())
    );
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(
        message(&file.join("file")),
        format!("there is no folder {}", file.display())
    );
    // Not even root can create a file there, and the temporary name is not mentioned.
    let other = message(Path::new("/proc/file"));
    assert!(!other.contains("unfinished"), "{other}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_as_the_system_tells_it() {
    let mut writer = Writer::create(Path::new("/dev/full")).unwrap();
    writer.events(&[], &[]).unwrap();
    let error = writer.finish(&Header::default()).unwrap_err();
    assert_eq!(
        whole(&error),
        "cannot write /dev/full: No space left on device (os error 28)"
    );
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "older").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    write(&link, &small()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&target).unwrap(), small());
}

#[test]
fn invalid_rows_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |what: &str, write: &dyn Fn(&mut Writer) -> Result<(), WriteError>| {
        let mut writer = Writer::create(&folder.path().join("x")).unwrap();
        let error = write(&mut writer).unwrap_err();
        assert!(matches!(error, WriteError::Invalid(_)), "{what}: {error}");
    };
    refused("time back", &|w| w.events(&[event(2, 0), event(1, 0)], &[]));
    refused("past the end", &|w| w.events(&[event(0, u64::MAX)], &[]));
    refused("overlap", &|w| w.start(&[run(0, 4, 0), run(3, 1, 0)]));
    refused("empty", &|w| w.start(&[run(0, 0, 0)]));
    refused("half a block", &|w| w.start(&[run(0, 3, 1)]));
    refused("order", &|w| w.start(&[run(0, 1 << 19, 19)]));
    refused("past the end", &|w| w.end(&[run(u64::MAX, 2, 0)]));
    refused("start after events", &|w| {
        w.events(&[event(0, 0)], &[])?;
        w.start(&[])
    });
    refused("events after the end", &|w| {
        w.end(&[])?;
        w.events(&[], &[])
    });
}

#[test]
fn a_truncated_file_is_refused() {
    let bytes = bytes_of(&small());
    assert_eq!(read_bytes(&bytes).unwrap(), small());
    for length in 0..bytes.len() {
        let error = read_bytes(&bytes[..length]).unwrap_err();
        if length >= 4 {
            assert!(matches!(error, ReadError::Truncated), "{length}: {error}");
        }
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn a_flipped_byte_never_panics() {
    let bytes = bytes_of(&small());
    for place in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[place] ^= if place % 2 == 0 {
            0xff
        } else {
            1 << (place / 2 % 8)
        };
        if let Ok(trace) = read_bytes(&bytes) {
            // Whatever was read is a valid trace: it can be written again.
            assert!(trace.events.is_sorted_by_key(|event| event.time));
        }
    }
}

#[test]
fn other_files_are_distinguished() {
    let text = read_bytes(b"  bash-12 [001] ..... 1.5: mm_page_free: page=0 pfn=0x1 order=0\n")
        .unwrap_err();
    assert!(text.to_string().contains("brickyard import"), "{text}");
    let zstd = read_bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0]).unwrap_err();
    assert!(zstd.to_string().contains("brickyard import"), "{zstd}");
    assert!(matches!(
        read_bytes(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]),
        Err(ReadError::Foreign)
    ));
    assert!(matches!(read_bytes(&[]), Err(ReadError::Empty)));
    assert!(matches!(read(Path::new("/")), Err(ReadError::NoFile)));
    assert!(matches!(
        read(Path::new("/no/such/file")),
        Err(ReadError::Io(_))
    ));
}
