//! A run: the small program starts a load, or a real program, and measures it.

use core::time::Duration;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use crate::loads::{PROGRAM, ProgramCost};
use anyhow::{Context, bail};

/// Where the system's programs are. Looked for first: a wrapper of a version manager is a shell
/// script, whose start would be measured too.
const SYSTEM: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Where Debian has PostgreSQL's servers, by version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// Returns the path of the small program: it is built with this one, and is beside it.
///
/// # Errors
/// It is not there; the error names the fix.
pub fn loads_program() -> anyhow::Result<PathBuf> {
    let this = env::current_exe().context("cannot find this program")?;
    let beside = this.with_file_name(PROGRAM);
    if !beside.is_file() {
        bail!(
            "{} is missing; build it: cargo build --release -p brickyard-heap-bench, and give it by --loads if it is not beside this program",
            beside.display()
        );
    }
    Ok(beside)
}

/// Starts runs.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    /// The small program.
    pub(crate) loads: &'a Path,
    /// The folder that real programs run in.
    pub(crate) folder: &'a Path,
    /// How long a process idles after its work, before its memory is looked at. Zero: it does not.
    pub(crate) settle: Duration,
}

/// Where a script writes the KiB that are resident after the rest.
const SETTLED: &str = "settled";

/// A run that has ended well.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) measured: ProgramCost,
    /// What it printed.
    pub(crate) output: String,
    /// What it printed on standard error.
    pub(crate) errors: String,
    /// The KiB that were resident when it had idled.
    pub(crate) settled_kib: Option<u64>,
}

impl Ran {
    /// Returns the lines of a load, each split in a name and a value.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.output.lines().filter_map(|line| line.split_once(' '))
    }
}

impl Runner<'_> {
    /// Runs a load under a library.
    pub(crate) fn load(
        &self,
        library: Option<&Path>,
        name: &str,
        threads: usize,
        scale: f64,
    ) -> anyhow::Result<Ran> {
        let preload = library.map_or(OsStr::new("-"), Path::as_os_str);
        let mut command = self.small("measure", preload);
        command.arg(self.loads).arg(name);
        command.args([threads.to_string(), scale.to_string()]);
        if !self.settle.is_zero() {
            command.arg(self.settle.as_secs_f64().to_string());
        }
        let mut ran = finish(&mut command)?;
        let settled = ran.lines().find(|&(name, _)| name == SETTLED);
        let settled = settled.and_then(|(_, kib)| kib.parse().ok());
        self.has_settled(&mut ran, settled);
        Ok(ran)
    }

    /// Notes what was resident after the rest, which is not a part of the work.
    fn has_settled(&self, ran: &mut Ran, settled_kib: Option<u64>) {
        ran.settled_kib = settled_kib;
        if settled_kib.is_some() {
            let wall = &mut ran.measured.wall;
            *wall = wall.saturating_sub(self.settle);
        }
    }

    /// Runs a real program under a library.
    pub(crate) fn program(
        &self,
        library: &Path,
        program: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Ran> {
        let settled = self.folder.join(SETTLED);
        // Of an earlier run, if it is there.
        let _ = fs::remove_file(&settled);
        let mut command = self.small("measure", library.as_os_str());
        self.in_folder(command.args(program));
        command.envs(variables.iter().copied());
        let mut ran = finish(&mut command)?;
        let settled = fs::read_to_string(settled).ok();
        let settled = settled.and_then(|kib| kib.trim().parse().ok());
        self.has_settled(&mut ran, settled);
        Ok(ran)
    }

    /// Starts a program so many times under a library. Returns the sums.
    pub(crate) fn starts(
        &self,
        library: &Path,
        times: u64,
        program: &[&str],
    ) -> anyhow::Result<Ran> {
        let mut command = self.small("starts", library.as_os_str());
        self.in_folder(command.arg(times.to_string()).args(program));
        finish(&mut command)
    }

    /// Runs a command that is not measured, without a library.
    pub(crate) fn prepare(&self, program: &[&str]) -> anyhow::Result<()> {
        let mut command = self.small("measure", OsStr::new("-"));
        self.in_folder(command.args(program));
        finish(&mut command).map(drop)
    }

    /// A command of the small program, which itself runs without a preload.
    fn small(&self, name: &str, preload: &OsStr) -> Command {
        let mut command = Command::new(self.loads);
        command.env_remove("LD_PRELOAD");
        command.arg(name).arg(preload);
        command
    }

    fn in_folder(&self, command: &mut Command) {
        command.current_dir(self.folder);
        command.env("PATH", search_path()).env("LC_ALL", "C");
    }
}

fn finish(command: &mut Command) -> anyhow::Result<Ran> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.with_context(|| {
        let loads = command.get_program().display();
        format!("cannot start {loads}; build it: cargo build --release -p brickyard-heap-bench")
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (output, errors) = (text(&done.stdout), text(&done.stderr));
    if !done.status.success() {
        let how = match done.status.code() {
            Some(code @ 129..) => format!("it was ended by signal {}", code - 128),
            Some(code) => format!("it exited with {code}"),
            None => format!("{PROGRAM}: {}", done.status),
        };
        bail!("{how}: {}", last_line(&errors));
    }
    let line = last_line(&output);
    let measured = line.parse().map_err(anyhow::Error::msg)?;
    // Before it is the end of a line.
    let output = output.trim_end().strip_suffix(line).unwrap_or_default();
    let output = output.strip_suffix('\n').unwrap_or(output).to_owned();
    Ok(Ran {
        measured,
        output,
        errors,
        settled_kib: None,
    })
}

/// Returns the last line that has text.
pub(crate) fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}

/// Returns the folders of programs: the system's, then those of `PATH`, then Debian's folder of
/// PostgreSQL's server, which is in none of them.
fn search_path() -> OsString {
    let given = env::var_os("PATH").unwrap_or_default();
    let all = SYSTEM.iter().map(PathBuf::from);
    let mut all: Vec<PathBuf> = all.chain(env::split_paths(&given)).collect();
    let versions = fs::read_dir(POSTGRES).into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|one| one.path().join("bin")).collect();
    versions.sort_unstable();
    all.extend(versions.pop());
    // A folder of `PATH` has no colon.
    env::join_paths(all).unwrap_or(given)
}

/// Returns the path of an installed program.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let folders = search_path();
    let mut all = env::split_paths(&folders).map(|folder| folder.join(program));
    all.find(|path| path.is_file())
}

/// A folder for temporary files, removed at the end.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = env::temp_dir().join(format!("brickyard-programs-{}", process::id()));
        fs::create_dir_all(&folder).with_context(|| {
            format!(
                "cannot make {}; name another folder by TMPDIR",
                folder.display()
            )
        })?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is only a temporary file.
        let _ = fs::remove_dir_all(&self.0);
    }
}
