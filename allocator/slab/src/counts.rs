//! Counters of events. Each has the name of its field in the sum of all counts, so it is named
//! once.

/// Defines a set of counters for a design, all guarded by the same lock or CPU. It adds up to a
/// struct with fields of these names.
#[macro_export]
macro_rules! counts {
    ($(#[$about:meta])* $name:ident for $sum:ty { $($(#[$doc:meta])* $count:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $count: brickyard_sync::GuardedU64,)*
        }

        impl $name {
            /// Called when another cache gets these counters.
            pub(crate) fn begin(&self) {
                $(self.$count.set(0);)*
            }

            pub(crate) fn add_to(&self, numbers: &mut $sum) {
                $(numbers.$count += self.$count.get();)*
            }
        }
    };
}
