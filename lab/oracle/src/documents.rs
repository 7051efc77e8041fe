//! The Rust blocks of the documents, as tests: they must compile and run.

macro_rules! documents {
    ($($name:ident: $path:literal,)+) => {
        $(
            #[doc = include_str!($path)]
            mod $name {}
        )+
    };
}

documents! {
    readme: "../../../README.md",
    pages: "../../../allocator/pages/README.md",
    platform: "../../../docs/book/platform.md",
    zones: "../../../docs/book/zones.md",
    pressure: "../../../docs/book/pressure.md",
    slabs: "../../../docs/book/slabs.md",
}
