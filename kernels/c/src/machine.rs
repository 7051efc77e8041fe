//! Building a machine, in one piece of the embedder's memory.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::slice;

use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::stats::ZoneSnapshot;
use brickyard::sync::{AtomicU32, place};
use brickyard::{Zone, ZonePlan};

use crate::error::{self, BY_INVALID, BY_TOO_LARGE, BY_TOO_LITTLE_MEMORY};
use crate::hooks::by_hooks;
use crate::plan::{BY_COMPACT, BY_LUMPY, by_plan, by_zone_plan};
use crate::platform::by_platform;

/// How a CPU accesses its stash.
#[cfg(not(feature = "exclusive"))]
pub type Slots = brickyard::sync::Shared;
/// How a CPU accesses its stash.
#[cfg(feature = "exclusive")]
pub type Slots = brickyard::sync::Exclusive;

/// A zone of a machine.
pub type AZone = Zone<'static, by_platform, Slots>;
type ANode = Node<'static, AZone>;

/// All memory of an embedder: zones by node, with their platform and hooks. Opaque, and in the
/// embedder's memory.
pub struct by_machine {
    /// The zones, by node.
    pub(crate) nodes: Nodes<'static, AZone, by_hooks>,
    /// The same zones, in the order of the plan.
    pub(crate) zones: &'static [AZone],
    /// What texts are made from.
    pub(crate) snapshots: Snapshots,
}

/// Room for a snapshot of each zone, for the text that is being written.
pub(crate) struct Snapshots {
    /// Not 0 while a text is being written.
    pub(crate) taken: AtomicU32,
    pub(crate) room: UnsafeCell<&'static mut [MaybeUninit<ZoneSnapshot>]>,
}

// Invariant `one-writer`: `room` is accessed only by who changed `taken` from 0.
// SAFETY: by `one-writer`.
unsafe impl Sync for Snapshots {}

impl by_machine {
    /// Returns the zone with this number.
    pub(crate) fn zone(&self, number: usize) -> Result<&'static AZone, isize> {
        self.zones.get(number).ok_or(BY_INVALID)
    }
}

/// Returns the bytes of memory that a machine of this plan needs, at any address; or BY_INVALID,
/// BY_UNSORTED, BY_TOO_LARGE. `zones` of the plan is read, its functions are not called.
///
/// # Safety
/// `plan` points to a plan, or is null; `zones` of the plan points to `zone_count` of them, or is
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_machine_bytes(plan: *const by_plan) -> isize {
    // SAFETY: the caller's promise.
    unsafe { bytes(plan) }.map_or_else(|code| code, error::count)
}

/// # Safety
/// The conditions of [`by_machine_bytes`].
unsafe fn bytes(plan: *const by_plan) -> Result<usize, isize> {
    // SAFETY: the caller's promise, here and in the next line.
    let plan = unsafe { plan.as_ref() }.ok_or(BY_INVALID)?;
    // SAFETY: as above.
    let zones = unsafe { plan.zones() }?;
    let mut sum = room::<by_machine>(1)
        .and_then(|sum| sum.checked_add(room::<AZone>(zones.len())?))
        .and_then(|sum| sum.checked_add(room::<ANode>(nodes_of(zones))?))
        .and_then(|sum| sum.checked_add(room::<ZoneSnapshot>(zones.len())?));
    for zone in zones {
        let zone = AZone::checked_bytes(&zone.plan(plan.cpus())?).map_err(error::of_plan)?;
        sum = sum.and_then(|sum| sum.checked_add(zone));
    }
    sum.filter(|&sum| isize::try_from(sum).is_ok())
        .ok_or(BY_TOO_LARGE)
}

/// Returns the most bytes that `count` values take, wherever they begin.
const fn room<T>(count: usize) -> Option<usize> {
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) => bytes.checked_add(align_of::<T>() - 1),
        None => None,
    }
}

/// Returns the number of nodes of sorted zones.
fn nodes_of(zones: &[by_zone_plan]) -> usize {
    zones.last().map_or(0, |last| last.node as usize + 1)
}

/// Builds a machine in `memory`, without memory to hand out (see by_add), and writes where it is to
/// `*machine`. Returns 0; or what by_machine_bytes returns, or BY_TOO_LITTLE_MEMORY. The plan is
/// not needed any more afterwards.
///
/// # Safety
/// `plan` points to a plan whose functions keep the promises told there; `memory` is `bytes` bytes
/// that nobody else uses from now on, as long as the machine is used; `machine` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_machine_init(
    plan: *const by_plan,
    memory: *mut core::ffi::c_void,
    bytes: usize,
    machine: *mut *const by_machine,
) -> isize {
    // SAFETY: the caller's promise.
    let needed = match unsafe { self::bytes(plan) } {
        Ok(needed) => needed,
        Err(code) => return code,
    };
    if memory.is_null() || machine.is_null() {
        return BY_INVALID;
    }
    if bytes < needed {
        return BY_TOO_LITTLE_MEMORY;
    }
    // SAFETY: the caller's promise: the memory is the machine's for ever.
    let memory = unsafe { slice::from_raw_parts_mut(memory.cast::<MaybeUninit<u8>>(), needed) };
    // SAFETY: `bytes` found that the plan is none that is null.
    match unsafe { build(&*plan, memory) } {
        Ok(built) => {
            // SAFETY: the caller's promise.
            unsafe { machine.write(built) };
            0
        }
        Err(code) => code,
    }
}

/// # Safety
/// The conditions of [`by_machine_init`].
unsafe fn build(
    plan: &by_plan,
    memory: &'static mut [MaybeUninit<u8>],
) -> Result<&'static by_machine, isize> {
    // SAFETY: the caller's promise.
    let plans = unsafe { plan.zones() }?;
    let short = BY_TOO_LITTLE_MEMORY;
    let (machine, rest) = place(memory, 1, MaybeUninit::uninit).ok_or(short)?;
    let (zones, rest) = place(rest, plans.len(), MaybeUninit::uninit).ok_or(short)?;
    let (nodes, rest) = place(rest, nodes_of(plans), MaybeUninit::uninit).ok_or(short)?;
    let (snapshots, rest) = place(rest, plans.len(), MaybeUninit::uninit).ok_or(short)?;
    let zones = fill(zones, plans, plan, rest)?;
    let nodes = join(nodes, zones, plans);
    let slow_path = match plan.slow_path {
        BY_COMPACT => SlowPath::MODERN,
        BY_LUMPY => SlowPath::LUMPY_2007,
        _ => SlowPath::PLAIN,
    };
    Ok(machine[0].write(by_machine {
        nodes: Nodes::with_hooks(nodes, plan.hooks, slow_path),
        zones,
        snapshots: Snapshots {
            taken: AtomicU32::new(0),
            room: UnsafeCell::new(snapshots),
        },
    }))
}

/// Builds the zones in their places, with their metadata in `rest`.
fn fill(
    places: &'static mut [MaybeUninit<AZone>],
    plans: &[by_zone_plan],
    plan: &by_plan,
    mut rest: &'static mut [MaybeUninit<u8>],
) -> Result<&'static [AZone], isize> {
    let count = places.len();
    let first = places.as_mut_ptr();
    for (at, zone) in plans.iter().enumerate().take(count) {
        let zone_plan: ZonePlan = zone.plan(plan.cpus())?;
        let bytes = AZone::checked_bytes(&zone_plan).map_err(error::of_plan)?;
        let (own, others) = rest
            .split_at_mut_checked(bytes)
            .ok_or(BY_TOO_LITTLE_MEMORY)?;
        rest = others;
        AZone::new_in(&mut places[at], &zone_plan, plan.platform, own).map_err(error::of_plan)?;
    }
    // SAFETY: there are as many plans as places, so all have been written; they are borrowed for
    // good.
    Ok(unsafe { slice::from_raw_parts(first.cast::<AZone>(), count) })
}

/// Puts the zones of each node together.
fn join(
    places: &'static mut [MaybeUninit<ANode>],
    zones: &'static [AZone],
    plans: &[by_zone_plan],
) -> &'static [ANode] {
    let (count, first) = (places.len(), places.as_mut_ptr());
    let mut from = 0;
    for (id, place) in (0..).zip(places.iter_mut()) {
        let own = plans[from..]
            .iter()
            .take_while(|zone| zone.node == id)
            .count();
        place.write(Node::new(id, &zones[from..from + own]));
        from += own;
    }
    // SAFETY: all have been written, and are borrowed for good.
    unsafe { slice::from_raw_parts(first.cast::<ANode>(), count) }
}
