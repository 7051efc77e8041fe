//! What happened so far, counted under the names that [`CacheNumbers`](crate::CacheNumbers) has:
//! each counter is named once.

/// Defines a set of counters, all guarded by the same lock or CPU.
macro_rules! counts {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $count:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $count: brickyard_sync::GuardedU64,)*
        }

        impl $name {
            pub(crate) const fn new() -> Self {
                Self {
                    $($count: brickyard_sync::GuardedU64::new(0),)*
                }
            }

            /// Another cache's from now on.
            pub(crate) fn begin(&self) {
                $(self.$count.set(0);)*
            }

            pub(crate) fn add_to(&self, numbers: &mut $crate::numbers::CacheNumbers) {
                $(numbers.$count += self.$count.get();)*
            }
        }
    };
}

pub(crate) use counts;
