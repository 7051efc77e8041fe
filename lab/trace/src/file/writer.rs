//! Writes a trace: rows are collected for a row group, then stored column by column.
//!
//! The file is written under a temporary name in the same directory and renamed once it is
//! complete. A path that is not a regular file (`/dev/null`, a pipe) is written directly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use tempfile::NamedTempFile;

use super::check::{EventCheck, RunCheck};
use super::columns::write_group;
use super::kind::RowKind;
use super::schema::{GROUP_ROWS, NAME_BYTES, properties, schema};
use super::{WriteError, metadata};
use crate::table::unfinished;
use crate::{Event, Header, StateRun};

/// Where the bytes go.
#[derive(Debug)]
enum Sink {
    /// A temporary file in the directory of the final one.
    Temporary(NamedTempFile),
    /// A device or pipe, which is written in place.
    Direct(File),
}

impl Sink {
    fn open(path: &Path) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Ok(Self::Direct(OpenOptions::new().write(true).open(path)?));
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let why = format!("there is no folder {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        // An error is without the temporary name, which says nothing to the user.
        let file = unfinished(folder).map_err(|error| io::Error::from(error.kind()));
        Ok(Self::Temporary(file?))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            // Not through `NamedTempFile`, whose errors show the temporary name.
            Self::Temporary(file) => file.as_file_mut().write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Temporary(file) => file.as_file_mut().flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

/// The rows buffered for the next row group.
#[derive(Debug)]
pub(super) enum Rows {
    Runs(RowKind, Vec<StateRun>),
    Events(Vec<Event>),
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Runs(_, runs) => runs.len(),
            Self::Events(events) => events.len(),
        }
    }
}

/// Writes a trace incrementally: page states at the start, events in order of time, page states at
/// the end, the header last.
///
/// Buffers half a million rows at most (20 MB). If it is dropped before [`finish`](Self::finish),
/// it leaves no file, and a file that existed before is unchanged.
///
/// ```
/// use brickyard_trace::{Header, file::{Writer, read}};
///
/// let path = std::env::temp_dir().join("brickyard-doc-writer.parquet");
/// let mut writer = Writer::create(&path)?;
/// writer.events(&[], &[])?;
/// writer.finish(&Header::default())?;
/// assert!(read(&path)?.events.is_empty());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer {
    path: PathBuf,
    group_rows: usize,
    out: SerializedFileWriter<BufWriter<Sink>>,
    rows: Rows,
    names: Vec<String>,
    events: EventCheck,
    runs: RunCheck,
}

impl core::fmt::Debug for Writer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = f.debug_struct("Writer");
        out.field("path", &self.path);
        out.field("buffered", &self.rows.len());
        out.finish_non_exhaustive()
    }
}

impl Writer {
    /// Creates a writer of the file `path`.
    ///
    /// # Errors
    ///
    /// If its directory cannot be written to.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        // A symbolic link is followed, not replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.is_dir() {
            let source = io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory: name a file in it",
            );
            return Err(io_error(&path, source));
        }
        let sink = Sink::open(&path).map_err(|source| io_error(&path, source))?;
        Self::to(sink, path)
    }

    fn to(sink: Sink, path: PathBuf) -> Result<Self, WriteError> {
        let properties = properties().map_err(|why| parquet_error(&path, why))?;
        let schema = schema().map_err(|why| parquet_error(&path, why))?;
        let out = SerializedFileWriter::new(BufWriter::new(sink), schema, Arc::new(properties))
            .map_err(|why| parquet_error(&path, why))?;
        Ok(Self {
            path,
            group_rows: GROUP_ROWS,
            out,
            rows: Rows::Runs(RowKind::Start, Vec::new()),
            names: Vec::new(),
            events: EventCheck::default(),
            runs: RunCheck::default(),
        })
    }

    /// Lets row groups have fewer rows.
    #[cfg(test)]
    pub(super) fn with_group_rows(mut self, rows: usize) -> Self {
        self.group_rows = rows;
        self
    }

    /// Adds page states at the start, in rising order of frames. Comes before any event.
    ///
    /// # Errors
    ///
    /// If a run overlaps the previous one or has an impossible size, if events were written
    /// already, or if the disk is full.
    pub fn start(&mut self, runs: &[StateRun]) -> Result<(), WriteError> {
        if !matches!(self.rows, Rows::Runs(RowKind::Start, _)) {
            return Err(WriteError::Invalid(
                "page states at the start must come before the events".to_owned(),
            ));
        }
        self.push_runs(runs)
    }

    /// Adds events, in order of time. `names` are all names so far: those of earlier calls keep
    /// their indices.
    ///
    /// A name of more than 1024 bytes is truncated, an index without a name becomes `?`. The reader
    /// numbers names in the order of their first appearance.
    ///
    /// # Errors
    ///
    /// If an event is earlier than a previous one or past the last possible frame, if page states
    /// at the end were written already, or if the disk is full.
    pub fn events(&mut self, events: &[Event], names: &[String]) -> Result<(), WriteError> {
        match self.rows {
            Rows::Events(_) => {}
            Rows::Runs(RowKind::Start, _) => {
                self.flush()?;
                self.rows = Rows::Events(Vec::new());
            }
            Rows::Runs(..) => {
                return Err(WriteError::Invalid(
                    "events must come before the page states at the end".to_owned(),
                ));
            }
        }
        let new = names.get(self.names.len()..).unwrap_or_default();
        self.names
            .extend(new.iter().map(|name| cut(name).to_owned()));
        for event in events {
            self.events.accept(event).map_err(WriteError::Invalid)?;
            if let Rows::Events(rows) = &mut self.rows {
                rows.push(*event);
            }
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Adds page states at the end, in rising order of frames.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn end(&mut self, runs: &[StateRun]) -> Result<(), WriteError> {
        if !matches!(self.rows, Rows::Runs(RowKind::End, _)) {
            self.flush()?;
            self.rows = Rows::Runs(RowKind::End, Vec::new());
            self.runs = RunCheck::default();
        }
        self.push_runs(runs)
    }

    /// Writes the header and gives the file its name. Until then no file of that name is made.
    ///
    /// # Errors
    ///
    /// If the disk is full, or the file cannot be renamed.
    pub fn finish(self, header: &Header) -> Result<(), WriteError> {
        let path = self.path.clone();
        match self.complete(header)? {
            Sink::Temporary(file) => {
                file.persist(&path)
                    .map_err(|error| io_error(&path, error.error))?;
            }
            Sink::Direct(mut file) => file.flush().map_err(|source| io_error(&path, source))?,
        }
        Ok(())
    }

    /// Writes the rest and the header; returns the complete file.
    fn complete(mut self, header: &Header) -> Result<Sink, WriteError> {
        self.flush()?;
        let Self { path, mut out, .. } = self;
        for pair in metadata::to_pairs(header) {
            out.append_key_value_metadata(pair);
        }
        let sink = out.into_inner().map_err(|why| parquet_error(&path, why))?;
        sink.into_inner()
            .map_err(|error| io_error(&path, error.into_error()))
    }

    fn push_runs(&mut self, runs: &[StateRun]) -> Result<(), WriteError> {
        for run in runs {
            self.runs.accept(run).map_err(WriteError::Invalid)?;
            if let Rows::Runs(_, rows) = &mut self.rows {
                rows.push(*run);
            }
            self.flush_if_full()?;
        }
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), WriteError> {
        if self.rows.len() >= self.group_rows {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        write_group(&mut self.out, &self.rows, &self.names)
            .map_err(|why| parquet_error(&self.path, why))?;
        match &mut self.rows {
            Rows::Runs(_, runs) => runs.clear(),
            Rows::Events(events) => events.clear(),
        }
        Ok(())
    }
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

fn io_error(path: &Path, source: io::Error) -> WriteError {
    let path = path.display().to_string();
    WriteError::Io { path, source }
}

fn parquet_error(path: &Path, why: ParquetError) -> WriteError {
    let why = match why {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => return io_error(path, *source),
            Err(inner) => inner.to_string(),
        },
        other => other.to_string(),
    };
    let path = path.display().to_string();
    WriteError::Parquet { path, why }
}
