//! A debugger steps through the library: each step interrupts a restartable sequence, and all the
//! same a request ends after a few thousand of them.
//!
//! The program is `debugger.c`, compiled here by the machine's C compiler. Where there is none, or no
//! process may be traced, the tests say so and are skipped.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use core::ptr::null_mut;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use support::{compiled_by, library};

/// Runs the program to its first stop, and steps to its second. Returns the number of steps, which
/// is `most` if it does not come so far; `None` where nothing can be traced.
fn steps(words: &[&str], rows: &str, most: u64) -> Option<u64> {
    let program = compiled_by("CC", "debugger.c", "debugger", &["-g"], &[])?;
    let mut command = Command::new(program);
    command.args(words).env("LD_PRELOAD", library());
    command.env("BRICKYARD_ROWS", rows);
    let traced = || {
        // SAFETY: plain calls in the new process, and a value that lives through them. It stays on
        // this CPU: where it goes to another one, that one's row may have what it waits for.
        let done = unsafe {
            let mut here: libc::cpu_set_t = core::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().cast_unsigned() as usize, &mut here);
            libc::sched_setaffinity(0, size_of_val(&here), &raw const here)
                | libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) as i32
        };
        match done {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: it only makes a system call.
    let spawned = unsafe { command.pre_exec(traced) }.spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            println!("skipped: no process may be traced here: {error}");
            return None;
        }
    };
    let id = child.id().cast_signed();
    // The signal at which the process stops next.
    let goes_on = |how| {
        let mut status = 0;
        // SAFETY: it has stopped, and this thread traces it; `status` can be written.
        unsafe {
            assert_eq!(libc::ptrace(how, id, null_mut::<u8>(), null_mut::<u8>()), 0);
            assert_eq!(libc::waitpid(id, &raw mut status, 0), id);
        }
        assert!(libc::WIFSTOPPED(status), "it ended: {status:x}");
        libc::WSTOPSIG(status)
    };
    let mut status = 0;
    // SAFETY: `status` can be written.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    assert_eq!(goes_on(libc::PTRACE_CONT), libc::SIGSTOP);
    let mut steps = 0;
    while steps < most && goes_on(libc::PTRACE_SINGLESTEP) != libc::SIGSTOP {
        steps += 1;
    }
    println!("{words:?} {rows}: {steps} steps");
    child.kill().unwrap();
    child.wait().unwrap();
    Some(steps)
}

#[test]
fn requests_end_however_often_they_are_interrupted() {
    const MOST: u64 = 1_000_000;
    for rows in ["cpu", "thread"] {
        let Some(taken) = steps(&[], rows, MOST) else {
            return;
        };
        assert!(taken > 100 && taken < MOST, "{rows}: {taken} steps");
    }
}

#[test]
fn memory_goes_back_however_often_that_is_interrupted() {
    const MOST: u64 = 1_000_000;
    if let Some(taken) = steps(&["trim"], "cpu", MOST) {
        assert!(taken > 1000 && taken < MOST, "{taken} steps");
    }
}

#[test]
fn a_debugger_gets_past_a_request() {
    let Some(program) = compiled_by("CC", "debugger.c", "debugged", &["-g"], &[]) else {
        return;
    };
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("step.gdb");
    let library = library();
    let text = format!(
        "set startup-with-shell off
set env LD_PRELOAD {}
break begins
run debugger
set $steps = 0
while $steps < 100000 && done == 0
  stepi
  set $steps = $steps + 1
end
printf \"done %d after %d\\n\", done, $steps
kill\n",
        library.display()
    );
    std::fs::write(&script, text).unwrap();
    let mut gdb = Command::new("gdb");
    gdb.args(["--batch", "-nx", "-x"]).arg(script);
    let output = match gdb.arg(program).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: no gdb: {error}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    if wrong.contains("not permitted") {
        println!("skipped: gdb may not trace here: {wrong}");
        return;
    }
    let last = said.lines().rfind(|line| line.starts_with("done "));
    assert!(
        last.is_some_and(|line| line.starts_with("done 1 ")),
        "{last:?} {wrong}"
    );
}
