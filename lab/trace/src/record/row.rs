//! A record of the ring buffer, decoded, and its encoding in the spool: about 8 bytes, where the
//! kernel's own takes 24 to 44.
//!
//! Numbers are written in groups of seven bits, lowest first; times and frames as differences from
//! the previous record.

use brickyard::{MigrateType, Order};

use crate::{Step, What};

/// A task's name, of the kernel's maximum length; padded with 0.
pub type Comm = [u8; 16];

/// A record of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since the recording began.
    pub time: u64,
    /// The task that was running.
    pub pid: i32,
    /// What happened.
    pub body: Body,
}

/// The contents of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// An event of the page allocator.
    Page {
        /// The first frame.
        frame: u64,
        /// The size.
        order: Order,
        /// What happened.
        what: What,
    },
    /// The task `pid` has this name from now on.
    Named {
        /// The task.
        pid: i32,
        /// Its name.
        comm: Comm,
    },
}

const ALLOC: u8 = 0;
const FAILURE: u8 = 1;
const FREE: u8 = 2;
const FALLBACK: u8 = 3;
const NAMED: u8 = 4;
const TAKEN: u8 = 5;
const DRAINED: u8 = 6;
/// What the next byte says: [`BATCHED`], or a step by its number.
const OTHER: u8 = 7;
const BATCHED: u8 = u8::MAX;
/// In the first byte: the task is that of the previous record.
const SAME_TASK: u8 = 1 << 3;
/// In the first byte: order 0.
const ORDER_0: u8 = 1 << 4;

/// Encodes or decodes records one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codec {
    time: u64,
    frame: u64,
    pid: i32,
}

impl Codec {
    /// Appends `record` to `out`. Its time must not be before that of the previous record.
    pub fn put(&mut self, record: &Record, out: &mut Vec<u8>) {
        let (kind, order) = match record.body {
            Body::Page { order, what, .. } => match what {
                What::Alloc { .. } => (ALLOC, order),
                What::Failure { .. } => (FAILURE, order),
                What::Free => (FREE, order),
                What::Fallback { .. } => (FALLBACK, order),
                What::Taken { .. } => (TAKEN, order),
                What::Drained { .. } => (DRAINED, order),
                What::Batched | What::Step { .. } => (OTHER, order),
            },
            Body::Named { .. } => (NAMED, Order::ZERO),
        };
        let same_task = if record.pid == self.pid { SAME_TASK } else { 0 };
        let order_0 = if order == Order::ZERO { ORDER_0 } else { 0 };
        out.push(kind | same_task | order_0);
        if same_task == 0 {
            put_number(out, zigzag(i64::from(record.pid)));
        }
        if order_0 == 0 {
            out.push(order.get());
        }
        put_number(out, record.time.wrapping_sub(self.time));
        self.time = record.time;
        self.pid = record.pid;
        match record.body {
            Body::Page { frame, what, .. } => {
                put_number(out, zigzag(frame.wrapping_sub(self.frame) as i64));
                self.frame = frame;
                put_what(out, what);
            }
            Body::Named { pid, comm } => {
                put_number(out, zigzag(i64::from(pid)));
                out.extend_from_slice(&comm);
            }
        }
    }

    /// Takes the next record from the front of `bytes`; `None` if they do not begin with one.
    pub fn get(&mut self, bytes: &mut &[u8]) -> Option<Record> {
        let head = get_byte(bytes)?;
        if head & SAME_TASK == 0 {
            self.pid = i32::try_from(unzigzag(get_number(bytes)?)).ok()?;
        }
        let order = if head & ORDER_0 == 0 {
            Order::try_new(get_byte(bytes)?)?
        } else {
            Order::ZERO
        };
        self.time = self.time.wrapping_add(get_number(bytes)?);
        let body = if head & 7 == NAMED {
            let pid = i32::try_from(unzigzag(get_number(bytes)?)).ok()?;
            let (comm, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Body::Named { pid, comm: *comm }
        } else {
            let moved = unzigzag(get_number(bytes)?) as u64;
            self.frame = self.frame.wrapping_add(moved);
            Body::Page {
                frame: self.frame,
                order,
                what: get_what(head & 7, bytes)?,
            }
        };
        Some(Record {
            time: self.time,
            pid: self.pid,
            body,
        })
    }
}

fn put_what(out: &mut Vec<u8>, what: What) {
    match what {
        What::Alloc { mobility, flags } | What::Failure { mobility, flags } => {
            out.push(mobility.index() as u8);
            put_number(out, flags);
        }
        What::Free => {}
        What::Taken { mobility, refill } => {
            out.extend_from_slice(&[mobility.index() as u8, u8::from(refill)]);
        }
        What::Drained { mobility } => out.push(mobility.index() as u8),
        What::Batched => out.push(BATCHED),
        What::Step { step, numbers } => {
            out.push(step as u8);
            for number in numbers {
                put_number(out, u64::from(number));
            }
        }
        What::Fallback {
            mobility,
            from_order,
            from,
            claimed,
        } => {
            out.extend_from_slice(&[
                mobility.index() as u8,
                from_order.get(),
                from.index() as u8,
                u8::from(claimed),
            ]);
        }
    }
}

fn get_what(kind: u8, bytes: &mut &[u8]) -> Option<What> {
    match kind {
        FREE => return Some(What::Free),
        OTHER => {
            let number = get_byte(bytes)?;
            if number == BATCHED {
                return Some(What::Batched);
            }
            let step = *Step::ALL.get(usize::from(number))?;
            let mut numbers = [0; 3];
            for number in &mut numbers {
                *number = u32::try_from(get_number(bytes)?).ok()?;
            }
            return Some(What::Step { step, numbers });
        }
        _ => {}
    }
    let mobility = get_type(bytes)?;
    match kind {
        ALLOC => Some(What::Alloc {
            mobility,
            flags: get_number(bytes)?,
        }),
        FAILURE => Some(What::Failure {
            mobility,
            flags: get_number(bytes)?,
        }),
        TAKEN => Some(What::Taken {
            mobility,
            refill: get_byte(bytes)? != 0,
        }),
        DRAINED => Some(What::Drained { mobility }),
        FALLBACK => Some(What::Fallback {
            mobility,
            from_order: Order::try_new(get_byte(bytes)?)?,
            from: get_type(bytes)?,
            claimed: get_byte(bytes)? != 0,
        }),
        _ => None,
    }
}

fn get_type(bytes: &mut &[u8]) -> Option<MigrateType> {
    let number = get_byte(bytes)?;
    MigrateType::ALL.get(usize::from(number)).copied()
}

fn get_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn get_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = get_byte(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Maps numbers of small magnitude, of either sign, to small unsigned numbers.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
