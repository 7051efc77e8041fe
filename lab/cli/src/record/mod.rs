//! `brickyard record`: records the requests to a host's page allocator while a command runs, in a
//! trace file.

mod command;
mod progress;
mod signals;

use core::time::Duration;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use brickyard_host::Host;
use brickyard_trace::file::Writer;
use brickyard_trace::record::{Clock, Disk, Merged, Plan, Recorded, Recorder};
use brickyard_trace::{Header, HostTexts, StateRun};
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use rustix::process::Signal;

use crate::amount::bytes;
use crate::misuse::Misuse;
use command::{Command, Running, how};
use progress::Line;
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
    /// The folder for events until the recording ends. [default: the folder of the trace file]
    #[arg(long, value_name = "FOLDER")]
    spool: Option<PathBuf>,
    /// The command to run and record, and its arguments.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Why a recording ended.
#[derive(Debug)]
enum Ended {
    Command(ExitStatus),
    Time,
    Signalled(Signal),
    DiskFull,
}

/// The host's state at the start or the end of the trace.
#[derive(Debug)]
struct Side {
    texts: HostTexts,
    states: Vec<StateRun>,
}

impl Record {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let seconds = self.seconds()?;
        let buffer_kib = self.buffer_kib()?;
        let command = Command::find(&self.command)?;
        let mut writer = Writer::create(&self.output)?;
        let received = Received::watch()?;
        let host = Host::here();
        let line = Line::new();

        let mut session = Session {
            recorder: Recorder::start(&Plan {
                buffer_kib,
                spool: self.spool_path(),
                pagetypeinfo: host.texts().pagetypeinfo,
            })?,
            line,
            received,
            seconds,
        };
        let start = session.side(&host, "start")?;
        writer.start(&start.states)?;
        let mut running = command.as_ref().map(Command::start).transpose()?;
        let ended = session.watch(running.as_mut())?;
        let status = session.end_command(running.as_mut(), &ended)?;
        let end = session.side(&host, "end")?;
        let Session {
            recorder,
            line,
            received,
            ..
        } = session;
        let recorded = recorder.stop()?;
        let order = page_block_order(&host);
        let header = Header {
            command: command.as_ref().map_or_else(String::new, Command::text),
            page_block_order: order,
            start: start.texts,
            end: end.texts,
            ..recorded.header.clone()
        };
        line.say("writing the trace");
        let states = (&start.states[..], &end.states[..]);
        let merged = write(writer, &recorded, states, &header, &received);
        line.clear();
        let merged = merged.with_context(|| {
            let path = self.output.display();
            format!("the recording is lost: cannot write {path}")
        })?;
        summarize(&self.output, &header, &merged, recorded.senseless);
        report(&ended, status);
        if running.is_some() && status.is_none() {
            eprintln!("the command has not ended; it is left running");
        }
        if let (Ended::DiskFull, Some(mut running)) = (ended, running) {
            // The command was not signalled.
            running.wait(Duration::MAX / 4, &|| received.count() > 0)?;
        }
        Ok(())
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
                "--seconds {seconds} is not a valid duration; give a number above 0"
            ))
            .into()),
        }
    }

    fn buffer_kib(&self) -> anyhow::Result<Option<u64>> {
        let Some(text) = &self.buffer else {
            return Ok(None);
        };
        let bytes = bytes(text).map_err(|error| Misuse::new(format!("--buffer: {error}")))?;
        match bytes >> 10 {
            0..8 => {
                Err(Misuse::new(format!("--buffer {text} is too small; give at least 8K")).into())
            }
            kib => Ok(Some(kib as u64)),
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

/// A recording in progress.
struct Session {
    recorder: Recorder,
    line: Line,
    received: Received,
    seconds: Option<Duration>,
}

impl Session {
    /// Reads the host's texts and page states.
    fn side(&self, host: &Host, name: &str) -> anyhow::Result<Side> {
        let clock: Clock = self.recorder.clock();
        let texts = host.texts();
        let states = host.page_states(
            || clock.now(),
            |done, all| {
                let percent = done * 100 / all.max(1);
                self.line
                    .say(&format!("page states at the {name}: {percent} %"));
            },
        );
        self.not_twice()?;
        Ok(Side {
            texts,
            states: states?,
        })
    }

    /// Waits until something ends the recording.
    fn watch(&mut self, mut running: Option<&mut Running>) -> anyhow::Result<Ended> {
        let began = Instant::now();
        loop {
            if let Some(running) = running.as_deref_mut()
                && let Some(status) = running.ended()?
            {
                return Ok(Ended::Command(status));
            }
            if let Some(signal) = self.received.first() {
                return Ok(Ended::Signalled(signal));
            }
            if self
                .seconds
                .is_some_and(|seconds| began.elapsed() >= seconds)
            {
                return Ok(Ended::Time);
            }
            let progress = self.recorder.progress();
            if progress.disk == Disk::Full {
                return Ok(Ended::DiskFull);
            }
            self.line.show(began.elapsed(), progress);
            thread::sleep(POLL);
        }
    }

    /// Ends the command where the recording ended for another reason; returns its exit status if it
    /// has ended.
    fn end_command(
        &self,
        running: Option<&mut Running>,
        ended: &Ended,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let Some(running) = running else {
            return Ok(None);
        };
        let stop = || self.received.count() > 1;
        let signal = match *ended {
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
        running.signal(signal).context("cannot end the command")?;
        let status = running.wait(END_GRACE, &stop)?;
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
    (start, end): (&[StateRun], &[StateRun]),
    header: &Header,
    received: &Received,
) -> anyhow::Result<Merged> {
    let merged = recorded.merge(start, end, |events, names| -> anyhow::Result<()> {
        not_twice(received)?;
        Ok(writer.events(events, names)?)
    })?;
    writer.end(end)?;
    writer.finish(header)?;
    Ok(merged)
}

/// Prints what was recorded.
fn summarize(path: &Path, header: &Header, merged: &Merged, senseless: u64) {
    let seconds = header.duration as f64 / 1e9;
    let bytes = path.metadata().map_or(0, |file| file.len());
    eprintln!(
        "recorded {} events in {seconds:.1} s ({}/s) into {}: {}",
        HumanCount(merged.events),
        HumanCount((merged.events as f64 / seconds.max(1e-9)) as u64),
        path.display(),
        HumanBytes(bytes),
    );
    let known = merged.before_start + merged.after_end;
    if known > 0 {
        eprintln!(
            "left out: {} events that the page states at the start or the end already include",
            HumanCount(known)
        );
    }
    if senseless > 0 {
        eprintln!("left out: {senseless} malformed records");
    }
    for lost in &header.lost {
        eprintln!(
            "lost: {} events of CPU {}; a larger --buffer may keep them",
            HumanCount(lost.events),
            lost.cpu
        );
    }
    if header.lost.is_empty() {
        eprintln!("lost: nothing");
    }
}

/// Prints why the recording ended, and how the command ended if it failed.
fn report(ended: &Ended, status: Option<ExitStatus>) {
    match ended {
        Ended::DiskFull => {
            eprintln!(
                "the disk is nearly full: the recording was ended early; the command continues"
            );
        }
        Ended::Signalled(_) => eprintln!("the recording was ended by a signal"),
        Ended::Command(_) | Ended::Time => {}
    }
    if let Some(status) = status.filter(|status| !status.success()) {
        eprintln!("{}", how(status));
    }
}
