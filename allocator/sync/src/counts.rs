//! What happened so far, counted under the names that the sum of all counts has: each counter is
//! named once.

/// Defines a set of counters, all guarded by the same lock or CPU, that adds up to a struct with
/// fields of these names.
///
/// ```
/// #[derive(Default)]
/// struct Numbers {
///     hits: u64,
///     misses: u64,
/// }
/// brickyard_sync::counts! {
///     /// What one CPU did.
///     Counts for Numbers { hits, misses, }
/// }
/// let (counts, mut numbers) = (Counts::new(), Numbers::default());
/// counts.hits.add(2);
/// counts.add_to(&mut numbers);
/// assert_eq!((numbers.hits, numbers.misses), (2, 0));
/// ```
#[macro_export]
macro_rules! counts {
    ($(#[$about:meta])* $name:ident for $sum:ty { $($(#[$doc:meta])* $count:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $count: $crate::GuardedU64,)*
        }

        impl $name {
            pub(crate) const fn new() -> Self {
                Self {
                    $($count: $crate::GuardedU64::new(0),)*
                }
            }

            /// Somebody else's from now on.
            #[allow(dead_code, reason = "not all counts change hands")]
            pub(crate) fn begin(&self) {
                $(self.$count.set(0);)*
            }

            pub(crate) fn add_to(&self, numbers: &mut $sum) {
                $(numbers.$count += self.$count.get();)*
            }
        }
    };
}
