//! Gives the library its name for the loader: programs that are linked with it ask for this file.
//! Gives the linker the order of code, and tells the sources whether the library is built hardened.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BRICKYARD_HARDENED");
    println!("cargo::rustc-check-cfg=cfg(brickyard_hardened, brickyard_ordered)");
    if env::var_os("BRICKYARD_HARDENED").is_some() {
        println!("cargo::rustc-cfg=brickyard_hardened");
    }
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The number rises when a function of `brickyard_malloc.h` changes or goes.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbrickyard_malloc.so.0");
        println!("cargo::rerun-if-changed=order.ld");
        if let (true, Ok(here)) = (has_usual_linker(), env::var("CARGO_MANIFEST_DIR")) {
            println!("cargo::rustc-cdylib-link-arg=-T");
            println!("cargo::rustc-cdylib-link-arg={here}/order.ld");
            println!("cargo::rustc-cfg=brickyard_ordered");
        }
    }
}

/// Returns true if the linker is the one that comes with the compiler (LLD, for x86-64 since Rust
/// 1.90). Others may not read such a script (mold), or make two sections of it (GNU), which
/// Valgrind cannot read.
fn has_usual_linker() -> bool {
    let target = env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu");
    // What may choose another: a linker in Cargo's configuration, flags of the compiler.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    target && env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link")
}
