//! What the system counts of a process and of a thread.

use core::mem::MaybeUninit;
use std::fs;

/// Counts since the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// Page faults that only mapped memory.
    pub(super) minor_faults: u64,
    /// Page faults that waited for a disk.
    pub(super) major_faults: u64,
    /// How often a CPU was taken away: by another thread, or at the end of the time slice.
    pub(super) preempted: u64,
}

impl Usage {
    pub(super) fn of_this_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    pub(super) fn of_this_thread() -> Self {
        Self::of(libc::RUSAGE_THREAD)
    }

    fn of(who: libc::c_int) -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the place is valid for a write, and all zeros are a `rusage`.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        Self {
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            preempted: usage.ru_nivcsw as u64,
        }
    }

    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            preempted: self.preempted - before.preempted,
        }
    }
}

/// Returns a value in KiB of this process's memory by its name in `/proc/self/status`: `VmHWM` is
/// the peak of resident memory, `VmRSS` what is resident now.
pub(crate) fn memory_kib(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

/// Returns true if standard input is a pipe whose other end is closed.
pub(super) fn is_abandoned() -> bool {
    let mut input = libc::pollfd {
        fd: 0,
        events: 0,
        revents: 0,
    };
    // SAFETY: one such value, to be read and written; it does not wait.
    let found = unsafe { libc::poll(&raw mut input, 1, 0) };
    found > 0 && input.revents & libc::POLLHUP != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_faults() {
        let (peak, now) = (memory_kib("VmHWM").unwrap(), memory_kib("VmRSS").unwrap());
        assert!(peak >= now && now > 100);
        assert_eq!(memory_kib("Vm"), None);
        let before = Usage::of_this_process();
        assert!(before.minor_faults > 0);
        assert!(Usage::of_this_process().since(before).minor_faults < 1 << 20);
    }
}
