//! Links by the architecture's script, with no C library and no start files.

fn main() {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{here}/link/{arch}.ld");
    println!("cargo:rerun-if-changed={script}");
    if arch != "x86_64" {
        println!("cargo:rustc-link-arg-bins=-T{script}");
        return;
    }
    // For the host's target the linker is a C compiler.
    for argument in [
        "-nostdlib",
        "-nostartfiles",
        "-static",
        "-no-pie",
        "-Wl,--build-id=none",
        "-Wl,-z,max-page-size=4096",
        "-Wl,-z,noexecstack",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-T{script}");
}
