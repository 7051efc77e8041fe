//! The header as key-value pairs of the Parquet file: texts unchanged, numbers in decimal, lists as
//! JSON. Empty texts are left out.

use parquet::file::metadata::KeyValue;
use serde_json::{Value, json};

use super::ReadError;
use crate::{Flag, Flags, Header, HostTexts, Lost, Reading};

/// The version of the format; see `docs/book/formats.md`.
pub const VERSION: u32 = 1;

const PREFIX: &str = "brickyard.";
const VERSION_KEY: &str = "brickyard.version";
const FORMAT: &str = "format.";
const START_STATES: &str = "start.states";
const END_STATES: &str = "end.states";

/// Converts the header to pairs.
pub(super) fn to_pairs(header: &Header) -> Vec<KeyValue> {
    let mut pairs = vec![KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string())];
    let mut put = |key: &str, value: String| {
        if !value.is_empty() {
            pairs.push(KeyValue::new(format!("{PREFIX}{key}"), value));
        }
    };
    put("source", header.source.clone());
    put("kernel", header.kernel.clone());
    put("machine", header.machine.clone());
    put("command", header.command.clone());
    put("began", header.began.to_string());
    put("duration", header.duration.to_string());
    put("cpus", header.cpus.to_string());
    put("frame_bytes", header.frame_bytes.to_string());
    put("page_block_order", header.page_block_order.to_string());
    let lost = header.lost.iter();
    let lost: Vec<_> = lost
        .map(|lost| json!({"cpu": lost.cpu, "events": lost.events}))
        .collect();
    put("lost", json!(lost).to_string());
    let flags = header.flags.0.iter();
    let flags: Vec<_> = flags
        .map(|flag| json!({"name": flag.name, "mask": format!("{:#x}", flag.mask)}))
        .collect();
    put("flags", json!(flags).to_string());
    for (when, texts) in [("start", &header.start), ("end", &header.end)] {
        put(&format!("{when}.zoneinfo"), texts.zoneinfo.clone());
        put(&format!("{when}.buddyinfo"), texts.buddyinfo.clone());
        put(&format!("{when}.pagetypeinfo"), texts.pagetypeinfo.clone());
        put(&format!("{when}.vmstat"), texts.vmstat.clone());
        let times = [
            ("time", texts.time),
            ("zoneinfo.time", texts.times.zoneinfo),
            ("buddyinfo.time", texts.times.buddyinfo),
            ("pagetypeinfo.time", texts.times.pagetypeinfo),
            ("vmstat.time", texts.times.vmstat),
        ];
        for (key, time) in times.into_iter().filter(|&(_, time)| time > 0) {
            put(&format!("{when}.{key}"), time.to_string());
        }
    }
    for (key, reading) in [
        (START_STATES, header.start_states),
        (END_STATES, header.end_states),
    ] {
        if reading != Reading::default() {
            let Reading {
                began,
                ended,
                left_out,
                unsure,
            } = reading;
            let value =
                json!({"began": began, "ended": ended, "left_out": left_out, "unsure": unsure});
            put(key, value.to_string());
        }
    }
    for (event, text) in &header.formats {
        // Kept even if empty, so that the list of events is the same when it is read.
        pairs.push(KeyValue::new(
            format!("{PREFIX}{FORMAT}{event}"),
            text.clone(),
        ));
    }
    pairs
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
        "lost" => header.lost = parse_lost(key, value)?,
        "flags" => header.flags = parse_flags(key, value)?,
        START_STATES => header.start_states = parse_reading(key, value)?,
        END_STATES => header.end_states = parse_reading(key, value)?,
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
    let time = match text {
        "time" => Some(&mut texts.time),
        "zoneinfo.time" => Some(&mut texts.times.zoneinfo),
        "buddyinfo.time" => Some(&mut texts.times.buddyinfo),
        "pagetypeinfo.time" => Some(&mut texts.times.pagetypeinfo),
        "vmstat.time" => Some(&mut texts.times.vmstat),
        _ => None,
    };
    if let Some(time) = time {
        *time = number(key, value)?;
        return Ok(());
    }
    let place = match text {
        "zoneinfo" => &mut texts.zoneinfo,
        "buddyinfo" => &mut texts.buddyinfo,
        "pagetypeinfo" => &mut texts.pagetypeinfo,
        "vmstat" => &mut texts.vmstat,
        _ => return Ok(()),
    };
    value.clone_into(place);
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

fn list(key: &str, value: &str) -> Result<Vec<Value>, ReadError> {
    serde_json::from_str(value).map_err(|_| invalid(key, value))
}

fn parse_lost(key: &str, value: &str) -> Result<Vec<Lost>, ReadError> {
    let one = |item: &Value| {
        let cpu = u16::try_from(item.get("cpu")?.as_u64()?).ok()?;
        let events = item.get("events")?.as_u64()?;
        Some(Lost { cpu, events })
    };
    let items = list(key, value)?;
    let lost: Option<_> = items.iter().map(one).collect();
    lost.ok_or_else(|| invalid(key, value))
}

fn parse_reading(key: &str, value: &str) -> Result<Reading, ReadError> {
    let of = |item: &Value| {
        let number = |name: &str| item.get(name)?.as_u64();
        Some(Reading {
            began: number("began")?,
            ended: number("ended")?,
            left_out: number("left_out")?,
            unsure: number("unsure")?,
        })
    };
    let item = serde_json::from_str(value).ok();
    item.and_then(|item| of(&item))
        .ok_or_else(|| invalid(key, value))
}

fn parse_flags(key: &str, value: &str) -> Result<Flags, ReadError> {
    let one = |item: &Value| {
        let name = item.get("name")?.as_str()?.to_owned();
        let mask = item.get("mask")?.as_str()?.strip_prefix("0x")?;
        let mask = u64::from_str_radix(mask, 16).ok()?;
        Some(Flag { name, mask })
    };
    let items = list(key, value)?;
    let flags: Option<_> = items.iter().map(one).collect();
    flags.map(Flags).ok_or_else(|| invalid(key, value))
}
