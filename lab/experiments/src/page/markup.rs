//! Text as HTML: escaped, with text in backticks as code.

use core::fmt::{self, Display, Formatter, Write as _};

pub(super) use brickyard_report::markup::Escaped;

/// Prose: displayed escaped, with the text between backticks as code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prose<'t>(pub(super) &'t str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut pieces = self.0.split('`').peekable();
        let mut is_code = false;
        while let Some(piece) = pieces.next() {
            // A last backtick without a partner is shown as it is.
            if is_code && pieces.peek().is_none() {
                f.write_char('`')?;
                is_code = false;
            }
            if is_code {
                write!(f, "<code>{}</code>", Escaped(piece))?;
            } else {
                write!(f, "{}", Escaped(piece))?;
            }
            is_code = !is_code;
        }
        Ok(())
    }
}

/// Returns prose without its backticks, for attributes and titles.
pub(super) fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// Returns the first question, else the first sentence.
pub(super) fn question(text: &str) -> &str {
    let question = sentences(text).find(|sentence| sentence.ends_with('?'));
    question.unwrap_or_else(|| first_sentence(text))
}

/// Returns the first sentence.
fn first_sentence(text: &str) -> &str {
    sentences(text).next().unwrap_or(text)
}

/// Returns the first sentences that together have at least sixty bytes.
pub(super) fn opening(text: &str) -> &str {
    let end = stops(text).find(|&end| end >= 60);
    &text[..end.unwrap_or(text.len())]
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    stops(text).map(move |end| {
        let sentence = text[start..end].trim_start();
        start = end;
        sentence
    })
}

/// Returns where sentences end: after a full stop or a question mark that is followed by a space
/// and a capital letter, a digit or a backtick, or by the end of the text.
fn stops(text: &str) -> impl Iterator<Item = usize> {
    let begins =
        |rest: &str| rest.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '`');
    text.match_indices(['.', '?'])
        .map(|(place, _)| place + 1)
        .filter(move |&end| {
            let after = &text[end..];
            after.is_empty() || after.strip_prefix(' ').is_some_and(begins)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_backticks_make_code() {
        assert_eq!(
            Escaped("</a><script>&\"'").to_string(),
            "&lt;/a&gt;&lt;script&gt;&amp;&quot;&#39;"
        );
        assert_eq!(
            Prose("`a<b` and `c` or `").to_string(),
            "<code>a&lt;b</code> and <code>c</code> or `"
        );
    }

    #[test]
    fn the_question_and_the_opening_of_a_text_are_found() {
        assert_eq!(
            question("Linux 2.6 did so. Does it help, e.g. with 2 CPUs? By a little."),
            "Does it help, e.g. with 2 CPUs?"
        );
        assert_eq!(question("It was so. And so."), "It was so.");
        assert_eq!(question("no end"), "no end");
        assert_eq!(question(""), "");
        let long =
            "It fell by 150 s. `x` is 60 s, and no allocator saves a compiler 17 % of that. More.";
        assert_eq!(opening(long), long.trim_end_matches(" More."));
        assert_eq!(opening("Short."), "Short.");
    }
}
