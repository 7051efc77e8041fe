//! The rules for the rows of every trace. The writer enforces them, so that whatever was written
//! can be read; the reader does too, since a file may come from anywhere.
//!
//! Invariant `events-in-time`: events ascend in time.
//! Invariant `runs-disjoint`: page states ascend in frames, and no frame is described twice.

use brickyard::Order;

use crate::{Event, StateRun};

/// Checks that events are in order of time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventCheck {
    time: u64,
}

impl EventCheck {
    /// Takes the next event, or says why it must not follow those before it.
    #[inline]
    pub(super) fn accept(&mut self, event: &Event) -> Result<(), String> {
        if event.time < self.time {
            let Event { time, .. } = event;
            return Err(format!(
                "time {time} ns is before the previous event's {} ns",
                self.time
            ));
        }
        self.time = event.time;
        if event
            .frame
            .checked_add(event.order.frames() as u64)
            .is_none()
        {
            let Event { frame, order, .. } = event;
            return Err(format!(
                "frame {frame:#x} of order {order} is past the last possible frame"
            ));
        }
        Ok(())
    }
}

/// Checks that runs are in rising order and do not overlap.
#[derive(Debug, Default)]
pub(super) struct RunCheck {
    /// The first frame that is not yet described.
    next: u64,
}

impl RunCheck {
    /// Takes the next run, or says why it must not follow those before it.
    pub(super) fn accept(&mut self, run: &StateRun) -> Result<(), String> {
        let StateRun {
            frame,
            frames,
            order,
            ..
        } = *run;
        if Order::try_new(order).is_none() {
            return Err(format!("order {order} is above {}", Order::MAX));
        }
        if frames == 0 || frames & ((1 << order) - 1) != 0 {
            return Err(format!(
                "{frames} frames are not a whole number of blocks of order {order}"
            ));
        }
        if frame < self.next {
            return Err(format!(
                "frame {frame:#x} was described already: the previous row ends at {:#x}",
                self.next
            ));
        }
        self.next = frame.checked_add(frames).ok_or_else(|| {
            format!("{frames} frames from {frame:#x} go past the last possible frame")
        })?;
        Ok(())
    }
}
