//! Which caches are checked, by their names: rules in a program, or a text from an operator.

use core::error::Error;
use core::fmt;

use super::checks::Checks;

/// The checks of caches with certain names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebugRule {
    /// A cache's name, in which `*` stands for any characters.
    pub pattern: &'static str,
    /// The checks of these caches.
    pub checks: Checks,
}

/// The rules of a [`SlabPlan`](crate::SlabPlan).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// The first rule whose pattern fits a cache's name decides.
    List(&'static [DebugRule]),
    /// Rules as an operator writes them.
    Text(RuleText),
}

impl Rules {
    /// No rule.
    pub const NONE: Self = Self::List(&[]);

    /// Returns the checks of a cache of this name.
    #[must_use]
    pub fn checks_of(&self, name: &str) -> Checks {
        match self {
            Self::List(rules) => {
                let rule = rules.iter().find(|rule| matches(rule.pattern, name));
                rule.map_or(Checks::NONE, |rule| rule.checks)
            }
            Self::Text(text) => text.checks_of(name),
        }
    }
}

/// Rules as a text, in the form of Linux's `slub_debug`: blocks with `;` between them. Each block
/// is letters and then names, all with `,` between them.
///
/// | letter | check |
/// |---|---|
/// | `F` | [`Checks::FREES`] |
/// | `Z` | [`Checks::RED_ZONES`] |
/// | `P` | [`Checks::POISON`] |
/// | `U` | [`Checks::TRACK`] (users) |
/// | `-` | none |
///
/// Lower-case letters do as well. No letter at all means all checks. In names `*` stands for any
/// characters. The first block that names a cache decides. A block without names is for the caches
/// that no block names.
///
/// ```
/// use brickyard_slab::{Checks, RuleText};
/// let text = RuleText::parse("FZ,general-*,dentry;-,inode;U").unwrap();
/// assert_eq!(text.checks_of("general-64"), Checks::FREES.with(Checks::RED_ZONES));
/// assert_eq!(text.checks_of("inode"), Checks::NONE);
/// assert_eq!(text.checks_of("socket"), Checks::TRACK);
/// let wrong = RuleText::parse("FX,dentry").unwrap_err();
/// assert_eq!(wrong.to_string(), "`X` in `FX,dentry` is no check: use F (frees), Z (red zones), P (poison), U (users), or `-` alone for none");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    /// Every block of it has been read without an error (`read-once`).
    text: &'static str,
}

/// Why a text holds no rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// A letter that names no check.
    Letter {
        /// The letter.
        letter: char,
        /// The block that it is in.
        block: &'static str,
    },
    /// A name of no characters.
    EmptyName {
        /// The block that it is in.
        block: &'static str,
    },
    /// A block of no characters.
    EmptyBlock {
        /// The whole text.
        text: &'static str,
    },
    /// Two blocks without names.
    TwoForAll {
        /// The second one.
        block: &'static str,
    },
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Letter { letter, block } => write!(
                f,
                "`{letter}` in `{block}` is no check: use F (frees), Z (red zones), P (poison), U (users), or `-` alone for none"
            ),
            Self::EmptyName { block } => {
                write!(
                    f,
                    "a name in `{block}` is empty: write one name between two commas"
                )
            }
            Self::EmptyBlock { text } => {
                write!(
                    f,
                    "a block of `{text}` is empty: write letters, names, or both between two semicolons"
                )
            }
            Self::TwoForAll { block } => write!(
                f,
                "`{block}` names no cache, and neither does a block before it: name its caches, as in `{block},dentry`"
            ),
        }
    }
}

impl Error for RuleError {}

/// A part of a text between semicolons.
struct Block {
    checks: Checks,
    /// The names, with commas between them, if there are any.
    names: Option<&'static str>,
}

impl Block {
    fn read(block: &'static str) -> Result<Self, RuleError> {
        let (letters, names) = match block.split_once(',') {
            Some((letters, names)) => (letters, Some(names)),
            None => (block, None),
        };
        if names.is_some_and(|names| names.split(',').any(str::is_empty)) {
            return Err(RuleError::EmptyName { block });
        }
        let checks = match letters {
            "" => Checks::ALL,
            "-" => Checks::NONE,
            _ => letters.chars().try_fold(Checks::NONE, |checks, letter| {
                let upper = letter.to_ascii_uppercase();
                let known = Checks::LETTERS.iter().find(|(known, _)| *known == upper);
                match known {
                    Some((_, check)) => Ok(checks.with(*check)),
                    None => Err(RuleError::Letter { letter, block }),
                }
            })?,
        };
        Ok(Self { checks, names })
    }

    fn names(&self, name: &str) -> bool {
        let mut names = self.names.into_iter().flat_map(|names| names.split(','));
        names.any(|pattern| matches(pattern, name))
    }
}

impl RuleText {
    /// Reads all of `text`.
    ///
    /// # Errors
    /// [`RuleError`], of the first block that is wrong.
    pub fn parse(text: &'static str) -> Result<Self, RuleError> {
        let mut for_all = false;
        for block in text.split(';') {
            if block.is_empty() {
                return Err(RuleError::EmptyBlock { text });
            }
            let nameless = Block::read(block)?.names.is_none();
            if nameless && for_all {
                return Err(RuleError::TwoForAll { block });
            }
            for_all |= nameless;
        }
        Ok(Self { text })
    }

    /// Returns the checks of a cache of this name.
    #[must_use]
    pub fn checks_of(&self, name: &str) -> Checks {
        // `read-once`: every block parses, so none is dropped here.
        let blocks = || {
            self.text
                .split(';')
                .filter_map(|block| Block::read(block).ok())
        };
        let naming = blocks().find(|block| block.names(name));
        let block = naming.or_else(|| blocks().find(|block| block.names.is_none()));
        block.map_or(Checks::NONE, |block| block.checks)
    }
}

/// Returns true if `name` fits `pattern`, in which `*` stands for any characters. The number of
/// steps is at most the product of both lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // The position of the last `*`, and how far into the name it reaches so far.
    let mut star = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, reach)) = star {
            star = Some((at, reach + 1));
            p = at + 1;
            n = reach + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name) in [
            ("inode", "inode"),
            ("*", "inode"),
            ("*", ""),
            ("general-*", "general-64"),
            ("*-64", "general-64"),
            ("g*l-*4", "general-64"),
            ("*a*a*", "banana"),
            ("general-*", "general-"),
            ("a**b", "ab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("inode", "inodes"),
            ("inode", "inod"),
            ("", "inode"),
            ("general-*", "general"),
            ("*-64", "general-640"),
            ("a*b*c", "acb"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_text() {
        let error = |text| RuleText::parse(text).unwrap_err().to_string();
        assert!(error("FT").starts_with("`T` in `FT` is no check: use F (frees)"));
        assert!(error("F-,a").starts_with("`-` in `F-,a` is no check"));
        assert_eq!(
            error("F,a,,b"),
            "a name in `F,a,,b` is empty: write one name between two commas"
        );
        assert!(error("F,a;").starts_with("a block of `F,a;` is empty"));
        assert!(error("").starts_with("a block of `` is empty"));
        assert!(error("F;Z").starts_with("`Z` names no cache, and neither does"));
    }

    #[test]
    fn what_is_printed_is_what_is_read() {
        for (text, checks) in [
            ("FZPU", Checks::ALL),
            ("-", Checks::NONE),
            ("ZU", Checks::RED_ZONES.with(Checks::TRACK)),
        ] {
            assert_eq!(checks.to_string(), text);
            assert_eq!(RuleText::parse(text).unwrap().checks_of("any"), checks);
        }
        assert_eq!(RuleText::parse(",a*").unwrap().checks_of("ab"), Checks::ALL);
        assert_eq!(RuleText::parse(",a*").unwrap().checks_of("b"), Checks::NONE);
        assert_eq!(
            RuleText::parse("zu").unwrap().checks_of("b").to_string(),
            "ZU"
        );
    }
}
