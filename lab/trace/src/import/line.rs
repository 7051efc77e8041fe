//! The parser of one line.
//!
//! The tools agree on the order: task, `[CPU]`, perhaps flags, time, event, fields.
//!
//! ```text
//!   kworker/u8:2-123     [001] d..3. 13583.179196: mm_page_alloc: page=000000006b pfn=0x14b527 order=0 migratetype=1 gfp_flags=GFP_KERNEL
//!            bash-20744   (  20744) [000] ..... 13583.272950: mm_page_free: page=00000000c5 pfn=0x13fc1c order=0
//!   kworker/0:1-vir 28707 [000] 12379.237991786:          kmem:mm_page_free: page=0x1f21b8 pfn=0x1f21b8 order=0
//! instance:            rustc-21347 [001] 13616.454943: mm_page_alloc:        page=0x2bc9c1 pfn=0x2bc9c1 order=0 ...
//! ```
//!
//! So a line is parsed from the event's name outwards: to the right, fields by name; to the left,
//! the time, the last `[..]`, and the task, whose name may contain spaces and dashes.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};

use super::collect::Tool;

/// What a line holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// Nothing about the page allocator.
    Other,
    /// An event that repeats another.
    Repeated,
    /// `events` events of this CPU were lost here.
    Lost { cpu: u16, events: u64 },
    /// An event.
    Event(TextEvent<'a>),
}

/// An event, with its values as they are in the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextEvent<'a> {
    pub(crate) tool: Tool,
    pub(crate) name: &'a str,
    pub(crate) pid: i32,
    pub(crate) cpu: u16,
    /// Nanoseconds of the host's clock.
    pub(crate) time: u64,
    pub(crate) frame: u64,
    pub(crate) order: u64,
    pub(crate) what: Fields<'a>,
}

/// The fields that depend on the event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fields<'a> {
    Alloc {
        migratetype: u64,
        flags: &'a str,
    },
    Free,
    Taken {
        migratetype: u64,
        refill: bool,
    },
    Drained {
        migratetype: u64,
    },
    Fallback {
        migratetype: u64,
        from_order: u64,
        from: u64,
        claimed: bool,
        block_order: Option<u64>,
    },
}

/// Why a line is bad.
pub(crate) type Why = &'static str;

/// How the names of the events begin.
const EVENT: &str = "mm_page_";

/// Finds [`EVENT`].
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(EVENT));

/// The number in a required field.
macro_rules! need {
    ($fields:expr, $name:ident) => {
        number($fields.$name)?.ok_or(concat!("it has no ", stringify!($name), "="))?
    };
}

/// Reads a line.
pub(crate) fn parse(line: &str) -> Result<Parsed<'_>, Why> {
    let Some((head, event, fields)) = find_event(line) else {
        return Ok(lost(line).unwrap_or(Parsed::Other));
    };
    let is_indented = fields.starts_with("    ");
    let fields = Named::of(fields);
    // As bytes: text is compared by a call each.
    let what = match event.as_bytes() {
        b"alloc" => Fields::Alloc {
            migratetype: need!(fields, migratetype),
            flags: fields.gfp_flags.ok_or("it has no gfp_flags=")?,
        },
        // `mm_page_free_direct` until Linux 3.3.
        b"free" | b"free_direct" => Fields::Free,
        b"free_batched" | b"pagevec_free" => return Ok(Parsed::Repeated),
        b"alloc_zone_locked" => Fields::Taken {
            migratetype: need!(fields, migratetype),
            refill: number(fields.percpu_refill)?.is_some_and(|refill| refill != 0),
        },
        b"pcpu_drain" => Fields::Drained {
            migratetype: need!(fields, migratetype),
        },
        b"alloc_extfrag" => Fields::Fallback {
            migratetype: need!(fields, alloc_migratetype),
            from_order: need!(fields, fallback_order),
            from: need!(fields, fallback_migratetype),
            claimed: number(fields.change_ownership)?.is_some_and(|claimed| claimed != 0),
            block_order: number(fields.pageblock_order)?,
        },
        _ => return Ok(Parsed::Other),
    };
    let order = match what {
        Fields::Fallback { .. } => need!(fields, alloc_order),
        _ => need!(fields, order),
    };
    let frame = need!(fields, pfn);
    let (tool, head) = match head.strip_suffix("kmem:") {
        Some(head) => (Tool::Perf, head),
        None if is_indented => (Tool::TraceCmd, head),
        None => (Tool::Ftrace, head),
    };
    let Head {
        name,
        pid,
        cpu,
        time,
    } = parse_head(head, tool)?;
    Ok(Parsed::Event(TextEvent {
        tool,
        name,
        pid,
        cpu,
        time,
        frame,
        order,
        what,
    }))
}

/// Splits a line at the name of a page event: the text before it, the name without `mm_page_`, and
/// the fields after it.
fn find_event(line: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(place) = FINDER.find(&line.as_bytes()[from..]) {
        let start = from + place;
        let rest = &line[start + EVENT.len()..];
        // A task may have this name too: an event's name is followed by a colon and a space, and
        // preceded by a space or `kmem:`.
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let length = rest.bytes().position(|byte| !is_plain(byte));
        let (event, fields) = rest.split_at(length.unwrap_or(rest.len()));
        if let Some(fields) = fields.strip_prefix(": ")
            && line[..start].ends_with([' ', ':', '\t'])
        {
            return Some((&line[..start], event, fields));
        }
        from = start + EVENT.len();
    }
    None
}

/// Parses a line about lost events: `CPU:1 [LOST 123 EVENTS]` (ftrace),
/// `CPU:1 [123 EVENTS DROPPED]` (trace-cmd),
/// `... [001] 12.5: PERF_RECORD_LOST lost 123` (perf).
fn lost(line: &str) -> Option<Parsed<'_>> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("CPU:") {
        let (cpu, rest) = rest.split_once(" [")?;
        let rest = rest.strip_suffix(']')?;
        let events = match rest.strip_prefix("LOST ") {
            Some(rest) => rest.strip_suffix(" EVENTS")?,
            None => rest.strip_suffix(" EVENTS DROPPED")?,
        };
        return Some(Parsed::Lost {
            cpu: cpu.parse().ok()?,
            events: events.parse().ok()?,
        });
    }
    let (head, events) = line.split_once(": PERF_RECORD_LOST lost ")?;
    let (cpu, _) = head.rsplit_once('[')?.1.split_once(']')?;
    Some(Parsed::Lost {
        cpu: cpu.parse().ok()?,
        events: events.trim().parse().ok()?,
    })
}

struct Head<'a> {
    name: &'a str,
    pid: i32,
    cpu: u16,
    time: u64,
}

fn parse_head(head: &str, tool: Tool) -> Result<Head<'_>, Why> {
    const NO_TIME: Why = "it has no time before the event's name";
    let head = before_last(head.trim_ascii_end(), b':').ok_or(NO_TIME)?;
    let space = last_space(head).ok_or(NO_TIME)?;
    let (head, time) = (&head[..space], &head[space + 1..]);
    let time = parse_time(time).ok_or("its time is neither seconds nor nanoseconds")?;
    let open = memrchr(b'[', head.as_bytes()).ok_or("it has no [CPU]")?;
    let (task, cpu) = (&head[..open], &head[open + 1..]);
    let close = memchr(b']', cpu.as_bytes()).ok_or("it has no [CPU]")?;
    let cpu = trimmed(&cpu[..close]).parse();
    let cpu = cpu.map_err(|_| "its CPU is not a number")?;
    let (name, pid) = parse_task(task, tool).ok_or("it has no task-PID or task PID")?;
    Ok(Head {
        name,
        pid,
        cpu,
        time,
    })
}

/// Returns a text without its last byte, if that is `last`.
fn before_last(text: &str, last: u8) -> Option<&str> {
    // As a byte: a `char` is compared by a call.
    let is_last = text.as_bytes().last() == Some(&last);
    is_last.then(|| &text[..text.len() - 1])
}

/// Returns the place of the last space or tab.
fn last_space(text: &str) -> Option<usize> {
    text.bytes().rposition(|byte| byte.is_ascii_whitespace())
}

/// Parses a time: `12.345678` is seconds, `12345678` nanoseconds.
fn parse_time(text: &str) -> Option<u64> {
    let Some(dot) = memchr(b'.', text.as_bytes()) else {
        return text.parse().ok();
    };
    let (seconds, fraction) = (&text[..dot], &text[dot + 1..]);
    let digits = u32::try_from(fraction.len()).ok()?;
    if !(1..=9).contains(&digits) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = fraction.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    let fraction = fraction * 10u64.pow(9 - digits);
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Parses a task: `name-12`, `name-12 (  12)`, `name 12`, `name 12/13`, perhaps after `instance:`.
fn parse_task(task: &str, tool: Tool) -> Option<(&str, i32)> {
    // trace-cmd prints an instance's name first, before that of the task.
    let instance = at_colon(task).filter(|(instance, _)| {
        tool != Tool::Perf && !instance.is_empty() && !instance.contains(char::is_whitespace)
    });
    let task = trimmed(instance.map_or(task, |(_, task)| task));
    let task = match before_last(task, b')') {
        Some(task) => task[..memrchr(b'(', task.as_bytes())?].trim_end(),
        None => task,
    };
    // perf separates the number by a space. Of `process/thread` the thread is taken, which is what
    // the other tools print.
    if let Some(space) = last_space(task) {
        let (name, pid) = (&task[..space], &task[space + 1..]);
        let pid = memrchr(b'/', pid.as_bytes()).map_or(pid, |slash| &pid[slash + 1..]);
        if let Ok(pid) = pid.parse() {
            return Some((name.trim_end(), pid));
        }
    }
    let dash = memrchr(b'-', task.as_bytes())?;
    Some((&task[..dash], task[dash + 1..].parse().ok()?))
}

/// Returns a text without the white space around it.
fn trimmed(text: &str) -> &str {
    // Most of it is found as bytes.
    text.trim_ascii().trim()
}

/// Splits a text at the first colon that a space follows.
fn at_colon(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut colons = memchr_iter(b':', bytes);
    let colon = colons.find(|&colon| bytes.get(colon + 1) == Some(&b' '))?;
    Some((&text[..colon], &text[colon + 2..]))
}

/// The values of an event's fields, each of which is `name=value`: of several with the same name
/// the first.
#[derive(Default)]
struct Named<'a> {
    pfn: Option<&'a str>,
    order: Option<&'a str>,
    migratetype: Option<&'a str>,
    gfp_flags: Option<&'a str>,
    percpu_refill: Option<&'a str>,
    alloc_order: Option<&'a str>,
    alloc_migratetype: Option<&'a str>,
    fallback_order: Option<&'a str>,
    fallback_migratetype: Option<&'a str>,
    change_ownership: Option<&'a str>,
    pageblock_order: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// Returns the place of the field with this name.
    #[inline]
    fn place(&mut self, name: &[u8]) -> Option<&mut Option<&'a str>> {
        // As bytes: text is compared by a call each.
        Some(match name {
            b"pfn" => &mut self.pfn,
            b"order" => &mut self.order,
            b"migratetype" => &mut self.migratetype,
            b"gfp_flags" => &mut self.gfp_flags,
            b"percpu_refill" => &mut self.percpu_refill,
            b"alloc_order" => &mut self.alloc_order,
            b"alloc_migratetype" => &mut self.alloc_migratetype,
            b"fallback_order" => &mut self.fallback_order,
            b"fallback_migratetype" => &mut self.fallback_migratetype,
            b"change_ownership" => &mut self.change_ownership,
            b"pageblock_order" => &mut self.pageblock_order,
            _ => return None,
        })
    }

    fn of(text: &'a str) -> Self {
        let mut fields = Self::default();
        for field in text.split_ascii_whitespace() {
            if let Some(equals) = memchr(b'=', field.as_bytes())
                && let Some(place) = fields.place(&field.as_bytes()[..equals])
            {
                place.get_or_insert(&field[equals + 1..]);
            }
        }
        fields
    }
}

/// Parses a field as a number, `0x..` or decimal; `None` if the field is missing.
fn number(text: Option<&str>) -> Result<Option<u64>, Why> {
    let Some(text) = text else {
        return Ok(None);
    };
    let number = match text.as_bytes() {
        [b'0', b'x', ..] => u64::from_str_radix(&text[2..], 16),
        _ => text.parse(),
    };
    number
        .map(Some)
        .map_err(|_| "a field that should be a number is not one")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn event(line: &str) -> TextEvent<'_> {
        match parse(line) {
            Ok(Parsed::Event(line)) => line,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn task(line: &str) -> (&str, i32, u16, u64) {
        let TextEvent {
            name,
            pid,
            cpu,
            time,
            ..
        } = event(line);
        (name, pid, cpu, time)
    }

    const FREE: &str = "mm_page_free: page=00000000c5 pfn=0x13fc1c order=2";

    #[test]
    fn tasks_of_every_tool() {
        let cases = [
            (
                "  bash-20744   (  20744) [000] ..... 13583.272950: ",
                ("bash", 20744, 0, 13_583_272_950_000),
            ),
            (
                "  kworker/u8:2-123     [001] d..3. 1.5: ",
                ("kworker/u8:2", 123, 1, 1_500_000_000),
            ),
            (
                "  <idle>-0     [001] d.h3. 1.000001: ",
                ("<idle>", 0, 1, 1_000_001_000),
            ),
            (
                "  <...>-77    (-----) [001] d.h3. 1.000001: ",
                ("<...>", 77, 1, 1_000_001_000),
            ),
            (
                "  two words-a-5   [001]  9.000000: ",
                ("two words-a", 5, 1, 9_000_000_000),
            ),
            (
                "  bash-20744   [000] ..... 35264145920354: ",
                ("bash", 20744, 0, 35_264_145_920_354),
            ),
            (
                "bytc:            rustc-21347 [001] 13616.454943: ",
                ("rustc", 21347, 1, 13_616_454_943_000),
            ),
            (
                "  kworker/0:1-vir 28707 [000] 12379.237991786:          kmem:",
                ("kworker/0:1-vir", 28707, 0, 12_379_237_991_786),
            ),
            (
                "nginx: worker p 12/13 [000] 1.5:  kmem:",
                ("nginx: worker p", 13, 0, 1_500_000_000),
            ),
            (
                "  nginx: worker p-12 [000] 1.5: ",
                ("nginx: worker p", 12, 0, 1_500_000_000),
            ),
            (
                "  :-1    -1 [000] 1.5:  kmem:",
                (":-1", -1, 0, 1_500_000_000),
            ),
            (
                "  mm_page_free:-9 [000] 1.5: ",
                ("mm_page_free:", 9, 0, 1_500_000_000),
            ),
        ];
        for (head, expected) in cases {
            assert_eq!(task(format!("{head}{FREE}").leak()), expected, "{head}");
        }
    }

    #[test]
    fn fields_of_every_form() {
        let head = "  a-1 [000] 1.5: ";
        let of = |fields: &str| -> TextEvent<'static> { event(format!("{head}{fields}\n").leak()) };
        let line = of(
            "mm_page_alloc: page=0000000065 pfn=1307 order=3 migratetype=2 gfp_flags=GFP_KERNEL|__GFP_ZERO",
        );
        assert_eq!((line.frame, line.order), (1307, 3));
        assert_eq!(
            line.what,
            Fields::Alloc {
                migratetype: 2,
                flags: "GFP_KERNEL|__GFP_ZERO"
            }
        );
        let line =
            of("mm_page_alloc:         pfn=0x2bc9cc order=0 gfp_flags=0x140dca migratetype=1");
        assert_eq!((line.frame, line.tool), (0x2b_c9cc, Tool::TraceCmd));
        assert_eq!(of(FREE).what, Fields::Free);
        let line = of(
            "mm_page_alloc_extfrag: page=0000000072 pfn=0x161c00 alloc_order=1 fallback_order=10 pageblock_order=9 alloc_migratetype=0 fallback_migratetype=1 fragmenting=0 change_ownership=1",
        );
        let from = Fields::Fallback {
            migratetype: 0,
            from_order: 10,
            from: 1,
            claimed: true,
            block_order: Some(9),
        };
        assert_eq!((line.order, line.what), (1, from));
    }

    #[test]
    fn other_lines_are_distinguished() {
        let head = "  a-1 [000] 1.5: ";
        for line in [
            "",
            "# tracer: nop",
            "\tffffffff8161f3ab __alloc_frozen_pages_noprof+0x26b ([kernel.kallsyms])",
            "cpus=2",
            "  a-1 [000] 1.5: sched_switch: x",
            "mm_page_alloc",
        ] {
            assert_eq!(parse(line), Ok(Parsed::Other), "{line}");
        }
        assert_eq!(
            parse(&format!(
                "{head}mm_page_free_batched: page=1 pfn=0x1 order=0"
            )),
            Ok(Parsed::Repeated)
        );
        assert_eq!(
            parse(&format!("{head}mm_page_other: page=1 pfn=0x1 order=0")),
            Ok(Parsed::Other)
        );
        let lost = Ok(Parsed::Lost {
            cpu: 1,
            events: 123,
        });
        assert_eq!(parse("CPU:1 [LOST 123 EVENTS]\n"), lost);
        assert_eq!(parse("CPU:1 [123 EVENTS DROPPED]"), lost);
        assert_eq!(
            parse("  swapper 0 [001] 12.5: PERF_RECORD_LOST lost 123"),
            lost
        );
        assert_eq!(parse("CPU:1 [LOST many EVENTS]"), Ok(Parsed::Other));
    }

    #[test]
    fn bad_lines_say_why() {
        let head = "  a-1 [000] 1.5: ";
        let cases = [
            (
                format!("{head}mm_page_free: page=1 order=0"),
                "it has no pfn=",
            ),
            (
                format!("{head}mm_page_free: page=1 pfn=0x1"),
                "it has no order=",
            ),
            (
                format!("{head}mm_page_free: page=1 pfn=xyz order=0"),
                "a field that should be a number is not one",
            ),
            (
                format!("{head}mm_page_alloc: page=1 pfn=1 order=0"),
                "it has no migratetype=",
            ),
            (format!("  a-1 000 1.5: {FREE}"), "it has no [CPU]"),
            (format!("  a-1 [x] 1.5: {FREE}"), "its CPU is not a number"),
            (
                format!("  a-1 [000] 1.5555555555: {FREE}"),
                "its time is neither seconds nor nanoseconds",
            ),
            (
                format!("  a [000] 1.5: {FREE}"),
                "it has no task-PID or task PID",
            ),
            (format!(" {FREE}"), "it has no time before the event's name"),
        ];
        for (line, why) in cases {
            assert_eq!(parse(&line), Err(why), "{line}");
        }
    }
}
