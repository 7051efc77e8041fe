//! The time and the peak memory of a program.
//!
//! Linux counts the memory of the process that starts a program, up to the start, as the program's
//! own. So a small program must do it: this one, with a MiB or two, not the lab.

use core::fmt;
use core::mem::MaybeUninit;
use core::str::FromStr;
use core::time::Duration;
use std::io;
use std::process::Command;
use std::time::Instant;

/// What a program took, with the programs that it started and waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramCost {
    /// The wall time from its start to its end.
    pub wall: Duration,
    /// The CPU time, of user and system.
    pub cpu: Duration,
    /// The peak of resident memory in KiB, of the largest process.
    pub peak_kib: u64,
    /// The page faults.
    pub faults: u64,
}

impl ProgramCost {
    /// Runs a program to its end. Returns what it took, and its exit code; that of a program that a
    /// signal ended is 128 and the signal's number, as in a shell.
    pub(crate) fn of(command: &mut Command) -> io::Result<(Self, i32)> {
        let begun = Instant::now();
        let child = command.spawn()?;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        let mut status = 0;
        // SAFETY: both places are valid for a write, and all zeros are a `rusage`. Nothing else
        // waits for the child.
        let usage = unsafe {
            while libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()) < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            usage.assume_init()
        };
        let wall = begun.elapsed();
        let code = if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            128 + libc::WTERMSIG(status)
        };
        let measured = Self {
            wall,
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            peak_kib: usage.ru_maxrss as u64,
            faults: (usage.ru_minflt + usage.ru_majflt) as u64,
        };
        Ok((measured, code))
    }

    /// Runs a program so many times, one after the other, until one fails. Returns the sums, the
    /// largest peak, and the exit code of the last.
    pub(crate) fn of_starts(command: &mut Command, times: u64) -> io::Result<(Self, i32)> {
        let mut sum = Self::default();
        for _ in 0..times {
            let (one, code) = Self::of(command)?;
            sum = Self {
                wall: sum.wall + one.wall,
                cpu: sum.cpu + one.cpu,
                peak_kib: sum.peak_kib.max(one.peak_kib),
                faults: sum.faults + one.faults,
            };
            if code != 0 {
                return Ok((sum, code));
            }
        }
        Ok((sum, 0))
    }
}

const fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// The line that the small program prints: `measured`, and the numbers in ns, µs, KiB, and faults.
impl fmt::Display for ProgramCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, cpu) = (self.wall.as_nanos(), self.cpu.as_micros());
        write!(f, "measured {wall} {cpu} {} {}", self.peak_kib, self.faults)
    }
}

/// Reads such a line.
impl FromStr for ProgramCost {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u64>> = line.strip_prefix("measured ").and_then(|numbers| {
            let numbers = numbers.split(' ').map(str::parse);
            numbers.collect::<Result<_, _>>().ok()
        });
        match numbers.as_deref() {
            Some(&[wall, cpu, peak_kib, faults]) => Ok(Self {
                wall: Duration::from_nanos(wall),
                cpu: Duration::from_micros(cpu),
                peak_kib,
                faults,
            }),
            _ => Err(format!("{line:?} is not the line of a measurement")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_time_and_memory() {
        let (measured, code) =
            ProgramCost::of(Command::new("sh").args(["-c", "sleep 0.05; exit 7"])).unwrap();
        assert_eq!(code, 7);
        assert!(measured.wall >= Duration::from_millis(50));
        assert!(measured.cpu < measured.wall && measured.peak_kib > 100);
        assert_eq!(
            measured.to_string().parse(),
            Ok(ProgramCost {
                cpu: Duration::from_micros(measured.cpu.as_micros() as u64),
                ..measured
            })
        );
        assert!(measured.faults > 10);
        assert!("measured 1 2 3".parse::<ProgramCost>().is_err());
        assert!("measured 1 2 3 x".parse::<ProgramCost>().is_err());
    }

    #[test]
    fn starts_add_up_until_one_fails() {
        let mut sleep = Command::new("sh");
        sleep.args(["-c", "sleep 0.01"]);
        let (measured, code) = ProgramCost::of_starts(&mut sleep, 5).unwrap();
        assert_eq!(code, 0);
        assert!(measured.wall >= Duration::from_millis(50) && measured.peak_kib > 100);
        let mut fails = Command::new("sh");
        fails.args(["-c", "sleep 0.01; exit 3"]);
        let (_, code) = ProgramCost::of_starts(&mut fails, 5).unwrap();
        assert_eq!(code, 3);
    }

    #[test]
    fn a_signal_is_told_as_by_a_shell() {
        let mut killed = Command::new("sh");
        killed.args(["-c", "kill -9 $$"]);
        assert_eq!(ProgramCost::of(&mut killed).unwrap().1, 137);
        assert!(ProgramCost::of(&mut Command::new("/nonexistent")).is_err());
    }
}
