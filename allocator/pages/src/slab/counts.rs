//! What happened so far, counted under the names that [`CacheNumbers`](super::CacheNumbers) has: each counter is named once.

/// Defines a set of counters, all guarded by the same lock or CPU.
macro_rules! counts {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $count:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $name {
            $($(#[$doc])* pub(super) $count: brickyard_sync::GuardedU64,)*
        }

        impl $name {
            pub(super) const fn new() -> Self {
                Self {
                    $($count: brickyard_sync::GuardedU64::new(0),)*
                }
            }

            /// Another cache's from now on.
            pub(super) fn begin(&self) {
                $(self.$count.set(0);)*
            }

            pub(super) fn add_to(&self, numbers: &mut $crate::slab::CacheNumbers) {
                $(numbers.$count += self.$count.get();)*
            }
        }
    };
}

pub(super) use counts;
