//! Lines to events, and to all of a trace but them.

use std::collections::HashMap;

use brickyard::{MigrateType, Order};

use super::line::{Fields, Parsed, TextEvent, parse};
use super::{BAD_SHOWN, BadLine, ImportError, Imported, Options};
use crate::{Event, Flags, Lost, NameId, NameIds, What};

/// The tool that printed the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Ftrace,
    Perf,
    TraceCmd,
}

impl Tool {
    const fn name(self) -> &'static str {
        match self {
            Self::Ftrace => "ftrace text",
            Self::Perf => "perf text",
            Self::TraceCmd => "trace-cmd text",
        }
    }
}

/// How many unknown names of flags are kept to be shown.
const UNKNOWN_SHOWN: usize = 20;

/// Reads the lines of a text: collects the header, and returns the events.
pub(super) struct Collector {
    imported: Imported,
    flags: Flags,
    /// Flags by their text; few texts are distinct.
    known_flags: HashMap<String, u64>,
    /// The last text of flags of each length, modulo [`RECENT`].
    recent_flags: Vec<(String, u64)>,
    names: NameIds,
    /// The last name of the tasks of each number, modulo [`RECENT`].
    recent_names: Vec<Option<NameId>>,
    old_types: Option<bool>,
    latest: u64,
}

/// Recent texts that are looked at before all known ones.
const RECENT: usize = 64;

impl Collector {
    pub(super) fn new(options: &Options) -> Self {
        let flags = if options.flags.0.is_empty() {
            Flags::canonical()
        } else {
            options.flags.clone()
        };
        let mut imported = Imported::default();
        imported.trace.header.kernel.clone_from(&options.kernel);
        imported.trace.header.page_block_order = Order::HUGE.get();
        imported.trace.header.frame_bytes = 4096;
        Self {
            imported,
            flags,
            known_flags: HashMap::new(),
            recent_flags: vec![(String::new(), 0); RECENT],
            names: NameIds::default(),
            recent_names: vec![None; RECENT],
            old_types: None,
            latest: 0,
        }
    }

    pub(super) const fn lines(&self) -> u64 {
        self.imported.lines
    }

    pub(super) const fn events(&self) -> u64 {
        self.imported.kinds.all()
    }

    /// All names so far.
    pub(super) fn names(&self) -> &[String] {
        &self.imported.trace.names
    }

    pub(super) fn too_long(&mut self) {
        self.imported.lines += 1;
        self.imported.other_lines += 1;
    }

    /// Reads the next line; returns the event in it, at the time of the host's clock.
    pub(super) fn line(&mut self, line: &str) -> Option<Event> {
        self.imported.lines += 1;
        let line = line.trim_ascii_end();
        let read = match parse(line) {
            Ok(Parsed::Event(event)) => self.event(&event).map(Some),
            Ok(Parsed::Repeated) => {
                self.imported.repeated += 1;
                Ok(None)
            }
            Ok(Parsed::Lost { cpu, events }) => {
                self.lost(cpu, events);
                Ok(None)
            }
            Ok(Parsed::Other) => {
                self.imported.other_lines += 1;
                self.host_line(line);
                Ok(None)
            }
            Err(why) => Err(why),
        };
        read.unwrap_or_else(|why| {
            self.bad(line, why);
            None
        })
    }

    fn bad(&mut self, line: &str, why: &str) {
        self.imported.bad_lines += 1;
        if self.imported.first_bad.len() < BAD_SHOWN {
            self.imported.first_bad.push(BadLine {
                line: self.imported.lines,
                why: why.to_owned(),
                text: line.trim_start().chars().take(100).collect(),
            });
        }
    }

    /// Reads what the tools print about the host: `perf script --header`, ftrace's `#P:2`,
    /// trace-cmd's `cpus=2`.
    fn host_line(&mut self, line: &str) {
        let header = &mut self.imported.trace.header;
        if let Some(cpus) = line.strip_prefix("cpus=") {
            header.cpus = cpus.trim().parse().unwrap_or(header.cpus);
            return;
        }
        let Some(line) = line.strip_prefix('#') else {
            return;
        };
        if let Some((_, cpus)) = line.split_once("#P:") {
            header.cpus = cpus.trim().parse().unwrap_or(header.cpus);
        }
        let Some((key, value)) = line.split_once(" : ") else {
            return;
        };
        let value = value.trim();
        match key.trim() {
            "os release" if header.kernel.is_empty() => value.clone_into(&mut header.kernel),
            "arch" => value.clone_into(&mut header.machine),
            "nrcpus avail" => header.cpus = value.parse().unwrap_or(header.cpus),
            "cmdline" => value.clone_into(&mut header.command),
            _ => {}
        }
    }

    fn lost(&mut self, cpu: u16, events: u64) {
        let lost = &mut self.imported.trace.header.lost;
        match lost.iter_mut().find(|lost| lost.cpu == cpu) {
            Some(lost) => lost.events = lost.events.saturating_add(events),
            None => lost.push(Lost { cpu, events }),
        }
    }

    fn event(&mut self, line: &TextEvent<'_>) -> Result<Event, &'static str> {
        let order = |order: u64| {
            let order = u8::try_from(order).ok().and_then(Order::try_new);
            order.ok_or("its order is larger than the largest there is")
        };
        let size = order(line.order)?;
        // A failed request has no frame: 0 in text, all ones in raw numbers.
        let failed = matches!(line.frame, 0 | u64::MAX);
        if !failed && line.frame.checked_add(size.frames() as u64).is_none() {
            return Err("its pfn is larger than the largest possible");
        }
        let what = match line.what {
            Fields::Free => What::Free,
            Fields::Taken {
                migratetype,
                refill,
            } => What::Taken {
                mobility: self.migrate_type(migratetype)?,
                refill,
            },
            Fields::Drained { migratetype } => What::Drained {
                mobility: self.migrate_type(migratetype)?,
            },
            Fields::Alloc { migratetype, flags } => {
                let mobility = self.migrate_type(migratetype)?;
                let flags = self.flags(flags);
                if failed {
                    What::Failure { mobility, flags }
                } else {
                    What::Alloc { mobility, flags }
                }
            }
            Fields::Fallback {
                migratetype,
                from_order,
                from,
                claimed,
                block_order,
            } => {
                if let Some(block_order) = block_order {
                    self.imported.trace.header.page_block_order = order(block_order)?.get();
                }
                What::Fallback {
                    mobility: self.migrate_type(migratetype)?,
                    from_order: order(from_order)?,
                    from: self.migrate_type(from)?,
                    claimed,
                }
            }
        };
        let event = Event {
            time: line.time,
            frame: if failed { 0 } else { line.frame },
            what,
            pid: line.pid,
            name: self.name(line),
            cpu: line.cpu,
            order: size,
        };
        let kinds = &mut self.imported.kinds;
        let header = &mut self.imported.trace.header;
        if kinds.all() == 0 {
            line.tool.name().clone_into(&mut header.source);
        }
        kinds.count(&event.what);
        header.cpus = header.cpus.max(event.cpu.saturating_add(1));
        self.imported.out_of_order += u64::from(event.time < self.latest);
        self.latest = self.latest.max(event.time);
        Ok(event)
    }

    #[inline]
    fn name(&mut self, line: &TextEvent<'_>) -> NameId {
        let names = &mut self.imported.trace.names;
        let recent = &mut self.recent_names[line.pid as usize % RECENT];
        if let Some(id) = *recent
            && names[id.0 as usize] == line.name
        {
            return id;
        }
        let id = self.names.id(names, line.name);
        *recent = Some(id);
        id
    }

    #[inline]
    fn flags(&mut self, text: &str) -> u64 {
        let place = text.len() % RECENT;
        let (recent, flags) = &self.recent_flags[place];
        if recent == text {
            return *flags;
        }
        let flags = self.known_flags.get(text).copied();
        let flags = flags.unwrap_or_else(|| self.new_flags(text));
        self.recent_flags[place] = (text.to_owned(), flags);
        flags
    }

    fn new_flags(&mut self, text: &str) -> u64 {
        if self.flags.try_parse_names(text).is_none() {
            let unknown = &mut self.imported.unknown_flags;
            for name in text.split('|') {
                if self.flags.try_parse_names(name).is_none()
                    && unknown.len() < UNKNOWN_SHOWN
                    && !unknown.iter().any(|known| known == name)
                {
                    unknown.push(name.to_owned());
                }
            }
        }
        let flags = self.flags.parse_names(text);
        self.known_flags.insert(text.to_owned(), flags);
        flags
    }

    /// Returns the type with this number. Movable and reclaimable were swapped in 4.4. On kernels
    /// with CMA 4 is CMA, which serves only movable requests; 5 is isolation.
    fn migrate_type(&mut self, number: u64) -> Result<MigrateType, &'static str> {
        let kernel = &self.imported.trace.header.kernel;
        let old = *self.old_types.get_or_insert_with(|| is_before_4_4(kernel));
        Ok(match (number, old) {
            (0, _) => MigrateType::Unmovable,
            (1, false) | (2, true) => MigrateType::Movable,
            (2, false) | (1, true) => MigrateType::Reclaimable,
            (3, _) => MigrateType::HighAtomic,
            (4, _) => MigrateType::Movable,
            (5, _) => MigrateType::Isolate,
            _ => return Err("Linux has no such migratetype"),
        })
    }

    /// Returns the trace without its events, the first of which was at `began`.
    pub(super) fn finish(self, began: u64) -> Result<Imported, ImportError> {
        let mut imported = self.imported;
        if imported.kinds.all() == 0 {
            let bad = imported.first_bad.first();
            let bad = bad.map_or_else(String::new, |bad| {
                format!("; line {} is bad: {}: {}", bad.line, bad.why, bad.text)
            });
            return Err(ImportError::NoEvents {
                lines: imported.lines,
                bad,
            });
        }
        let header = &mut imported.trace.header;
        header.flags = self.flags;
        header.lost.sort_by_key(|lost| lost.cpu);
        header.duration = self.latest - began;
        Ok(imported)
    }
}

/// Returns true if this release, such as `4.3.0-1-amd64`, is before 4.4. An empty one is not.
fn is_before_4_4(release: &str) -> bool {
    let mut parts = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (4, 4),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_before_4_4;

    #[test]
    fn releases_are_compared_by_number() {
        assert!(is_before_4_4("2.6.32-431.el6"));
        assert!(is_before_4_4("4.3.0"));
        assert!(!is_before_4_4("4.4.1"));
        assert!(!is_before_4_4("4.10.0"));
        assert!(!is_before_4_4("6.18"));
        assert!(!is_before_4_4(""));
    }
}
