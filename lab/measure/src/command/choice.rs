//! Options whose values have names, and the description of each that `--help` prints.

use brickyard_run::named::{Names, by_name};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Returns a parser for these values by name.
pub fn choice<T: Copy + Send + Sync + 'static>(
    all: &'static Names<T>,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|&(_, name, what)| {
        let what = what.trim().trim_end_matches('.');
        let value = PossibleValue::new(name);
        match what.is_empty() {
            true => value,
            false => value.help(what),
        }
    });
    PossibleValuesParser::new(values).try_map(|given| by_name(all, &given))
}

/// Returns the values that the user named, or all of them if none was named.
pub const fn or_all<'a, T>(named: &'a [T], all: &'a [T]) -> &'a [T] {
    if named.is_empty() { all } else { named }
}
