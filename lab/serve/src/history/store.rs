//! Writing the history. The rows of the current period are in memory, and every few minutes its
//! files are written anew: each appears whole (`whole-or-absent`), so a crash loses minutes, and
//! nothing that was there before.
//!
//! | | |
//! |---|---|
//! | a file has | an hour |
//! | is written | every 5 minutes, and at the end |
//! | the oldest files are removed | of this host alone, until what is left has the size that was given |
//! | while it cannot be written | up to 1500 samples are kept, and it is tried every minute |
//! | a file ends early | with 750 samples, or 128 maps; or when the host has another name |

use core::time::Duration;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use brickyard_trace::table::{UNFINISHED, appear};

use super::TABLES;
use super::blocks::{self, BlockMap};
use super::error::HistoryError;
use super::figures::{self, HostRow};
use super::millis;
use super::name::{FileName, safe};
use super::zones::{self, ZoneRow};
use crate::sample::Sample;

/// The time that a file has.
pub(super) const PERIOD: Duration = Duration::from_secs(3600);
/// How often the files of the current period are written.
const PACE: Duration = Duration::from_secs(300);
/// How long after a failure it is tried again.
const RETRY: Duration = Duration::from_secs(60);
/// Samples in memory, at most: a day's at one a minute. At half of that a file ends before its
/// hour.
const SAMPLES_MOST: usize = 1500;
/// Maps in memory, at most.
const MAPS_MOST: usize = 256;

/// A host's history that is being written.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// The host, in the form that the names of files have.
    host: String,
    most_bytes: u64,
    /// The name of the files of the current period; `None` before its first sample.
    current: Option<FileName>,
    hosts: Vec<HostRow>,
    zones: Vec<ZoneRow>,
    maps: Vec<Arc<BlockMap>>,
    /// The time of the newest map, also of those that were written before.
    newest_map: Option<u64>,
    /// When the files were last written, by the times of samples.
    written: Option<SystemTime>,
    /// When that was last tried, since it was last done.
    tried: Option<SystemTime>,
    bytes: u64,
}

impl Store {
    /// Opens a folder, creates it if need be, and removes what a killed process left unfinished.
    /// Other hosts may write to the same folder.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn open(folder: &Path, host: &str, most_bytes: u64) -> Result<Self, HistoryError> {
        let mut store = Self {
            folder: folder.to_owned(),
            host: safe(host),
            most_bytes,
            current: None,
            hosts: Vec::new(),
            zones: Vec::new(),
            maps: Vec::new(),
            newest_map: None,
            written: None,
            tried: None,
            bytes: 0,
        };
        for folder in store.folders() {
            fs::create_dir_all(&folder).map_err(|why| HistoryError::io(&folder, why))?;
            remove_unfinished(&folder);
        }
        // Now, and not after an hour, it is said that a folder cannot be written to. The name is
        // new, so no link that somebody put there is followed.
        for folder in store.folders() {
            let probe = tempfile::Builder::new()
                .prefix(UNFINISHED.0)
                .suffix(UNFINISHED.1)
                .tempfile_in(&folder);
            probe.map_err(|why| HistoryError::io(&folder, why))?;
        }
        store.make_room()?;
        Ok(store)
    }

    /// Returns the folders that are written to.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.clone()];
        folders.extend(TABLES.map(|table| self.folder.join(table)));
        folders
    }

    /// Returns true if writing has failed, and is to be tried again.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.tried.is_some()
    }

    /// Returns the bytes of this host's files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a sample, and the map of its reading if it is new. Every few minutes the files are
    /// written. `added` gets what was added.
    ///
    /// # Errors
    /// If they cannot be written; the sample is kept, and they are written with the next one.
    pub fn add(
        &mut self,
        sample: &Sample,
        added: impl FnOnce(HostRow, Option<Arc<BlockMap>>),
    ) -> Result<(), HistoryError> {
        let time = sample.look.time;
        let begun = self.current.as_ref().map(|name| name.start);
        let mut ended = Ok(());
        let own = safe(&sample.look.host);
        let is_over = begun.is_some_and(|begun| is_past(begun, time, PERIOD))
            || self.hosts.len() >= SAMPLES_MOST / 2
            || self.maps.len() >= MAPS_MOST / 2
            || own != self.host;
        if is_over && self.may_try(time) {
            ended = self.flush();
            // If it was not written, the period goes on.
            if ended.is_ok() {
                self.end_period();
                self.host = own;
            }
        }
        if self.current.is_none() {
            self.current = Some(self.free_name(FileName::new(&self.host, time))?);
        }
        let row = HostRow::of(sample);
        let reading = sample.reading.as_deref();
        let reading = reading.filter(|reading| self.newest_map != Some(millis(reading.time)));
        let map = reading.map(|reading| Arc::new(BlockMap::of(&sample.look.host, reading)));
        self.newest_map = row.reading_time;
        self.zones.extend(ZoneRow::of(sample));
        self.hosts.push(row.clone());
        self.maps.extend(map.clone());
        added(row, map);
        self.forget();
        ended?;
        // The first sample is written at once, so that there is a file.
        if self
            .written
            .is_none_or(|written| is_past(written, time, PACE))
            && self.may_try(time)
        {
            self.flush()?;
            self.written = Some(time);
            self.tried = None;
        }
        Ok(())
    }

    /// Returns true if what could not be written a moment ago may be tried again.
    fn may_try(&mut self, time: SystemTime) -> bool {
        let may = self.tried.is_none_or(|tried| is_past(tried, time, RETRY));
        if may {
            self.tried = Some(time);
        }
        may
    }

    /// Writes the files of the current period, and removes the oldest if there are too many bytes.
    ///
    /// # Errors
    /// If they cannot be written; what was there before still is.
    pub fn flush(&mut self) -> Result<(), HistoryError> {
        let Some(name) = &self.current else {
            return Ok(());
        };
        let name = name.text();
        let path = |table: &str| self.folder.join(table).join(&name);
        let wrote =
            |path: &Path, done: io::Result<()>| done.map_err(|why| HistoryError::io(path, why));
        let hosts = path(figures::TABLE);
        wrote(
            &hosts,
            appear(&hosts, |out| figures::write(out, &self.hosts)),
        )?;
        let zones = path(zones::TABLE);
        wrote(&zones, appear(&zones, |out| zones::write(out, &self.zones)))?;
        if !self.maps.is_empty() {
            let blocks = path(blocks::TABLE);
            wrote(
                &blocks,
                appear(&blocks, |out| blocks::write(out, &self.maps)),
            )?;
        }
        self.make_room()
    }

    fn end_period(&mut self) {
        self.current = None;
        self.written = None;
        self.tried = None;
        self.hosts.clear();
        self.zones.clear();
        self.maps.clear();
    }

    /// Forgets the oldest samples if they could not be written for long.
    fn forget(&mut self) {
        if self.hosts.len() > SAMPLES_MOST {
            self.hosts.drain(..SAMPLES_MOST / 4);
            let oldest = self.hosts.first().map_or(0, |row| row.time);
            self.zones.retain(|row| row.time >= oldest);
        }
        if self.maps.len() > MAPS_MOST {
            self.maps.drain(..MAPS_MOST / 4);
        }
    }

    /// Returns the first name from this one on that no file has: another process may have begun in
    /// the same second, or the clock was put back.
    fn free_name(&self, mut name: FileName) -> Result<FileName, HistoryError> {
        for _ in 0..1000 {
            let text = name.text();
            if !TABLES
                .iter()
                .any(|table| self.folder.join(table).join(&text).exists())
            {
                return Ok(name);
            }
            name = name.next();
        }
        let why = io::Error::new(ErrorKind::AlreadyExists, "no free name for a file");
        Err(HistoryError::io(&self.folder, why))
    }

    /// Removes the oldest files of this host until the rest has no more bytes than allowed. Those
    /// of the current period stay.
    fn make_room(&mut self) -> Result<(), HistoryError> {
        let mut files = files_of(&self.folder, &self.host)?;
        // What is from the future, by a clock that was wrong, goes first.
        let now = SystemTime::now() + PERIOD;
        let now = self
            .current
            .as_ref()
            .map_or(now, |name| now.max(name.start));
        files.sort_by(|a, b| (a.0.start <= now, &a.0).cmp(&(b.0.start <= now, &b.0)));
        self.bytes = files.iter().map(|file| file.2).sum();
        let mut failed = Ok(());
        for (name, path, bytes) in files {
            if self.bytes <= self.most_bytes {
                break;
            }
            if Some(&name) == self.current.as_ref() {
                continue;
            }
            match fs::remove_file(&path) {
                Ok(()) => self.bytes -= bytes,
                Err(why) if why.kind() == ErrorKind::NotFound => self.bytes -= bytes,
                // Others may make room.
                Err(why) => failed = Err(HistoryError::io(&path, why)),
            }
        }
        if self.bytes <= self.most_bytes {
            Ok(())
        } else {
            failed
        }
    }
}

/// Returns true if `now` is so much after `then`; or before it, since the clock was put back.
fn is_past(then: SystemTime, now: SystemTime, by: Duration) -> bool {
    now.duration_since(then).map_or(true, |since| since >= by)
}

/// Returns the files of a host in all tables: name, path and size.
fn files_of(folder: &Path, host: &str) -> Result<Vec<(FileName, PathBuf, u64)>, HistoryError> {
    let mut files = Vec::new();
    for table in TABLES {
        let folder = folder.join(table);
        let entries = fs::read_dir(&folder).map_err(|why| HistoryError::io(&folder, why))?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_str().and_then(FileName::parse);
            let Some(name) = name.filter(|name| name.host == host) else {
                continue;
            };
            // One that is gone is none; nor is what is no file.
            let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else {
                continue;
            };
            files.push((name, entry.path(), metadata.len()));
        }
    }
    Ok(files)
}

/// Removes files that were begun more than an hour ago and never finished; younger ones may be
/// another process's.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_unfinished = name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1);
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = changed.is_ok_and(|changed| is_past(changed, SystemTime::now(), PERIOD));
        if is_unfinished && is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
}
