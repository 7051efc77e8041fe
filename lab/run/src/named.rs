//! Enumerations whose values have names.

/// Values, each with its name and what it is: a sentence, or nothing.
pub type Names<T> = [(T, &'static str, &'static str)];

/// Returns the value of this name.
///
/// # Errors
/// If there is none, with the names there are.
pub fn by_name<T: Copy>(all: &Names<T>, name: &str) -> Result<T, String> {
    let found = all.iter().find(|(_, of_value, _)| *of_value == name);
    found.map(|&(value, ..)| value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&(_, name, _)| name).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Returns the name of a value; nothing for one that is not among them.
pub fn name_of<T: PartialEq>(all: &Names<T>, value: &T) -> &'static str {
    let found = all.iter().find(|(one, ..)| one == value);
    found.map_or("", |(_, name, _)| name)
}

/// Defines an enumeration with `ALL`, its values in order; `name`, the name of each, as which it is
/// printed and parsed; and `NAMES`, both with the comment of each value, for help texts.
///
/// ```
/// brickyard_run::named! {
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
/// assert_eq!("back".parse(), Ok(Way::Back));
/// assert_eq!("up".parse::<Way>(), Err("there are out, back".to_owned()));
/// assert_eq!(Way::NAMES[0], (Way::Out, "out", " Out of the store."));
/// ```
#[macro_export]
macro_rules! named {
    (@what) => { "" };
    (@what [doc = $what:expr] $($more:tt)*) => { concat!($what, $crate::named!(@what $($more)*)) };
    (@what $other:tt $($more:tt)*) => { $crate::named!(@what $($more)*) };
    ($(#[$about:meta])+ $vis:vis enum $type:ident {
        $($(#[$($is:tt)+])* $value:ident => $name:literal),+ $(,)?
    }) => {
        $(#[$about])+
        $vis enum $type {
            $($(#[$($is)+])* $value,)+
        }

        impl $type {
            /// All of them, in order.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// All of them, each with its name and what it is.
            $vis const NAMES: &'static $crate::named::Names<Self> =
                &[$((Self::$value, $name, $crate::named!(@what $([$($is)+])*))),+];

            /// Returns its name.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }

        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::core::str::FromStr for $type {
            type Err = ::std::string::String;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                $crate::named::by_name(Self::NAMES, name)
            }
        }
    };
}
