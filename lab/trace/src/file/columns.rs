//! Rows to columns: one row group.

use std::io::Write;

use brickyard::MigrateType;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;

use super::kind::{Kind, RowKind, mobility_name};
use super::writer::Rows;
use crate::table::Group;
use crate::{Event, PageUse, StateRun, Step, What};

/// Writes `rows` as one row group.
pub(super) fn write_group<W: Write + Send>(
    out: &mut SerializedFileWriter<W>,
    rows: &Rows,
    names: &[String],
) -> Result<()> {
    let mut group = Group::begin(out)?;
    match rows {
        Rows::Events(events) => write_events(&mut group, events, names)?,
        Rows::Runs(kind, runs) => write_runs(&mut group, *kind, runs)?,
    }
    group.end()
}

fn text(text: &'static str) -> ByteArray {
    ByteArray::from(text)
}

// Parquet has no unsigned numbers: their bits are stored as signed ones, and the schema says how to
// read them.
#[allow(clippy::cast_possible_wrap, reason = "the bits are kept")]
const fn bits(value: u64) -> i64 {
    value as i64
}

fn write_events<W: Write + Send>(
    group: &mut Group<'_, W>,
    events: &[Event],
    names: &[String],
) -> Result<()> {
    let kinds = RowKind::ALL.map(|kind| text(kind.name()));
    let mobilities = MigrateType::ALL.map(|mobility| text(mobility_name(mobility)));
    let mobility = |of: MigrateType| mobilities[of.index()].clone();
    let steps = Step::ALL.map(|step| text(step.name()));
    let names: Vec<ByteArray> = names
        .iter()
        .map(|name| ByteArray::from(name.as_str()))
        .collect();
    let unknown = text("?");

    group.required::<ByteArrayType>(events.iter().map(|event| match kind(event) {
        Kind::Row(kind) => kinds[kind as usize].clone(),
        Kind::Step(step) => steps[step as usize].clone(),
    }))?;
    group.required::<Int64Type>(events.iter().map(|event| bits(event.time)))?;
    group.optional::<Int32Type>(events.iter().map(|event| Some(i32::from(event.cpu))))?;
    group.optional::<Int32Type>(events.iter().map(|event| Some(event.pid)))?;
    group.optional::<ByteArrayType>(events.iter().map(|event| {
        let name = names.get(event.name.0 as usize);
        Some(name.unwrap_or(&unknown).clone())
    }))?;
    group.required::<Int64Type>(events.iter().map(|event| bits(event.frame)))?;
    group.required::<Int32Type>(events.iter().map(|event| i32::from(event.order.get())))?;
    group.optional::<ByteArrayType>(events.iter().map(|event| match event.what {
        What::Alloc { mobility: of, .. }
        | What::Failure { mobility: of, .. }
        | What::Fallback { mobility: of, .. }
        | What::Taken { mobility: of, .. }
        | What::Drained { mobility: of } => Some(mobility(of)),
        What::Free | What::Batched | What::Step { .. } => None,
    }))?;
    group.optional::<Int64Type>(events.iter().map(|event| match event.what {
        What::Alloc { flags, .. } | What::Failure { flags, .. } => Some(bits(flags)),
        What::Taken { refill, .. } => Some(i64::from(refill)),
        What::Step { numbers, .. } => Some(i64::from(numbers[0])),
        What::Free | What::Fallback { .. } | What::Drained { .. } | What::Batched => None,
    }))?;
    group.optional::<Int32Type>(events.iter().map(|event| match event.what {
        What::Fallback { from_order, .. } => Some(i32::from(from_order.get())),
        _ => None,
    }))?;
    group.optional::<ByteArrayType>(events.iter().map(|event| match event.what {
        What::Fallback { from, .. } => Some(mobility(from)),
        _ => None,
    }))?;
    group.optional::<BoolType>(events.iter().map(|event| match event.what {
        What::Fallback { claimed, .. } => Some(claimed),
        _ => None,
    }))?;
    group.nothing::<Int64Type>(events.len())?;
    group.nothing::<ByteArrayType>(events.len())?;
    for _ in 0..4 {
        group.nothing::<BoolType>(events.len())?;
    }
    for place in [1, 2] {
        group.optional::<Int32Type>(events.iter().map(|event| match event.what {
            What::Step { step, numbers } if !step.numbers()[place].is_empty() => {
                Some(numbers[place].cast_signed())
            }
            _ => None,
        }))?;
    }
    group.nothing::<BoolType>(events.len())?; // shared
    group.nothing::<BoolType>(events.len())?; // mapped
    Ok(())
}

const fn kind(event: &Event) -> Kind {
    Kind::Row(match event.what {
        What::Alloc { .. } => RowKind::Alloc,
        What::Failure { .. } => RowKind::Failure,
        What::Free => RowKind::Free,
        What::Fallback { .. } => RowKind::Fallback,
        What::Taken { .. } => RowKind::Taken,
        What::Drained { .. } => RowKind::Drained,
        What::Batched => RowKind::Batched,
        What::Step { step, .. } => return Kind::Step(step),
    })
}

fn write_runs<W: Write + Send>(
    group: &mut Group<'_, W>,
    kind: RowKind,
    runs: &[StateRun],
) -> Result<()> {
    let kind = text(kind.name());
    let usages = PageUse::ALL.map(|usage| text(usage.name()));

    group.required::<ByteArrayType>(runs.iter().map(|_| kind.clone()))?;
    group.required::<Int64Type>(runs.iter().map(|run| bits(run.time)))?;
    group.nothing::<Int32Type>(runs.len())?; // cpu
    group.nothing::<Int32Type>(runs.len())?; // pid
    group.nothing::<ByteArrayType>(runs.len())?; // name
    group.required::<Int64Type>(runs.iter().map(|run| bits(run.frame)))?;
    group.required::<Int32Type>(runs.iter().map(|run| i32::from(run.order)))?;
    group.nothing::<ByteArrayType>(runs.len())?; // mobility
    group.nothing::<Int64Type>(runs.len())?; // flags
    group.nothing::<Int32Type>(runs.len())?; // from_order
    group.nothing::<ByteArrayType>(runs.len())?; // from
    group.nothing::<BoolType>(runs.len())?; // claimed
    group.optional::<Int64Type>(runs.iter().map(|run| Some(bits(run.frames))))?;
    group.optional::<ByteArrayType>(
        runs.iter()
            .map(|run| Some(usages[run.state.usage as usize].clone())),
    )?;
    group.optional::<BoolType>(runs.iter().map(|run| Some(run.state.active)))?;
    group.optional::<BoolType>(runs.iter().map(|run| Some(run.state.dirty)))?;
    group.optional::<BoolType>(runs.iter().map(|run| Some(run.state.writeback)))?;
    group.optional::<BoolType>(runs.iter().map(|run| Some(run.state.unevictable)))?;
    group.nothing::<Int32Type>(runs.len())?; // second
    group.nothing::<Int32Type>(runs.len())?; // third
    group.optional::<BoolType>(runs.iter().map(|run| Some(run.state.shared)))?;
    group.optional::<BoolType>(runs.iter().map(|run| Some(run.state.mapped)))?;
    Ok(())
}
