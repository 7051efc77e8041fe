//! Reading the history. Files may come from other machines, and be damaged: one that cannot be read
//! is named, and the others are read.
//!
//! Which files are read goes by their names: a file has what is between its time and that of the
//! host's next one; where the clock was put back, an hour from its time.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use brickyard_trace::table::{self, Fault, Input, RowGroup, check_claims, guarded};
use parquet::file::reader::FileReader as _;
use rustix::fs::OFlags;

use super::blocks::{self, BlockMap};
use super::error::HistoryError;
use super::figures::{self, HostRow};
use super::name::{FileName, safe};
use super::store::PERIOD;
use super::{millis, time_of};

/// Files that one look at samples reads, at most: 31 days of one host.
const FILES_MOST: usize = 800;
/// The largest file that is read.
const BYTES_MOST: u64 = 256 << 20;
/// The rows of a file, at most. A page of a few bytes can have billions, which would take hours.
const ROWS_MOST: u64 = 1 << 26;

/// Rows of the table `hosts`.
#[derive(Debug, Default)]
pub struct Hosts {
    /// In order of host and time.
    pub rows: Vec<HostRow>,
    /// One in so many samples is here; the others were left out.
    pub one_in: u64,
    /// What could not be read.
    pub faults: Vec<HistoryError>,
}

/// The files of a table, by host, in order of time.
type Files = BTreeMap<String, Vec<(FileName, PathBuf)>>;

/// Returns the files of a table below `folder`, of one host or of all. Of a folder that does not
/// exist there are none.
fn files(folder: &Path, table: &str, host: Option<&str>) -> Result<Files, HistoryError> {
    let folder = folder.join(table);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Files::new()),
        Err(why) => return Err(HistoryError::io(&folder, why)),
    };
    let host = host.map(safe);
    let mut files = Files::new();
    for entry in entries.flatten() {
        let Some(name) = entry.file_name().to_str().and_then(FileName::parse) else {
            continue;
        };
        if host.as_ref().is_none_or(|host| *host == name.host) {
            files
                .entry(name.host.clone())
                .or_default()
                .push((name, entry.path()));
        }
    }
    for of_host in files.values_mut() {
        of_host.sort();
    }
    Ok(files)
}

/// Returns those files of a host, which are in order, that may have rows of this time, and `more`
/// after them.
fn within<'a>(
    files: &'a [(FileName, PathBuf)],
    time: &Range<SystemTime>,
    more: usize,
) -> impl Iterator<Item = &'a Path> + use<'a> {
    // A second earlier, since names have no milliseconds.
    let first = files.partition_point(|(name, _)| name.next().start <= time.start);
    let recent = files.partition_point(|(name, _)| name.next().start + PERIOD <= time.start);
    let end = files.partition_point(|(name, _)| name.start < time.end);
    let end = (end + more).min(files.len());
    files[first.saturating_sub(1).min(recent).min(end)..end]
        .iter()
        .map(|(_, path)| path.as_path())
}

/// Opens a regular file: opening a pipe would wait for its other end, and opening a device may do
/// something. One that is put there in between is only opened, and not read.
fn open_file(path: &Path) -> io::Result<File> {
    let no_file = || io::Error::other("it is not a regular file");
    if !fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(no_file())
    }
}

/// Opens a table and calls `read` with each of its row groups.
fn each_group(
    path: &Path,
    mut read: impl FnMut(&RowGroup<'_>) -> Result<(), Fault>,
) -> Result<(), HistoryError> {
    let file = open_file(path).map_err(|why| HistoryError::io(path, why))?;
    let input = Input::of_file(file).map_err(|why| HistoryError::io(path, why))?;
    let parsed = guarded(|| groups_of(&input, &mut read));
    parsed.map_err(|fault| HistoryError::file(path, fault))
}

fn groups_of(
    input: &Input,
    read: &mut impl FnMut(&RowGroup<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if parquet::file::reader::Length::len(input) > BYTES_MOST {
        return Err(Fault::Damaged("it is larger than 256 MiB".to_owned()));
    }
    let file = table::open(input)?;
    check_claims(&file, input)?;
    let groups = file.metadata().row_groups().iter();
    let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
    if rows.fold(0, u64::saturating_add) > ROWS_MOST {
        return Err(Fault::Damaged(
            "it has more than 64 million rows".to_owned(),
        ));
    }
    let schema = file.metadata().file_metadata().schema_descr();
    for index in 0..file.num_row_groups() {
        let reader = file.get_row_group(index)?;
        read(&RowGroup {
            reader: reader.as_ref(),
            schema,
        })?;
    }
    Ok(())
}

/// Reads the samples of a time, of one host or of all. If they are more than `most`, one in so many
/// is left that they are not.
///
/// # Errors
/// If the folder cannot be read. A file that cannot be is in [`Hosts::faults`].
pub fn hosts(
    folder: &Path,
    host: Option<&str>,
    time: Range<SystemTime>,
    most: usize,
) -> Result<Hosts, HistoryError> {
    let files = files(folder, figures::TABLE, host)?;
    let paths = || files.values().flat_map(|of_host| within(of_host, &time, 0));
    // Of very many files one in so many is read.
    let files_in = paths().count().div_ceil(FILES_MOST).max(1);
    let paths = || paths().step_by(files_in);
    let wanted = millis(time.start)..millis(time.end);
    let mut all = 0;
    for path in paths() {
        // What cannot be read is told below.
        let _ = each_group(path, |group| {
            let mut count = 0;
            figures::each_time(group, |time| {
                count += u64::from(wanted.contains(&time));
                Ok(())
            })?;
            all += count;
            Ok(())
        });
    }
    let mut hosts = Hosts {
        one_in: all.div_ceil(most.max(1) as u64).max(1),
        ..Hosts::default()
    };
    let (mut seen, one_in) = (0_u64, hosts.one_in);
    hosts.one_in *= files_in as u64;
    for path in paths() {
        let mut rows = Vec::new();
        let read = each_group(path, |group| {
            let accept = |time| {
                let is_wanted = wanted.contains(&time) && seen.is_multiple_of(one_in);
                seen += u64::from(wanted.contains(&time));
                is_wanted
            };
            figures::read(group, accept, &mut rows)
        });
        match read {
            Ok(()) => hosts.rows.append(&mut rows),
            Err(why) => hosts.faults.push(why),
        }
    }
    hosts
        .rows
        .sort_by(|a, b| (&a.host, a.time).cmp(&(&b.host, b.time)));
    Ok(hosts)
}

/// Returns the newest map of a host that is not after this time; `None` if there is none. Reads
/// three files at most.
///
/// # Errors
/// If no other file of that time has one, and one cannot be read.
pub fn map(folder: &Path, host: &str, at: SystemTime) -> Result<Option<BlockMap>, HistoryError> {
    let files = files(folder, blocks::TABLE, Some(host))?;
    let files: Vec<_> = files.into_values().flatten().collect();
    // The first map of a file is from before its first sample, so the file after may have it.
    let after = files.partition_point(|(name, _)| name.start <= at);
    let candidates = files.iter().take(after + 1).rev().take(3);
    let mut fault = None;
    for (_, path) in candidates {
        let mut newest = None;
        let read = each_group(path, |group| {
            blocks::read(group, host, millis(at), &mut newest)
        });
        match read {
            Ok(()) if newest.is_some() => return Ok(newest),
            Ok(()) => {}
            Err(why) => fault = Some(why),
        }
    }
    fault.map_or(Ok(None), Err)
}

/// Times of maps, or maps, and what could not be read.
#[derive(Debug, Default)]
pub struct Found<T> {
    /// In order.
    pub found: Vec<T>,
    /// What could not be read.
    pub faults: Vec<HistoryError>,
}

/// Returns the times of a host's maps within `time`, in milliseconds since 1970. Of each file only
/// the column of times is read.
///
/// # Errors
/// If the folder cannot be read. A file that cannot be is in [`Found::faults`].
pub fn map_times(
    folder: &Path,
    host: &str,
    time: Range<SystemTime>,
) -> Result<Found<u64>, HistoryError> {
    let files = files(folder, blocks::TABLE, Some(host))?;
    let wanted = millis(time.start)..millis(time.end);
    let (mut times, mut faults) = (BTreeSet::new(), Vec::new());
    // The first map of a file is from before its first sample, so the file after may have one.
    for path in files.values().flat_map(|of_host| within(of_host, &time, 1)) {
        let mut own = BTreeSet::new();
        let read = each_group(path, |group| {
            blocks::times(group, |time| wanted.contains(&time), &mut own)
        });
        match read {
            Ok(()) => times.append(&mut own),
            Err(why) => faults.push(why),
        }
    }
    let found = times.into_iter().collect();
    Ok(Found { found, faults })
}

/// Calls `each` with the host's maps of these times, which are in order, as far as they can be
/// read. One map is in memory at a time. Returns what could not be read.
///
/// # Errors
/// If the folder cannot be read.
pub fn maps(
    folder: &Path,
    host: &str,
    times: &[u64],
    mut each: impl FnMut(BlockMap),
) -> Result<Vec<HistoryError>, HistoryError> {
    let files = files(folder, blocks::TABLE, Some(host))?;
    let mut faults = Vec::new();
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
        return Ok(faults);
    };
    let time = time_of(first)..time_of(last.saturating_add(1));
    for path in files.values().flat_map(|of_host| within(of_host, &time, 1)) {
        let wanted = |time| times.binary_search(&time).is_ok();
        let read = each_group(path, |group| {
            blocks::each_map(group, host, wanted, &mut each)
        });
        faults.extend(read.err());
    }
    Ok(faults)
}

/// Returns the hosts of a folder, as in the names of their files, which is how [`hosts`] and the
/// other functions may be asked for them.
///
/// # Errors
/// If the folder cannot be read.
pub fn names(folder: &Path) -> Result<Vec<String>, HistoryError> {
    Ok(files(folder, figures::TABLE, None)?.into_keys().collect())
}

/// Returns when the host's history begins and the start of its last file; `None` if there is none.
#[must_use]
pub fn span(folder: &Path, host: &str) -> Option<(SystemTime, SystemTime)> {
    let files = files(folder, figures::TABLE, Some(host)).ok()?;
    let of_host = files.into_values().next()?;
    Some((of_host.first()?.0.start, of_host.last()?.0.start))
}

/// Reads a file of the tables `hosts` and `blocks` that is in memory, as an adversary may have made
/// it. Returns how many rows and runs it has.
///
/// # Errors
/// What is wrong with it.
#[doc(hidden)]
pub fn check_bytes(bytes: Vec<u8>) -> Result<usize, String> {
    let input = Input::Bytes(bytes.into());
    let as_hosts: Result<usize, Fault> = guarded(|| {
        let (mut rows, mut all) = (Vec::new(), 0_usize);
        groups_of(&input, &mut |group| {
            let mut accept = |_| {
                all += 1;
                all < 1000
            };
            figures::read(group, &mut accept, &mut rows)
        })?;
        Ok(all)
    });
    let as_blocks: Result<usize, Fault> = guarded(|| {
        let (mut newest, mut times, mut maps) = (None, BTreeSet::new(), 0);
        groups_of(&input, &mut |group| {
            blocks::read(group, "web", u64::MAX, &mut newest)?;
            blocks::times(group, |_| true, &mut times)?;
            blocks::each_map(group, "web", |_| true, |map| maps += map.runs.len())
        })?;
        Ok(maps)
    });
    as_hosts
        .or(as_blocks)
        .map_err(|fault: Fault| fault.to_string())
}
