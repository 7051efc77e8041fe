//! Preparing a trace: steps with their roles, the blocks in use at the start, and traces that
//! cannot be replayed.

use crate::support;

use brickyard::{Context, MigrateType, Mobility, Order, ZoneKind};
use brickyard_designs::classics::Configuration;
use brickyard_trace::{Flags, PageState, PageUse, StateRun, Trace, What};
use brickyard_workload::pages::{PageId, Role, mark};
use brickyard_workload::roles::slabs_by;
use brickyard_workload::script::{Action, InitialBlock};
use brickyard_workload::{
    Machine, MachineError, Options, Rules, Script, ScriptError, Start, replay,
};

use MigrateType::{Movable, Reclaimable, Unmovable};
use support::{BASE, FRAMES, event, failed, freed, host, run, taken, taken_with};

fn with(trace: Trace, events: impl IntoIterator<Item = brickyard_trace::Event>) -> Trace {
    Trace {
        events: events.into_iter().collect(),
        ..trace
    }
}

/// A host without memory in use.
fn idle() -> Trace {
    host(vec![run(0, FRAMES, 0, PageUse::Free)])
}

// ---- traces that cannot be replayed ----

#[test]
fn a_trace_without_an_allocation_is_refused() {
    let fallback = What::Fallback {
        mobility: Movable,
        from_order: Order::new(3),
        from: Unmovable,
        claimed: false,
    };
    for trace in [
        Trace::default(),
        idle(),
        with(idle(), [freed(1, 0), event(0, 0, fallback)]),
    ] {
        let error = Script::new(&trace).unwrap_err();
        assert_eq!(error, ScriptError::Empty);
        assert!(error.to_string().contains("brickyard record"), "{error}");
    }
    // A failed request is one.
    assert!(Script::new(&with(idle(), [failed(4, Movable)])).is_ok());
}

#[test]
fn frames_too_far_apart_are_refused() {
    for far in [1 << 31, 1 << 40, u64::MAX - BASE - 8] {
        let trace = with(
            Trace::default(),
            [taken(0, 0, Movable), taken(far, 0, Movable)],
        );
        let error = Script::new(&trace).unwrap_err();
        assert!(
            matches!(error, ScriptError::TooWide(apart) if apart > far),
            "{far:#x}: {error}"
        );
    }
    // Holes do not count, nor does the frame 0 of a failed request.
    let hole = StateRun {
        frame: 1 << 50,
        ..run(0, 1 << 30, 0, PageUse::Hole)
    };
    let runs = vec![run(0, FRAMES, 0, PageUse::Free), hole];
    let script = Script::new(&with(
        host(runs),
        [taken(3, 0, Movable), failed(0, Movable)],
    ));
    let script = script.unwrap();
    assert_eq!((script.first(), script.pages() as u64), (BASE, FRAMES));
}

#[test]
fn the_largest_frame_numbers_are_replayed() {
    let mut last = taken(0, 18, Unmovable);
    last.frame = u64::MAX - (1 << 18) + 1;
    let mut page = taken(0, 0, Movable);
    page.frame = u64::MAX;
    let mut huge = freed(0, 18);
    huge.frame = last.frame;
    let mut many = last;
    many.frame += 77;
    let trace = with(host(Vec::new()), [last, page, many, huge]);
    let script = Script::new(&trace).unwrap();
    assert!(script.pages() <= 1 << 18);
    let machine = Machine::sized(8 << 20, 1, 4096).unwrap();
    let options = Options {
        start: Start::Recorded,
        rules: Rules::TODAY,
        sample_every: 1_000_000,
    };
    for config in Configuration::ALL {
        let outcome = replay(config, &machine, &script, &options, ()).unwrap();
        assert_eq!(outcome.census.allocated as u64, outcome.in_use);
        // Two blocks larger than any zone can serve fail; the page does not.
        assert_eq!(outcome.all_requests().failed, 2, "{config}");
    }
}

// ---- steps ----

#[test]
fn events_become_steps_with_small_page_numbers() {
    let fallback = What::Fallback {
        mobility: Movable,
        from_order: Order::new(3),
        from: Unmovable,
        claimed: true,
    };
    let mut trace = with(
        idle(),
        [
            taken(5, 0, Movable),
            event(5, 0, fallback),
            failed(3, Unmovable),
            freed(5, 0),
        ],
    );
    for (place, event) in trace.events.iter_mut().enumerate() {
        event.time = place as u64 * 10;
        event.cpu = place as u16;
    }
    let script = Script::new(&trace).unwrap();
    assert_eq!(script.first() % Order::MAX.frames() as u64, 0);
    let steps = script.steps().unwrap();
    assert_eq!(steps.len(), 3);
    assert_eq!((script.host_fallbacks(), script.duration()), (1, 30));
    let page = PageId((BASE + 5 - script.first()) as u32);
    let found: Vec<(u64, u16, PageId)> = steps.iter().map(|s| (s.time, s.cpu, s.page)).collect();
    assert_eq!(found, [(0, 0, page), (20, 2, PageId::NONE), (30, 3, page)]);
    let actions: Vec<Action> = steps.iter().map(|step| script.action(step)).collect();
    assert!(matches!(actions[0], Action::Take(request) if request.mobility == Mobility::Movable));
    assert!(matches!(actions[1], Action::Try(request) if request.order == Order::new(3)));
    assert_eq!(actions[2], Action::Give);
    // The header's duration is used if it is longer.
    trace.header.duration = 100;
    assert_eq!(Script::new(&trace).unwrap().duration(), 100);
}

#[test]
fn allocations_of_pages_in_use_are_marked() {
    let trace = with(
        host(vec![
            run(0, 8, 3, PageUse::Slab),
            run(8, FRAMES - 8, 0, PageUse::Free),
        ]),
        [
            taken(4, 0, Movable),    // inside a block of the start
            taken(16, 0, Movable),   // free
            taken(16, 2, Unmovable), // around a page in use
            freed(16, 2),
            taken(19, 0, Unmovable), // free again
            failed(2, Movable),
            taken(19, 0, Movable), // the same
        ],
    );
    let script = Script::new(&trace).unwrap();
    let on: Vec<bool> = script
        .steps()
        .unwrap()
        .iter()
        .map(|step| step.overlaps_used())
        .collect();
    assert_eq!(on, [true, false, true, false, false, false, true]);
}

// ---- roles ----

/// The bits of Linux 6.18 as its format text has them, of which `__GFP_ZERO` is not where it was in
/// 6.12.
const FORMAT: &str = r#"print fmt: "page=%p", __print_flags(REC->gfp_flags, "|", {( unsigned long)(( gfp_t)0xcc0u), "GFP_KERNEL"}, {( unsigned long)(( gfp_t)((((1UL))) << (0))), "__GFP_DMA"}, {( unsigned long)(( gfp_t)((((1UL))) << (1))), "__GFP_HIGHMEM"}, {( unsigned long)(( gfp_t)((((1UL))) << (2))), "__GFP_DMA32"}, {( unsigned long)(( gfp_t)((((1UL))) << (3))), "__GFP_MOVABLE"}, {( unsigned long)(( gfp_t)((((1UL))) << (4))), "__GFP_RECLAIMABLE"}, {( unsigned long)(( gfp_t)((((1UL))) << (5))), "__GFP_HIGH"}, {( unsigned long)(( gfp_t)((((1UL))) << (6))), "__GFP_IO"}, {( unsigned long)(( gfp_t)((((1UL))) << (7))), "__GFP_FS"}, {( unsigned long)(( gfp_t)((((1UL))) << (9))), "__GFP_ZERO"}, {( unsigned long)(( gfp_t)((((1UL))) << (10))), "__GFP_DIRECT_RECLAIM"}, {( unsigned long)(( gfp_t)((((1UL))) << (12))), "__GFP_WRITE"}, {( unsigned long)(( gfp_t)((((1UL))) << (16))), "__GFP_NORETRY"}, {( unsigned long)(( gfp_t)((((1UL))) << (18))), "__GFP_COMP"}, {( unsigned long)(( gfp_t)((((1UL))) << (22))), "__GFP_ACCOUNT"})"#;

#[test]
fn flags_give_roles_requests_and_zones() {
    use Role::{Anonymous, File, Kernel, PageTable, Slab, SlabReclaimable};
    let flags = Flags::from_format(FORMAT);
    assert_eq!(flags.mask("__GFP_ZERO"), 1 << 9);
    let movable = "GFP_KERNEL|__GFP_HIGHMEM|__GFP_MOVABLE";
    let cases = [
        (Movable, format!("{movable}|__GFP_ZERO"), 0, Anonymous, 0),
        (Movable, movable.into(), 0, Anonymous, 0),
        (
            Movable,
            format!("{movable}|__GFP_WRITE"),
            0,
            File,
            mark::DIRTY,
        ),
        (Movable, format!("{movable}|__GFP_NORETRY"), 2, File, 0),
        (
            Movable,
            "__GFP_DIRECT_RECLAIM|__GFP_IO|__GFP_MOVABLE".into(),
            0,
            File,
            0,
        ),
        // `__GFP_ZERO` means memory of a process, whatever the other flags.
        (
            Movable,
            format!("{movable}|__GFP_ZERO|__GFP_WRITE|__GFP_NORETRY"),
            9,
            Anonymous,
            0,
        ),
        (
            Reclaimable,
            "GFP_KERNEL|__GFP_RECLAIMABLE|__GFP_COMP".into(),
            3,
            SlabReclaimable,
            0,
        ),
        (
            Unmovable,
            "GFP_KERNEL|__GFP_ZERO|__GFP_ACCOUNT".into(),
            0,
            PageTable,
            0,
        ),
        (
            Unmovable,
            "GFP_KERNEL|__GFP_ZERO|__GFP_ACCOUNT".into(),
            1,
            Kernel,
            0,
        ),
        (Unmovable, "GFP_KERNEL|__GFP_COMP".into(), 3, Slab, 0),
        (Unmovable, "GFP_KERNEL".into(), 0, Kernel, 0),
        (MigrateType::HighAtomic, "__GFP_HIGH".into(), 0, Kernel, 0),
    ];
    let events = cases
        .iter()
        .enumerate()
        .map(|(n, (kind, text, order, ..))| {
            let what = What::Alloc {
                mobility: *kind,
                flags: flags.try_parse_names(text).unwrap(),
            };
            event(n as u64 * 1024, *order, what)
        });
    let mut trace = with(idle(), events);
    trace.header.flags = flags.clone();
    let script = Script::new(&trace).unwrap();
    for (step, (kind, text, order, role, marks)) in script.steps().unwrap().iter().zip(&cases) {
        assert_eq!((step.role, step.marks), (*role, *marks), "{kind:?} {text}");
        let Action::Take(request) = script.action(step) else {
            panic!("{text}");
        };
        assert_eq!(request.order.get(), *order);
        // Requests that may not wait are atomic.
        let waits = text.contains("GFP_KERNEL") || text.contains("DIRECT_RECLAIM");
        assert_eq!(request.context == Context::Atomic, !waits, "{text}");
        let highest = match text.contains("__GFP_HIGHMEM") {
            true => ZoneKind::Movable,
            false => ZoneKind::Normal,
        };
        assert_eq!(request.highest, highest, "{text}");
    }
}

#[test]
fn flags_select_the_zones_for_devices() {
    let trace = with(
        idle(),
        [
            taken_with(0, 0, Unmovable, "GFP_KERNEL|__GFP_DMA"),
            taken_with(1, 0, Unmovable, "GFP_KERNEL|__GFP_DMA32"),
            taken_with(2, 0, Unmovable, "GFP_KERNEL|__GFP_HIGHMEM"),
        ],
    );
    let script = Script::new(&trace).unwrap();
    let highest: Vec<ZoneKind> = script
        .steps()
        .unwrap()
        .iter()
        .filter_map(|step| match script.action(step) {
            Action::Take(request) => Some(request.highest),
            _ => None,
        })
        .collect();
    assert_eq!(highest, [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::HighMem]);
}

#[test]
fn without_flags_movable_pages_are_anonymous_and_any_zone_serves() {
    let mut trace = with(idle(), [taken(0, 0, Movable), taken(1, 0, Unmovable)]);
    trace.header.flags = Flags::default();
    let script = Script::new(&trace).unwrap();
    let roles: Vec<Role> = script
        .steps()
        .unwrap()
        .iter()
        .map(|step| step.role)
        .collect();
    assert_eq!(roles, [Role::Anonymous, Role::Kernel]);
    let Action::Take(request) = script.action(&script.steps().unwrap()[1]) else {
        panic!("the step takes a block");
    };
    assert_ne!(request.context, Context::Atomic);
}

#[test]
fn the_state_at_the_end_takes_precedence_over_flags() {
    let end = [
        (0, Movable, PageUse::File, Role::File),
        (1, Movable, PageUse::Anonymous, Role::Anonymous),
        // A movable page is no slab, and an unmovable one does not become movable.
        (2, Movable, PageUse::Slab, Role::Anonymous),
        (3, Unmovable, PageUse::PageTable, Role::PageTable),
        (4, Unmovable, PageUse::Slab, Role::Slab),
        (5, Unmovable, PageUse::File, Role::Kernel),
        (6, Reclaimable, PageUse::PageTable, Role::SlabReclaimable),
        (7, Unmovable, PageUse::Untold, Role::Kernel),
    ];
    let takes = end.iter().map(|&(page, kind, ..)| taken(page, 0, kind));
    // Freed and taken again before the end: the state at the end is that of the last allocation.
    let again = [taken(8, 0, Movable), freed(8, 0), taken(8, 0, Movable)];
    let gone = [taken(9, 0, Movable), freed(9, 0)];
    let mut trace = with(idle(), takes.chain(again).chain(gone));
    trace.end = end
        .iter()
        .map(|&(page, _, usage, _)| run(page, 1, 0, usage))
        .collect();
    trace.end.push(run(8, 2, 0, PageUse::File));
    // A state of frames that no event has.
    trace.end.push(StateRun {
        frame: u64::MAX - 4,
        ..run(0, 4, 0, PageUse::File)
    });
    let script = Script::new(&trace).unwrap();
    for (step, (page, kind, usage, role)) in script.steps().unwrap().iter().zip(end) {
        assert_eq!(step.role, role, "{page} {kind:?} {usage:?}");
    }
    let roles: Vec<Role> = script.steps().unwrap()[8..]
        .iter()
        .map(|step| step.role)
        .collect();
    let (gone, process, file) = (Role::None, Role::Anonymous, Role::File);
    // The last page was freed, and is in use at the end: it was taken again without an event.
    assert_eq!(roles, [process, gone, file, process, gone, file]);
    assert_eq!(script.hidden(), 1);
}

#[test]
fn slabs_have_the_role_of_the_more_frequent_kind() {
    let text = |given_back, kept| {
        format!("  nr_slab_reclaimable {given_back}\n      nr_slab_unreclaimable {kept}\n")
    };
    assert_eq!(slabs_by(&text(10, 5)), Role::SlabReclaimable);
    assert_eq!(slabs_by(&text(5, 10)), Role::Slab);
    assert_eq!(slabs_by(""), Role::Slab);
    assert_eq!(
        slabs_by(&text(u64::MAX, 5).repeat(2)),
        Role::SlabReclaimable
    );
}

// ---- the start ----

fn initial_blocks_of(script: &Script) -> Vec<(u32, u8, Role, u8)> {
    let fields = |&InitialBlock {
                      page,
                      order,
                      role,
                      marks,
                  }: &InitialBlock| (page.0, order.get(), role, marks);
    script.initial_blocks().iter().map(fields).collect()
}

#[test]
fn initial_blocks_keep_their_orders_and_marks() {
    let marked = StateRun {
        state: PageState {
            active: true,
            dirty: true,
            unevictable: true,
            ..PageState::of(PageUse::File)
        },
        ..run(16, 1, 0, PageUse::File)
    };
    let runs = vec![
        run(0, 8, 2, PageUse::Anonymous),
        marked,
        run(17, 1, 0, PageUse::Reserved),
        run(18, 1, 0, PageUse::Hole),
        run(19, 1, 0, PageUse::Free),
        // Unaligned blocks become single pages.
        run(22, 4, 2, PageUse::Slab),
        run(32, 1, 0, PageUse::PageTable),
        run(FRAMES, 1, 0, PageUse::Huge),
    ];
    let script = Script::new(&with(host(runs), [taken(40, 0, Movable)])).unwrap();
    let all = mark::ACTIVE | mark::DIRTY | mark::LOCKED;
    assert_eq!(
        initial_blocks_of(&script),
        [
            (0, 2, Role::Anonymous, 0),
            (4, 2, Role::Anonymous, 0),
            (16, 0, Role::File, all),
            (22, 0, Role::Slab, 0),
            (23, 0, Role::Slab, 0),
            (24, 0, Role::Slab, 0),
            (25, 0, Role::Slab, 0),
            (32, 0, Role::PageTable, 0),
            (FRAMES as u32, 0, Role::Pinned, 0),
        ]
    );
}

#[test]
fn pages_in_a_cpus_cache_at_the_start_are_no_initial_blocks() {
    let runs = vec![
        run(0, 16, 0, PageUse::Untold),
        run(16, 16, 0, PageUse::Anonymous),
        run(32, FRAMES - 32, 0, PageUse::Free),
    ];
    let events = [
        // Taken first: in a cache.
        taken(5, 0, Movable),
        // Freed first, then taken: in use.
        freed(9, 0),
        taken(9, 0, Movable),
        // A failed request has no page.
        failed(0, Movable),
        // Pages recorded as in use are.
        taken(17, 0, Movable),
    ];
    let script = Script::new(&with(host(runs), events)).unwrap();
    let pinned: Vec<(u32, u8)> = initial_blocks_of(&script)
        .into_iter()
        .filter(|(_, _, role, _)| *role == Role::Pinned)
        .map(|(page, order, ..)| (page, order))
        .collect();
    // All but page 5, in the largest aligned blocks.
    assert_eq!(pinned, [(0, 2), (4, 0), (6, 1), (8, 3)]);
    assert_eq!(script.from_caches(), 1);
    assert_eq!(script.initial_blocks().len(), 4 + 16);
    let on: Vec<bool> = script
        .steps()
        .unwrap()
        .iter()
        .map(|step| step.overlaps_used())
        .collect();
    assert_eq!(on, [false, false, false, false, true]);
    let machine =
        Machine::recorded(&with(host(vec![run(0, FRAMES, 0, PageUse::Untold)]), [])).unwrap();
    let options = Options {
        start: Start::Recorded,
        rules: Rules::TODAY,
        sample_every: 1_000_000,
    };
    let outcome = replay(Configuration::Vanilla, &machine, &script, &options, ()).unwrap();
    assert_eq!(
        (outcome.from_caches, outcome.double, outcome.unplaced),
        (1, 1, 0)
    );
    assert_eq!((outcome.frees.whole, outcome.frees.parts), (0, 1));
}

// ---- machines ----

#[test]
fn a_machine_needs_memory_and_a_trace_that_records_it() {
    assert_eq!(
        Machine::sized(1024, 1, 4096),
        Err(MachineError::TooSmall {
            bytes: 1024,
            least: 8 << 20
        })
    );
    assert!(Machine::sized((8 << 20) - 1, 1, 4096).is_err());
    assert_eq!(Machine::sized(8 << 20, 0, 4096).unwrap().cpus, 1);
    assert_eq!(
        Machine::recorded(&Trace::default()),
        Err(MachineError::Unknown)
    );
    let mut trace = host(vec![run(0, FRAMES, 0, PageUse::Hole)]);
    assert_eq!(Machine::recorded(&trace), Err(MachineError::Unknown));
    trace = idle();
    trace.header.start.zoneinfo = "Node 0, zone Normal\n  pages free many\n".into();
    let error = Machine::recorded(&trace).unwrap_err();
    assert!(matches!(error, MachineError::Zoneinfo(_)) && error.to_string().contains("--memory"));
    // States at the largest frame numbers are outside of every zone.
    trace = idle();
    trace.start.push(StateRun {
        frame: u64::MAX - 3,
        ..run(0, 8, 0, PageUse::Free)
    });
    let machine = Machine::recorded(&trace).unwrap();
    assert_eq!((machine.cpus, machine.max_order), (3, Order::new(10)));
    assert_eq!(machine.zones.len(), 1);
    assert_eq!(machine.span().len() as u64, FRAMES);
}
