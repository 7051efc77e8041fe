//! A tracing instance of our own: `instances/brickyard-PID`, with its own buffers, clock and
//! events, so that none of the host's settings is changed.
//!
//! Removing the instance frees and undoes all of it. That happens when it is dropped; an instance
//! that a killed process left is removed by the next recording.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use super::decode::{PAGE_EVENTS, TASK_EVENTS};
use super::error::RecordError;
use super::format::{Format, FormatError};
use super::optional::{Fields, Group, OptionalEvent};
use super::page::Layout;

const PREFIX: &str = "brickyard-";
/// Larger than any of the files that must be read at once.
const READ_BYTES: usize = 256 << 10;

/// The directory of an instance.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
}

/// The format of an event: the kernel's text, and the text parsed.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) format: Format,
}

/// The formats of events in groups; events are named as `system/name`.
#[derive(Debug, Default)]
pub(super) struct OptionalFormats {
    pub(super) events: Vec<&'static str>,
    pub(super) known: Vec<Known>,
    pub(super) lacking: Vec<&'static str>,
}

impl Instance {
    /// Creates an instance that records nothing yet.
    pub(super) fn create(tracefs: &Path) -> Result<Self, RecordError> {
        let instances = tracefs.join("instances");
        remove_stale(&instances);
        let own = format!("{PREFIX}{}", process::id());
        // One process may have several recordings.
        for number in 1.. {
            let path = match number {
                1 => instances.join(&own),
                _ => instances.join(format!("{own}-{number}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => {
                    let instance = Self { path };
                    instance.write("tracing_on", "0")?;
                    return Ok(instance);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(RecordError::tracing(path, error)),
            }
        }
        unreachable!("a number is free")
    }

    /// Returns its directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), RecordError> {
        let path = self.path.join(file);
        // Without O_TRUNC and O_CREAT, since these are not regular files.
        let opened = OpenOptions::new().write(true).open(&path);
        let written = opened.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(|error| RecordError::tracing(path, error))
    }

    pub(super) fn read(&self, file: &str) -> Result<String, RecordError> {
        let path = self.path.join(file);
        read(&path).map_err(|error| RecordError::tracing(path, error))
    }

    /// Gives each CPU a buffer of `kib` KiB that overwrites its oldest records, stamped by
    /// CLOCK_MONOTONIC.
    pub(super) fn set_buffers(&self, kib: u64) -> Result<(), RecordError> {
        self.write("trace_clock", "mono")?;
        let resized = self.write("buffer_size_kb", &kib.to_string());
        resized.map_err(|error| match error {
            RecordError::Tracing { why, .. }
                if why.kind() == io::ErrorKind::OutOfMemory
                    || why.kind() == io::ErrorKind::InvalidInput =>
            {
                RecordError::NoMemory { kib, why }
            }
            other => other,
        })?;
        self.write("options/overwrite", "1")
    }

    /// Returns the layout of its sub-buffers.
    pub(super) fn layout(&self) -> Result<Layout, RecordError> {
        let file = "events/header_page";
        let text = self.read(file)?;
        Layout::parse(&text).map_err(|why| self.bad_format(file, why))
    }

    /// Returns the format of an event, named as `system/name`; `None` if the kernel does not have
    /// it.
    pub(super) fn format(&self, event: &str) -> Result<Option<Known>, RecordError> {
        let file = format!("events/{event}/format");
        if !self.path.join(&file).exists() {
            return Ok(None);
        }
        let text = self.read(&file)?;
        let format = Format::parse(&text).map_err(|why| self.bad_format(&file, why))?;
        Ok(Some(Known {
            name: format.name.clone(),
            text,
            format,
        }))
    }

    /// Returns the formats of the page allocator's events.
    pub(super) fn page_formats(&self) -> Result<[Known; 3], RecordError> {
        let [alloc, free, fallback] = PAGE_EVENTS.map(|event| {
            self.format(event)?.ok_or_else(|| RecordError::NoEvent {
                event: event.replace('/', ":"),
            })
        });
        Ok([alloc?, free?, fallback?])
    }

    /// Returns the formats of the events of these groups, and the names of those that the kernel
    /// lacks, or has without a field that is needed.
    pub(super) fn optional_formats(
        &self,
        groups: &[Group],
    ) -> Result<OptionalFormats, RecordError> {
        let mut formats = OptionalFormats::default();
        for more in OptionalEvent::of(groups) {
            match self.format(more.event)? {
                Some(format) if Fields::of(&format.format).is_some() => {
                    formats.events.push(more.event);
                    formats.known.push(format);
                }
                _ => formats.lacking.push(more.event),
            }
        }
        Ok(formats)
    }

    /// Returns the formats of the events that name tasks; empty unless the kernel has all of them.
    pub(super) fn task_formats(&self) -> Result<Vec<Known>, RecordError> {
        let formats = TASK_EVENTS.map(|event| self.format(event));
        let formats: Option<Vec<Known>> = formats.into_iter().collect::<Result<_, _>>()?;
        Ok(formats.unwrap_or_default())
    }

    fn bad_format(&self, file: &str, why: FormatError) -> RecordError {
        RecordError::Format {
            path: self.path.join(file),
            why,
        }
    }

    /// Returns the numbers of the CPUs that have a buffer, in rising order.
    pub(super) fn cpus(&self) -> Result<Vec<u16>, RecordError> {
        let path = self.path.join("per_cpu");
        let failed = |error| RecordError::tracing(&path, error);
        let mut cpus = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            cpus.extend(number.and_then(|number| number.parse::<u16>().ok()));
        }
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Opens a CPU's sub-buffers for non-blocking reads.
    pub(super) fn raw(&self, cpu: u16) -> Result<File, RecordError> {
        self.pipe(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"))
    }

    /// Opens a file for non-blocking reads.
    pub(super) fn pipe(&self, file: &str) -> Result<File, RecordError> {
        let path = self.path.join(file);
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path);
        opened.map_err(|error| RecordError::tracing(path, error))
    }

    /// Returns how many events a CPU's buffer lost by the kernel's count; 0 if it cannot be read.
    pub(super) fn lost(&self, cpu: u16) -> u64 {
        let stats = self.read(&format!("per_cpu/cpu{cpu}/stats"));
        stats.map_or(0, |stats| lost_in(&stats))
    }
}

/// Reads a whole file. Some of these files return as much as fits into the first read, and then
/// nothing.
fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; READ_BYTES];
    let mut length = 0;
    loop {
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
        match io::Read::read(&mut file, &mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the number of lost events in a file `stats`.
pub(super) fn lost_in(stats: &str) -> u64 {
    let counted = stats.lines().filter_map(|line| line.split_once(':'));
    counted
        .filter(|(key, _)| matches!(*key, "overrun" | "commit overrun" | "dropped events"))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        // Removing it turns its events off and frees its buffers. If that fails, the next recording
        // tries again.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes the instances of recordings whose process no longer exists. One whose files are open
/// cannot be removed, so that no running recording is lost.
fn remove_stale(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let pid = owner.and_then(|owner| owner.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
