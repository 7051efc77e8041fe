//! Text in self-contained HTML pages: escaping, and filling in a page's markers.

use core::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// A text escaped for the content of an element, or of an attribute in double quotes.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'t>(pub &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(place) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..place])?;
            f.write_str(match rest.as_bytes()[place] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[place + 1..];
        }
        f.write_str(rest)
    }
}

/// Escapes JSON for the content of a script element. The escaped characters can only occur within
/// strings, where JSON allows such escapes.
#[must_use]
pub fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the text of a script element that runs these scripts in one strict function scope, so
/// that they define no globals.
#[must_use]
pub fn script(scripts: &[&str]) -> String {
    format!(
        "\n(() => {{\n\"use strict\";\n{}\n}})();\n",
        scripts.concat()
    )
}

/// Writes the text `page`, with the output of `write` in place of each marker `{{name}}`.
///
/// # Errors
/// Those of `out` and of `write`.
///
/// # Panics
/// If a marker is not closed: the texts of pages are part of the program.
pub fn fill<W: Write>(
    page: &str,
    out: &mut W,
    mut write: impl FnMut(&str, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        let (marker, after) = after
            .split_once("}}")
            .expect("the page's markers are closed");
        out.write_all(before.as_bytes())?;
        write(marker, out)?;
        rest = after;
    }
    out.write_all(rest.as_bytes())?;
    out.flush()
}
