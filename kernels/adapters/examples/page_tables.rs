//! Page tables by the crate `x86_64`, their frames from a zone: map, translate, unmap, and the
//! empty tables come back.
//!
//! Run it with `cargo run -p brickyard-adapters --features x86_64 --example page_tables`.

use core::mem::MaybeUninit;

use brickyard::{FrameRange, OneCpu, Zone, ZoneKind, ZonePlan};
use brickyard_adapters::PhysFrames;
use x86_64::VirtAddr;
use x86_64::structures::paging::mapper::CleanUp;
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, Mapper, OffsetPageTable, Page, PageTable, PageTableFlags,
    PhysFrame, Size2MiB, Size4KiB, Translate,
};

/// 16 MiB of physical memory, the first page left out.
const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 4096), 1);

#[derive(Clone)]
#[repr(align(4096))]
struct PageOfZeros(#[allow(dead_code, reason = "reached by address")] [u8; 4096]);

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut metadata = vec![MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
    let zone = Zone::<OneCpu>::new(&PLAN, OneCpu, &mut metadata)?;
    zone.add(FrameRange::new(1, 4096))?;
    // Where a kernel has its direct map, this program has an array.
    let memory = vec![PageOfZeros([0; 4096]); 4096].leak();
    let direct_map = VirtAddr::from_ptr(memory.as_mut_ptr());
    // SAFETY: frame `i` is the array's page `i`, which nobody else uses.
    let mut frames = unsafe { PhysFrames::new(&zone) };

    let root: PhysFrame<Size4KiB> = frames.allocate_frame().ok_or("no frame for a table")?;
    let root_at = direct_map + root.start_address().as_u64();
    // SAFETY: the frame is zero and nobody else's: an empty table. All tables are in the array.
    let mut tables =
        unsafe { OffsetPageTable::new(&mut *root_at.as_mut_ptr::<PageTable>(), direct_map) };

    let page = Page::<Size2MiB>::containing_address(VirtAddr::new(0x7000_0020_0000));
    let frame = frames.allocate_frame().ok_or("no frame of 2 MiB")?;
    let flags = PageTableFlags::PRESENT | PageTableFlags::WRITABLE;
    // SAFETY: nothing runs on these tables.
    let mapped = unsafe { tables.map_to(page, frame, flags, &mut frames) };
    mapped.map_err(|why| format!("{why:?}"))?.ignore();
    let found = tables.translate_addr(page.start_address() + 0x1234);
    assert_eq!(found, Some(frame.start_address() + 0x1234));
    println!("{page:?} is {frame:?}; its tables are in {root:?} and two more");

    let (frame, flush) = tables.unmap(page).map_err(|why| format!("{why:?}"))?;
    flush.ignore();
    // SAFETY: the page is not mapped any more, and no table is used twice.
    unsafe {
        frames.deallocate_frame(frame);
        tables.clean_up(&mut frames);
        frames.deallocate_frame(root);
    }
    zone.drain();
    assert_eq!((zone.free_frames(), frames.refused()), (4095, 0));
    Ok(())
}
