//! The kernel's own description of an event: a file `format` with a line for each field.
//!
//! ```text
//! name: mm_page_free
//! ID: 655
//! format:
//!     field:unsigned long pfn;    offset:8;    size:8;    signed:0;
//! ```
//!
//! Offsets differ from one kernel version to the next, so fields are found by name.
//! `events/header_page` has lines of the same kind.

/// What is wrong with a format text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A required line is missing.
    #[error("there is no line `{0}`")]
    Missing(&'static str),
    /// A line cannot be parsed.
    #[error("the line `{0}` cannot be parsed")]
    Line(String),
}

/// Where the bytes of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// At the field's offset.
    Inline,
    /// Elsewhere in the record (`__data_loc`): the field holds offset (low half) and length (high
    /// half).
    DataLoc,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The byte at which it begins.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Where its bytes are.
    pub content: Content,
}

impl Field {
    /// Reads the field as an unsigned number of `size` bytes in this machine's byte order. `None`
    /// if the record is too short, or no integer has this size.
    #[must_use]
    pub fn unsigned(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Reads the field as a signed number.
    #[must_use]
    pub fn signed(&self, record: &[u8]) -> Option<i64> {
        let unsigned = self.unsigned(record)?;
        let unused = 64 - 8 * self.size as u32;
        Some(((unsigned << unused) as i64) >> unused)
    }

    /// Reads the field as bytes up to the first 0.
    #[must_use]
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let (start, length) = match self.content {
            Content::Inline => (self.offset, self.size),
            Content::DataLoc => {
                let location = self.unsigned(record)?;
                (
                    (location & 0xffff) as usize,
                    (location >> 16 & 0xffff) as usize,
                )
            }
        };
        let bytes = record.get(start..start.checked_add(length)?)?;
        bytes.split(|&byte| byte == 0).next()
    }

    /// Returns the value with all bits set, which is how the kernel's `-1UL` reads in this field.
    #[must_use]
    pub fn all_ones(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.size.clamp(1, 8) as u32)
    }

    /// Parses a line such as `field:char comm[16]; offset:12; size:16; signed:0;`.
    fn parse(line: &str) -> Option<Self> {
        let mut declared = None;
        let mut offset = None;
        let mut size = None;
        for part in line.split(';') {
            let Some((key, value)) = part.trim().split_once(':') else {
                continue;
            };
            match key {
                "field" => declared = Some(value.trim()),
                "offset" => offset = value.parse().ok(),
                "size" => size = value.parse().ok(),
                _ => {}
            }
        }
        let declared = declared?;
        let name = declared.split('[').next()?.split_whitespace().next_back()?;
        // `char[] comm`: the brackets belong to the type.
        let name = if declared.starts_with("__data_loc") {
            declared.split_whitespace().next_back()?
        } else {
            name
        };
        Some(Self {
            name: name.trim_start_matches('*').to_owned(),
            offset: offset?,
            size: size?,
            content: if declared.starts_with("__data_loc") {
                Content::DataLoc
            } else {
                Content::Inline
            },
        })
    }
}

/// Parses all lines of `text` that describe fields.
///
/// # Errors
///
/// If a line begins with `field:` but cannot be parsed.
pub fn fields(text: &str) -> Result<Vec<Field>, FormatError> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| line.starts_with("field:"));
    let parse = |line: &str| Field::parse(line).ok_or_else(|| FormatError::Line(line.to_owned()));
    lines.map(parse).collect()
}

/// An event: its number and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Its name.
    pub name: String,
    /// The number that its records begin with.
    pub id: u16,
    /// Its fields, including those common to all events.
    pub fields: Vec<Field>,
}

impl Format {
    /// Parses a file `format`.
    ///
    /// # Errors
    ///
    /// If the name or the number is missing, or a field cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let value = |key: &'static str| {
            let mut lines = text.lines().map(str::trim);
            let value = lines.find_map(|line| line.strip_prefix(key));
            value.map(str::trim).ok_or(FormatError::Missing(key))
        };
        let id = value("ID:")?;
        Ok(Self {
            name: value("name:")?.to_owned(),
            id: id
                .parse()
                .map_err(|_| FormatError::Line(format!("ID: {id}")))?,
            fields: fields(text)?,
        })
    }

    /// Returns the field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
