//! The machine that samples were taken on: the few facts needed to interpret a number of cycles.
//!
//! They are read from `/proc`. Where that is missing, unreadable or of another form, a text is
//! "unknown" and a number `None`, never an error: a measurement is not lost for want of a model
//! name.

use core::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::counted;

/// The value of a text that could not be determined.
const UNKNOWN: &str = "unknown";

/// The keys under which `cpuinfo` names the model: x86, MIPS, POWER, RISC-V, 32-bit Arm.
const MODEL_KEYS: [&str; 5] = ["model name", "cpu model", "cpu", "uarch", "Hardware"];

/// The machine that samples were taken on.
///
/// ```
/// let host = brickyard_results::Host::unknown();
/// assert_eq!(host.kernel, "unknown");
/// assert_eq!(host.memory_bytes, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// The kernel's release, such as `6.18.2`.
    pub kernel: String,
    /// The model of the first CPU, as the kernel names it.
    pub cpu: String,
    /// The number of CPUs that are online.
    pub cpus: Option<u32>,
    /// The memory that the kernel manages (`MemTotal`), in bytes.
    pub memory_bytes: Option<u64>,
}

impl Host {
    /// A machine of which nothing is known.
    pub fn unknown() -> Self {
        Self {
            kernel: UNKNOWN.into(),
            cpu: UNKNOWN.into(),
            cpus: None,
            memory_bytes: None,
        }
    }

    /// Reads this machine's facts from `/proc`. What cannot be read there is unknown.
    pub fn read() -> Self {
        Self::read_from(Path::new("/proc"))
    }

    /// Reads the facts of a machine whose `/proc` is mounted at `proc`.
    pub fn read_from(proc: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
        let kernel = text("sys/kernel/osrelease");
        Self {
            kernel: known(kernel.trim()),
            cpu: known(model(&text("cpuinfo"))),
            cpus: online_cpus(&text("stat")),
            memory_bytes: memory_bytes(&text("meminfo")),
        }
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::unknown()
    }
}

impl fmt::Display for Host {
    /// Writes one line, with the memory in GiB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}, CPU {}", self.kernel, self.cpu)?;
        if let Some(cpus) = self.cpus {
            write!(f, ", {}", counted(cpus, "CPU", "CPUs"))?;
        }
        match self.memory_bytes {
            Some(bytes) => write!(f, ", {:.1} GiB", bytes as f64 / (1_u64 << 30) as f64),
            None => Ok(()),
        }
    }
}

/// Returns the text, or "unknown" if it is empty.
fn known(text: &str) -> String {
    if text.is_empty() { UNKNOWN } else { text }.into()
}

/// Returns the value of the first line of a `key : value` text that has this key.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// Returns the CPU's model from `cpuinfo`; empty if it has none.
fn model(cpuinfo: &str) -> &str {
    MODEL_KEYS
        .iter()
        .find_map(|key| value_of(cpuinfo, key))
        .unwrap_or_default()
}

/// Counts the CPUs that `stat` has a line for: those online, on every architecture.
fn online_cpus(stat: &str) -> Option<u32> {
    let numbered = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    u32::try_from(stat.lines().filter(numbered).count())
        .ok()
        .filter(|&count| count > 0)
}

/// Returns `MemTotal` of `meminfo` in bytes; the file's `kB` is KiB.
fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kibibytes = value_of(meminfo, "MemTotal")?.strip_suffix("kB")?.trim();
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_of_an_x86_machine() {
        let cpuinfo =
            "processor\t: 0\nmodel\t\t: 207\nmodel name\t: Some CPU @ 2.60GHz\n\nprocessor\t: 1\n";
        assert_eq!(model(cpuinfo), "Some CPU @ 2.60GHz");
        assert_eq!(
            online_cpus("cpu  1 2 3\ncpu0 1 2\ncpu1 1 2\nintr 4\nctxt 5\n"),
            Some(2)
        );
        assert_eq!(
            memory_bytes("MemTotal:       24587812 kB\nMemFree: 1 kB\n"),
            Some(24_587_812 * 1024)
        );
    }

    #[test]
    fn missing_facts_are_unknown() {
        assert_eq!(
            Host::read_from(Path::new("/nowhere/at/all")),
            Host::unknown()
        );
        assert_eq!(known(model("processor : 0\nBogoMIPS : 50\n")), "unknown");
        assert_eq!(memory_bytes("MemTotal: many kB\n"), None);
    }

    #[test]
    fn display_leaves_out_the_unknown() {
        assert_eq!(Host::unknown().to_string(), "kernel unknown, CPU unknown");
        let host = Host {
            kernel: "6.18.2".into(),
            cpu: "Some CPU".into(),
            cpus: Some(2),
            memory_bytes: Some(3 << 29),
        };
        assert_eq!(
            host.to_string(),
            "kernel 6.18.2, CPU Some CPU, 2 CPUs, 1.5 GiB"
        );
    }
}
