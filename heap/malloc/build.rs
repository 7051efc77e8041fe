//! Gives the library its name for the loader: programs that are linked with it ask for this file.
//! And tells the sources whether it is built hardened.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BRICKYARD_HARDENED");
    println!("cargo::rustc-check-cfg=cfg(brickyard_hardened)");
    if std::env::var_os("BRICKYARD_HARDENED").is_some() {
        println!("cargo::rustc-cfg=brickyard_hardened");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The number rises when a function of `brickyard_malloc.h` changes or goes.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbrickyard_malloc.so.0");
    }
}
