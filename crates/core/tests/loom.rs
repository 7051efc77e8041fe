//! draft
#![cfg(loom)]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use brickyard::bulk::{Batch, BulkPolicy, Tuning};
use brickyard::design::{Classic, Design};
use brickyard::front::{Direct, Front, ListSizes, MagazineSizes, Magazines, PerCpuLists};
use brickyard::store::buddy::Buddy;
use brickyard::store::grouping::{Grouping, NoGrouping};
use brickyard::sync::{AtomicU32, Exclusive, GuardedU32, RawLock, Shared, TicketLock};
use brickyard::zone::{Placed, Zone, ZonePlan};
use brickyard::{
    AllocError, Context, Frame, FrameRange, Mobility, Order, Platform, Request, ZoneKind,
};
use loom::thread::{self, JoinHandle};

#[test]
fn sizes() {
    type D = Classic<'static, NoGrouping, Magazines<'static, TicketLock>, TicketLock, brickyard::OneCpu>;
    println!("{} {}", size_of::<Zone<D>>(), size_of::<brickyard::store::frames::FrameRecord>());
}
