//! The names of files: `HOST-20261127T050000Z.parquet`, the time being that of the first sample.

use core::time::Duration;
use std::time::SystemTime;

/// The end of a name.
const END: &str = ".parquet";

/// What a file's name says. In order of host and time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// The host, with what is not a letter, a digit, a dot or a dash replaced.
    pub host: String,
    /// The time of its first sample, to the second.
    pub start: SystemTime,
}

impl FileName {
    /// Makes the name of a file that begins now.
    #[must_use]
    pub fn new(host: &str, start: SystemTime) -> Self {
        Self {
            host: safe(host),
            start: whole_second(start),
        }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn text(&self) -> String {
        let stamp = humantime::format_rfc3339_seconds(self.start).to_string();
        format!("{}-{}{END}", self.host, stamp.replace(['-', ':'], ""))
    }

    /// Parses a name; `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (host, stamp) = text.strip_suffix(END)?.rsplit_once('-')?;
        let digits = stamp.strip_suffix('Z')?.replacen('T', "", 1);
        if stamp.len() != 16
            || digits.len() != 14
            || !digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let part = |from: usize, to: usize| &digits[from..to];
        let text = format!(
            "{}-{}-{}T{}:{}:{}Z",
            part(0, 4),
            part(4, 6),
            part(6, 8),
            part(8, 10),
            part(10, 12),
            part(12, 14)
        );
        let start = humantime::parse_rfc3339(&text).ok()?;
        Some(Self {
            host: host.to_owned(),
            start,
        })
    }

    /// Returns the name of a file that begins a second later.
    #[must_use]
    pub fn next(&self) -> Self {
        Self {
            host: self.host.clone(),
            start: self.start + Duration::from_secs(1),
        }
    }
}

/// Returns the host's name as it is in names of files.
#[must_use]
pub fn safe(host: &str) -> String {
    let kept = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    let safe: String = host
        .chars()
        .map(|letter| if kept(letter) { letter } else { '_' })
        .collect();
    // Names that begin with a dot are hidden, and readers of folders skip them.
    let safe = safe.trim_start_matches('.');
    // A name of a file has 255 bytes.
    let safe = &safe[..safe.len().min(200)];
    if safe.is_empty() {
        "unnamed".to_owned()
    } else {
        safe.to_owned()
    }
}

/// Times before 1970 count as 1970, and those after 9999 as its last second.
fn whole_second(time: SystemTime) -> SystemTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs().min(253_402_300_799))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_755_600);
        for host in ["web", "web-1", "a.b-20261127T050000Z", "x"] {
            let name = FileName::new(host, start + Duration::from_millis(999));
            assert_eq!(name.text(), format!("{host}-20261127T050000Z.parquet"));
            assert_eq!(FileName::parse(&name.text()), Some(name));
        }
        assert_eq!(
            FileName::new("../../etc/passwd\0", start).host,
            "_.._etc_passwd_"
        );
        assert_eq!(FileName::new("", start).host, "unnamed");
        assert_eq!(FileName::new(&"ä".repeat(300), start).host.len(), 200);
    }

    #[test]
    fn other_names_are_not_ours() {
        for text in [
            "web.parquet",
            "web-20261127.parquet",
            "web-20261127T050000Z",
            "web-20261327T050000Z.parquet",
            "web-2026é127T05000Z.parquet",
            "-.parquet",
            "web-T0261127050000Z.parquet",
            "",
        ] {
            assert_eq!(FileName::parse(text), None, "{text}");
        }
    }
}
