//! The files of one host, below a root directory, so that recorded ones can be read as well.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use brickyard_trace::{HostTexts, ReadTime, States, TextTimes};

use crate::buddyinfo::{self, BuddyZone};
use crate::counters::{self, Counters};
use crate::flags::{CHUNK_FRAMES, Pass, in_chunks};
use crate::fold::Fold;
use crate::pagetypeinfo::{self, PageTypes};
use crate::pinned::{self, Pinned};
use crate::zoneinfo::{self, ZoneInfo};
use crate::{HostError, ParseError, iomem};

/// Chunks between two reports of progress.
const PROGRESS_CHUNKS: usize = 64;

/// What [`Host::keep_open`] opens.
const FOR_ROOT: [&str; 3] = [
    KPAGEFLAGS,
    "proc/pagetypeinfo",
    // All users may open it, but only for root it has addresses.
    "proc/iomem",
];
const KPAGEFLAGS: &str = "proc/kpageflags";
/// Read from a file at a time.
const READ_BYTES: usize = 1 << 16;

/// Every Linux has these.
const PROC: &str = "is /proc mounted, and is this Linux?";
/// What to do about a file of `PROC` in a folder of copies.
const COPY: &str = "copy it there from the host";
const PAGE_MONITOR: &str = "the kernel needs CONFIG_PROC_PAGE_MONITOR=y";
const PAGE_TYPES: &str = "the kernel needs CONFIG_PROC_FS=y and Linux 2.6.24 or later";

/// A host, or a directory with the recorded files of one.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
    frame_bytes: u32,
    /// Files that [`Host::keep_open`] opened, by their paths below the root.
    open: Arc<Vec<(&'static str, File)>>,
}

impl Host {
    /// Returns the machine that this runs on.
    #[must_use]
    pub fn here() -> Self {
        let frame_bytes = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
        Self {
            root: PathBuf::from("/"),
            frame_bytes,
            open: Arc::default(),
        }
    }

    /// Returns a host whose files are below `root` (`root/proc/zoneinfo` and so on), with frames of
    /// 4096 bytes.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            frame_bytes: 4096,
            open: Arc::default(),
        }
    }

    /// Opens the files that only root may open, and reads those from now on. So a process can give
    /// up root and still read them. Files that cannot be opened are tried again at each read.
    #[must_use]
    pub fn keep_open(mut self) -> Self {
        let opened = FOR_ROOT.iter().filter_map(|&path| {
            let file = File::open(self.root.join(path)).ok()?;
            Some((path, file))
        });
        self.open = Arc::new(opened.collect());
        self
    }

    /// Returns the size of a frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// Reads the zones of `/proc/zoneinfo` that have memory; there is at least one.
    ///
    /// # Errors
    /// If the file cannot be read, has no such zone, or cannot be parsed.
    pub fn zones(&self) -> Result<Vec<ZoneInfo>, HostError> {
        let mut zones = self.parsed("proc/zoneinfo", PROC, zoneinfo::parse)?;
        zones.retain(ZoneInfo::is_populated);
        if zones.is_empty() {
            let path = self.root.join("proc/zoneinfo");
            return Err(HostError::Empty { path });
        }
        Ok(zones)
    }

    /// Reads `/proc/buddyinfo`.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub fn buddyinfo(&self) -> Result<Vec<BuddyZone>, HostError> {
        self.parsed("proc/buddyinfo", PROC, buddyinfo::parse)
    }

    /// Reads `/proc/pagetypeinfo`. The kernel walks its free lists for it with the zone locked.
    ///
    /// # Errors
    /// [`HostError::Denied`] for users other than root; otherwise if the file cannot be read or
    /// parsed.
    pub fn page_types(&self) -> Result<PageTypes, HostError> {
        self.parsed("proc/pagetypeinfo", PAGE_TYPES, pagetypeinfo::parse)
    }

    /// Reads `/proc/vmstat`.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub fn vmstat(&self) -> Result<Counters, HostError> {
        self.parsed("proc/vmstat", PROC, counters::parse_vmstat)
    }

    /// Reads `/proc/meminfo`.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub fn meminfo(&self) -> Result<Counters, HostError> {
        self.parsed("proc/meminfo", PROC, counters::parse_meminfo)
    }

    /// Returns the order of a huge page, from `/sys/kernel/mm/transparent_hugepage/hpage_pmd_size`
    /// or else `Hugepagesize` of `/proc/meminfo`; `None` if the kernel has no huge pages.
    #[must_use]
    pub fn huge_order(&self) -> Option<u8> {
        let transparent = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
        let bytes = fs::read_to_string(self.root.join(transparent)).ok();
        let bytes = bytes.and_then(|text| text.trim().parse::<u64>().ok());
        let bytes = bytes.or_else(|| self.meminfo().ok()?.get("Hugepagesize")?.checked_mul(1024));
        let frames = bytes? / u64::from(self.frame_bytes);
        (frames.is_power_of_two() && frames > 1).then(|| frames.trailing_zeros() as u8)
    }

    /// Returns the kernel's release, from `/proc/sys/kernel/osrelease`; empty if it cannot be read.
    #[must_use]
    pub fn kernel(&self) -> String {
        let release = fs::read_to_string(self.root.join("proc/sys/kernel/osrelease"));
        release.unwrap_or_default().trim().to_owned()
    }

    /// Returns the host's name, from `/proc/sys/kernel/hostname`; empty if it cannot be read.
    #[must_use]
    pub fn name(&self) -> String {
        let name = fs::read_to_string(self.root.join("proc/sys/kernel/hostname"));
        name.unwrap_or_default().trim().to_owned()
    }

    /// Returns when the files are from: now, or for copies, when their zoneinfo was written.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        if self.root == Path::new("/") {
            return SystemTime::now();
        }
        let copied = fs::metadata(self.root.join("proc/zoneinfo"));
        let copied = copied.and_then(|copied| copied.modified());
        copied.unwrap_or_else(|_| SystemTime::now())
    }

    /// Returns whether compaction may move memory that is locked
    /// (`vm.compact_unevictable_allowed`); the kernel's default if the file cannot be read.
    #[must_use]
    pub fn compacts_unevictable(&self) -> Unevictable {
        let path = self.root.join("proc/sys/vm/compact_unevictable_allowed");
        match fs::read_to_string(path) {
            Ok(text) if text.trim() == "0" => Unevictable::Stays,
            _ => Unevictable::Moves,
        }
    }

    /// Reads the texts that go into a trace's header. A text that cannot be read is empty.
    #[must_use]
    pub fn texts(&self) -> HostTexts {
        self.texts_at(|| 0)
    }

    /// Reads what [`Host::texts`] reads, each with the time that `now` returned before it was read.
    #[must_use]
    pub fn texts_at(&self, now: impl Fn() -> u64) -> HostTexts {
        let text = |path: &str| {
            let time = now();
            let bytes = fs::read(self.root.join(path)).unwrap_or_default();
            (time, bytes)
        };
        // All are read before any is converted, so that they are close together. The longest read
        // is the last: the kernel walks its free lists for it.
        let all = [
            text("proc/zoneinfo"),
            text("proc/buddyinfo"),
            text("proc/vmstat"),
            text("proc/pagetypeinfo"),
        ];
        let [zoneinfo, buddyinfo, vmstat, pagetypeinfo] =
            all.map(|(time, bytes)| (time, String::from_utf8_lossy(&bytes).into_owned()));
        HostTexts {
            time: zoneinfo.0,
            times: TextTimes {
                zoneinfo: zoneinfo.0,
                buddyinfo: buddyinfo.0,
                pagetypeinfo: pagetypeinfo.0,
                vmstat: vmstat.0,
            },
            zoneinfo: zoneinfo.1,
            buddyinfo: buddyinfo.1,
            pagetypeinfo: pagetypeinfo.1,
            vmstat: vmstat.1,
        }
    }

    /// Reads `/proc/kpageflags` as runs of frames in one state, in order of frames. Reads 8192 at a
    /// time, with a thread for each CPU, at most 8; their runs have the time that `now` returned
    /// before. `progress` is called with how many frames were read and how many there are by
    /// zoneinfo.
    ///
    /// A CPU reads about 8 million frames a second: two take 2 s for 100 GiB. Each run takes 40
    /// bytes; a GiB in use has some 10 000 to 100 000 runs.
    ///
    /// # Errors
    /// [`HostError::Denied`] for users other than root; [`HostError::Absent`] or
    /// [`HostError::Empty`] if the kernel provides none.
    pub fn page_states(
        &self,
        now: impl Fn() -> u64 + Sync,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<States, HostError> {
        let path = self.root.join(KPAGEFLAGS);
        let failed = |source| self.explained(&path, PAGE_MONITOR, source);
        let file = self.opened(KPAGEFLAGS).map_err(failed)?;
        let all = self.zones().unwrap_or_default();
        let all = all.iter().map(ZoneInfo::end_pfn).max().unwrap_or(0);
        let mut fold = Fold::new(self.memory());
        let mut reads = Vec::new();
        let mut frame = 0;
        in_chunks(&file, &now, |chunk| {
            fold.push(chunk.began, frame, &chunk.flags);
            reads.push(ReadTime {
                frame,
                began: chunk.began,
                ended: chunk.ended,
            });
            frame += chunk.flags.len() as u64;
            if reads.len() % PROGRESS_CHUNKS == 0 || chunk.flags.len() < CHUNK_FRAMES {
                progress(frame, all.max(frame));
            }
        })
        .map_err(failed)?;
        if frame == 0 {
            return Err(HostError::Empty { path });
        }
        let runs = fold.finish();
        Ok(States { runs, reads })
    }

    /// Begins a pass over `/proc/kpageflags` in parts.
    ///
    /// # Errors
    /// Those of [`Host::page_states`], except for an empty file.
    pub fn pass(&self) -> Result<Pass, HostError> {
        let path = self.root.join(KPAGEFLAGS);
        let file = self.opened(KPAGEFLAGS);
        let file = file.map_err(|source| self.explained(&path, PAGE_MONITOR, source))?;
        Ok(Pass::new(file, Fold::new(self.memory())))
    }

    /// Reads which processes have pinned memory, and where it is known, which frames. Other users'
    /// processes are left out unless root reads.
    #[must_use]
    pub fn pinned(&self) -> Pinned {
        Pinned::below(&self.root, self.frame_bytes)
    }

    /// Returns true if other users' processes are hidden from this one (`hidepid` of proc): then
    /// [`Host::pinned`] knows of few, or none. Of copied files all that there is counts as all.
    #[must_use]
    pub fn processes_are_hidden(&self) -> bool {
        self.root == Path::new("/") && pinned::is_hidden(&self.root)
    }

    /// Returns the ranges of frames that are memory; empty if they are not known.
    fn memory(&self) -> Vec<core::ops::Range<u64>> {
        let ranges = self.parsed("proc/iomem", PROC, iomem::parse);
        let bytes = u64::from(self.frame_bytes);
        let frames = ranges.unwrap_or_default().into_iter();
        frames
            .map(|range| range.start / bytes..range.end.div_ceil(bytes))
            .collect()
    }

    /// Opens a file, or returns the one that was kept open.
    fn opened(&self, path: &str) -> io::Result<File> {
        match self.kept(path) {
            Some(file) => file.try_clone(),
            None => File::open(self.root.join(path)),
        }
    }

    fn kept(&self, path: &str) -> Option<&File> {
        let mut open = self.open.iter();
        open.find_map(|(own, file)| (*own == path).then_some(file))
    }

    /// Reads a whole file, which may be one that was kept open.
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let Some(file) = self.kept(path) else {
            return fs::read(self.root.join(path));
        };
        let mut bytes = Vec::new();
        let mut length = 0;
        loop {
            bytes.resize(length + READ_BYTES, 0);
            match file.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn parsed<T>(
        &self,
        path: &str,
        fix: &'static str,
        parse: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Result<T, HostError> {
        let read = self.read(path);
        let path = self.root.join(path);
        let bytes = read.map_err(|source| self.explained(&path, fix, source))?;
        // Names may be any bytes in principle: those that are not UTF-8 are replaced, and the
        // parser accepts or refuses the result.
        let text = String::from_utf8_lossy(&bytes);
        parse(&text).map_err(|source| HostError::Text { path, source })
    }

    /// Converts a system error on `path`; `fix` is the advice for a missing file.
    fn explained(&self, path: &Path, fix: &'static str, source: io::Error) -> HostError {
        let fault = match fs::metadata(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("does not exist"),
            Ok(found) if !found.is_dir() => Some("is not a folder"),
            _ => None,
        };
        if let Some(fault) = fault {
            let root = self.root.clone();
            return HostError::Root { root, fault };
        }
        let is_copy = self.root != Path::new("/");
        let fix = if is_copy && fix == PROC { COPY } else { fix };
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => HostError::Denied { path, source },
            io::ErrorKind::NotFound => HostError::Absent { path, fix },
            _ => HostError::Io { path, source },
        }
    }
}

/// What compaction does with memory that is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unevictable {
    /// It moves it, as kernels do by default.
    Moves,
    /// It leaves it in place, as on real-time kernels.
    Stays,
}
