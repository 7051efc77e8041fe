//! How texts stand in a self-contained page: escaped, and each at its marker.

use core::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// A text as the content of an element, or of an attribute in double quotes.
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

/// JSON as the content of a script element: these characters stand in strings only, where they may
/// be written so.
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

/// The text of a script element that holds these scripts, hidden from each other's pages.
#[must_use]
pub fn script(scripts: &[&str]) -> String {
    format!(
        "\n(() => {{\n\"use strict\";\n{}\n}})();\n",
        scripts.concat()
    )
}

/// Writes a page whose text is `page`, with what `write` writes in the place of each marker
/// `{{name}}`.
///
/// # Errors
/// Those of `out` and of `write`.
///
/// # Panics
/// Where a marker is not closed: pages are a part of the program.
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
