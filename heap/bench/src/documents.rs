//! The Rust blocks of the documents about the heap, and about zones in a process, as tests: they must compile and run.

macro_rules! documents {
    ($($name:ident: $path:literal,)+) => {
        $(
            #[doc = include_str!($path)]
            mod $name {}
        )+
    };
}

documents! {
    embedding: "../../../docs/book/embedding.md",
    wing: "../../../heap/README.md",
    global: "../../../heap/heap/README.md",
    heap: "../../../docs/book/heap.md",
}
