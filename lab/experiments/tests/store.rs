//! A cell that is written is read back unchanged, and a file that is not a cell's is refused with a
//! message, never with a panic.

use std::fs;
use std::io;
use std::path::Path;

use brickyard_experiments::data::Data;
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_experiments::store::{
    Folder, appear, read_cell, read_cell_bytes, read_rows, write_cell, write_csv, write_rows,
};
use brickyard_results::{Better, Host};
use proptest::prelude::*;

fn raw() -> impl Strategy<Value = Raw> {
    let words = (
        "[a-z0-9 é,\"-]{0,12}",
        "[a-z0-9 -]{0,12}",
        "[a-z]{1,4}",
        "[a-z/]{1,4}",
        "[a-z%]{0,4}",
    );
    let numbers = (
        proptest::sample::select(vec![Better::Higher, Better::Lower, Better::Neither]),
        0..=u32::MAX,
        proptest::option::of(-1e9..1e9),
        -1e300..1e300,
    );
    (words, numbers).prop_map(
        |((machine, workload, config, metric, unit), (better, run, at, value))| Raw {
            machine,
            workload,
            config,
            metric,
            unit,
            better,
            run,
            at,
            value,
        },
    )
}

fn cell() -> impl Strategy<Value = CellRows> {
    let name = "[a-z]{1,5}\\.[a-z0-9+]{1,9}";
    let about = (name, 0..3_usize, any::<u64>(), "[a-b]{0,1}", 1..3_u32);
    (about, proptest::collection::vec(raw(), 1..40)).prop_map(
        |((cell, kind, seed, program, cpus), rows)| CellRows {
            cell,
            kind: Method::ALL[kind],
            seed,
            host: Host {
                cpus: Some(cpus),
                ..Host::read()
            },
            program,
            rows,
        },
    )
}

proptest! {
    #[test]
    fn a_cell_is_read_as_it_was_written(cell in cell()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/cell.parquet");
        write_cell(&path, &cell).unwrap();
        prop_assert_eq!(read_cell(&path).unwrap(), cell);
        // No temporary file is left.
        prop_assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn all_rows_are_read_as_they_were_written(cells in proptest::collection::btree_map("[a-z]{1,3}\\.[a-z]{1,3}", cell(), 1..5)) {
        let named = cells.into_iter().map(|(name, cell)| CellRows { cell: name, ..cell });
        // Rows that contradict each other are not a run.
        let Ok(data) = Data::new(named.collect()) else {
            return Err(TestCaseError::reject("rows of one key"));
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write_rows(&path, &data).unwrap();
        prop_assert_eq!(&read_rows(&path).unwrap(), data.cells());
        write_csv(&folder.path().join("rows.csv"), &data).unwrap();
        let mut csv = csv::Reader::from_path(folder.path().join("rows.csv")).unwrap();
        let values: Vec<f64> = csv.records().map(|record| record.unwrap()[12].parse().unwrap()).collect();
        let written: Vec<f64> = (0..data.len()).map(|place| data.row(place).unwrap().1.value).collect();
        prop_assert_eq!(values, written);
    }

    #[test]
    fn a_damaged_file_is_refused_or_read_but_never_a_panic(
        cell in cell(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cell.parquet");
        write_cell(&path, &cell).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(read) = read_cell_bytes(&bytes) {
            prop_assert!(read.rows.iter().all(|raw| raw.value.is_finite()));
        }
        let cut = cut.index(bytes.len());
        prop_assert!(read_cell_bytes(&bytes[..cut]).is_err());
    }
}

fn one_row(cell: &str) -> CellRows {
    CellRows {
        cell: cell.to_owned(),
        kind: Method::Timed,
        seed: 1,
        host: Host::unknown(),
        program: String::new(),
        rows: vec![Raw {
            machine: "host".to_owned(),
            workload: "w".to_owned(),
            config: "c".to_owned(),
            metric: "m".to_owned(),
            unit: "s".to_owned(),
            better: Better::Lower,
            run: 1,
            at: None,
            value: 1.0,
        }],
    }
}

#[test]
fn a_folder_lists_the_cells_of_its_partitions() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::new(&place.path().join("run"));
    assert_eq!(folder.cells().unwrap(), [""; 0]);
    for cell in ["slab.socket.1", "locks.find-8.hold.1"] {
        folder.write(&one_row(cell)).unwrap();
        assert!(folder.cell(cell).is_file());
    }
    assert_eq!(
        folder.cells().unwrap(),
        ["locks.find-8.hold.1", "slab.socket.1"]
    );
    assert!(
        folder
            .file("raw/experiment=slab/slab.socket.1.parquet")
            .is_file()
    );
    // A file that was copied under another name is noticed.
    fs::copy(folder.cell("slab.socket.1"), folder.cell("slab.socket.2")).unwrap();
    let refused = folder.read("slab.socket.2").unwrap_err().to_string();
    assert!(
        refused.contains("it has the rows of the cell slab.socket.1; run with --resume"),
        "{refused}"
    );
}

#[test]
fn a_file_that_is_not_a_cells_is_refused_with_a_message() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.parquet");
    fs::write(&path, "some text").unwrap();
    let refused = read_cell(&path).unwrap_err().to_string();
    assert!(refused.contains("is not a cell's result"), "{refused}");
    assert!(
        refused.ends_with("; run with --resume to run the cell again"),
        "{refused}"
    );
    // A Parquet file with other columns.
    let data = Data::new(vec![one_row("a.b")]).unwrap();
    write_rows(&path, &data).unwrap();
    let refused = read_cell(&path).unwrap_err().to_string();
    assert!(
        refused.contains("its columns are not cell, kind"),
        "{refused}"
    );
    assert!(
        read_cell(&place.path().join("none"))
            .unwrap_err()
            .to_string()
            .starts_with("cannot read")
    );
    // Two cells in the file of one.
    let mut two = one_row("a.b");
    two.rows.push(two.rows[0].clone());
    write_cell(&path, &two).unwrap();
    assert_eq!(read_cell(&path).unwrap().rows.len(), 2);
}

#[test]
fn rows_that_the_reader_would_refuse_are_not_written() {
    type Change = fn(&mut CellRows);
    let place = tempfile::tempdir().unwrap();
    let changes: [(Change, &str); 4] = [
        (|cell| cell.rows.clear(), "the cell a.b has no rows; run"),
        (
            |cell| cell.rows[0].value = f64::NAN,
            "in the row host, w, c, m, run 1 of the cell a.b `value` is NaN, which is not a finite number; run",
        ),
        (
            |cell| cell.rows[0].value = f64::NEG_INFINITY,
            "`value` is -inf, which",
        ),
        (
            |cell| cell.rows[0].at = Some(f64::INFINITY),
            "`at` is inf, which",
        ),
    ];
    for (change, reason) in changes {
        let mut cell = one_row("a.b");
        change(&mut cell);
        let refused = write_cell(&place.path().join("x.parquet"), &cell);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        if !cell.rows.is_empty() {
            let rows = Data::new(vec![cell]).unwrap();
            let refused = write_rows(&place.path().join("rows.parquet"), &rows);
            assert!(refused.unwrap_err().to_string().contains(reason));
        }
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_file_appears_complete_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("deep/x.html");
    appear(&path, |out| {
        out.write_all(b"first")?;
        assert!(!path.exists());
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    let refused = appear(&path, |out| {
        out.write_all(b"second")?;
        Err(io::Error::other("the disk is full"))
    });
    let error = refused.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot write ") && error.ends_with("x.html"),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_too_large_is_refused_with_the_message_of_its_kind() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.parquet");
    let file = fs::File::create(&path).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let refused = read_rows(&path).unwrap_err().to_string();
    assert!(
        refused.ends_with(
            "is not a file of rows: it is larger than 64 MiB; give the rows.parquet of a run"
        ),
        "{refused}"
    );
    let refused = read_cell(&path).unwrap_err().to_string();
    assert!(
        refused.contains("is not a cell's result: it is larger"),
        "{refused}"
    );
    // A device reports a length of zero, and has no end.
    let zero = Path::new("/dev/zero");
    if zero.exists() {
        let refused = read_rows(zero).unwrap_err().to_string();
        assert!(refused.contains("it is larger than 64 MiB"), "{refused}");
    }
}

/// Cells of three hosts and two builds in one file.
#[test]
fn the_file_of_all_rows_has_hosts_and_builds() {
    let ran = [
        ("a.1", 1, "x"),
        ("a.2", 2, "x"),
        ("a.3", 2, "y"),
        ("a.4", 2, "x"),
    ];
    let cells = ran.map(|(name, cpus, program)| {
        let mut cell = one_row(name);
        cell.host.cpus = Some(cpus);
        cell.program = program.to_owned();
        cell.rows[0].workload = name.to_owned();
        cell
    });
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("rows.parquet");
    write_rows(&path, &Data::new(cells.to_vec()).unwrap()).unwrap();
    assert_eq!(read_rows(&path).unwrap(), cells);
    // The largest group, of the second and fourth, is not written out.
    let bytes = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(bytes.contains("\"cells\":[\"a.1\"]") && !bytes.contains("[\"a.2\""));
}
