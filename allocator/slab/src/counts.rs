//! What happened so far, counted under the names that the sum of all counts has: each counter is
//! named once.

/// Defines a set of counters, all guarded by the same lock or CPU, that adds up to a struct with
/// fields of these names: for designs.
#[macro_export]
macro_rules! counts {
    ($(#[$about:meta])* $name:ident for $sum:ty { $($(#[$doc:meta])* $count:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $count: brickyard_sync::GuardedU64,)*
        }

        impl $name {
            /// Another cache's from now on.
            pub(crate) fn begin(&self) {
                $(self.$count.set(0);)*
            }

            pub(crate) fn add_to(&self, numbers: &mut $sum) {
                $(numbers.$count += self.$count.get();)*
            }
        }
    };
}
