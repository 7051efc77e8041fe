//! Options whose values are a [`Choice`]: their names, and the description that `--help` prints.

use crate::choice::Choice;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Returns a parser for these values by name.
pub fn choice<T: Choice>(
    all: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|&(_, name, what)| {
        let what = what.trim().trim_end_matches('.');
        let value = PossibleValue::new(name);
        if what.is_empty() {
            value
        } else {
            value.help(what)
        }
    });
    PossibleValuesParser::new(values).try_map(|given| {
        let mut all = all.iter();
        let found = all.find(|(_, name, _)| *name == given);
        found
            .map(|&(value, ..)| value)
            .ok_or("no value has this name")
    })
}

/// Returns the values that the user named, or all of them if none was named.
pub const fn or_all<'a, T>(named: &'a [T], all: &'a [T]) -> &'a [T] {
    if named.is_empty() { all } else { named }
}
