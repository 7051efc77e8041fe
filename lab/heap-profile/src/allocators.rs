//! Functions of allocators, which nobody wants to see at the leaf of every stack.
//!
//! By pprof's rule for a profile's `drop_frames`: the first such function that is found from the
//! root on goes, and all that it calls, unless it is the root itself. So none may be here that
//! calls back. That a profile for pprof names the same functions keeps both views alike.

use regex::Regex;

/// Those of C, of C++, of Rust, and this project's own. Matched against whole names.
pub(crate) const ALLOCATORS: &str = concat!(
    r"(__libc_|__|tc_)?(malloc|calloc|realloc|reallocarray|memalign|posix_memalign|aligned_alloc|valloc|pvalloc)",
    r"|operator new(\[\])?",
    r"|_Zn[wa].*",
    r"|brickyard_.*",
    r"|<?brickyard_(heap|malloc|slab|arena)::.*",
    r"|<brickyard_heap::.*",
    // Where it has no symbols.
    r"|libbrickyard_malloc\.so[.0-9]*\+0x[0-9a-f]+",
    r"|__rust_(alloc|alloc_zeroed|realloc)",
    r"|__rustc::__(rust|rdl|rg)_.*",
    r"|__(rdl|rg)_.*",
    r"|<?alloc::(alloc|raw_vec)::.*",
    r"|<?std::sys::alloc::.*",
);

/// Recognises the functions of allocators.
#[derive(Debug)]
pub(crate) struct Allocators(Regex);

impl Allocators {
    pub(crate) fn new() -> Self {
        let whole = format!("^({ALLOCATORS})$");
        Self(Regex::new(&whole).expect("the pattern is a regular expression"))
    }

    pub(crate) fn has(&self, function: &str) -> bool {
        self.0.is_match(plain(function))
    }
}

/// Returns a name without its arguments, as pprof compares it.
fn plain(name: &str) -> &str {
    let mut from = 0;
    while let Some(found) = name[from..].find('(') {
        let at = from + found;
        let reserved = ["(anonymous namespace)", "()"];
        let of_name = |text: &&&str| {
            name[at..].starts_with(**text) && (**text != "()" || name[..at].ends_with("operator"))
        };
        match reserved.iter().find(of_name) {
            Some(text) => from = at + text.len(),
            None => return &name[..at],
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_of_several_languages_are_known_and_their_callers_are_not() {
        let allocators = Allocators::new();
        for name in [
            "malloc",
            "__libc_calloc",
            "operator new(unsigned long)",
            "operator new[](unsigned long, std::nothrow_t const&)",
            "_Znwm",
            "brickyard_heap::slow::allocate",
            "<brickyard_heap::global::Global as core::alloc::global::GlobalAlloc>::alloc",
            "alloc::raw_vec::RawVecInner<A>::try_allocate_in",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
            "__rust_alloc",
            "__rustc::__rust_alloc",
            "libbrickyard_malloc.so.0+0x1f30",
        ] {
            assert!(allocators.has(name), "{name}");
        }
        for name in [
            "main",
            "malloc_trim_all",
            "my::malloc",
            "libc.so.6+0x1f30",
            "alloc::vec::Vec<T>::push",
            "<alloc::boxed::Box<F> as core::ops::FnOnce<A>>::call_once",
        ] {
            assert!(!allocators.has(name), "{name}");
        }
    }

    #[test]
    fn arguments_are_no_part_of_a_name() {
        assert_eq!(plain("f(int)"), "f");
        assert_eq!(
            plain("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f"
        );
        assert_eq!(plain("A::operator()(int)"), "A::operator()");
        assert_eq!(plain("f"), "f");
    }
}
