//! Choices that people make by name: what each is called, and what it is, so that whoever asks can
//! say so.

use brickyard::Mobility;

/// Something that has a few values, each with a name.
pub trait Choice: Copy + PartialEq + Send + Sync + 'static {
    /// All values in the order in which they are told: each with its name, and what it is where the
    /// name does not say it.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// The name of a value.
    fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(value, ..)| *value == self)
            .map_or("", |(_, name, _)| name)
    }
}

/// Defines choices: a variant's documentation is also what it is.
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
pub(crate) use choices;

impl Choice for Mobility {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Unmovable, "unmovable", ""),
        (Self::Movable, "movable", ""),
        (Self::Reclaimable, "reclaimable", ""),
    ];
}
