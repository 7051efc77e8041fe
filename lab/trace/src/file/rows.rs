//! Columns to rows: each row's values, and whether they are valid.

use core::ops::ControlFlow;
use std::collections::HashMap;

use brickyard::{MigrateType, Order};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};

use super::ReadError;
use super::check::{EventCheck, RunCheck};
use super::kind::{Kind, RowKind, parse_mobility, parse_usage};
use super::schema::NAME_BYTES;
use crate::table::RowGroup;
use crate::{Event, NameId, NameIds, PageState, StateRun, What, columns};

/// Rows that are read from the columns at a time.
const BATCH: usize = 1 << 13;

/// Some rows of a row group, one after another.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) start: Vec<StateRun>,
    pub(super) events: Vec<Event>,
    pub(super) end: Vec<StateRun>,
    /// Names that no earlier batch of the row group has: its events number them on.
    names: Vec<String>,
    check: EventCheck,
    /// Rows of the file before these, for messages.
    first: usize,
}

impl Batch {
    fn rows(&self) -> usize {
        self.start.len() + self.events.len() + self.end.len()
    }
}

/// A row group while it is read.
pub(super) struct GroupRows {
    batch: Batch,
    names: Names,
    has_events: bool,
    has_end: bool,
    /// Rows of the file before this row group, for messages.
    first: usize,
    /// Rows read so far.
    rows: usize,
    /// Rows that it may have.
    limit: usize,
    /// Rows that a batch has, about.
    handed: usize,
}

impl GroupRows {
    /// Creates an empty row group that takes at most `limit` rows, to be handed on in batches of
    /// `handed`.
    pub(super) fn new(first: usize, limit: usize, handed: usize) -> Self {
        Self {
            batch: Batch {
                first,
                ..Batch::default()
            },
            names: Names::default(),
            has_events: false,
            has_end: false,
            first,
            rows: 0,
            limit,
            handed,
        }
    }

    fn push_run(&mut self, kind: RowKind, run: StateRun) -> Result<(), Refusal> {
        if kind == RowKind::End {
            self.has_end = true;
            self.batch.end.push(run);
        } else if self.has_events || self.has_end {
            return Err(START_LATE.to_owned());
        } else {
            self.batch.start.push(run);
        }
        Ok(())
    }

    #[inline]
    fn push_event(&mut self, event: Event) -> Result<(), Refusal> {
        if self.has_end {
            return Err(EVENT_LATE.to_owned());
        }
        self.has_events = true;
        self.batch.check.accept(&event)?;
        self.batch.events.push(event);
        Ok(())
    }

    /// Takes the rows read since the last call.
    fn take(&mut self) -> Batch {
        let next = Batch {
            events: Vec::with_capacity((self.limit - self.rows).min(self.handed)),
            check: self.batch.check,
            first: self.first + self.rows,
            ..Batch::default()
        };
        let mut batch = core::mem::replace(&mut self.batch, next);
        batch.names = self.names.take_new();
        batch
    }

    fn invalid(&self, why: Refusal) -> ReadError {
        invalid(self.first + self.rows, why)
    }
}

const START_LATE: &str = "a page state at the start comes after an event";
const EVENT_LATE: &str = "an event comes after the page states at the end";

/// The error for a row, counted from 0.
fn invalid(row: usize, why: Refusal) -> ReadError {
    let place = format!("row {row}");
    ReadError::Invalid { place, why }
}

/// Joins batches of one row group after another: the names so far, and the checks that run across
/// row groups.
#[derive(Default)]
pub(super) struct Assembly {
    /// All names so far.
    pub(super) names: Vec<String>,
    ids: NameIds,
    /// The names of the row group, by its own numbers.
    of_group: Vec<NameId>,
    /// Whether some name of the row group has another number in the trace.
    renames: bool,
    is_late: bool,
    has_events: bool,
    has_end: bool,
    events: EventCheck,
    start: RunCheck,
    end: RunCheck,
}

impl Assembly {
    /// An assembly of row groups that come after events, or of the first if `is_late` is false.
    pub(super) fn new(is_late: bool) -> Self {
        Self {
            is_late,
            ..Self::default()
        }
    }

    /// Begins the next row group.
    pub(super) fn begin(&mut self) {
        self.of_group.clear();
        self.renames = false;
    }

    /// Whether there was an event.
    pub(super) const fn has_events(&self) -> bool {
        self.has_events
    }

    /// Checks that `batch` may come next, and gives its events the names' numbers in the trace.
    pub(super) fn join(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let (first, starts, events) = (batch.first, batch.start.len(), batch.events.len());
        if (self.is_late || self.has_events || self.has_end) && !batch.start.is_empty() {
            return Err(invalid(first, START_LATE.to_owned()));
        }
        if !batch.events.is_empty() && self.has_end {
            return Err(invalid(first, EVENT_LATE.to_owned()));
        }
        for (row, run) in batch.start.iter().enumerate() {
            self.start
                .accept(run)
                .map_err(|why| invalid(first + row, why))?;
        }
        for (row, run) in batch.end.iter().enumerate() {
            self.end
                .accept(run)
                .map_err(|why| invalid(first + starts + events + row, why))?;
        }
        if let Some(event) = batch.events.first() {
            self.events
                .accept(event)
                .map_err(|why| invalid(first + starts, why))?;
            self.events = batch.check;
        }
        self.has_events |= !batch.events.is_empty();
        self.has_end |= !batch.end.is_empty();
        self.rename(batch);
        Ok(())
    }

    /// Changes the events' names from the row group's numbering to that of the trace.
    fn rename(&mut self, batch: &mut Batch) {
        for name in batch.names.drain(..) {
            let id = self.ids.id(&mut self.names, &name);
            self.renames |= id.0 as usize != self.of_group.len();
            self.of_group.push(id);
        }
        if self.renames {
            for event in &mut batch.events {
                event.name = self.of_group[event.name.0 as usize];
            }
        }
    }
}

/// Checks the page states at the end, the first of which is in this row, across row groups.
pub(super) fn check_end(runs: &[StateRun], first: usize) -> Result<(), ReadError> {
    let mut check = RunCheck::default();
    for (row, run) in runs.iter().enumerate() {
        check.accept(run).map_err(|why| invalid(first + row, why))?;
    }
    Ok(())
}

/// Process names, numbered in the order of their first appearance.
#[derive(Default)]
struct Names {
    /// Those since [`Names::take_new`] was called last.
    new: Vec<String>,
    known: HashMap<String, NameId>,
    /// A cache of recent names, indexed by the low bits of the address of the name's bytes: a
    /// column stores each of its names at one address.
    recent: Vec<Option<(ByteArray, NameId)>>,
}

impl Names {
    const RECENT: usize = 256;

    #[inline]
    fn id(&mut self, name: &ByteArray) -> Result<NameId, &'static str> {
        if self.recent.is_empty() {
            self.recent.resize(Self::RECENT, None);
        }
        let slot = (name.data().as_ptr() as usize ^ name.len()) % Self::RECENT;
        if let Some((recent, id)) = &self.recent[slot]
            && recent == name
        {
            return Ok(*id);
        }
        let id = self.look_up(name)?;
        self.recent[slot] = Some((name.clone(), id));
        Ok(id)
    }

    fn look_up(&mut self, name: &ByteArray) -> Result<NameId, &'static str> {
        if name.len() > NAME_BYTES {
            return Err("a process name is longer than 1024 bytes");
        }
        let text = name.as_utf8().map_err(|_| "a process name is not UTF-8")?;
        if let Some(&id) = self.known.get(text) {
            return Ok(id);
        }
        let id = u32::try_from(self.known.len()).map_err(|_| "there are too many process names")?;
        self.new.push(text.to_owned());
        self.known.insert(text.to_owned(), NameId(id));
        Ok(NameId(id))
    }

    fn take_new(&mut self) -> Vec<String> {
        core::mem::take(&mut self.new)
    }
}

columns! {
    /// All columns of a row group.
    Columns of Row {
        kind: ByteArrayType;
        time: Int64Type;
        cpu: Int32Type;
        pid: Int32Type;
        name: ByteArrayType;
        frame: Int64Type;
        order: Int32Type;
        mobility: ByteArrayType;
        flags: Int64Type;
        from_order: Int32Type;
        from: ByteArrayType;
        claimed: BoolType;
        frames: Int64Type;
        usage: ByteArrayType;
        active: BoolType;
        dirty: BoolType;
        writeback: BoolType;
        unevictable: BoolType;
        second: Int32Type, newer;
        third: Int32Type, newer;
        shared: BoolType, newer;
        mapped: BoolType, newer;
    }
}

/// Why a row is refused.
type Refusal = String;

/// Reads all rows of a row group, and hands them to `take` in batches, for as long as it goes on.
/// Returns how many there were.
pub(super) fn read_all(
    group: &RowGroup<'_>,
    rows: &mut GroupRows,
    mut take: impl FnMut(Batch) -> ControlFlow<()>,
) -> Result<ControlFlow<(), usize>, ReadError> {
    let mut columns = Columns::open(group)?;
    loop {
        let count = columns.fill(rows.handed.min(BATCH))?;
        for row in 0..count {
            let pushed = rows.push(&columns.row(row));
            pushed.map_err(|why| rows.invalid(why))?;
            rows.rows += 1;
        }
        let is_over = count == 0;
        if (is_over || rows.batch.rows() >= rows.handed) && take(rows.take()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if is_over {
            return Ok(ControlFlow::Continue(rows.rows));
        }
    }
}

impl GroupRows {
    #[inline]
    fn push(&mut self, row: &Row<'_>) -> Result<(), Refusal> {
        let kind = need(row.kind, "kind")?;
        let kind = Kind::parse(kind.data()).ok_or_else(|| unknown("kind", kind))?;
        let time = bits(*need(row.time, "time")?);
        let frame = bits(*need(row.frame, "frame")?);
        let order = small_order("order", *need(row.order, "order")?)?;
        if let Kind::Row(kind @ (RowKind::Start | RowKind::End)) = kind {
            let run = StateRun {
                time,
                frame,
                frames: bits(*need(row.frames, "frames")?),
                order: order.get(),
                state: state(row)?,
            };
            return self.push_run(kind, run);
        }
        let (Some(&cpu), Some(&pid), Some(name)) = (row.cpu, row.pid, row.name) else {
            return Err("an event has no cpu, pid or name".to_owned());
        };
        let event = Event {
            time,
            frame,
            what: what(kind, row)?,
            pid,
            name: self.names.id(name)?,
            cpu: u16::try_from(cpu).map_err(|_| format!("cpu {cpu} is above 65535"))?,
            order,
        };
        self.push_event(event)
    }
}

fn state(row: &Row<'_>) -> Result<PageState, Refusal> {
    let usage = need(row.usage, "usage")?;
    Ok(PageState {
        usage: parse_usage(usage.data()).ok_or_else(|| unknown("usage", usage))?,
        active: *need(row.active, "active")?,
        dirty: *need(row.dirty, "dirty")?,
        writeback: *need(row.writeback, "writeback")?,
        unevictable: *need(row.unevictable, "unevictable")?,
        shared: row.shared == Some(&true),
        mapped: row.mapped == Some(&true),
    })
}

#[inline]
fn need<'r, T>(value: Option<&'r T>, column: &str) -> Result<&'r T, Refusal> {
    value.ok_or_else(|| format!("{column} is missing"))
}

#[allow(
    clippy::cast_sign_loss,
    reason = "the bits are kept: Parquet has no unsigned numbers"
)]
const fn bits(value: i64) -> u64 {
    value as u64
}

#[inline]
fn small_order(column: &str, order: i32) -> Result<Order, Refusal> {
    let small = u8::try_from(order).ok().and_then(Order::try_new);
    small.ok_or_else(|| format!("{column} {order} is not from 0 to {}", Order::MAX))
}

fn unknown(column: &str, value: &ByteArray) -> Refusal {
    let value: String = String::from_utf8_lossy(value.data())
        .chars()
        .take(40)
        .collect();
    format!("unknown {column} `{value}`")
}

#[inline]
fn what(kind: Kind, row: &Row<'_>) -> Result<What, Refusal> {
    let kind = match kind {
        Kind::Row(RowKind::Free) => return Ok(What::Free),
        Kind::Row(RowKind::Batched) => return Ok(What::Batched),
        Kind::Step(step) => {
            let first = bits(*need(row.flags, "flags")?);
            let first = u32::try_from(first).map_err(|_| {
                format!(
                    "flags {first} is above {}, the largest number of a step",
                    u32::MAX
                )
            })?;
            let number = |number: Option<&i32>| number.map_or(0, |number| number.cast_unsigned());
            let numbers = [first, number(row.second), number(row.third)];
            return Ok(What::Step { step, numbers });
        }
        Kind::Row(kind) => kind,
    };
    let parse = |column, name: &ByteArray| -> Result<MigrateType, Refusal> {
        parse_mobility(name.data()).ok_or_else(|| unknown(column, name))
    };
    let mobility = parse("mobility", need(row.mobility, "mobility")?)?;
    if kind == RowKind::Drained {
        return Ok(What::Drained { mobility });
    }
    if kind == RowKind::Fallback {
        let (Some(&from_order), Some(from), Some(&claimed)) =
            (row.from_order, row.from, row.claimed)
        else {
            return Err("a fallback has no from_order, from or claimed".to_owned());
        };
        return Ok(What::Fallback {
            mobility,
            from_order: small_order("from_order", from_order)?,
            from: parse("from", from)?,
            claimed,
        });
    }
    let flags = bits(*need(row.flags, "flags")?);
    Ok(match kind {
        RowKind::Failure => What::Failure { mobility, flags },
        RowKind::Taken => What::Taken {
            mobility,
            refill: flags != 0,
        },
        _ => What::Alloc { mobility, flags },
    })
}
