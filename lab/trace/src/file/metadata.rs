//! The header as key-value pairs of the Parquet file: texts unchanged, numbers in decimal, lists as
//! JSON. Empty texts are left out.

use parquet::file::metadata::KeyValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ReadError;
use crate::{Header, HostTexts, Reading};

/// The version of the format; see `docs/book/formats.md`.
pub const VERSION: u32 = 1;

const PREFIX: &str = "brickyard.";
const VERSION_KEY: &str = "brickyard.version";
const FORMAT: &str = "format.";
const START_STATES: &str = "start.states";
const END_STATES: &str = "end.states";

/// Returns the keys of the texts of a host, and their places.
fn texts_of(texts: &mut HostTexts) -> [(&'static str, &mut String); 4] {
    [
        ("zoneinfo", &mut texts.zoneinfo),
        ("buddyinfo", &mut texts.buddyinfo),
        ("pagetypeinfo", &mut texts.pagetypeinfo),
        ("vmstat", &mut texts.vmstat),
    ]
}

/// Returns the keys of the times at which they were read, and their places.
fn times_of(texts: &mut HostTexts) -> [(&'static str, &mut u64); 5] {
    [
        ("time", &mut texts.time),
        ("zoneinfo.time", &mut texts.times.zoneinfo),
        ("buddyinfo.time", &mut texts.times.buddyinfo),
        ("pagetypeinfo.time", &mut texts.times.pagetypeinfo),
        ("vmstat.time", &mut texts.times.vmstat),
    ]
}

/// Converts the header to pairs.
pub(super) fn to_pairs(header: &Header) -> Vec<KeyValue> {
    let mut header = header.clone();
    let mut pairs = vec![KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string())];
    let mut put = |key: &str, value: String| {
        if !value.is_empty() {
            pairs.push(KeyValue::new(format!("{PREFIX}{key}"), value));
        }
    };
    put("source", header.source);
    put("kernel", header.kernel);
    put("machine", header.machine);
    put("command", header.command);
    put("began", header.began.to_string());
    put("duration", header.duration.to_string());
    put("cpus", header.cpus.to_string());
    put("frame_bytes", header.frame_bytes.to_string());
    put("page_block_order", header.page_block_order.to_string());
    put("lost", json(&header.lost));
    put("flags", json(&header.flags));
    for (when, texts) in [("start", &mut header.start), ("end", &mut header.end)] {
        for (key, text) in texts_of(texts) {
            put(&format!("{when}.{key}"), core::mem::take(text));
        }
        for (key, time) in times_of(texts).into_iter().filter(|(_, time)| **time > 0) {
            put(&format!("{when}.{key}"), time.to_string());
        }
    }
    for (key, reading) in [
        (START_STATES, header.start_states),
        (END_STATES, header.end_states),
    ] {
        if reading != Reading::default() {
            put(key, json(&reading));
        }
    }
    for (event, text) in header.formats {
        // Kept even if empty, so that the list of events is the same when it is read.
        pairs.push(KeyValue::new(format!("{PREFIX}{FORMAT}{event}"), text));
    }
    pairs
}

/// Returns a value as JSON.
fn json(value: &impl Serialize) -> String {
    // Numbers, texts and lists of them can be written.
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads the header from pairs. Unknown keys are skipped: a newer writer of the same version may
/// add some.
pub(super) fn from_pairs(pairs: &[KeyValue]) -> Result<Header, ReadError> {
    let version = pairs.iter().find(|pair| pair.key == VERSION_KEY);
    let version = version.ok_or_else(|| ReadError::NotATrace(VERSION_KEY.to_owned()))?;
    let version = version.value.as_deref().unwrap_or_default();
    if version != VERSION.to_string() {
        let found = version.chars().take(20).collect();
        return Err(ReadError::Version {
            found,
            known: VERSION,
        });
    }
    let mut header = Header::default();
    for pair in pairs {
        let value = pair.value.as_deref().unwrap_or_default();
        if let Some(key) = pair.key.strip_prefix(PREFIX) {
            set(&mut header, key, value)?;
        }
    }
    Ok(header)
}

fn set(header: &mut Header, key: &str, value: &str) -> Result<(), ReadError> {
    match key {
        "source" => value.clone_into(&mut header.source),
        "kernel" => value.clone_into(&mut header.kernel),
        "machine" => value.clone_into(&mut header.machine),
        "command" => value.clone_into(&mut header.command),
        "began" => header.began = number(key, value)?,
        "duration" => header.duration = number(key, value)?,
        "cpus" => header.cpus = number(key, value)?,
        "frame_bytes" => header.frame_bytes = number(key, value)?,
        "page_block_order" => header.page_block_order = number(key, value)?,
        "lost" => header.lost = parsed(key, value)?,
        "flags" => header.flags = parsed(key, value)?,
        START_STATES => header.start_states = parsed(key, value)?,
        END_STATES => header.end_states = parsed(key, value)?,
        _ => {
            if let Some(event) = key.strip_prefix(FORMAT) {
                header.formats.push((event.to_owned(), value.to_owned()));
            } else if let Some(text) = key.strip_prefix("start.") {
                set_text(&mut header.start, key, text, value)?;
            } else if let Some(text) = key.strip_prefix("end.") {
                set_text(&mut header.end, key, text, value)?;
            }
        }
    }
    Ok(())
}

fn set_text(texts: &mut HostTexts, key: &str, text: &str, value: &str) -> Result<(), ReadError> {
    if let Some((_, time)) = times_of(texts).into_iter().find(|(own, _)| *own == text) {
        *time = number(key, value)?;
    } else if let Some((_, place)) = texts_of(texts).into_iter().find(|(own, _)| *own == text) {
        value.clone_into(place);
    }
    Ok(())
}

fn invalid(key: &str, value: &str) -> ReadError {
    let value: String = value.chars().take(40).collect();
    ReadError::Invalid {
        place: format!("key `{PREFIX}{key}`"),
        why: format!("`{value}` is not a valid value"),
    }
}

fn number<N: core::str::FromStr>(key: &str, value: &str) -> Result<N, ReadError> {
    value.parse().map_err(|_| invalid(key, value))
}

fn parsed<T: DeserializeOwned>(key: &str, value: &str) -> Result<T, ReadError> {
    serde_json::from_str(value).map_err(|_| invalid(key, value))
}
