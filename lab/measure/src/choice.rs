//! Options with a few named values, each with a description for help texts.

use brickyard::Mobility;

/// A type with a few values, each with a name.
pub trait Choice: Copy + PartialEq + Send + Sync + 'static {
    /// All values in the order in which they are listed, each with its name, and a description
    /// where the name needs one.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// Returns the name of a value.
    fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(value, ..)| *value == self)
            .map_or("", |(_, name, _)| name)
    }
}

/// Returns the value of this name.
///
/// # Errors
/// If there is none, with the names there are.
pub fn by_name<T: Choice>(name: &str) -> Result<T, String> {
    let mut all = T::ALL.iter();
    let found = all.find(|(_, of_value, _)| *of_value == name);
    found.map(|&(value, ..)| value).ok_or_else(|| {
        let names: Vec<&str> = T::ALL.iter().map(|&(_, name, _)| name).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Defines choices: a variant's doc comment is also its description.
#[macro_export]
macro_rules! choices {
    ($($(#[doc = $what:literal])+ pub enum $choice:ident {
        $($(#[doc = $help:literal])+ $value:ident = $name:literal,)+
    })+) => {$(
        $(#[doc = $what])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $choice {
            $($(#[doc = $help])+ $value,)+
        }

        impl $crate::choice::Choice for $choice {
            const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$value, $name, concat!($($help),+)),)+];
        }
    )+};
}
pub use crate::choices;

impl Choice for Mobility {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Unmovable, "unmovable", ""),
        (Self::Movable, "movable", ""),
        (Self::Reclaimable, "reclaimable", ""),
    ];
}
