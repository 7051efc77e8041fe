//! ArceOS's two levels, pages and bytes, behind its traits: what its global allocator does with
//! them in its lock.
//!
//! Run it with `cargo run -p brickyard-adapters --features arceos --example arceos`.

use core::alloc::Layout;
use std::sync::Mutex;

use ax_allocator::{AllocError, BaseAllocator, ByteAllocator, PageAllocator};
use brickyard_adapters::{AxBytes, AxPages};

/// The two allocators, where ArceOS has its own: each behind a lock (there `SpinNoIrq`), in a
/// static, without memory at first.
static PAGES: Mutex<AxPages> = Mutex::new(AxPages::new());
static BYTES: Mutex<AxBytes> = Mutex::new(AxBytes::new());

/// A region as the platform reports it: its start and size.
fn region(bytes: usize) -> (usize, usize) {
    (
        vec![0_u8; bytes].leak().as_mut_ptr().expose_provenance(),
        bytes,
    )
}

/// Uses both, through the traits alone.
fn use_traits(
    pages: &mut impl PageAllocator,
    bytes: &mut impl ByteAllocator,
) -> Result<(), AllocError> {
    let stack = pages.alloc_pages(5, 1 << 14)?;
    assert_eq!((stack % (1 << 14), pages.used_pages()), (0, 5));
    let next = pages.alloc_pages_at(stack + (8 << 12), 3, 1 << 12)?;
    assert_eq!((next, pages.used_pages()), (stack + (8 << 12), 8));
    pages.dealloc_pages(stack, 5);
    pages.dealloc_pages(next, 3);

    let layout = Layout::new::<[u64; 100]>();
    let object = bytes.alloc(layout)?;
    assert_eq!(bytes.used_bytes(), 800);
    bytes.dealloc(object, layout);
    Ok(())
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let (mut pages, mut bytes) = (PAGES.lock()?, BYTES.lock()?);
    let (start, size) = region(32 << 20);
    pages.init(start, size);
    let (start, size) = region(8 << 20);
    bytes.init(start, size);
    use_traits(&mut *pages, &mut *bytes).map_err(|why| format!("{why:?}"))?;
    // Memory that is found later, anywhere.
    let (start, size) = region(16 << 20);
    pages
        .add_memory(start, size)
        .map_err(|why| format!("{why:?}"))?;
    println!(
        "{} pages, {} in use",
        pages.total_pages(),
        pages.used_pages()
    );
    println!(
        "{} bytes, {} in use",
        bytes.total_bytes(),
        bytes.used_bytes()
    );
    assert_eq!((pages.used_pages(), bytes.used_bytes()), (0, 0));
    Ok(())
}
