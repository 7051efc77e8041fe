//! Mappings of a process: the lines of `/proc/PID/maps`.

/// A mapping of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Where it begins in its file.
    pub offset: u64,
    /// The file, or a name in brackets; empty for memory without one.
    pub path: String,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A mapping of code.
    Code(Mapping),
    /// A mapping without code.
    Other,
    /// No mapping.
    Nothing,
}

impl Mapping {
    /// Reads a line, such as `55d0c0a1b000-55d0c0a1f000 r-xp 00002000 08:01 131 /usr/bin/cat`.
    ///
    /// ```
    /// use brickyard_heap_profile::Mapping;
    ///
    /// let line = "7f00-8f00 r-xp 00002000 08:01 131    /usr/bin/a name";
    /// let mapping = Mapping::of_line(line).unwrap();
    /// assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f00, 0x8f00, 0x2000));
    /// assert_eq!(mapping.path, "/usr/bin/a name");
    /// ```
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        parts(line).map(|(mapping, _)| mapping)
    }

    /// Returns the last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        let file = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        match file.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => "[anonymous]",
        }
    }

    /// Returns true if an address is in it.
    #[must_use]
    pub const fn holds(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// Reads a line of the section of mappings.
pub(crate) fn said(line: &str) -> Said {
    match parts(line) {
        Some((mapping, permissions)) if permissions.contains('x') => Said::Code(mapping),
        Some(_) => Said::Other,
        None => Said::Nothing,
    }
}

/// Returns a line's mapping and its permissions.
fn parts(line: &str) -> Option<(Mapping, &str)> {
    let mut rest = line.trim_start();
    let mut word = || {
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind.trim_start();
        (!word.is_empty()).then_some(word)
    };
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let (start, end) = (number(start)?, number(end)?);
    let permissions = word()?;
    let offset = number(word()?)?;
    let (_device, _inode) = (word()?, word()?);
    let mapping = Mapping {
        start,
        end,
        offset,
        path: rest.trim_end().to_owned(),
    };
    (start < end).then_some((mapping, permissions))
}
