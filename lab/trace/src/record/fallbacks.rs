//! Who fell back on memory of another mobility: the event `mm_page_alloc_extfrag`, from a tracing
//! instance of our own.
//!
//! Its buffers are small and its events its own, so the host's settings are not touched. It is
//! removed when this is dropped, on panics too; one that a killed process left is removed by the
//! next.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use super::error::RecordError;
use super::instance::Instance;
use super::tracefs::Tracefs;

/// KiB a CPU: thousands of these events, of which a bad second has hundreds.
const BUFFER_KIB: u64 = 256;
/// Bytes taken at one look, so that a storm of events does not stop the screen.
const TURN: usize = 1 << 18;

/// The kernel's numbers of types, unless pagetypeinfo says otherwise.
const TYPES: [&str; 5] = [
    "Unmovable",
    "Movable",
    "Reclaimable",
    "HighAtomic",
    "Isolate",
];

/// One fallback.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fallback {
    name: String,
    order: u8,
    from_order: u8,
    mobility: usize,
    from: usize,
    claimed: bool,
}

/// Reads a line of `trace_pipe`; `None` if it is none of these events.
///
/// `   cargo-123   [001] ..... 12.3: mm_page_alloc_extfrag: page=... pfn=0x1 alloc_order=0 fallback_order=3 ... change_ownership=0`
fn parse(line: &str) -> Option<Fallback> {
    let (head, fields) = line.split_once("mm_page_alloc_extfrag:")?;
    // A name may hold spaces and dashes; what comes after it never holds a bracket.
    let task = head.rsplit_once('[')?.0.trim();
    // With the option record-tgid: `cargo-123   (   99) [001]`.
    let task = task.rsplit_once('(').map_or(task, |(task, _)| task.trim());
    let (name, _) = task.rsplit_once('-')?;
    let field = |name: &str| {
        let fields = fields
            .split_whitespace()
            .filter_map(|field| field.split_once('='));
        let mut named = fields.filter(|(own, _)| *own == name);
        named.next()?.1.parse::<u8>().ok()
    };
    Some(Fallback {
        name: name.to_owned(),
        order: field("alloc_order")?,
        from_order: field("fallback_order")?,
        mobility: usize::from(field("alloc_migratetype")?),
        from: usize::from(field("fallback_migratetype")?),
        claimed: field("change_ownership")? == 1,
    })
}

/// How often who fell back on what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    types: Vec<String>,
    /// By name, type wanted, type taken.
    by: BTreeMap<(String, usize, usize), Times>,
    /// All events.
    pub all: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    events: u64,
    claimed: u64,
    order: u8,
    from_order: u8,
}

impl Tally {
    /// An empty one; `types` by the kernel's numbers.
    #[must_use]
    pub fn new(types: Vec<String>) -> Self {
        Self {
            types,
            ..Self::default()
        }
    }

    /// Counts what a text of whole lines says.
    pub fn add(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(fallback) = parse(line) {
                let times = self
                    .by
                    .entry((fallback.name, fallback.mobility, fallback.from))
                    .or_default();
                times.events += 1;
                times.claimed += u64::from(fallback.claimed);
                (times.order, times.from_order) = (fallback.order, fallback.from_order);
                self.all += 1;
            } else if let Some((_, lost)) = line.split_once("[LOST ") {
                let lost = lost
                    .split_whitespace()
                    .next()
                    .and_then(|lost| lost.parse().ok());
                self.lost = self.lost.saturating_add(lost.unwrap_or(0));
            }
        }
    }

    /// The most frequent, as lines: how often, who, what it wanted, what it took, of which order
    /// the last time.
    #[must_use]
    pub fn lines(&self, most: usize) -> Vec<String> {
        let mut by: Vec<_> = self.by.iter().collect();
        by.sort_by_key(|(_, times)| core::cmp::Reverse(times.events));
        by.truncate(most);
        let line = |((name, mobility, from), times): &(&(String, usize, usize), &Times)| {
            let (wanted, taken) = (self.short(*mobility), self.short(*from));
            let (order, from_order) = (times.order, times.from_order);
            let events = times.events;
            format!("{events:>5} {name:<15} {wanted}<{taken} {order}<{from_order}")
        };
        by.iter().map(line).collect()
    }

    fn short(&self, number: usize) -> &str {
        let told = self.types.get(number).map(String::as_str);
        let name = told.or_else(|| TYPES.get(number).copied()).unwrap_or("?");
        name.get(..1).unwrap_or("?")
    }
}

/// The tracing instance.
#[derive(Debug)]
pub struct Tracing {
    // In the order in which they must go: an instance whose pipe is open cannot be removed, and it
    // lies in tracefs.
    pipe: File,
    _instance: Instance,
    _tracefs: Tracefs,
    /// A line whose end has not come yet.
    rest: Vec<u8>,
}

impl Tracing {
    /// Starts it.
    ///
    /// # Errors
    /// What is missing, in words for the screen.
    pub fn start() -> Result<Self, String> {
        Self::try_start().map_err(|error| match error {
            RecordError::Tracing { why, .. } if why.kind() == io::ErrorKind::PermissionDenied => {
                "root would show who".into()
            }
            RecordError::NoTracefs => {
                "no tracefs: sudo mount -t tracefs none /sys/kernel/tracing".into()
            }
            error => format!("not traced: {error}"),
        })
    }

    fn try_start() -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let instance = Instance::create(tracefs.path())?;
        instance.set_buffers(BUFFER_KIB)?;
        instance.write("events/kmem/mm_page_alloc_extfrag/enable", "1")?;
        instance.write("tracing_on", "1")?;
        Ok(Self {
            pipe: instance.pipe("trace_pipe")?,
            _instance: instance,
            _tracefs: tracefs,
            rest: Vec::new(),
        })
    }

    /// Counts what came since the last call.
    pub fn read_into(&mut self, tally: &mut Tally) {
        let mut bytes = [0; 1 << 14];
        let mut taken = 0;
        while taken < TURN {
            match self.pipe.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => {
                    self.rest.extend_from_slice(&bytes[..length]);
                    taken += length;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing more for now.
                Err(_) => break,
            }
        }
        let end = self.rest.iter().rposition(|&byte| byte == b'\n');
        let whole: Vec<u8> = self.rest.drain(..end.map_or(0, |end| end + 1)).collect();
        tally.add(&String::from_utf8_lossy(&whole));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "       my-cargo x-4711    [001] .....   123.456789: mm_page_alloc_extfrag: page=00000000a1b2 pfn=0x3a200 alloc_order=0 fallback_order=7 pageblock_order=9 alloc_migratetype=2 fallback_migratetype=1 fragmenting=1 change_ownership=0";

    #[test]
    fn lines_of_the_kernel_are_counted_by_who_and_what() {
        let mut tally = Tally::new(Vec::new());
        let claimed = LINE.replace("ownership=0", "ownership=1");
        let tgid = LINE.replace("    [001]", " (   4700) [001]");
        let text = format!("{LINE}\n{claimed}\nCPU:1 [LOST 17 EVENTS]\nnothing of ours\n{tgid}\n");
        tally.add(&text);
        assert_eq!((tally.all, tally.lost), (3, 17));
        assert_eq!(tally.lines(9), ["    3 my-cargo x      R<M 0<7"]);
        let other = LINE
            .replace("my-cargo x", "kworker/1:2")
            .replace("migratetype=2", "migratetype=0");
        tally.add(&other);
        assert_eq!(tally.lines(9)[1], "    1 kworker/1:2     U<M 0<7");
        assert_eq!(tally.lines(1).len(), 1, "the most frequent first");
    }

    #[test]
    fn types_go_by_the_names_of_the_kernel() {
        let types = ["Unmovable", "Movable", "Reclaimable", "HighAtomic", "CMA"];
        let mut tally = Tally::new(types.map(str::to_owned).to_vec());
        tally.add(&LINE.replace("fallback_migratetype=1", "fallback_migratetype=4"));
        assert_eq!(tally.lines(1), ["    1 my-cargo x      R<C 0<7"]);
    }

    #[test]
    fn half_a_line_and_foreign_lines_are_no_fallbacks() {
        for cut in 0..LINE.len() {
            let _ = parse(&LINE[..cut]);
        }
        assert_eq!(
            parse("x-1 [0] mm_page_alloc_extfrag: alloc_order=999"),
            None
        );
        assert_eq!(parse(""), None);
    }

    #[test]
    fn an_instance_is_gone_when_it_is_dropped() {
        match Tracing::start() {
            Ok(mut tracing) => {
                let path = tracing._instance.path().to_owned();
                tracing.read_into(&mut Tally::default());
                assert!(path.exists());
                drop(tracing);
                assert!(!path.exists());
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}
