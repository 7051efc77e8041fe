//! Text as HTML: escaped, with text in backticks as code.

use core::fmt::{self, Display, Formatter, Write as _};

pub(super) use brickyard_pictures::markup::Escaped;

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
}
