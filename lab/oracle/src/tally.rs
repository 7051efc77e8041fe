//! Counts of what a run did, which add up over runs.

/// Defines such counts: all are added, but one that is told to be `the most`.
macro_rules! tally {
    ($(#[$what:meta])+ pub struct $tally:ident: $number:ty {
        $($(#[$count_is:meta])+ $count:ident $(is the $most:ident)?,)+
    }) => {
        $(#[$what])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $tally {
            $($(#[$count_is])+ pub $count: $number,)+
        }

        impl core::ops::Add for $tally {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self {
                    $($count: tally!(@ self.$count, other.$count $(, $most)?),)+
                }
            }
        }
    };
    (@ $one:expr, $other:expr) => { $one + $other };
    (@ $one:expr, $other:expr, most) => { $one.max($other) };
}
pub(crate) use tally;
