//! Where a trace comes from, the host's own statistics, and what was lost.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The texts of the host's own files, empty where one could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostTexts {
    /// `/proc/zoneinfo`.
    pub zoneinfo: String,
    /// `/proc/buddyinfo`.
    pub buddyinfo: String,
    /// `/proc/pagetypeinfo`.
    pub pagetypeinfo: String,
    /// `/proc/vmstat`.
    pub vmstat: String,
    /// When they were read, in nanoseconds since the trace began; 0 where unknown. At the start
    /// that is just after the page states, at the end just before them: so every event between the
    /// two times is in the trace.
    pub time: u64,
    /// When each of them was read, in the same unit; 0 where unknown.
    pub times: TextTimes,
}

/// When the read of each text began, in nanoseconds since the trace began; 0 where unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextTimes {
    /// Of `/proc/zoneinfo`.
    pub zoneinfo: u64,
    /// Of `/proc/buddyinfo`.
    pub buddyinfo: u64,
    /// Of `/proc/pagetypeinfo`.
    pub pagetypeinfo: u64,
    /// Of `/proc/vmstat`.
    pub vmstat: u64,
}

/// How the page states were read, at the start or the end; all 0 where unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// When the read began, in nanoseconds since the trace began.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// Events that are not in the trace: at the start those that the states include, at the end
    /// those that they do not.
    pub left_out: u64,
    /// Events that are in the trace, and of which it is unknown whether the states include them:
    /// they happened while the very frames were read.
    pub unsure: u64,
}

/// Events that a CPU's buffer had no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lost {
    /// The CPU.
    pub cpu: u16,
    /// How many.
    pub events: u64,
}

/// A request flag, or a combination of them, and its name, such as `__GFP_ZERO`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// Its bits; in JSON as hexadecimal text.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    pub mask: u64,
    /// Its name.
    pub name: String,
}

fn to_hex<S: Serializer>(mask: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&format_args!("{mask:#x}"))
}

fn from_hex<'de, D: Deserializer<'de>>(text: D) -> Result<u64, D::Error> {
    let text = String::deserialize(text)?;
    let digits = text.strip_prefix("0x").unwrap_or("");
    u64::from_str_radix(digits, 16).map_err(serde::de::Error::custom)
}

/// What the bits of request flags mean on the kernel that a trace is from; they differ from one
/// kernel version to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flags(pub Vec<Flag>);

impl Flags {
    /// Returns the bits of the flag with this name; 0 if the kernel has no such flag.
    #[must_use]
    pub fn mask(&self, name: &str) -> u64 {
        let named = self.0.iter().find(|flag| flag.name == name);
        named.map_or(0, |flag| flag.mask)
    }
}

/// Everything in a trace but its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// What the trace was made from: `tracefs`, or the kind of text that was imported.
    pub source: String,
    /// The kernel's release.
    pub kernel: String,
    /// The machine's architecture.
    pub machine: String,
    /// The command that ran meanwhile; empty if none was given.
    pub command: String,
    /// When it began, in seconds since 1970; 0 where unknown.
    pub began: u64,
    /// How long it took, in nanoseconds.
    pub duration: u64,
    /// Number of CPUs that can have events.
    pub cpus: u16,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// The order of a page block, which is that of a huge page.
    pub page_block_order: u8,
    /// The meaning of request flags.
    pub flags: Flags,
    /// The kernel's format texts: the event's name and the text.
    pub formats: Vec<(String, String)>,
    /// The host at the start.
    pub start: HostTexts,
    /// The host at the end.
    pub end: HostTexts,
    /// How the page states at the start were read.
    pub start_states: Reading,
    /// How those at the end were.
    pub end_states: Reading,
    /// What was lost, by CPU. CPUs that lost nothing are left out.
    pub lost: Vec<Lost>,
}
