//! Where a trace comes from, the host's own statistics, and what was lost.

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
    /// When they were read, in nanoseconds since the trace began; 0 where unknown. At the start that
    /// is just after the page states, at the end just before them: so every event between the two
    /// times is in the trace.
    pub time: u64,
}

/// Events that a CPU's buffer had no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// The CPU.
    pub cpu: u16,
    /// How many.
    pub events: u64,
}

/// A request flag, or a combination of them, and its name, such as `__GFP_ZERO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name.
    pub name: String,
    /// Its bits.
    pub mask: u64,
}

/// What the bits of request flags mean on the kernel that a trace is from; they differ from one
/// kernel version to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// What was lost, by CPU. CPUs that lost nothing are left out.
    pub lost: Vec<Lost>,
}
