//! Times and lengths of time as they are given and shown. All are UTC.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use brickyard_serve::history::{millis, time_of};

/// Returns the time after this moment, so that a sample of now is before it.
pub(super) fn now() -> SystemTime {
    SystemTime::now() + Duration::from_secs(1)
}

/// Parses a time, or how long ago it was.
pub(super) fn time(text: &str) -> Result<SystemTime, String> {
    if let Ok(ago) = humantime::parse_duration(text) {
        let time = SystemTime::now().checked_sub(ago);
        return time
            .filter(|&time| time >= UNIX_EPOCH)
            .ok_or_else(|| "this is before 1970".to_owned());
    }
    let day = text.len() == "2026-11-27".len();
    let whole = if day {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    humantime::parse_rfc3339_weak(&whole).map_err(|_| {
        "write a time in UTC such as 2026-11-27T05:00:00Z, or so long ago, such as 2h or 7d"
            .to_owned()
    })
}

/// Parses a length of time, in milliseconds.
pub(super) fn length(text: &str) -> Result<u64, String> {
    let length = humantime::parse_duration(text)
        .map_err(|why| format!("{why}; write a length such as 10m or 1h"))?;
    let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let allowed = (1000..=366 * 86_400_000).contains(&millis);
    allowed
        .then_some(millis)
        .ok_or_else(|| "give 1s to 366days".to_owned())
}

/// Formats a time: `2026-11-27 05:00`.
pub(super) fn text(time: SystemTime) -> String {
    let text = exact(time);
    text.replace('T', " ")[..16].to_owned()
}

/// Formats a time for other programs: `2026-11-27T05:00:00.000Z`.
pub(super) fn exact(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time_of(millis(time))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_ago() {
        let five = UNIX_EPOCH + Duration::from_secs(1_795_755_600);
        for form in ["2026-11-27T05:00:00Z", "2026-11-27 05:00:00"] {
            assert_eq!(time(form), Ok(five), "{form}");
        }
        let midnight = five - Duration::from_secs(5 * 3600);
        assert_eq!(time("2026-11-27"), Ok(midnight));
        let then = time("2h").unwrap();
        let ago = SystemTime::now().duration_since(then).unwrap();
        assert_eq!(ago.as_secs() / 60, 120);
        for form in ["", "yesterday", "27.11.2026", "100000y", "ä026-11-2"] {
            assert!(time(form).is_err(), "{form}");
        }
        assert_eq!(text(five), "2026-11-27 05:00");
        assert_eq!(exact(five), "2026-11-27T05:00:00.000Z");
        assert_eq!(text(time_of(u64::MAX)), "9999-12-31 23:59");
    }

    #[test]
    fn lengths_have_limits() {
        assert_eq!(length("1h"), Ok(3_600_000));
        for form in ["0s", "10ms", "3", "1000years"] {
            assert!(length(form).is_err(), "{form}");
        }
    }
}
