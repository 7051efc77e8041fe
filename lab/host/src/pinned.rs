//! Memory that processes have pinned, so that it cannot be moved while a device or the kernel uses
//! it in place: `VmPin` of `/proc/PID/status`. Where it lies is known of buffers that were
//! registered with io_uring, whose addresses `/proc/PID/fdinfo` lists and `/proc/PID/pagemap`
//! translates.

use core::ops::Range;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Descriptors of a process that are looked at, pages that are looked up (of one process, and found
/// of all), bytes of a text that are read: limits, whatever a process does.
const MOST_DESCRIPTORS: usize = 4096;
const MOST_PAGES: usize = 1 << 22;
const MOST_TEXT: u64 = 16 << 20;
/// Bits of a word of pagemap.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// A process with pinned memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinning {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Pages that it has pinned.
    pub pages: u64,
}

/// All pinned memory that the kernel tells of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pinned {
    /// The processes, the one with most pages first.
    pub by: Vec<Pinning>,
    /// The frames whose place is known, in order.
    pub frames: Vec<u64>,
}

/// Returns true if processes of others are hidden from this user (`hidepid` of proc): then what
/// they have pinned is not known.
#[must_use]
pub fn is_hidden(root: &Path) -> bool {
    let proc = root.join("proc");
    let is_process = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()
            .is_some_and(|name| name.parse::<u32>().is_ok())
    };
    let mut entries = fs::read_dir(&proc).into_iter().flatten().flatten();
    // The first process is everywhere, and root's.
    entries.any(|entry| is_process(&entry)) && fs::metadata(proc.join("1/status")).is_err()
}

impl Pinned {
    /// Returns the number of pinned pages.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.by
            .iter()
            .fold(0, |sum, one| sum.saturating_add(one.pages))
    }

    /// Reads it of all processes below `root/proc`. What cannot be read (of a process that ended,
    /// or of other users) is left out.
    #[must_use]
    pub fn below(root: &Path, frame_bytes: u32) -> Self {
        let mut found = Self::default();
        let entries = fs::read_dir(root.join("proc"))
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(pid) = pid else { continue };
            let Some(status) = text(&entry.path().join("status")) else {
                continue;
            };
            let Some(pinning) = pinning(pid, &status, frame_bytes) else {
                continue;
            };
            found.by.push(pinning);
            locate(&entry.path(), frame_bytes, &mut found.frames);
        }
        found
            .by
            .sort_by(|a, b| b.pages.cmp(&a.pages).then(a.pid.cmp(&b.pid)));
        found.frames.sort_unstable();
        found.frames.dedup();
        found
    }
}

/// Returns what a process has pinned by its `status`; `None` if that is nothing.
#[must_use]
pub fn pinning(pid: u32, status: &str, frame_bytes: u32) -> Option<Pinning> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    let kib = value("VmPin:")?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?;
    let pages = kib.saturating_mul(1024) / u64::from(frame_bytes.max(1));
    let name = value("Name:").unwrap_or_default().trim().to_owned();
    (pages > 0).then_some(Pinning { pid, name, pages })
}

/// Returns the address ranges of the buffers in the `fdinfo` of an io_uring.
#[must_use]
pub fn buffers(fdinfo: &str) -> Vec<Range<u64>> {
    let mut lines = fdinfo
        .lines()
        .skip_while(|line| !line.starts_with("UserBufs:"));
    lines.next();
    // The next heading is not indented. Slots without a buffer have no address.
    let lines = lines.take_while(|line| line.starts_with(' '));
    let range = |line: &str| {
        let (_, place) = line.split_once(": 0x")?;
        let (start, bytes) = place.trim().split_once('/')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        Some(start..start.checked_add(bytes.parse().ok()?)?)
    };
    lines.filter_map(range).collect()
}

/// Adds the frames of a process's registered buffers.
fn locate(process: &Path, frame_bytes: u32, frames: &mut Vec<u64>) {
    let Ok(pagemap) = File::open(process.join("pagemap")) else {
        return;
    };
    let bytes = u64::from(frame_bytes.max(1));
    let mut looked = 0;
    let descriptors = fs::read_dir(process.join("fdinfo"))
        .into_iter()
        .flatten()
        .flatten();
    for descriptor in descriptors.take(MOST_DESCRIPTORS) {
        let Some(fdinfo) = text(&descriptor.path()) else {
            continue;
        };
        for buffer in buffers(&fdinfo) {
            for page in buffer.start / bytes..buffer.end.div_ceil(bytes) {
                if looked == MOST_PAGES || frames.len() == MOST_PAGES {
                    return;
                }
                looked += 1;
                let mut word = [0; 8];
                if pagemap
                    .read_exact_at(&mut word, page.saturating_mul(8))
                    .is_err()
                {
                    break;
                }
                let word = u64::from_le_bytes(word);
                if word & PRESENT != 0 && word & FRAME != 0 {
                    frames.push(word & FRAME);
                }
            }
        }
    }
}

/// Reads a text, or the beginning of a long one.
fn text(path: &Path) -> Option<String> {
    use std::io::Read;
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(MOST_TEXT)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
