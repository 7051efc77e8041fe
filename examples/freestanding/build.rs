//! Links no C library and no start files: `_start` in `main.rs` is all there is.

fn main() {
    for argument in ["-nostdlib", "-nostartfiles", "-static"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
