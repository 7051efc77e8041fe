//! Reclaim and the slow path of Linux 2.6.20 in the model kernel, rule by rule; and the protocol's
//! slabs.

use brickyard::node::{Lumpy, Node, Nodes};
use brickyard::pressure::{Need, RETRIES, Reclaim};
use brickyard::{Frame, Mobility, Order, Request, ZoneKind};
use brickyard_designs::classics::{Configuration, LabZone};
use brickyard_workload::build::{Job, build};
use brickyard_workload::kernel::{Flusher, NAP, Of2007, Scheme};
use brickyard_workload::pages::{Age, Block, PageId, Pages, Role, mark};
use brickyard_workload::{Kernel, Machine, Processor, Rules, Swap};

const FRAMES: usize = 4096;
const LUMP: Order = Order::new(4);

fn rules(lumpy: Lumpy, drains_above: Option<Order>) -> Rules {
    rules_with_nap(lumpy, drains_above, NAP)
}

fn rules_with_nap(lumpy: Lumpy, drains_above: Option<Order>, nap: u64) -> Rules {
    Rules {
        swap: Swap::On,
        scheme: Scheme::Of2007(Of2007 {
            lumpy,
            drains_above,
            tests_each_order: true,
            nap,
        }),
        ..Rules::TODAY
    }
}

/// A job that fills memory with `role`, one page in `keeps` unmovable, and requests a block.
struct Fill {
    rules: Rules,
    role: Role,
    // One page in so many is a kernel's.
    keeps: usize,
    order: Order,
}

/// What came of it: whether the block was got, the frames freed, the calls of direct reclaim, and
/// the time that the request waited.
struct Came {
    got: bool,
    freed: u64,
    lumps: u64,
    calls: u64,
    waited: u64,
}

impl Job for Fill {
    type Output = Came;

    fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], _processor: &Processor) -> Came {
        let plain = Nodes::new(nodes);
        plain.set_min_free_kbytes(128, 4096);
        let pages = Pages::new(Frame::new(0), FRAMES, 1, FRAMES, Order::HUGE);
        let kernel = Kernel::new(Nodes::new(nodes), pages, self.rules);
        let hooked = Nodes::with_hooks(nodes, &kernel, self.rules.slow_path);
        let mut frame = 0;
        while let Ok(at) = plain.alloc(0, &Request::page(Mobility::Movable)) {
            frame += 1;
            let role = match frame % self.keeps {
                0 => Role::Kernel,
                _ => self.role,
            };
            kernel.own(at, Order::ZERO, role, 0, PageId(frame as u32));
        }
        let request = Request::new(self.order, Mobility::Movable);
        let taken = kernel.take(&hooked, 0, &request, Role::Held, 0, PageId::NONE);
        plain.check().unwrap();
        let pressure = kernel.pressure();
        Came {
            got: taken.is_ok(),
            freed: pressure.direct + pressure.lumpy,
            lumps: pressure.lumpy,
            calls: pressure.direct_calls,
            waited: pressure.waited,
        }
    }
}

fn filled(rules: Rules, role: Role, keeps: usize, order: Order) -> Came {
    let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
    let job = Fill {
        rules,
        role,
        keeps,
        order,
    };
    build(Configuration::Vanilla, &machine, job).unwrap()
}

#[test]
fn a_large_request_calls_direct_reclaim_once_and_that_ends_with_32_pages() {
    let plain = filled(rules(Lumpy::Off, None), Role::File, usize::MAX, Order::HUGE);
    assert_eq!((plain.got, plain.calls, plain.lumps), (false, 1, 0));
    assert!((32..512).contains(&plain.freed), "{}", plain.freed);
}

#[test]
fn a_single_page_is_got_after_as_many_calls_as_it_takes() {
    let one = filled(rules(Lumpy::Off, None), Role::File, usize::MAX, Order::ZERO);
    assert!(one.got && one.calls >= 1);
}

#[test]
fn lumpy_reclaim_frees_whole_blocks_of_the_order() {
    let came = filled(rules(Lumpy::On, None), Role::File, usize::MAX, LUMP);
    assert!(came.lumps > 0);
    // A quarter of the pages were used again, so a block has holes; but far more is freed than
    // without.
    let plain = filled(rules(Lumpy::Off, None), Role::File, usize::MAX, LUMP);
    assert_eq!(plain.lumps, 0);
    assert!(came.freed >= plain.freed);
}

#[test]
fn what_the_mark_keeps_free_is_not_taken_without_reclaim() {
    struct Marked;

    impl Job for Marked {
        type Output = [usize; 2];

        fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], _processor: &Processor) -> [usize; 2] {
            let pages = Pages::new(Frame::new(0), FRAMES, 1, FRAMES, Order::HUGE);
            let rules = rules(Lumpy::Off, None);
            let kernel = Kernel::new(Nodes::new(nodes), pages, rules);
            let hooked = Nodes::with_hooks(nodes, &kernel, rules.slow_path);
            let request = Request::new(Order::HUGE, Mobility::Movable);
            // All memory is free, in 8 blocks; then with half of it to be kept free.
            [0, FRAMES * 4 / 2].map(|kbytes| {
                Nodes::new(nodes).set_min_free_kbytes(kbytes, 4096);
                let take = || kernel.take_if_free(&hooked, &request, Role::Held);
                let taken: Vec<Frame> = core::iter::from_fn(take).collect();
                taken.iter().for_each(|&frame| {
                    kernel.release(frame);
                });
                taken.len()
            })
        }
    }

    let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
    let taken = build(Configuration::Vanilla, &machine, Marked).unwrap();
    // The fourth leaves 2048 frames and the frame that counts as gone: 2049 > 2048. A fifth does
    // not.
    assert_eq!(taken, [8, 4]);
}

#[test]
fn the_flusher_cleans_pages_after_30_seconds_and_they_stay() {
    struct Flushed;

    impl Job for Flushed {
        type Output = (usize, usize, u64);

        fn run<Z: LabZone>(
            self,
            nodes: &[Node<'_, Z>],
            _processor: &Processor,
        ) -> (usize, usize, u64) {
            let pages = Pages::new(Frame::new(0), FRAMES, 1, FRAMES, Order::HUGE);
            let rules = Rules {
                flusher: Flusher::On,
                ..rules(Lumpy::Off, None)
            };
            let kernel = Kernel::new(Nodes::new(nodes), pages, rules);
            let plain = Nodes::new(nodes);
            for page in 0..100 {
                let at = plain.alloc(0, &Request::page(Mobility::Movable)).unwrap();
                kernel.own(at, Order::ZERO, Role::File, mark::DIRTY, PageId(page));
            }
            let dirty = || {
                kernel.look(|pages| {
                    let is_dirty = |block: &_| is_dirty(block);
                    pages.blocks().filter(is_dirty).count()
                })
            };
            kernel.set_time(29_000_000_000);
            let before = dirty();
            kernel.set_time(31_000_000_000);
            let after = dirty();
            (before, after, kernel.look(|pages| pages.used(Role::File)))
        }
    }

    fn is_dirty(block: &Block) -> bool {
        block.marks & mark::DIRTY != 0
    }

    let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
    let done = build(Configuration::Vanilla, &machine, Flushed).unwrap();
    assert_eq!(done, (100, 0, 100));
}

#[test]
fn no_page_stays_off_the_lists_unless_it_is_being_written() {
    // So that no block has the number of a page in another one.
    const APART: usize = LUMP.frames();

    struct Mixed(Lumpy);

    const fn id(page: u32) -> PageId {
        PageId(page * APART as u32)
    }

    impl Job for Mixed {
        type Output = ();

        fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], _processor: &Processor) {
            let plain = Nodes::new(nodes);
            plain.set_min_free_kbytes(512, 4096);
            let pages = Pages::new(Frame::new(0), FRAMES, 1, 6 * FRAMES * APART, Order::HUGE);
            let rules = Rules {
                flusher: Flusher::On,
                ..rules(self.0, None)
            };
            let kernel = Kernel::new(Nodes::new(nodes), pages, rules);
            let hooked = Nodes::with_hooks(nodes, &kernel, rules.slow_path);
            let (mut time, mut drawn) = (0, 1_u64);
            for page in 0..6 * FRAMES as u32 {
                drawn = drawn.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let [of, free] = [drawn >> 33, drawn >> 45];
                let (role, marks) = match of % 8 {
                    0..=2 => (Role::Anonymous, 0),
                    3..=5 => (Role::File, mark::DIRTY),
                    6 => (Role::File, 0),
                    _ => (Role::SlabReclaimable, 0),
                };
                let (order, role) = match of % 61 {
                    0 => (LUMP, Role::Held),
                    1 => (Order::new(2), Role::Kernel),
                    _ => (Order::ZERO, role),
                };
                let request = Request::new(order, role.mobility());
                // Refused or not: both ways must leave the lists whole.
                let _ = kernel.take(&hooked, 0, &request, role, marks, id(page));
                if let Some(before) = page.checked_sub((free % 3000) as u32) {
                    kernel.give(id(before), Order::ZERO);
                }
                time += 20_000;
                kernel.set_time(time);
                if kernel.is_woken() {
                    kernel.run_background();
                }
                if page % 64 == 0 {
                    check(&kernel);
                }
            }
            // When all writes are done, every page of a file or a process is on a list.
            kernel.set_time(time + 60_000_000_000);
            check(&kernel);
            kernel.look(|pages| {
                let lists =
                    pages.frames_on(0, Age::InactiveFile) + pages.frames_on(0, Age::ActiveFile);
                assert_eq!(lists, pages.used(Role::File) + pages.used(Role::Anonymous));
            });
            assert!(kernel.pressure().direct_calls > 0 && kernel.pressure().written > 0);
            plain.check().unwrap();
        }
    }

    fn check<Z: LabZone>(kernel: &Kernel<'_, Z>) {
        kernel.look(|pages| {
            let (mut listed, mut all) = (0, 0);
            for block in pages.blocks() {
                assert_eq!(block.marks & mark::ISOLATED, 0, "{block:?}");
                if block.role.moves() {
                    all += u64::from(block.marks & mark::WRITEBACK == 0);
                    listed += u64::from(pages.is_on_lru(block.frame));
                }
            }
            let lists = pages.frames_on(0, Age::InactiveFile) + pages.frames_on(0, Age::ActiveFile);
            assert_eq!((listed, lists), (all, all));
        });
    }

    for lumpy in [Lumpy::Off, Lumpy::On] {
        for configuration in [Configuration::Vanilla, Configuration::List2007] {
            let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
            build(configuration, &machine, Mixed(lumpy)).unwrap();
        }
    }
}

#[test]
fn a_request_waits_20_ms_between_two_tries() {
    // Nothing can be reclaimed, so direct reclaim does not sleep.
    let came = filled(rules(Lumpy::Off, None), Role::Kernel, 1, Order::ZERO);
    assert!(!came.got);
    assert_eq!(came.calls, RETRIES as u64);
    assert_eq!(came.waited, 20_000_000 * (RETRIES as u64 - 1));
}

#[test]
fn direct_reclaim_sleeps_below_priority_10_until_it_has_freed_32_pages() {
    // Clean pages: freed before it comes to sleep.
    let clean = filled(rules(Lumpy::Off, None), Role::File, usize::MAX, Order::HUGE);
    assert_eq!(clean.waited, 0);
    // Pages of processes: they must be written first.
    let written = filled(
        rules(Lumpy::Off, None),
        Role::Anonymous,
        usize::MAX,
        Order::HUGE,
    );
    assert!(written.freed >= 32);
    let naps = written.waited / 100_000_000;
    assert!((1..=10).contains(&naps), "{}", written.waited);
    assert_eq!(written.waited % 100_000_000, 0);
}

/// A job on a model kernel without swap whose memory is full: of pages of processes, and of this
/// many dirty ones of files.
struct Full<T> {
    dirty: usize,
    nap: u64,
    then: T,
}

/// What is done with it.
trait Then {
    fn then<Z: LabZone>(self, kernel: &Kernel<'_, Z>, plain: &Nodes<'_, Z>, held: &[Frame]);
}

impl<T: Then> Job for Full<T> {
    type Output = ();

    fn run<Z: LabZone>(self, nodes: &[Node<'_, Z>], _processor: &Processor) {
        let plain = Nodes::new(nodes);
        plain.set_min_free_kbytes(128, 4096);
        let pages = Pages::new(Frame::new(0), FRAMES, 1, FRAMES, Order::HUGE);
        let rules = Rules {
            swap: Swap::Off,
            flusher: Flusher::On,
            ..rules_with_nap(Lumpy::Off, None, self.nap)
        };
        let kernel = Kernel::new(Nodes::new(nodes), pages, rules);
        let mut frames = Vec::new();
        while let Ok(at) = plain.alloc(0, &Request::page(Mobility::Movable)) {
            let (role, marks) = match frames.len() < self.dirty {
                true => (Role::File, mark::DIRTY),
                false => (Role::Anonymous, 0),
            };
            kernel.own(at, Order::ZERO, role, marks, PageId(frames.len() as u32));
            frames.push(at);
        }
        self.then.then(&kernel, &plain, &frames);
        plain.check().unwrap();
    }
}

fn on_full_memory(dirty: usize, then: impl Then) {
    let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
    let nap = NAP;
    build(Configuration::Vanilla, &machine, Full { dirty, nap, then }).unwrap();
}

const ONE_PAGE: Need = Need {
    frames: 1,
    order: Order::ZERO,
    highest: ZoneKind::Movable,
};

#[test]
fn a_zone_scanned_in_vain_is_left_out_until_a_page_comes_free() {
    struct LeftOut;

    impl Then for LeftOut {
        fn then<Z: LabZone>(self, kernel: &Kernel<'_, Z>, _plain: &Nodes<'_, Z>, held: &[Frame]) {
            // A scanned page goes to the new end of the active list.
            let oldest = || kernel.look(|pages| pages.oldest(0, Age::ActiveFile));
            let is_scanned = || {
                let before = oldest();
                kernel.reclaim(&ONE_PAGE);
                oldest() != before
            };
            assert!(is_scanned());
            kernel.wake(&ONE_PAGE);
            kernel.idle_until(600_000_000_000);
            assert!(!kernel.is_woken(), "background reclaim ends");
            assert_eq!(kernel.pressure().background, 0);
            assert!(!is_scanned(), "at priority 12 the share is too small");
            kernel.release(held[0]).unwrap();
            assert!(is_scanned());
        }
    }

    on_full_memory(0, LeftOut);
}

#[test]
fn direct_reclaim_that_scans_much_wakes_the_flusher() {
    struct Woken;

    impl Then for Woken {
        fn then<Z: LabZone>(self, kernel: &Kernel<'_, Z>, _plain: &Nodes<'_, Z>, _: &[Frame]) {
            let dirty = || {
                let is_dirty = |block: &Block| block.marks & mark::DIRTY != 0;
                kernel.look(|pages| pages.blocks().filter(is_dirty).count())
            };
            // None is due, and they are less than a tenth of memory.
            kernel.set_time(1_000_000_000);
            assert_eq!(dirty(), 300);
            kernel.reclaim(&ONE_PAGE);
            kernel.set_time(2_000_000_000);
            let written = kernel.pressure().written;
            let freed = kernel.pressure().direct + kernel.pressure().background;
            assert!(
                written > freed,
                "{written} written, {freed} of them by reclaim"
            );
            assert_eq!(dirty() as u64, 300 - written);
        }
    }

    on_full_memory(300, Woken);
}

#[test]
fn background_reclaim_sleeps_after_a_pass_that_freed_too_little() {
    /// Sets the time at which background reclaim ends that has to write what it frees.
    struct Ends<'t>(&'t mut u64);

    impl Then for Ends<'_> {
        fn then<Z: LabZone>(self, kernel: &Kernel<'_, Z>, _plain: &Nodes<'_, Z>, _: &[Frame]) {
            kernel.wake(&ONE_PAGE);
            while kernel.is_woken() {
                *self.0 += 1_000_000;
                kernel.idle_until(*self.0);
            }
        }
    }

    let ends = [0, NAP].map(|nap| {
        let machine = Machine::sized((FRAMES * 4096) as u64, 1, 4096).unwrap();
        let (dirty, mut at) = (FRAMES, 0);
        let then = Ends(&mut at);
        build(Configuration::Vanilla, &machine, Full { dirty, nap, then }).unwrap();
        at
    });
    assert!(ends[1] >= NAP, "{ends:?}");
    assert!(ends[0] < NAP, "{ends:?}");
}
