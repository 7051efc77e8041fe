//! Text tables: columns aligned left or right, each at least as wide as requested or as its widest
//! text. A text that is too wide shifts only the rest of its own line.

/// The side to which a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    side: Side,
    width: usize,
    gap: usize,
}

impl Column {
    /// A column aligned to the left.
    #[must_use]
    pub const fn left() -> Self {
        Self {
            side: Side::Left,
            width: 0,
            gap: 0,
        }
    }

    /// A column aligned to the right.
    #[must_use]
    pub const fn right() -> Self {
        Self {
            side: Side::Right,
            ..Self::left()
        }
    }

    /// The same column, at least `width` characters wide.
    #[must_use]
    pub const fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// The same column, preceded by `gap` spaces.
    #[must_use]
    pub const fn after(self, gap: usize) -> Self {
        Self { gap, ..self }
    }
}

/// The columns of a table. Texts beyond the last column use its form.
#[derive(Debug, Clone)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// The given columns; if there are none, one aligned to the left.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let mut columns: Vec<Column> = columns.into_iter().collect();
        if columns.is_empty() {
            columns.push(Column::left());
        }
        Self(columns)
    }

    /// The same columns, each widened to hold these lines.
    #[must_use]
    pub fn fitting<T: AsRef<str>>(mut self, lines: &[impl AsRef<[T]>]) -> Self {
        let count = lines.iter().map(|line| line.as_ref().len()).max();
        for place in self.0.len()..count.unwrap_or(0) {
            self.0.push(self.0[place - 1]);
        }
        for line in lines {
            for (column, text) in self.0.iter_mut().zip(line.as_ref()) {
                column.width = column.width.max(text.as_ref().chars().count());
            }
        }
        self
    }

    /// Formats a line of these texts, one per column.
    pub fn line<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> String {
        let mut line = String::new();
        for (place, text) in texts.into_iter().enumerate() {
            let last = self.0.len() - 1;
            let Column { side, width, gap } = self.0[place.min(last)];
            let text = text.as_ref();
            line += &" ".repeat(gap);
            line += &match side {
                Side::Left => format!("{text:<width$}"),
                Side::Right => format!("{text:>width$}"),
            };
        }
        line
    }

    /// Formats the lines, each column as wide as its widest text, without spaces at their ends.
    #[must_use]
    pub fn lines<T: AsRef<str>>(self, lines: &[impl AsRef<[T]>]) -> Vec<String> {
        let columns = self.fitting(lines);
        let lines = lines.iter();
        lines
            .map(|line| columns.line(line.as_ref()).trim_end().to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_or_a_great_number_widens_its_column_only() {
        let columns = Columns::new([Column::left(), Column::right().after(1)]);
        assert_eq!(
            columns.lines(&[["", "a", "a-very-long-name"], ["label", "1", "2"]]),
            ["      a a-very-long-name", "label 1                2"]
        );
    }

    #[test]
    fn a_text_that_is_too_wide_moves_its_own_line() {
        let columns = Columns::new([Column::left().wide(3), Column::right().wide(2).after(1)]);
        assert_eq!(columns.line(["a", "1", "2"]), "a    1  2");
        assert_eq!(columns.line(["long", "100", "2"]), "long 100  2");
        assert_eq!(columns.line(["a"]), "a  ");
        assert_eq!(Columns::new([]).line(["a", "b"]), "ab");
    }
}
