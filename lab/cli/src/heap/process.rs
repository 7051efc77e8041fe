//! A running process that uses the heap, looked at from outside.
//!
//! Its memory is read by `/proc/PID/mem`, which neither stops it nor runs anything in it. Its
//! heap's view is found among the initialised variables of the files that are mapped there.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

use anyhow::{anyhow, bail};
use brickyard_heap::Statistics;
use brickyard_heap::view::{ViewError, candidates};
use rustix::io::Errno;

/// The bytes that are read at a time: whole pages.
const PIECE: usize = 1 << 20;

/// A process, and where its heap is.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its name, as the kernel has it.
    pub(super) name: String,
    memory: File,
    /// Where views may be. One is if the program has the heap, more if libraries have one too.
    views: Vec<usize>,
}

impl Process {
    /// Finds the heap of a process.
    ///
    /// # Errors
    /// There is no such process, it may not be read, or it has no heap.
    pub(super) fn open(pid: u32) -> anyhow::Result<Self> {
        let file = |name: &str| format!("/proc/{pid}/{name}");
        let refused = |error| refusal(pid, error);
        let name = fs::read_to_string(file("comm")).map_err(refused)?;
        let maps = fs::read(file("maps")).map_err(refused)?;
        if maps.is_empty() {
            bail!("process {pid} has no memory of its own: it has ended, or is one of the kernel");
        }
        let memory = File::open(file("mem")).map_err(refused)?;
        let mut process = Self {
            pid,
            name: name
                .trim_end()
                .chars()
                .flat_map(char::escape_debug)
                .collect(),
            memory,
            views: Vec::new(),
        };
        for line in String::from_utf8_lossy(&maps).lines() {
            if let Some((start, end)) = variables(line) {
                process.look_for_views(start, end)?;
            }
        }
        if process.views.is_empty() {
            let name = &process.name;
            bail!(
                "process {pid} ({name}) has no Brickyard heap: start it with LD_PRELOAD=libbrickyard_malloc.so, \
                 or build it with the heap as its allocator"
            );
        }
        Ok(process)
    }

    /// Looks into a part of its memory.
    fn look_for_views(&mut self, start: usize, end: usize) -> anyhow::Result<()> {
        let mut piece = vec![0; PIECE];
        for from in (start..end).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(end - from)];
            match self.memory.read_exact_at(piece, from as u64) {
                Ok(()) => self.views.extend(candidates(piece).map(|at| from + at)),
                Err(error) if error.raw_os_error() == EIO => {}
                Err(error) => return Err(refusal(self.pid, error)),
            }
        }
        Ok(())
    }

    /// Returns what its heap holds at the moment.
    ///
    /// # Errors
    /// The process has ended, its heap is of another version, or it was not used yet.
    pub(super) fn statistics(&self) -> anyhow::Result<Statistics> {
        let (pid, name) = (self.pid, &self.name);
        let mut unread = None;
        for &view in &self.views {
            let read =
                |address: usize, bytes: &mut [u8]| self.memory.read_exact_at(bytes, address as u64);
            match Statistics::of_view(view, read) {
                Ok(statistics) => return Ok(statistics),
                Err(ViewError::NoView) => {}
                Err(ViewError::Memory(error)) => return Err(refusal(pid, error)),
                Err(error @ ViewError::Version { .. }) => {
                    let fix = "use the command `brickyard` of the same release as its heap";
                    unread = Some(anyhow!("process {pid} ({name}): {error}; {fix}"));
                }
                // Another heap of the process may be in use.
                Err(error) => {
                    let why = || anyhow!("process {pid} ({name}): {error}; try again later");
                    unread = Some(unread.unwrap_or_else(why));
                }
            }
        }
        Err(unread.unwrap_or_else(|| anyhow!("process {pid} ({name}) has no Brickyard heap")))
    }
}

/// The error of a read behind the end of a file that was made shorter.
const EIO: Option<i32> = Some(Errno::IO.raw_os_error());
/// The error of a process that has ended.
const ESRCH: Option<i32> = Some(Errno::SRCH.raw_os_error());

/// Says why a process cannot be read, and what helps.
fn refusal(pid: u32, error: io::Error) -> anyhow::Error {
    let ended = error.kind() == ErrorKind::UnexpectedEof || error.raw_os_error() == ESRCH;
    let what = match error.kind() {
        ErrorKind::NotFound => format!("there is no process {pid}"),
        ErrorKind::PermissionDenied => format!(
            "process {pid} may not be read: run the same command with sudo, or as its user \
             (who may only read what they started if kernel.yama.ptrace_scope is 1)"
        ),
        _ if ended => format!("process {pid} has ended, or runs another program now"),
        _ => return anyhow!(error).context(format!("cannot read the memory of process {pid}")),
    };
    anyhow!(what)
}

/// Returns the addresses of a line of `/proc/PID/maps` if a file's initialised variables are there.
fn variables(line: &str) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let is_file = rest.starts_with("rw-p") && rest.contains('/');
    is_file.then_some((number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_reason_and_the_fix() {
        let cases = [
            (io::Error::from(ErrorKind::UnexpectedEof), "has ended"),
            (io::Error::from(Errno::SRCH), "has ended"),
            (io::Error::from(Errno::ACCESS), "with sudo"),
            (io::Error::from(Errno::NOENT), "there is no process 7"),
            (
                io::Error::from(Errno::IO),
                "cannot read the memory of process 7",
            ),
        ];
        for (error, hint) in cases {
            let said = format!("{:#}", refusal(7, error));
            assert!(said.contains(hint), "{said}");
        }
    }

    #[test]
    fn only_initialised_variables_of_files_are_looked_at() {
        let line = "7f00-8f00 rw-p 00002000 08:01 131    /usr/bin/a";
        assert_eq!(variables(line), Some((0x7f00, 0x8f00)));
        for other in [
            "7f00-8f00 r--p 00002000 08:01 131    /usr/bin/a",
            "7f00-8f00 rw-s 00002000 08:01 131    /dev/shm/a",
            "7f00-8f00 rw-p 00000000 00:00 0      [heap]",
            "7f00-8f00 rw-p 00000000 00:00 0",
            "",
        ] {
            assert_eq!(variables(other), None, "{other}");
        }
    }
}
