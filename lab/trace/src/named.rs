//! Enumerations whose values have names.

/// Defines an enumeration with `ALL`, its values in order, and `name`, the name of each.
///
/// ```
/// brickyard_trace::named! {
///     /// A direction.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Way {
///         /// Out of the store.
///         Out => "out",
///         /// Back into it.
///         Back => "back",
///     }
/// }
///
/// assert_eq!(Way::ALL.map(Way::name), ["out", "back"]);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])+ $vis:vis enum $type:ident {
        $($(#[$value_is:meta])* $value:ident => $name:literal),+ $(,)?
    }) => {
        $(#[$about])+
        $vis enum $type {
            $($(#[$value_is])* $value,)+
        }

        impl $type {
            /// All of them, in order.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns its name.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }
    };
}
