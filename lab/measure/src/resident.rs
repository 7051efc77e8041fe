//! The resident memory of a process, from `/proc`.

use std::fs;

use anyhow::{Context, bail};

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Resident {
    /// Its own memory now, without files.
    pub now: u64,
    /// All memory now, with files.
    pub whole: u64,
    /// The peak of all memory.
    pub most: u64,
}

impl Resident {
    /// Reads the resident memory of a process by its ID.
    pub fn of(process: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{process}/status");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        Self::parse(&text).with_context(|| path)
    }

    fn parse(status: &str) -> anyhow::Result<Self> {
        let of = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            let Some(value) = value else {
                bail!("there is no line {name}");
            };
            let kib: u64 = value
                .trim()
                .trim_end_matches(" kB")
                .parse()
                .with_context(|| format!("{name} {value}"))?;
            Ok(kib * 1024)
        };
        Ok(Self {
            now: of("RssAnon:")? + of("RssShmem:")?,
            whole: of("VmRSS:")?,
            most: of("VmHWM:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_is_read() {
        let text = "Name:\tx\nVmHWM:\t    3000 kB\nVmRSS:\t    2000 kB\nRssAnon:\t     500 kB\n\
                    RssFile:\t    1400 kB\nRssShmem:\t     100 kB\n";
        let expected = Resident {
            now: 600 << 10,
            whole: 2000 << 10,
            most: 3000 << 10,
        };
        assert_eq!(Resident::parse(text).unwrap(), expected);
        assert!(Resident::parse("VmHWM:\t1 kB\n").is_err());
        assert!(Resident::parse(&text.replace("500", "many")).is_err());
    }

    #[test]
    fn this_process_has_something() {
        let resident = Resident::of(std::process::id()).unwrap();
        assert!(resident.now > 0 && resident.most >= resident.now);
    }
}
