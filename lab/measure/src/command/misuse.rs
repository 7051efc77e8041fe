//! Wrong usage that clap cannot detect option by option; it too ends with exit code 2.

/// What is wrong with the options, and what to write instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(String);

impl Misuse {
    /// Says what is wrong.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Fails if one of these options names a value twice. Each option comes with whether it does.
pub fn no_value_twice<const N: usize>(options: [(&str, bool); N]) -> Result<(), Misuse> {
    match options.into_iter().find(|&(_, twice)| twice) {
        Some((option, _)) => Err(Misuse::new(format!("--{option} names a value twice"))),
        None => Ok(()),
    }
}

/// Fails if one of these options is given as 0.
pub fn at_least_one<const N: usize>(options: [(&str, Option<usize>); N]) -> Result<(), Misuse> {
    match options.into_iter().find(|&(_, value)| value == Some(0)) {
        Some((option, _)) => Err(Misuse::new(format!("--{option} must be at least 1"))),
        None => Ok(()),
    }
}

/// Returns true if a value occurs twice.
pub fn has_twice<T: PartialEq>(values: &[T]) -> bool {
    let mut rest = values;
    while let Some((first, behind)) = rest.split_first() {
        if behind.contains(first) {
            return true;
        }
        rest = behind;
    }
    false
}
