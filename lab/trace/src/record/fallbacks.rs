//! Which tasks fell back on memory of another mobility: the event `mm_page_alloc_extfrag`, from a
//! tracing instance of our own.
//!
//! The instance has small buffers and its own events, so the host's settings are not changed. It is
//! removed when [`Tracing`] is dropped, also on a panic; one that a killed process left is removed
//! by the next recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::error::RecordError;
use super::instance::Instance;
use super::tracefs::Tracefs;
use crate::import::{Fields, Parsed, TextEvent, parse};

/// Size of each CPU's buffer in KiB: room for thousands of these events; a bad second has hundreds.
const BUFFER_KIB: u64 = 256;
/// Bytes read at a time, at most, so that a storm of events does not stall the display.
const TURN: usize = 1 << 18;

/// Different task names and types that a tally holds; what comes beyond counts as of one task,
/// [`OTHERS`]. Names are chosen by the programs of a host, so their number has no bound.
const MOST: usize = 256;
/// The name of all tasks beyond those that a tally holds.
const OTHERS: &str = "(others)";

/// The kernel's types by number, where those of pagetypeinfo are not known.
const TYPES: [&str; 5] = [
    "Unmovable",
    "Movable",
    "Reclaimable",
    "HighAtomic",
    "Isolate",
];

/// Counts of fallbacks by task name and types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    types: Vec<String>,
    /// By task name, requested type and type of the block taken.
    by: BTreeMap<(String, u64, u64), Count>,
    /// Number of all events.
    pub all: u64,
    /// Events lost because the buffers were full.
    pub lost: u64,
}

/// The fallbacks of one task name and pair of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    events: u64,
    /// The orders of the last one.
    order: u64,
    from_order: u64,
}

impl Tally {
    /// Creates an empty tally; `types` are the names of types by the kernel's numbers.
    #[must_use]
    pub fn new(types: Vec<String>) -> Self {
        Self {
            types,
            ..Self::default()
        }
    }

    /// Counts the events in `text`, which holds whole lines.
    pub fn add(&mut self, text: &str) {
        for line in text.lines() {
            match parse(line) {
                Ok(Parsed::Event(event)) => self.add_event(&event),
                Ok(Parsed::Lost { events, .. }) => self.lost = self.lost.saturating_add(events),
                _ => {}
            }
        }
    }

    fn add_event(&mut self, event: &TextEvent<'_>) {
        let Fields::Fallback {
            migratetype,
            from_order,
            from,
            ..
        } = event.what
        else {
            return;
        };
        let mut key = (event.name.to_owned(), migratetype, from);
        if self.by.len() >= MOST && !self.by.contains_key(&key) {
            key.0 = OTHERS.to_owned();
        }
        let count = self.by.entry(key).or_default();
        count.events += 1;
        (count.order, count.from_order) = (event.order, from_order);
        self.all += 1;
    }

    /// Returns the counts: task name, requested type, type of the block taken, and how many. The
    /// name of a type that is not known is its number. In order of names.
    pub fn counts(&self) -> impl Iterator<Item = (&str, String, String, u64)> {
        self.by.iter().map(|((name, mobility, from), count)| {
            let named = |number: u64| self.name(number).unwrap_or(&number.to_string()).to_owned();
            (name.as_str(), named(*mobility), named(*from), count.events)
        })
    }

    /// Returns the `most` most frequent fallbacks as lines: count, task name, initials of the
    /// requested and the taken type, and the two orders of the last one.
    #[must_use]
    pub fn lines(&self, most: usize) -> Vec<String> {
        let mut by: Vec<_> = self.by.iter().collect();
        by.sort_by_key(|(_, count)| core::cmp::Reverse(count.events));
        by.truncate(most);
        let line = |((name, mobility, from), count): &(&(String, u64, u64), &Count)| {
            let (requested, taken) = (self.initial(*mobility), self.initial(*from));
            let (order, from_order) = (count.order, count.from_order);
            let events = count.events;
            format!("{events:>5} {name:<15} {requested}<{taken} {order}<{from_order}")
        };
        by.iter().map(line).collect()
    }

    fn name(&self, number: u64) -> Option<&str> {
        let number = usize::try_from(number).ok()?;
        let known = self.types.get(number).map(String::as_str);
        known.or_else(|| TYPES.get(number).copied())
    }

    fn initial(&self, number: u64) -> &str {
        let initial = self.name(number).and_then(|name| name.get(..1));
        initial.unwrap_or("?")
    }
}

/// The tracing instance.
#[derive(Debug)]
pub struct Tracing {
    // In the order in which they must be dropped: an instance whose pipe is open cannot be removed,
    // and the instance is a directory of tracefs.
    pipe: File,
    instance: Instance,
    _tracefs: Tracefs,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
}

impl Tracing {
    /// Starts tracing.
    ///
    /// # Errors
    /// What is missing, as a short text for display.
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
            instance,
            _tracefs: tracefs,
            rest: Vec::new(),
        })
    }

    /// Returns the folder of the tracing instance, which is to be removed when this ends.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.instance.path()
    }

    /// Counts the events since the last call; after a storm, some are left for the next.
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
                // The buffers are empty.
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
    fn names_may_look_like_the_rest_of_a_line() {
        for (name, tgid) in [
            ("(udev-worker)", ""),
            ("a-b(c)", ""),
            ("(sd-pam)", " (     9)"),
        ] {
            let line = LINE.replace("my-cargo x", name);
            let line = line.replace("    [001]", &format!("{tgid} [001]"));
            let mut tally = Tally::new(Vec::new());
            tally.add(&line);
            let counted: Vec<_> = tally.counts().map(|(name, ..)| name.to_owned()).collect();
            assert_eq!((tally.all, counted), (1, vec![name.to_owned()]), "{line}");
        }
        // The name of a task, with its line's rest behind it, counts nothing as lost.
        let mut tally = Tally::new(Vec::new());
        tally.add(&LINE.replace("my-cargo x", "[LOST 99999999\n"));
        tally.add(&LINE.replace("my-cargo x", "CPU:0 [LOST 9 \n"));
        assert_eq!(tally.lost, 0);
    }

    #[test]
    fn lines_of_the_kernel_are_counted_by_task_and_types() {
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
    fn names_beyond_a_limit_count_together() {
        let mut tally = Tally::default();
        for task in 0..2 * MOST {
            tally.add(&LINE.replace("my-cargo x", &format!("task {task}")));
        }
        assert!(tally.by.len() <= MOST + 25, "{}", tally.by.len());
        let others = tally.counts().find(|count| count.0 == OTHERS).unwrap();
        assert_eq!(
            (others.1.as_str(), others.2.as_str(), others.3),
            ("Reclaimable", "Movable", 256)
        );
        assert_eq!(tally.all, 2 * MOST as u64);
    }

    #[test]
    fn a_dropped_instance_is_removed() {
        match Tracing::start() {
            Ok(mut tracing) => {
                let path = tracing.folder().to_owned();
                tracing.read_into(&mut Tally::default());
                assert!(path.exists());
                drop(tracing);
                assert!(!path.exists());
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}
