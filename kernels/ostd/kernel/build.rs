//! Passes the linker script.

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
    println!(
        "cargo:rustc-link-arg-bins=-T{}/kernel.ld",
        env!("CARGO_MANIFEST_DIR")
    );
}
