//! Real calls on a painted stack, on x86-64 Linux: each prints its name, the address of the
//! function that made it, and the bytes of stack that it took. `proofs/stack` compares them with
//! the bounds.

use core::arch::{asm, global_asm};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::block::Use;
use brickyard::pressure::ContiguousRequest;
use brickyard::stats::ZoneSnapshot;
use brickyard::{Context, Frame, FrameRange, Mobility, Request, ZoneKind, ZonePlan};
use brickyard_slab::{CacheSpec, Checks, RuleText};

use crate::embedder::CPU;
use crate::memory::PAGES;

/// How far below the stack pointer is painted.
const PAINTED: usize = 32 << 10;

/// 128 MiB, never touched, with stashes for two CPUs.
const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, FRAMES), 2);
const FRAMES: usize = 32 << 10;

/// Metadata of whatever is made; nothing is given back.
const ROOM: usize = 1 << 20;
static mut MEMORY: [MaybeUninit<u8>; ROOM] = [MaybeUninit::uninit(); ROOM];
static USED: AtomicUsize = AtomicUsize::new(0);

/// Frames that the calls take.
static mut FRAMES_HELD: [Frame; FRAMES] = [Frame::new(0); FRAMES];

/// Memory of these bytes that nobody else has.
fn memory(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    // Relaxed: one thread.
    let from = USED.fetch_add(bytes, Ordering::Relaxed);
    let all: *mut [MaybeUninit<u8>] = &raw mut MEMORY;
    // SAFETY: each part is handed out once. Bounds are checked.
    unsafe { &mut (&mut *all)[from..from + bytes] }
}

global_asm!(".globl _start", "_start:", "xor ebp, ebp", "and rsp, -16", "call {main}", main = sym main);

extern "C" fn main() -> ! {
    let fine = exclusive() && shared();
    exit(usize::from(!fine));
}

pub(crate) fn exit(code: usize) -> ! {
    // SAFETY: `exit_group` takes a number, touches no memory and does not return.
    unsafe { asm!("syscall", in("rax") 231, in("rdi") code, options(noreturn, nostack)) }
}

fn print(text: &[u8]) {
    // SAFETY: `write` reads these bytes.
    unsafe {
        asm!(
            "syscall", inlateout("rax") 1_usize => _, in("rdi") 1, in("rsi") text.as_ptr(),
            in("rdx") text.len(), lateout("rcx") _, lateout("r11") _,
        );
    }
}

fn print_number(mut number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    print(&digits[at..]);
}

/// Makes the call, and keeps the compiler from putting it anywhere else.
#[inline(never)]
extern "C" fn make<R, F: FnMut() -> R>(call: *mut F, result: *mut MaybeUninit<R>) {
    // SAFETY: `on_paint` passes what it borrows.
    unsafe { (*result).write((*call)()) };
}

/// Makes a call, and prints how much of the stack it has written to.
fn on_paint<R>(name: &str, mut call: impl FnMut() -> R) -> R {
    fn address_of<R, F: FnMut() -> R>(_: &F) -> extern "C" fn(*mut F, *mut MaybeUninit<R>) {
        make::<R, F>
    }
    let function = address_of(&call);
    let mut result = MaybeUninit::uninit();
    let untouched: usize;
    // SAFETY: the stack below the pointer is nobody's, and there is room for so much. `make` gets a
    // call and a place for its result.
    unsafe {
        asm!(
            "lea rdi, [rsp - {painted}]",
            "mov ecx, {words}",
            "mov rax, r15",
            "rep stosq",
            "mov rdi, r12",
            "mov rsi, r13",
            "call r14",
            "lea rdi, [rsp - {painted}]",
            "mov ecx, {words}",
            "mov rax, r15",
            "repe scasq",
            "mov r15, rcx",
            painted = const PAINTED,
            words = const PAINTED / 8,
            in("r12") &raw mut call,
            in("r13") &raw mut result,
            in("r14") function,
            inout("r15") 0x5aa5_c33c_9669_f00f_usize => untouched,
            clobber_abi("C"),
        );
    }
    print(name.as_bytes());
    print(b" ");
    print_number(function as usize);
    print(b" ");
    // The word that ended the search is not counted any more.
    print_number((untouched + 1) * 8);
    print(b"\n");
    // SAFETY: written by `make`.
    unsafe { result.assume_init() }
}

/// Says what is not so, on a line of its own.
macro_rules! wants {
    ($fine:ident, $what:expr) => {
        if !$what {
            print(concat!("wrong: ", stringify!($what), "\n").as_bytes());
            $fine = false;
        }
    };
}

/// Uses a zone and slabs with one kind of slots. Returns true if everything went as it should.
macro_rules! run {
    ($access:ident) => {
        fn $access() -> bool {
            use crate::either::{Bitmap, ZoneSnapshot as Snapshot, texts};
            use crate::$access::{
                AnyZone, Cache, General, Node, Nodes, RawCache, Slabs, Zone, ZonePages, pressure,
            };
            use crate::$access::{Mapped, TheNodes, TheSlabs, TheZone, plan};

            let order = brickyard::Order::new;
            // Relaxed, everywhere: one thread.
            let go = |cpu: usize| CPU.store(cpu, Ordering::Relaxed);
            let held: *mut [Frame] = &raw mut FRAMES_HELD;
            // SAFETY: only this borrows them, and the other run has ended.
            let held = unsafe { &mut *held };
            let bytes = TheZone::bytes(&PLAN);
            let made = on_paint("Zone::new", || Zone::new(&PLAN, memory(bytes)));
            let Ok(zone) = made else { return false };
            let zone = &zone;
            let all = FrameRange::new(16, FRAMES - 16);
            let mut fine = on_paint("Zone::add", || Zone::add(zone, all)).is_ok();
            let part = FrameRange::new(1000, 1700);
            wants!(
                fine,
                on_paint("Zone::reserve", || Zone::reserve(zone, part)) == Ok(700)
            );
            wants!(
                fine,
                on_paint("Zone::unreserve", || Zone::unreserve(zone, part)) == Ok(700)
            );
            wants!(
                fine,
                on_paint("Zone::remove", || Zone::remove(zone, part)) == Ok(700)
            );
            wants!(
                fine,
                on_paint("Zone::add", || Zone::add(zone, part)) == Ok(700)
            );

            // All of it, on both CPUs, for all mobilities, and beyond: the last requests look
            // everywhere.
            let mut count = 0;
            loop {
                go(count / 100 % 2);
                let request = Request::page(Mobility::ALL[count / 7 % 3]);
                match on_paint("Zone::alloc", || Zone::alloc(zone, &request)) {
                    Ok(frame) => held[count] = frame,
                    Err(_) => break,
                }
                count += 1;
            }
            // Back in an order that the stashes have to sort.
            for i in 0..count {
                go(i / 1000 % 2);
                let frame = held[i * 7919 % count];
                wants!(
                    fine,
                    on_paint("Zone::free", || Zone::free(zone, frame, order(0))).is_ok()
                );
            }
            wants!(fine, on_paint("Zone::check", || Zone::check(zone)).is_ok());
            on_paint("Zone::drain", || Zone::drain(zone));
            wants!(fine, on_paint("Zone::check", || Zone::check(zone)).is_ok());

            // Other orders; atomic requests; what is freed in parts.
            for size in [1, 2, 3, 6, 9, 10] {
                for context in [Context::MaySleep, Context::Atomic, Context::Interrupt] {
                    let request =
                        Request::new(order(size), Mobility::Unmovable).in_context(context);
                    count = 0;
                    while let Ok(frame) = on_paint("Zone::alloc", || Zone::alloc(zone, &request)) {
                        held[count] = frame;
                        count += 1;
                    }
                    for &frame in &held[..count] {
                        let (size, half) = match size {
                            1..=6 => (size - 1, Some(frame.plus(1 << (size - 1)))),
                            _ => (size, None),
                        };
                        for frame in [Some(frame), half].into_iter().flatten() {
                            let freed =
                                on_paint("Zone::free", || Zone::free(zone, frame, order(size)));
                            wants!(fine, freed.is_ok());
                        }
                    }
                }
            }
            on_paint("Zone::drain", || Zone::drain(zone));

            // Many at once, and ranges.
            let request = Request::page(Mobility::Movable);
            let taken = on_paint("Zone::alloc_bulk", || {
                Zone::alloc_bulk(zone, &request, &mut held[..5000])
            });
            wants!(fine, taken == Ok(5000));
            held[..5000].reverse();
            wants!(
                fine,
                on_paint("Zone::free_bulk", || Zone::free_bulk(zone, &held[..200])).is_ok()
            );
            wants!(
                fine,
                on_paint("Zone::free_bulk", || Zone::free_bulk(
                    zone,
                    &held[200..5000]
                ))
                .is_ok()
            );
            let block = Request::new(order(4), Mobility::Movable);
            let place = Frame::new(2048);
            wants!(
                fine,
                on_paint("Zone::alloc_at", || Zone::alloc_at(zone, place, &block)).is_ok()
            );
            let range = FrameRange::at(place, 16);
            wants!(
                fine,
                on_paint("Zone::free_range", || Zone::free_range(zone, range)).is_ok()
            );
            on_paint("Zone::dedicate", || {
                Zone::dedicate(zone, place, Mobility::Unmovable)
            });

            // Scattered pages, so that there is something to compact and to move.
            count = 0;
            while count < 20_000 {
                match Zone::alloc(zone, &request) {
                    Ok(frame) => held[count] = frame,
                    Err(_) => break,
                }
                count += 1;
            }
            for &frame in held[..count].iter().filter(|frame| frame.number() % 3 != 0) {
                wants!(fine, Zone::free(zone, frame, order(0)).is_ok());
            }
            Zone::drain(zone);
            let huge = Request::new(order(9), Mobility::Movable);
            on_paint("AnyZone::compact", || AnyZone::compact(zone, &huge));
            on_paint("pressure::compact_for", || {
                pressure::compact_for(zone, &huge)
            });
            on_paint("pressure::compact_all", || pressure::compact_all(zone));
            let wanted = ContiguousRequest::new(300, FrameRange::new(512, FRAMES - 512));
            let found = on_paint("pressure::alloc_contiguous", || {
                pressure::alloc_contiguous(zone, &wanted)
            });
            if let Ok(range) = found {
                wants!(fine, Zone::free_range(zone, range).is_ok());
            }
            let far = FrameRange::new(FRAMES - 2048, FRAMES - 1024);
            let gone = on_paint("pressure::offline", || pressure::offline(zone, far));
            if gone.is_ok() {
                wants!(fine, Zone::add(zone, far).is_ok());
            }
            wants!(
                fine,
                on_paint("AnyZone::isolate", || AnyZone::isolate(zone, part)).is_ok()
            );
            let isolated = on_paint("AnyZone::take_isolated", || {
                AnyZone::take_isolated(zone, part, Mobility::Movable)
            });
            on_paint("AnyZone::unisolate", || AnyZone::unisolate(zone, part));
            if isolated.is_ok() {
                wants!(fine, Zone::free_range(zone, part).is_ok());
            }
            on_paint("AnyZone::free_table", || AnyZone::free_table(zone));
            on_paint("AnyZone::can_serve", || AnyZone::can_serve(zone, &huge));
            on_paint("AnyZone::why_not", || AnyZone::why_not(zone, &huge));

            // Nodes, with hooks that reclaim nothing after all.
            let zones = core::slice::from_ref(zone);
            let node = [Node::new(zones)];
            let nodes: &TheNodes<'_> = &Nodes::with_hooks(&node);
            on_paint("Nodes::set_min_free_kbytes", || {
                Nodes::set_min_free_kbytes(nodes, 1024)
            });
            for request in [request, huge, huge.atomic(), block] {
                count = 0;
                while let Ok(frame) = on_paint("Nodes::alloc", || Nodes::alloc(nodes, 0, &request))
                {
                    held[count] = frame;
                    count += 1;
                    if count > 30_000 {
                        break;
                    }
                }
                for &frame in &held[..count] {
                    let freed =
                        on_paint("Nodes::free", || Nodes::free(nodes, frame, request.order));
                    wants!(fine, freed.is_ok());
                }
            }
            let taken = on_paint("Nodes::alloc_bulk", || {
                Nodes::alloc_bulk(nodes, 0, &request, &mut held[..3000])
            });
            wants!(fine, taken.is_ok());
            let taken = taken.unwrap_or(0);
            wants!(
                fine,
                on_paint("Nodes::free_bulk", || Nodes::free_bulk(
                    nodes,
                    &held[..taken]
                ))
                .is_ok()
            );
            let found = on_paint("Nodes::alloc_contiguous", || {
                Nodes::alloc_contiguous(nodes, &wanted)
            });
            if let Ok(range) = found {
                wants!(
                    fine,
                    on_paint("Nodes::free_range", || Nodes::free_range(nodes, range)).is_ok()
                );
            }
            wants!(
                fine,
                on_paint("Nodes::check", || Nodes::check(nodes)).is_ok()
            );
            on_paint("Nodes::drain", || Nodes::drain(nodes));

            // Texts.
            let snapshot = on_paint("Nodes::snapshots", || Nodes::snapshots(nodes));
            let Some(snapshot) = snapshot else {
                return false;
            };
            on_paint("ZoneSnapshot::counts_to_be_had", || {
                Snapshot::counts_to_be_had(&snapshot)
            });
            let snapshots: &[ZoneSnapshot] = core::slice::from_ref(&snapshot);
            wants!(
                fine,
                on_paint("texts::buddyinfo", || texts::buddyinfo(snapshots))
            );
            wants!(
                fine,
                on_paint("texts::pagetypeinfo", || texts::pagetypeinfo(snapshots))
            );
            wants!(
                fine,
                on_paint("texts::unusable_index", || texts::unusable_index(snapshots))
            );
            wants!(
                fine,
                on_paint("texts::extfrag_index", || texts::extfrag_index(snapshots))
            );
            let why = brickyard::AllocError::Exhausted { free: 1, cached: 2 };
            wants!(fine, on_paint("texts::error", || texts::error(&why)));
            let _ = (Bitmap::may_refuse, Use::Free);

            fine && {
                // Slabs over a zone of real memory.
                let small = ZonePlan {
                    max_order: order(8),
                    page_block_order: order(8),
                    ..ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, PAGES), 2)
                };
                // SAFETY: frame `i` is page `i` of the memory. The other run's zone has ended.
                let map = unsafe { brickyard_slab::DirectMap::new(crate::embedder::Embedder, 12) };
                let Ok(mut mapped) = Mapped::new(&small, map, memory(Mapped::bytes(&small))) else {
                    return false;
                };
                wants!(fine, mapped.add(FrameRange::new(0, PAGES)) == Ok(PAGES));
                let Ok(rules) = RuleText::parse("FZPU,checked") else {
                    return false;
                };
                let plan = plan(rules).pages(PAGES);
                let room = memory(TheSlabs::bytes(&plan));
                let mapped: *mut Mapped<'_> = &mut mapped;
                let room: *mut [MaybeUninit<u8>] = room;
                // SAFETY: the call is made once, and both outlive the slabs.
                let made = on_paint("Slabs::over_zone", || unsafe {
                    Slabs::over_zone(&plan, &mut *mapped, &mut *room)
                });
                let Ok(slabs) = made else { return false };
                let slabs: &TheSlabs<'_> = &slabs;
                let mut objects = [NonNull::<u8>::dangling(); 3000];
                let constructed = CacheSpec::new("constructed", 100)
                    .constructor(crate::embedder::embedder_constructs);
                let specs = [
                    CacheSpec::new("plain", 200),
                    CacheSpec::new("large", 4000),
                    CacheSpec::new("checked", 64).checks(Checks::ALL),
                    constructed,
                ];
                for spec in specs {
                    let made = on_paint("Slabs::cache", || Slabs::cache(slabs, spec));
                    let Ok(cache) = made else { return false };
                    let mut got = 0;
                    while got < objects.len() {
                        go(got / 50 % 2);
                        match on_paint("RawCache::alloc", || RawCache::alloc(&cache)) {
                            Ok(object) => objects[got] = object,
                            Err(_) => break,
                        }
                        got += 1;
                    }
                    on_paint("Slabs::trim", || Slabs::trim(slabs));
                    for i in 0..got {
                        go(i / 70 % 2);
                        let object = objects[i * 7919 % got];
                        wants!(
                            fine,
                            on_paint("RawCache::free", || RawCache::free(&cache, object)).is_ok()
                        );
                    }
                    // The last one again: refused, and reported.
                    let last = objects[(got - 1) * 7919 % got];
                    wants!(
                        fine,
                        on_paint("RawCache::free", || RawCache::free(&cache, last)).is_err()
                    );
                    on_paint("RawCache::numbers", || RawCache::numbers(&cache));
                    let some = on_paint("RawCache::reserve", || RawCache::reserve(&cache));
                    wants!(fine, some.is_ok());
                    drop(some);
                    on_paint("RawCache::each_in_use", || RawCache::each_in_use(&cache));
                    on_paint("RawCache::shrink", || RawCache::shrink(&cache));
                    let mut cache = Some(cache);
                    let ended =
                        on_paint("RawCache::destroy", || cache.take().map(RawCache::destroy));
                    wants!(fine, matches!(ended, Some(Ok(()))));
                }
                let made = on_paint("Slabs::typed", || Slabs::typed(slabs));
                let Ok(typed) = made else { return false };
                let value = on_paint("Cache::alloc", || Cache::alloc(&typed, &[1; 3]));
                let mut value = value.ok();
                wants!(fine, value.is_some());
                on_paint("Object::drop", || value.take());
                let made = on_paint("Slabs::general", || Slabs::general(slabs));
                let Ok(general) = made else { return false };
                for bytes in [1, 60, 1216, 9000] {
                    let Ok(layout) = core::alloc::Layout::from_size_align(bytes, 8) else {
                        return false;
                    };
                    let got = on_paint("General::alloc", || General::alloc(&general, layout));
                    let Ok(got) = got else { return false };
                    let freed = on_paint("General::free", || General::free(&general, got, layout));
                    wants!(fine, freed.is_ok());
                }
                on_paint("Slabs::drain", || Slabs::drain(slabs));
                on_paint("Slabs::shrink", || Slabs::shrink(slabs));
                let _ = ZonePages::new;
                fine
            }
        }
    };
}

run!(exclusive);
run!(shared);
