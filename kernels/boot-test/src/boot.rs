//! The whole test in one call, for a kernel that has one CPU up.

use core::mem::MaybeUninit;

use brickyard::{AnyZone, Frame, FrameRange, Order};

use crate::{Contents, Dice, Figures, Finding, Oracle, RangeChange, TaskPlan, Test, Worker};

/// Tests `zone` on the calling CPU: `steps` operations of `seed`, changes of ranges among them, and
/// the checks at the end. Nothing of the zone may be in use; at the end all of it is free again.
/// `memory` is for the oracle ([`Oracle::bytes`]), `bulk` is room for requests of many frames.
///
/// ```
/// use core::mem::MaybeUninit;
/// use brickyard::{Frame, FrameRange, OneCpu, Zone, ZoneKind, ZonePlan};
/// use brickyard_boot_test::{Oracle, Untouched, boot_test};
///
/// const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 8192), 1);
/// let mut metadata = [MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
/// let zone = Zone::<OneCpu>::new(&PLAN, OneCpu, &mut metadata)?;
/// zone.add(FrameRange::new(100, 8000))?;
///
/// let mut memory = [MaybeUninit::uninit(); Oracle::bytes(PLAN.span)];
/// let mut bulk = [Frame::new(0); 320];
/// let figures = boot_test(&zone, &mut memory, Untouched, 1, 10_000, &mut bulk)?;
/// assert!(figures.takes > 4000 && figures.removed > 0);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Errors
/// The first [`Finding`].
pub fn boot_test<Z: AnyZone>(
    zone: &Z,
    memory: &mut [MaybeUninit<u8>],
    contents: impl Contents,
    seed: u64,
    steps: u64,
    bulk: &mut [Frame],
) -> Result<Figures, Finding> {
    let frames = zone.managed_frames();
    let oracle = &Oracle::new(zone.span(), memory)?;
    let test = Test {
        zone,
        oracle,
        contents: &contents,
    };
    let plan = TaskPlan {
        most_held: (frames / 4).max(1),
        ..TaskPlan::new(seed)
    };
    let mut dice = Dice::new(!seed);
    let mut figures = Figures::default();
    let mut worker = Worker::new(test, plan);
    for _ in 0..steps {
        if !worker.step(bulk)? {
            break;
        }
        if dice.one_in(200) {
            figures += test.refuse_range(Order::HUGE, 0)?;
            let change = RangeChange::ALL[dice.below(3) as usize];
            let range = some_range(&mut dice, zone.span());
            figures += test.change_range(change, range, 0, || false)?;
        }
    }
    figures += worker.finish()?;
    figures += test.conclude(frames)?;
    Ok(figures)
}

/// Draws a range of up to 300 frames.
fn some_range(dice: &mut Dice, span: FrameRange) -> FrameRange {
    let start = span.start.plus(dice.below(span.len() as u64) as usize);
    FrameRange::at(start, 1 + dice.below(300) as usize)
}
