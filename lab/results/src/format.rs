//! Writes a document in any of its formats.

use core::fmt;
use core::str::FromStr;
use std::io::{self, Write};

use crate::csv::write_csv;
use crate::json::write_json;
use crate::table::write_table;
use crate::{Results, TableOptions};

/// The formats that a document can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// A text table for people, against the first configuration.
    #[default]
    Table,
    /// One line per row, for spreadsheets and data frames.
    Csv,
    /// The whole document with its samples, which can be read back.
    Json,
}

impl Format {
    /// All formats, for listing the choices.
    pub const ALL: [Self; 3] = [Self::Table, Self::Csv, Self::Json];

    /// The format's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name that no format has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no format `{name}`: it is one of table, csv, json")]
#[non_exhaustive]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.into() })
    }
}

/// Writes `results` to `out` as `format`. CSV and JSON use only `against` of the `options`.
///
/// # Errors
/// Those of `out`; a pipe closed by its reader is [`io::ErrorKind::BrokenPipe`].
pub fn write(
    results: &Results,
    format: Format,
    options: &TableOptions<'_>,
    mut out: impl Write,
) -> io::Result<()> {
    match format {
        Format::Table => write_table(results, options, &mut out),
        Format::Csv => write_csv(results, options.against, &mut out),
        Format::Json => write_json(results, options.against, &mut out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Against, Host, Metric, Row};

    #[test]
    fn names_go_both_ways() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let unknown = "xml".parse::<Format>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "there is no format `xml`: it is one of table, csv, json"
        );
    }

    /// The command line depends on it to end quietly when piped into `head`.
    #[test]
    fn a_broken_pipe_is_reported_as_one() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let metric = Metric::lower("m", "s");
        let mut results = Results::new("test", Host::unknown());
        results
            .push(Row::new("a", "w", metric, vec![1.0]).unwrap())
            .unwrap();
        for (format, against) in Format::ALL
            .into_iter()
            .flat_map(|format| [Against::First, Against::Before].map(|against| (format, against)))
        {
            let options = TableOptions {
                against,
                ..TableOptions::default()
            };
            let error = write(&results, format, &options, Broken).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format}");
        }
    }
}
