//! Gives the library its name for the loader: programs that are linked with it ask for this file.
//! Gives the linker the order of code and the unwinder, and tells the sources whether the library is
//! built hardened.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BRICKYARD_HARDENED");
    println!("cargo::rerun-if-env-changed=BRICKYARD_UNORDERED");
    println!(
        "cargo::rustc-check-cfg=cfg(brickyard_hardened, brickyard_ordered, brickyard_unwinds)"
    );
    if env::var_os("BRICKYARD_HARDENED").is_some() {
        println!("cargo::rustc-cfg=brickyard_hardened");
    }
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The number rises when a function of `brickyard_malloc.h` changes or goes.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbrickyard_malloc.so.0");
        // A plugin that is linked with it may be the last that uses it, but not its memory.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rerun-if-changed=order.ld");
        if let (true, Ok(here)) = (has_usual_linker(), env::var("CARGO_MANIFEST_DIR")) {
            println!("cargo::rustc-cdylib-link-arg=-T");
            println!("cargo::rustc-cdylib-link-arg={here}/order.ld");
            println!("cargo::rustc-cfg=brickyard_ordered");
            if let Some(folder) = folder_of_unwinder() {
                println!("cargo::rustc-link-search=native={folder}");
                println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
                println!("cargo::rustc-cfg=brickyard_unwinds");
            }
        }
    }
}

/// Returns true if the linker is the LLD that comes with the compiler: for x86-64 since Rust 1.90,
/// where nothing chooses another. Others may not read such a script (mold, gold), or make two
/// sections of it (GNU), which Valgrind cannot read. What cannot be seen here (`cargo rustc --
/// -Clink-arg=...`, `mold -run`) is told by `BRICKYARD_UNORDERED=1`.
fn has_usual_linker() -> bool {
    let usual = "x86_64-unknown-linux-gnu";
    if env::var("TARGET").as_deref() != Ok(usual) || env::var_os("BRICKYARD_UNORDERED").is_some() {
        return false;
    }
    // What may choose another: a linker in Cargo's configuration, flags of the compiler.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if env::var_os("RUSTC_LINKER").is_some() || flags.contains("link") {
        return false;
    }
    let is_recent = asked("--version").is_some_and(|said| {
        let version = said.split(' ').nth(1).unwrap_or_default();
        let mut parts = version
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        (parts.next(), parts.next()) >= (Some(1), Some(90))
    });
    let lld = format!("lib/rustlib/{usual}/bin/gcc-ld/ld.lld");
    is_recent
        && asked("--print=sysroot").is_some_and(|root| Path::new(root.trim()).join(lld).exists())
}

/// Returns the folder where the C compiler, which links, has the unwinder as an archive. It becomes
/// a part of the library: else each process would load `libgcc_s.so.1`, which takes half of what
/// this library costs at its start.
fn folder_of_unwinder() -> Option<String> {
    let name = "-print-file-name=libgcc_eh.a";
    let done = Command::new("cc").arg(name).output().ok()?;
    // Only the name, where it has none.
    let said = String::from_utf8(done.stdout).ok()?;
    let archive = Path::new(said.trim());
    let is_there = archive.is_absolute() && archive.exists();
    Some(archive.parent().filter(|_| is_there)?.to_str()?.to_owned())
}

/// Returns what the compiler prints.
fn asked(what: &str) -> Option<String> {
    let done = Command::new(env::var_os("RUSTC")?)
        .arg(what)
        .output()
        .ok()?;
    String::from_utf8(done.stdout).ok()
}
