//! Who removes the tracing instance when the service ends, which has given up root by then, or is
//! killed: a shell that stays root, does nothing but wait for the end of its standard input, and
//! then removes the folder.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The folder's name is the script's `$0`. It is busy while files in it are open, which the kernel
/// closes one after the other when a process ends. Signals that end a whole service do not end the
/// shell.
const SCRIPT: &str = "trap '' TERM INT HUP; cat; echo 0 >\"$0/tracing_on\"; \
    for i in 1 2 3 4 5 6 7 8 9 10; do rmdir \"$0\" && exit; sleep 0.2; done";

/// The shell.
#[derive(Debug)]
pub(crate) struct Keeper(Child);

impl Keeper {
    /// Starts the shell for this folder.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .arg(folder.file_name().unwrap_or_default())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            // By its name there: the path may lead through a descriptor that only this process has.
            .current_dir(folder.parent().unwrap_or(folder))
            // Not in the terminal's group, whose Ctrl-C would end `cat`.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(shell))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Closes its input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
