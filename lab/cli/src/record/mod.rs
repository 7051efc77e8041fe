//! `brickyard record`: records the requests to a host's page allocator while a command runs, in a
//! trace file.

mod command;
mod progress;
mod signals;

use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

use anyhow::bail;
use brickyard_host::Host;
use brickyard_trace::file::Writer;
use brickyard_trace::record::{Clock, Disk, Group, Merged, Plan, Recorded, Recorder};
use brickyard_trace::{Header, HostTexts, Reading, States};
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use rustix::process::Signal;

use crate::import::many;
use brickyard_measure::command::misuse::Misuse;
use brickyard_results::bytes_of;
use brickyard_run::named;
pub(crate) use command::quoted;
use command::{Command, Running, SIGNAL_CODE, exit_code, how};
use progress::ProgressLine;
use signals::Received;

/// The interval at which the command, the signals and the disk are polled.
const POLL: Duration = Duration::from_millis(20);
/// How long a command that got the terminal's SIGINT may take to end before it is signalled again.
const INT_GRACE: Duration = Duration::from_secs(1);
/// How long a signalled command may take to end before it is left running.
const END_GRACE: Duration = Duration::from_secs(5);

/// The options of `brickyard record`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs root and a kernel with tracefs. The host's own tracing settings are not changed: the recording uses a tracing instance of its own, \
which is removed at the end. Ctrl-C ends the recording and keeps it; a second Ctrl-C discards it.

Exit status: that of the command if it ended by itself (128+N if signal N ended it); 0 if --seconds or Ctrl-C ended it and the recording was kept; 1 if nothing was kept; \
2 for wrong usage.

Examples:
  sudo brickyard record -o build.parquet -- make -j8
  sudo brickyard record -o minute.parquet --seconds 60")]
pub(crate) struct Record {
    /// The trace file to write.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Record for N seconds; a command that still runs then gets SIGTERM.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// The size of the kernel's buffer for each CPU.
    /// [default: 32M, less if all the buffers would take more than 1/16 of memory]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<String>,
    /// The groups of events to record besides allocations and frees, or `none`.
    #[arg(
        long,
        value_name = "GROUP,...",
        default_value = "zones,compaction,reclaim",
        long_help = "The groups of events to record besides allocations, frees and fallbacks, or `none`. What each adds to the events, and to the trace file:\n\
            zones       what moves between zones and the lists of CPUs: 16 to 28 % more events, 73 % where memory was short, of 2 to 4 bytes; `brickyard fidelity` needs them\n\
            batched     frees to the lists of CPUs, which repeat nearly each free: 35 to 51 %, of 2 to 3 bytes\n\
            compaction  steps of compaction: up to 0.3 %, of up to 40 bytes\n\
            reclaim     steps of reclaim: up to 0.03 %, of 40 bytes\n\
            Events that the kernel lacks are left out, and named"
    )]
    events: String,
    /// The folder for events until the recording ends. [default: the folder of the trace file]
    #[arg(long, value_name = "FOLDER")]
    spool: Option<PathBuf>,
    /// The command to run and record, and its arguments.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Command(ExitStatus),
    Time,
    Signalled(Signal),
    DiskFull,
}

/// What a poll found.
#[derive(Debug, Clone, Copy)]
struct Found {
    command: Option<ExitStatus>,
    signal: Option<Signal>,
    disk: Disk,
    time_is_over: bool,
}

impl Ended {
    /// Returns the reason to end a recording, if a poll found one.
    fn by(found: &Found) -> Option<Self> {
        // The terminal sends SIGINT to the command too, so after Ctrl-C both may be found.
        if let Some(signal) = found.signal {
            return Some(Self::Signalled(signal));
        }
        if let Some(status) = found.command {
            return Some(Self::Command(status));
        }
        // Before the time, so that a full disk is always reported.
        match (found.disk, found.time_is_over) {
            (Disk::Full, _) => Some(Self::DiskFull),
            (Disk::HasRoom, true) => Some(Self::Time),
            (Disk::HasRoom, false) => None,
        }
    }

    /// Corrects the reason by the first signal that was received until now: one that also ended the
    /// command may have been noticed after the command's end.
    fn corrected(self, received: Option<Signal>) -> Self {
        match (self, received) {
            (Self::Command(status), Some(signal))
                if i32::from(exit_code(status)) == SIGNAL_CODE + signal.as_raw() =>
            {
                Self::Signalled(signal)
            }
            _ => self,
        }
    }
}

/// The host's state at the start or the end of the trace.
#[derive(Debug)]
struct Side {
    texts: HostTexts,
    states: States,
}

impl Record {
    /// Records. Returns the exit code: that of the command if it ended by itself.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let seconds = self.seconds()?;
        let buffer_kib = self.buffer_kib()?;
        let groups = groups(&self.events)?;
        let command = Command::find(&self.command)?;
        let mut writer = Writer::create(&self.output)?;
        let received = Received::watch()?;
        let host = Host::here();
        let line = ProgressLine::new();

        let mut session = Session {
            recorder: Recorder::start(&Plan {
                buffer_kib,
                groups,
                spool: self.spool_path(),
                pagetypeinfo: host.texts().pagetypeinfo,
            })?,
            line,
            received,
        };
        if let lacking @ [_, ..] = session.recorder.lacking() {
            let lacking = lacking.join(", ");
            eprintln!("note: not recorded, since this kernel lacks them: {lacking}");
        }
        let start = session.side(&host, When::Start)?;
        writer.start(&start.states.runs)?;
        let mut running = match &command {
            Some(command) if session.received.count() == 0 => Some(command.start()?),
            _ => None,
        };
        let deadline = Deadline::after(seconds);
        let ended = session.watch(running.as_mut(), deadline)?;
        let mut status = session.end_command(running.as_mut(), ended)?;
        let end = session.side(&host, When::End)?;
        let Session {
            recorder,
            line,
            received,
        } = session;
        let recorded = recorder.stop()?;
        let ended = ended.corrected(received.first());
        let order = page_block_order(&host);
        let header = Header {
            command: command.as_ref().map_or_else(String::new, Command::text),
            page_block_order: order,
            start: start.texts,
            end: end.texts,
            ..recorded.header.clone()
        };
        line.say("writing the trace");
        let states = (&start.states, &end.states);
        let merged = write(writer, &recorded, states, header.clone(), &received);
        let (merged, elsewhere) = match merged {
            Ok(merged) => (merged, None),
            Err(why) => {
                line.clear();
                let kept = self.keep_beside_spool(&recorded, states, &header, &received);
                let Some((path, merged)) = kept else {
                    return Err(why.context("the recording is lost"));
                };
                eprintln!("{why:#}");
                // Where both are one folder, the second attempt may be where it should be.
                (merged, (path != self.output).then_some(path))
            }
        };
        line.clear();
        let path = elsewhere.as_deref().unwrap_or(&self.output);
        summarize(path, &header, &merged, recorded.senseless);
        if let Some(why) = why_ended(ended, recorded.disk, running.is_some()) {
            eprintln!("{why}");
        }
        let mut by_itself = matches!(ended, Ended::Command(_));
        if let (Ended::DiskFull, Some(running)) = (ended, &mut running) {
            // The command was not signalled, and may take the time that it was given.
            status = running.wait(deadline.left(), &|| received.count() > 0)?;
            by_itself = status.is_some() && received.count() == 0;
            if status.is_none() && received.count() > 0 {
                // The terminal sent the signal to the command too.
                status = running.wait(INT_GRACE, &|| received.count() > 1)?;
            } else if status.is_none() && deadline.is_over() {
                status = running.end(Signal::TERM, END_GRACE, &|| received.count() > 0)?;
            }
        }
        if let Some(status) = status.filter(|status| !status.success()) {
            eprintln!("{}", how(status));
        }
        if let Some(path) = elsewhere {
            bail!(
                "{} cannot be written; the trace is in {} instead",
                self.output.display(),
                path.display()
            );
        }
        Ok(status.filter(|_| by_itself).map_or(0, exit_code))
    }

    fn seconds(&self) -> anyhow::Result<Option<Duration>> {
        if self.seconds.is_none() && self.command.is_empty() {
            return Err(Misuse::new(
                "nothing to record: name a command (brickyard record -o FILE -- make -j8) or a time (--seconds 60)",
            )
            .into());
        }
        let Some(seconds) = self.seconds else {
            return Ok(None);
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(seconds) if !seconds.is_zero() => Ok(Some(seconds)),
            _ => Err(Misuse::new(format!(
                "--seconds {seconds} is not a valid duration; give a number above 0, such as 60"
            ))
            .into()),
        }
    }

    fn buffer_kib(&self) -> anyhow::Result<Option<u64>> {
        let Some(text) = &self.buffer else {
            return Ok(None);
        };
        let bytes = bytes_of(text).map_err(|error| Misuse::new(format!("--buffer: {error}")))?;
        match bytes >> 10 {
            0..8 => {
                Err(Misuse::new(format!("--buffer {text} is too small; give at least 8K")).into())
            }
            kib => Ok(Some(kib as u64)),
        }
    }

    /// Writes the trace into the folder given with `--spool`, after it could not be written where
    /// it should be. Returns its path; `None` if no such folder was given, if the user has
    /// interrupted twice, or if it cannot be written there either.
    fn keep_beside_spool(
        &self,
        recorded: &Recorded,
        states: (&States, &States),
        header: &Header,
        received: &Received,
    ) -> Option<(PathBuf, Merged)> {
        if received.count() > 1 {
            return None;
        }
        let (folder, name) = (self.spool.as_deref()?, self.output.file_name()?);
        let mut path = folder.join(name);
        if path.exists() {
            let other = format!("{}-{}", std::process::id(), name.to_string_lossy());
            path = folder.join(other);
        }
        let kept = || -> anyhow::Result<Merged> {
            let mut writer = Writer::create(&path)?;
            writer.start(&states.0.runs)?;
            write(writer, recorded, states, header.clone(), received)
        };
        match kept() {
            Ok(merged) => Some((path, merged)),
            Err(why) => {
                eprintln!("{why:#}");
                None
            }
        }
    }

    /// Returns the path of a hidden file beside the trace, or in the folder given with `--spool`.
    fn spool_path(&self) -> PathBuf {
        let beside = self.output.parent().unwrap_or(Path::new(""));
        let folder = self.spool.as_deref().unwrap_or(beside);
        let name = self.output.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        folder.join(format!(".{name}.spool-{}", std::process::id()))
    }
}

/// Parses the names of groups of events.
fn groups(names: &str) -> anyhow::Result<Vec<Group>> {
    if names == "none" {
        return Ok(Vec::new());
    }
    let group = |name: &str| {
        name.trim().parse().map_err(|known| {
            Misuse::new(format!(
                "--events: there is no group `{name}`; {known}, and `none`"
            ))
        })
    };
    let groups: Result<Vec<Group>, Misuse> = names.split(',').map(group).collect();
    Ok(groups?)
}

named! {
    /// A side of the trace.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum When {
        Start => "start",
        End => "end",
    }
}

/// Raises the priority of this thread, and of those that it starts, as long as it lives and as far
/// as that is allowed.
///
/// Where the kernel groups tasks by session (autogroup), a priority counts only among the tasks of
/// one session, so that of the session is raised too. Other groups (cgroups) stay as they are.
struct Urgent {
    before: Option<i32>,
    group_before: Option<String>,
}

/// The priority of this session: `/autogroup-183 nice 0`.
const GROUP: &str = "/proc/self/autogroup";
/// The highest.
const URGENT: i32 = -20;

impl Urgent {
    fn new() -> Self {
        let before = rustix::process::getpriority_process(None).ok();
        let raised = rustix::process::setpriority_process(None, URGENT).is_ok();
        let group = fs::read_to_string(GROUP).ok();
        let group = group.and_then(|text| Some(text.trim().rsplit_once("nice ")?.1.to_owned()));
        Self {
            before: before.filter(|_| raised),
            group_before: group.filter(|_| fs::write(GROUP, URGENT.to_string()).is_ok()),
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = rustix::process::setpriority_process(None, before);
        }
        if let Some(before) = &self.group_before {
            let _ = fs::write(GROUP, before);
        }
    }
}

/// A recording in progress.
struct Session {
    recorder: Recorder,
    line: ProgressLine,
    received: Received,
}

/// When the time that was given to a recording is over; never if none was given.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    began: Instant,
    seconds: Duration,
}

impl Deadline {
    /// Returns the deadline of a recording that begins now.
    fn after(seconds: Option<Duration>) -> Self {
        Self {
            began: Instant::now(),
            seconds: seconds.unwrap_or(Duration::MAX),
        }
    }

    fn left(self) -> Duration {
        self.seconds.saturating_sub(self.began.elapsed())
    }

    fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

impl Session {
    /// Reads the host's texts and page states, with high priority: on a busy host, what happens
    /// during the read is left out of the trace in part.
    fn side(&self, host: &Host, when: When) -> anyhow::Result<Side> {
        let _urgent = Urgent::new();
        let clock: Clock = self.recorder.clock();
        let texts = || host.texts_at(|| clock.now());
        let states = || {
            host.page_states(
                || clock.now(),
                |done, all| {
                    let percent = done * 100 / all.max(1);
                    self.line
                        .say(&format!("page states at the {when}: {percent} %"));
                },
            )
        };
        // So all events between the two times of the texts are in the trace.
        let (texts, states) = match when {
            When::Start => {
                let states = states();
                (texts(), states)
            }
            When::End => (texts(), states()),
        };
        self.not_twice()?;
        Ok(Side {
            texts,
            states: states?,
        })
    }

    /// Waits until something ends the recording.
    fn watch(
        &mut self,
        mut running: Option<&mut Running>,
        deadline: Deadline,
    ) -> anyhow::Result<Ended> {
        loop {
            let command = running.as_deref_mut().map(Running::ended).transpose()?;
            let progress = self.recorder.progress();
            let found = Found {
                command: command.flatten(),
                signal: self.received.first(),
                disk: progress.disk,
                time_is_over: deadline.is_over(),
            };
            if let Some(ended) = Ended::by(&found) {
                return Ok(ended);
            }
            self.line.show(deadline.began.elapsed(), progress);
            thread::sleep(POLL);
        }
    }

    /// Ends the command where the recording ended for another reason; returns its exit status if it
    /// has ended.
    fn end_command(
        &self,
        running: Option<&mut Running>,
        ended: Ended,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let Some(running) = running else {
            return Ok(None);
        };
        let stop = || self.received.count() > 1;
        let signal = match ended {
            Ended::Command(status) => return Ok(Some(status)),
            Ended::DiskFull => return Ok(None),
            Ended::Time => Signal::TERM,
            Ended::Signalled(signal) => signal,
        };
        if signal == Signal::INT {
            // The terminal sends SIGINT to its whole foreground process group, the command too. A
            // SIGINT from elsewhere reaches this process only.
            if let Some(status) = running.wait(INT_GRACE, &stop)? {
                return Ok(Some(status));
            }
        }
        let status = running.end(signal, END_GRACE, &stop)?;
        self.not_twice()?;
        Ok(status)
    }

    /// Fails if the user has interrupted a second time.
    fn not_twice(&self) -> anyhow::Result<()> {
        not_twice(&self.received)
    }
}

fn not_twice(received: &Received) -> anyhow::Result<()> {
    if received.count() > 1 {
        bail!("interrupted twice: the recording is discarded");
    }
    Ok(())
}

fn page_block_order(host: &Host) -> u8 {
    let types = host.page_types().ok();
    let order = types.map(|types| types.page_block_order);
    order.or_else(|| host.huge_order()).unwrap_or(0)
}

/// Writes everything except the states at the start, which are written already.
fn write(
    mut writer: Writer,
    recorded: &Recorded,
    (start, end): (&States, &States),
    mut header: Header,
    received: &Received,
) -> anyhow::Result<Merged> {
    let merged = recorded.merge(start, end, |events, names| -> anyhow::Result<()> {
        not_twice(received)?;
        Ok(writer.events(events, names)?)
    })?;
    (header.start_states, header.end_states) = (merged.start, merged.end);
    writer.end(&end.runs)?;
    writer.finish(&header)?;
    Ok(merged)
}

/// Prints what was recorded.
fn summarize(path: &Path, header: &Header, merged: &Merged, senseless: u64) {
    let seconds = header.duration as f64 / 1e9;
    let bytes = path.metadata().map_or(0, |file| file.len());
    eprintln!(
        "recorded {} in {seconds:.1} s ({}/s) into {}: {}",
        many(merged.events, "event", "events"),
        HumanCount((merged.events as f64 / seconds.max(1e-9)) as u64),
        path.display(),
        HumanBytes(bytes),
    );
    for (when, states) in [(When::Start, merged.start), (When::End, merged.end)] {
        if let Some(line) = reading_line(when, states) {
            eprintln!("{line}");
        }
    }
    if senseless > 0 {
        let records = many(senseless, "malformed record", "malformed records");
        eprintln!("left out: {records}");
    }
    for lost in &header.lost {
        eprintln!(
            "lost: {} of CPU {}; a larger --buffer may keep all",
            many(lost.events, "event", "events"),
            lost.cpu
        );
    }
    if header.lost.is_empty() {
        eprintln!("lost: nothing");
    }
}

/// Returns what to print on the read of the page states, if there was one.
fn reading_line(when: When, states: Reading) -> Option<String> {
    if states == Reading::default() {
        return None;
    }
    let left_out = match when {
        When::Start => "from before, which they include,",
        When::End => "from after, which they do not include,",
    };
    let seconds = states.ended.saturating_sub(states.began) as f64 / 1e9;
    Some(format!(
        "page states at the {when}: read in {seconds:.2} s; {} {left_out} left out, {} unsure",
        many(states.left_out, "event", "events"),
        HumanCount(states.unsure),
    ))
}

/// Returns what to print on why the recording ended, if it was not as planned, or on the disk of
/// the spool.
fn why_ended(ended: Ended, disk: Disk, has_command: bool) -> Option<&'static str> {
    match (ended, disk) {
        (Ended::DiskFull, _) if has_command => {
            Some("the disk is nearly full: the recording was ended early; the command continues")
        }
        (Ended::DiskFull, _) => Some("the disk is nearly full: the recording was ended early"),
        (Ended::Signalled(_), Disk::HasRoom) => Some("the recording was ended by a signal"),
        (Ended::Signalled(_), Disk::Full) => {
            Some("the recording was ended by a signal; the disk is nearly full")
        }
        (Ended::Command(_) | Ended::Time, Disk::Full) => Some(
            "the disk is nearly full: a longer recording needs more room, here or in another folder (--spool)",
        ),
        (Ended::Command(_) | Ended::Time, Disk::HasRoom) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const NOTHING: Found = Found {
        command: None,
        signal: None,
        disk: Disk::HasRoom,
        time_is_over: false,
    };

    /// The status of a command that ended with this exit code.
    fn code(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn a_full_disk_is_reported_also_when_the_time_is_over() {
        assert_eq!(Ended::by(&NOTHING), None);
        let over = Found {
            time_is_over: true,
            ..NOTHING
        };
        assert_eq!(Ended::by(&over), Some(Ended::Time));
        let full = Found {
            disk: Disk::Full,
            ..over
        };
        assert_eq!(Ended::by(&full), Some(Ended::DiskFull));
        // Found full only at the end: it is reported whatever ended the recording.
        for ended in [
            Ended::Time,
            Ended::Command(code(0)),
            Ended::Signalled(Signal::INT),
            Ended::DiskFull,
        ] {
            for has_command in [false, true] {
                let why = why_ended(ended, Disk::Full, has_command).unwrap_or_default();
                assert!(why.contains("the disk is nearly full"), "{ended:?}: {why}");
            }
        }
        assert_eq!(why_ended(Ended::Time, Disk::HasRoom, true), None);
    }

    #[test]
    fn a_signal_to_both_is_not_the_end_of_the_command_by_itself() {
        let both = Found {
            command: Some(ExitStatus::from_raw(2)),
            signal: Some(Signal::INT),
            ..NOTHING
        };
        assert_eq!(Ended::by(&both), Some(Ended::Signalled(Signal::INT)));
        // The signal is noticed later. The command may pass it on, or exit with a shell's code.
        for status in [ExitStatus::from_raw(2), code(130)] {
            let ended = Ended::Command(status);
            assert_eq!(
                ended.corrected(Some(Signal::INT)),
                Ended::Signalled(Signal::INT)
            );
            assert_eq!(ended.corrected(Some(Signal::TERM)), ended);
            assert_eq!(ended.corrected(None), ended);
        }
    }
}
