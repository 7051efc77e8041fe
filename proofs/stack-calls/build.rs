//! Links no C library and no start files: `_start` in the sources is all there is.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // On bare RISC-V the linker is called directly, and links nothing else anyway.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        for argument in ["-nostdlib", "-nostartfiles", "-static", "-no-pie"] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
}
