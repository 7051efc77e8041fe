//! Writes that a trace disturbs: the page is taken a second time, its block is taken apart, or it
//! moves. None may be lost, since a block that waits for a lost write is never freed.

use brickyard::node::{Node, Nodes};
use brickyard::pressure::{Migrate, Migration};
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_designs::classics::{Configuration, LabZone};
use brickyard_workload::build::{Job, build};
use brickyard_workload::kernel::{Flusher, Freed, WRITE_NANOSECONDS};
use brickyard_workload::pages::{Block, PageId, Pages, Role, mark};
use brickyard_workload::{Kernel, Machine, Processor, Rules, Swap};

const FRAMES: usize = 4096;

/// When the disk has long been idle.
const LATER: u64 = 60_000_000_000;

/// Runs a test on a model kernel: `|kernel, plain|`.
macro_rules! on_a_kernel {
    (fn $name:ident($rules:expr) |$kernel:ident, $plain:ident| $body:block) => {
        #[test]
        fn $name() {
            struct Test;

            impl Job for Test {
                type Output = ();

                fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], _processor: &Processor) {
                    let $plain = Nodes::new(nodes);
                    $plain.set_min_free_kbytes(128, 4096);
                    let pages = Pages::new(Frame::new(0), FRAMES, 1, FRAMES, Order::HUGE);
                    let $kernel = Kernel::new(Nodes::new(nodes), pages, $rules);
                    $body
                    $plain.check().unwrap();
                }
            }

            let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
            build(Configuration::Vanilla, &machine, Test).unwrap();
        }
    };
}

const TODAY: Rules = Rules {
    swap: Swap::On,
    ..Rules::TODAY
};

const FLUSHED: Rules = Rules {
    flusher: Flusher::On,
    ..TODAY
};

/// Takes a block of a file for `page`.
fn file<Z: LabZone>(
    kernel: &Kernel<'_, Z>,
    plain: &Nodes<'_, Z>,
    page: u32,
    order: Order,
    marks: u8,
) -> Frame {
    let request = Request::new(order, Mobility::Movable);
    let frame = plain.alloc(0, &request).unwrap();
    kernel.own(frame, order, Role::File, marks, PageId(page));
    frame
}

/// Lets background reclaim begin to write everything that is dirty.
fn begin_writes<Z: LabZone>(kernel: &Kernel<'_, Z>, plain: &Nodes<'_, Z>) {
    // So that the zone is below its high mark.
    plain.set_min_free_kbytes(FRAMES * 4, 4096);
    let is_dirty = |block: Block| block.marks & mark::DIRTY != 0;
    while kernel.look(|pages| pages.blocks().any(is_dirty)) {
        kernel.run_background();
    }
    plain.set_min_free_kbytes(128, 4096);
}

fn marks<Z: LabZone>(kernel: &Kernel<'_, Z>, frame: Frame) -> Option<u8> {
    let block = kernel.look(|pages| pages.block(frame));
    block.map(|block| block.marks)
}

on_a_kernel! {
    fn a_page_taken_again_while_it_is_written_is_freed_when_that_ends(TODAY) |kernel, plain| {
        let old = file(&kernel, &plain, 5, Order::ZERO, mark::DIRTY);
        begin_writes(&kernel, &plain);
        assert_ne!(marks(&kernel, old).unwrap() & mark::WRITEBACK, 0);
        let new = file(&kernel, &plain, 5, Order::ZERO, 0);
        kernel.set_time(LATER);
        assert_eq!(marks(&kernel, old), None, "written, so freed");
        assert_eq!(marks(&kernel, new), Some(0));
        assert_eq!(kernel.pressure().written, 1);
    }
}

on_a_kernel! {
    fn what_is_left_of_a_block_is_freed_when_it_is_written(TODAY) |kernel, plain| {
        let block = file(&kernel, &plain, 8, Order::new(3), mark::DIRTY);
        begin_writes(&kernel, &plain);
        // The first page too, where the write is recorded.
        for page in [8, 11] {
            assert_eq!(kernel.give(PageId(page), Order::ZERO), Freed::Parts);
        }
        assert_ne!(marks(&kernel, block.plus(4)).unwrap() & mark::WRITEBACK, 0);
        kernel.set_time(LATER);
        assert_eq!(kernel.look(Pages::in_use), 0);
        assert_eq!(kernel.pressure().written, 6);
    }
}

on_a_kernel! {
    fn the_write_of_a_freed_block_does_not_end_that_of_the_next_one(TODAY) |kernel, plain| {
        let first = file(&kernel, &plain, 1, Order::ZERO, mark::DIRTY);
        begin_writes(&kernel, &plain);
        assert_eq!(kernel.give(PageId(1), Order::ZERO), Freed::Whole);
        let second = file(&kernel, &plain, 1, Order::ZERO, mark::DIRTY);
        assert_eq!(first, second, "the frame freed last is taken first");
        begin_writes(&kernel, &plain);
        kernel.set_time(WRITE_NANOSECONDS);
        assert_ne!(marks(&kernel, second).unwrap() & mark::WRITEBACK, 0);
        kernel.set_time(2 * WRITE_NANOSECONDS);
        assert_eq!(marks(&kernel, second), None);
    }
}

on_a_kernel! {
    fn the_flusher_finds_a_page_taken_again(FLUSHED) |kernel, plain| {
        let old = file(&kernel, &plain, 5, Order::ZERO, mark::DIRTY);
        let new = file(&kernel, &plain, 5, Order::ZERO, mark::DIRTY);
        kernel.set_time(LATER);
        assert_eq!([marks(&kernel, old), marks(&kernel, new)], [Some(0); 2]);
        assert_eq!(kernel.pressure().written, 2);
    }
}

on_a_kernel! {
    fn the_flusher_finds_a_page_that_has_moved(FLUSHED) |kernel, plain| {
        let from = file(&kernel, &plain, 5, Order::ZERO, mark::DIRTY);
        let to = plain.alloc(0, &Request::page(Mobility::Movable)).unwrap();
        assert_eq!(kernel.migrate(from, Order::ZERO, to), Migration::Moved);
        plain.free(from, Order::ZERO).unwrap();
        kernel.set_time(LATER);
        assert_eq!(marks(&kernel, to), Some(0));
    }
}

on_a_kernel! {
    fn the_flusher_takes_the_time_of_all_pages_of_a_block(FLUSHED) |kernel, plain| {
        file(&kernel, &plain, 0, Order::new(3), mark::DIRTY);
        file(&kernel, &plain, 8, Order::ZERO, mark::DIRTY);
        // At 30 s both are due, and the disk begins.
        const DUE: u64 = 30_000_000_000;
        let dirty = || {
            let is_dirty = |block: &Block| block.marks & mark::DIRTY != 0;
            kernel.look(|pages| pages.blocks().filter(is_dirty).count())
        };
        kernel.set_time(DUE - 1);
        let after = [0, 7, 8, 9].map(|pages| {
            kernel.set_time(DUE + pages * WRITE_NANOSECONDS);
            dirty()
        });
        assert_eq!(after, [2, 2, 1, 0]);
        assert_eq!(kernel.pressure().written, 9);
    }
}

on_a_kernel! {
    fn pages_that_were_freed_do_not_count_as_dirty(FLUSHED) |kernel, plain| {
        // More than a tenth of memory, but not at once.
        for page in 0..FRAMES as u32 / 2 {
            file(&kernel, &plain, page, Order::ZERO, mark::DIRTY);
            if let Some(before) = page.checked_sub(FRAMES as u32 / 20) {
                kernel.give(PageId(before), Order::ZERO);
            }
            kernel.set_time(u64::from(page) * WRITE_NANOSECONDS);
        }
        assert_eq!(kernel.pressure().written, 0);
    }
}
