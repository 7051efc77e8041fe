//! What holds for the rows of every trace. The writer refuses what does not, so that whatever was
//! written can be read; the reader refuses it too, since a file may come from anywhere.
//!
//! Invariant `events-in-time`: events ascend in time.
//! Invariant `runs-disjoint`: page states ascend in frames, and no frame is told twice.

use brickyard::Order;

use crate::{Event, StateRun};

/// Events so far: they come in order of time.
#[derive(Debug, Default)]
pub(super) struct EventCheck {
    time: u64,
}

impl EventCheck {
    /// Is `event` one that may follow?
    #[inline]
    pub(super) fn accept(&mut self, event: &Event) -> Result<(), String> {
        if event.time < self.time {
            let Event { time, .. } = event;
            return Err(format!(
                "time {time} ns is before {} ns of the event before it",
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
                "frame {frame:#x} of order {order} is past the last frame that can be"
            ));
        }
        Ok(())
    }
}

/// Runs so far: they come in rising order, and do not overlap.
#[derive(Debug, Default)]
pub(super) struct RunCheck {
    /// The first frame that is not yet described.
    next: u64,
}

impl RunCheck {
    /// Is `run` one that may follow?
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
                "{frames} frames are not a number of blocks of order {order}"
            ));
        }
        if frame < self.next {
            return Err(format!(
                "frame {frame:#x} was described before: the row before ends at {:#x}",
                self.next
            ));
        }
        self.next = frame.checked_add(frames).ok_or_else(|| {
            format!("{frames} frames from {frame:#x} are past the last frame that can be")
        })?;
        Ok(())
    }
}
