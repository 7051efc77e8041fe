//! Which object `malloc` belongs to, by the dynamic loader.

use core::ffi::CStr;
use core::mem::MaybeUninit;

/// The functions that must all belong to one object. `free` of one object with a block of another
/// would be an error.
const FAMILY: [&CStr; 5] = [c"malloc", c"calloc", c"realloc", c"free", c"posix_memalign"];

/// A function that only the C library has.
const OF_THE_C_LIBRARY: &CStr = c"gnu_get_libc_version";

/// Returns the path of the object that the malloc family belongs to.
///
/// # Errors
/// Which of its functions belong to another object.
pub(crate) fn of_malloc() -> Result<String, String> {
    let owner = of_function(FAMILY[0]);
    for function in &FAMILY[1..] {
        let other = of_function(function);
        if other != owner {
            let function = function.to_string_lossy();
            return Err(format!(
                "malloc belongs to {owner}, but {function} to {other}"
            ));
        }
    }
    Ok(owner)
}

/// Returns the path of the C library.
pub(crate) fn of_the_c_library() -> String {
    of_function(OF_THE_C_LIBRARY)
}

/// Returns the path of the object that has the function that this program calls by this name.
fn of_function(name: &CStr) -> String {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the name is a C string, and `found` is written by `dladdr`, or is all zeros, which is
    // a value of its type. Its path is a C string of the loader that is never freed.
    unsafe {
        let address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        libc::dladdr(address, found.as_mut_ptr());
        let path = found.assume_init().dli_fname;
        if path.is_null() {
            return "no object".into();
        }
        CStr::from_ptr(path).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_preload_malloc_is_the_c_librarys() {
        assert_eq!(of_malloc(), Ok(of_the_c_library()));
        assert_eq!(of_function(c"no_such_function_anywhere"), "no object");
    }
}
