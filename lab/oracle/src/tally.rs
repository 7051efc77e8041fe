//! Counters of what a run did, which can be added over runs and threads.

use core::ops::{Add, Range};
use std::{panic, thread};

/// Runs a thread for each number; returns the sum of their counters.
pub(crate) fn on_threads<T: Add<Output = T> + Default + Send>(
    numbers: Range<u32>,
    work: impl Fn(u32) -> T + Sync,
) -> T {
    sum_over(numbers, &work)
}

// Not generic in the work: starting threads is much code, and would be compiled for each of them.
fn sum_over<T: Add<Output = T> + Default + Send>(
    numbers: Range<u32>,
    work: &(dyn Fn(u32) -> T + Sync),
) -> T {
    thread::scope(|scope| {
        let threads: Vec<_> = numbers
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        // Joined one by one, so that their CPU numbers are free and others can drain what they
        // left.
        let done = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(why) => panic::resume_unwind(why),
        });
        done.fold(T::default(), Add::add)
    })
}

/// Defines such counters. All are added, except that of one marked `is the most` the maximum is
/// taken.
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
