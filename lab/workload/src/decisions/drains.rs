//! Drains of page sets: why the host makes each, which the rules ask for, and how much they move.
//!
//! What a page set holds is known from events a little too high or too low, see
//! [`decisions`](super). So a drain after a free shows that the set was full, and is asked for its
//! length alone.

use brickyard::Frame;
use brickyard_trace::{Event, name_in};

use super::{Contradiction, Decision, Following, Run};
use crate::start::{TICK, TICKS_MOST, WORKER};

/// The most frees that are shown before the first of them acts: the kernel frees pages of a file or
/// of a task in batches of so many (`PAGEVEC_SIZE`).
const ANNOUNCED_MOST: usize = 31;

/// By how much the time at which a page set shrinks may vary, in nanoseconds: it is that of a
/// deferrable timer, and of a worker that has to wait for its CPU.
const TICK_VARIES: u64 = 50_000_000;

/// A drain that the rules ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    zone: usize,
    frames: usize,
    // In a burst of frees, however few frames the set holds.
    in_burst: bool,
}

/// Why frames leave a page set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhyDrained {
    /// It became full, or there is a burst of frees, and the rules say so.
    Due(Due),
    /// It became full by the last frees.
    Full,
    /// A second has passed.
    Time,
    Unknown,
}

impl Following<'_> {
    /// Lets the page sets of a CPU shrink for each second that has passed.
    pub(super) fn pass_time(&mut self, cpu: usize, time: u64) {
        let next = self.cpus[cpu].next_tick;
        let Some(late) = time.checked_sub(next.saturating_add(TICK_VARIES)) else {
            return;
        };
        let passed = late / TICK;
        // After so many, nothing changes any more.
        (0..=passed.min(TICKS_MOST)).for_each(|_| self.tick(cpu));
        self.cpus[cpu].next_tick = next.saturating_add((passed + 1).saturating_mul(TICK));
    }

    /// Lets a second pass on a CPU.
    fn tick(&mut self, cpu: usize) {
        for zone in &self.zones {
            zone.sync(cpu);
            zone.courses[cpu].tick(&zone.sizes);
        }
    }

    /// Counts a block of a drain, and asks at the first why it leaves.
    pub(super) fn drained(&mut self, cpu: usize, zone: usize, event: &Event, names: &[String]) {
        let frames = event.order.frames();
        if let Some(Run::Drain { left, last, .. }) = &mut self.cpus[cpu].run {
            *left += frames;
            *last = frames;
            self.zones[zone].counts[cpu] -= frames as i64;
            return;
        }
        let why = self.why_drained(cpu, zone, event, names);
        self.zones[zone].counts[cpu] -= frames as i64;
        self.cpus[cpu].run = Some(Run::Drain {
            zone,
            why,
            left: frames,
            last: frames,
        });
        let of = &mut self.zones[zone];
        if of.below_high && of.buddy.free_frames() > of.high {
            of.below_high = false;
        }
    }

    /// Returns why a drain begins, and learns from it how full the page set is.
    fn why_drained(
        &mut self,
        cpu: usize,
        zone: usize,
        event: &Event,
        names: &[String],
    ) -> WhyDrained {
        let own = &mut self.cpus[cpu];
        if own.freed_by != Some(event.pid) {
            if !name_in(names, event.name).starts_with(WORKER) {
                return WhyDrained::Unknown;
            }
            if own.next_tick < event.time.saturating_add(TICK / 2) {
                own.next_tick = event.time.saturating_add(TICK);
                self.tick(cpu);
            }
            return WhyDrained::Time;
        }
        let due = own.due.pop_front();
        let of = &mut self.zones[zone];
        if of.announced[cpu].is_empty() && due.is_none() {
            return WhyDrained::Unknown;
        }
        if of.fills_up(self.reclaiming) && due.is_none_or(|due| !due.in_burst) {
            of.counts[cpu] = of.courses[cpu].high() as i64;
        }
        due.map_or(WhyDrained::Full, WhyDrained::Due)
    }

    /// Ends the wait for drains that the rules ask for, and that the host has not made.
    pub(super) fn end_due(&mut self, cpu: usize) {
        let in_burst = self.cpus[cpu].due.iter().find(|due| due.in_burst).copied();
        let full = self.cpus[cpu].due.iter().find(|due| !due.in_burst).copied();
        self.cpus[cpu].due.clear();
        if let Some(due) = in_burst {
            self.agreement(Decision::Drain).ask(0, due.frames, false);
        }
        if let Some(due) = full {
            let of = &mut self.zones[due.zone];
            if of.fills_up(self.reclaiming) {
                let most = of.courses[cpu].high() as i64 - 1;
                of.counts[cpu] = of.counts[cpu].min(most);
            }
            of.sync(cpu);
        }
    }

    /// Judges a drain that is over, of so many frames, with the last block of so many.
    pub(super) fn end_drain(
        &mut self,
        cpu: usize,
        zone: usize,
        why: WhyDrained,
        (left, last): (usize, usize),
    ) {
        let mut answer = None;
        match why {
            WhyDrained::Due(first) => {
                // Several drains in a row look like one. Each ends with the block that reaches its
                // number.
                let (mut wanted, mut drains) = (first.frames, 1);
                while wanted < left
                    && let Some(next) = self.cpus[cpu].due.front()
                    && wanted + next.frames <= left
                {
                    wanted += next.frames;
                    drains += 1;
                    self.cpus[cpu].due.pop_front();
                }
                let agrees = wanted <= left && left < wanted + drains * last;
                answer = Some((wanted, agrees));
            }
            WhyDrained::Time => {
                // It holds now what it may.
                let of = &mut self.zones[zone];
                of.counts[cpu] = of.courses[cpu].high() as i64;
            }
            WhyDrained::Full => {}
            WhyDrained::Unknown => self.contradicted(Contradiction::OtherDrain),
        }
        let of = &mut self.zones[zone];
        if let WhyDrained::Due(_) | WhyDrained::Full = why {
            let announced = of.announced[cpu].iter();
            let agrees = |&&wanted: &&usize| wanted <= left && left < wanted + last;
            let fits = announced.clone().find(agrees).map(|&wanted| (wanted, true));
            let latest = announced.last().map(|&wanted| (wanted, false));
            let exact = answer.filter(|&(_, agrees)| agrees);
            answer = exact.or(fits).or(answer).or(latest);
        }
        of.announced[cpu].clear();
        of.sync(cpu);
        if let Some((wanted, agrees)) = answer {
            self.agreement(Decision::Drain).ask(left, wanted, agrees);
        }
    }

    /// Follows a free: the page set may be full by it.
    pub(super) fn freed(&mut self, cpu: usize, zone: usize, event: &Event, frame: Frame) {
        if !self.is_listed(event.order) {
            self.put_back(zone, frame, event.order, None);
            return;
        }
        let reclaiming = self.reclaiming;
        if self.cpus[cpu].freed_by.is_none() {
            for zone in &mut self.zones {
                zone.announced[cpu].clear();
            }
        }
        let of = &mut self.zones[zone];
        of.counts[cpu] += event.order.frames() as i64;
        let course = &of.courses[cpu];
        let in_burst = course.is_in_burst(event.order, &of.sizes);
        let frames = course.free(event.order, &of.sizes, of.below_high, reclaiming);
        if frames > 0 {
            course.set_count(course.count().saturating_sub(frames));
            self.cpus[cpu].due.push_back(Due {
                zone,
                frames,
                in_burst,
            });
        }
        let announced = &mut of.announced[cpu];
        if announced.len() == ANNOUNCED_MOST {
            announced.pop_front();
        }
        announced.push_back(course.leaving_if_full(&of.sizes, of.below_high, reclaiming));
    }
}
