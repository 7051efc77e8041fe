//! The command that runs while its host is recorded.

use core::time::Duration;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process};

/// The interval at which a command that should end is polled.
const POLL: Duration = Duration::from_millis(10);

/// A command, found but not yet started.
#[derive(Debug)]
pub(super) struct Command {
    program: PathBuf,
    words: Vec<OsString>,
}

impl Command {
    /// Finds the program as a shell would; `None` if `words` is empty.
    pub(super) fn find(words: &[OsString]) -> anyhow::Result<Option<Self>> {
        let Some(name) = words.first() else {
            return Ok(None);
        };
        let Some(program) = program(name) else {
            bail!(
                "command not found: {}; nothing was recorded",
                name.to_string_lossy()
            );
        };
        Ok(Some(Self {
            program,
            words: words.to_vec(),
        }))
    }

    /// Returns the command line as a user would write it.
    pub(super) fn text(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    pub(super) fn start(&self) -> anyhow::Result<Running> {
        let mut command = std::process::Command::new(&self.program);
        std::os::unix::process::CommandExt::arg0(&mut command, &self.words[0]);
        command.args(&self.words[1..]);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        Ok(Running { child })
    }
}

/// A command that was started. It may be dropped while it runs, on errors too, and then says so.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Returns the exit status if the command has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot wait for the command")
    }

    /// Waits until the command ends, `at_most` has passed or `stop` returns true.
    pub(super) fn wait(
        &mut self,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let began = Instant::now();
        loop {
            let ended = self.ended()?;
            if ended.is_some() || stop() || began.elapsed() >= at_most {
                return Ok(ended);
            }
            thread::sleep(POLL);
        }
    }

    /// Sends the command a signal, unless it has ended, and waits as [`Running::wait`].
    pub(super) fn end(
        &mut self,
        signal: Signal,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let ended = self.ended()?;
        if ended.is_some() {
            return Ok(ended);
        }
        // The child has not been waited for, so its process ID cannot have been reused.
        kill_process(Pid::from_child(&self.child), signal).context("cannot end the command")?;
        self.wait(at_most, stop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            eprintln!("the command has not ended; it is left running");
        }
    }
}

/// A shell's exit code of a command that signal 0 would have ended.
pub(super) const SIGNAL_CODE: i32 = 128;

/// Returns the exit code that a shell has for a command that ended so: its own, or 128 and the
/// signal that ended it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| SIGNAL_CODE + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Returns how the command ended, in words.
pub(super) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "the command succeeded".to_owned(),
        (Some(code), _) => format!("the command failed with exit code {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command ended".to_owned(),
    }
}

fn program(name: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if Path::new(name).components().count() > 1 || name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(runs)
}

/// Returns a word, quoted where a shell needs it.
pub(crate) fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs() {
        let text = |word: &str| quoted(OsStr::new(word));
        assert_eq!(text("-j2"), "-j2");
        assert_eq!(text("a b"), "'a b'");
        assert_eq!(text("it's"), "'it'\\''s'");
        assert_eq!(text(""), "''");
    }

    #[test]
    fn the_exit_code_is_a_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(0)), 0);
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(255 << 8)), 255);
        assert_eq!(exit_code(ExitStatus::from_raw(15)), 143);
    }

    #[test]
    fn a_command_that_has_ended_is_not_signalled() {
        let words = ["sh", "-c", "exit 3"].map(OsString::from);
        let command = Command::find(&words).unwrap().unwrap();
        let mut running = command.start().unwrap();
        let status = running.wait(Duration::MAX, &|| false).unwrap();
        let again = running.end(Signal::KILL, Duration::ZERO, &|| false);
        assert_eq!(again.unwrap(), status);
        assert_eq!(status.map(exit_code), Some(3));
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let find = |name: &str| program(OsStr::new(name));
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
        assert_eq!(find("/"), None);
        assert_eq!(find("/proc/version"), None, "not one that runs");
    }
}
