//! The Rust blocks of the documents about the heap, as tests: they must compile and run.

macro_rules! documents {
    ($($name:ident: $path:literal,)+) => {
        $(
            #[doc = include_str!($path)]
            mod $name {}
        )+
    };
}

documents! {
    wing: "../../README.md",
    global: "../../heap/README.md",
    heap: "../../../docs/book/heap.md",
}
