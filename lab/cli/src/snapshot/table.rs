//! The figures of a snapshot as a text for people.

use core::fmt::{self, Write};

use brickyard::Order;
use brickyard_host::blocks::BlockSummary;
use brickyard_host::look::{Look, ZoneLook};
use brickyard_results::{Column, Columns};
use brickyard_trace::PageUse;

use super::figures::{amount, block_size, mib, named_zones, summary};
use super::words::{explanation, request_word, thousandths, withheld};
use super::{View, forecast};

/// The width of a zone's name, and of a column.
const NAME: usize = 16;
const COLUMN: usize = 7;

/// Returns everything. `command` is the command that the text suggests to run as root.
pub(super) fn text(view: &View<'_>, command: &str) -> Result<String, fmt::Error> {
    let (look, order) = (view.look, view.order);
    let mut text = String::new();
    let out = &mut text;
    head(look, out)?;
    writeln!(out, "\n{}\n", explanation(view))?;
    forecast::write(view, out)?;
    by_order(look, out)?;
    available(look, order, out)?;
    page_blocks(look, out)?;
    per_cpu(look, out)?;
    uses(look, out)?;
    for line in withheld(look, command) {
        writeln!(out, "{line}")?;
    }
    Ok(text)
}

fn head(look: &Look, out: &mut impl Write) -> fmt::Result {
    let kernel = if look.kernel.is_empty() {
        "Linux".into()
    } else {
        format!("Linux {}", look.kernel)
    };
    let size = |order: u8| block_size(order, look.frame_bytes);
    writeln!(
        out,
        "{kernel}; pages of {}, huge pages of {} (order {}), page blocks of {}",
        size(0),
        size(look.huge_order.get()),
        look.huge_order,
        size(look.page_block_order.get())
    )
}

/// Writes three tables with a column for each order.
fn by_order(look: &Look, out: &mut impl Write) -> fmt::Result {
    let Some(highest) = look.zones.iter().map(|zone| zone.max_order).max() else {
        return Ok(());
    };
    order_table(look, highest, "free blocks, order", out, |zone, order| {
        zone.counts.by_order[order.index()].to_string()
    })?;
    order_table(look, highest, "unusable", out, |zone, order| {
        thousandths(zone.counts.unusable_index(order))
    })?;
    order_table(
        look,
        highest,
        "fragmentation",
        out,
        |zone, order| match zone.counts.fragmentation_index(order) {
            -1000 => "-".into(),
            index => thousandths(index),
        },
    )?;
    writeln!(
        out,
        "unusable: the share of free memory that is in smaller blocks. fragmentation: why a request fails: 0 lack of memory, 1 fragmentation; - there is a free block.\n"
    )
}

fn order_table(
    look: &Look,
    highest: Order,
    title: &str,
    out: &mut impl Write,
    cell: impl Fn(&ZoneLook, Order) -> String,
) -> fmt::Result {
    let orders = || Order::ZERO.up_to(highest);
    let columns = Columns::new([Column::left().wide(NAME + 3), Column::right().wide(COLUMN)]);
    let heads = orders().map(|order| order.get().to_string());
    let heads = [title.to_owned()].into_iter().chain(heads);
    writeln!(out, "{}", columns.line(heads))?;
    for (name, zone) in named_zones(look) {
        let orders = orders().filter(|&order| order <= zone.max_order);
        let cells = orders.map(|order| cell(zone, order));
        let name = format!("  {name:<NAME$} ");
        writeln!(out, "{}", columns.line([name].into_iter().chain(cells)))?;
    }
    Ok(())
}

/// Writes how many blocks of the order are available, now and after compaction and reclaim.
fn available(look: &Look, order: Order, out: &mut impl Write) -> fmt::Result {
    let size = block_size(order.get(), look.frame_bytes);
    let title = format!("order {order}, {size}");
    line(
        out,
        &title,
        &["request", "free now", "compacted", "drained", "reclaimed"],
    )?;
    for (name, zone) in named_zones(look) {
        let known = zone.outlook.get(order.index());
        let now = zone.counts.suitable(order).to_string();
        let later = |of: fn(&brickyard_host::outlook::Outlook) -> u64| {
            known.map_or_else(|| "root".into(), |known| of(known).to_string())
        };
        let cells = [
            request_word(zone, order).into(),
            now,
            later(|known| known.compacted),
            later(|known| known.drained),
            later(|known| known.reclaimed),
        ];
        line(out, &format!("  {name}"), &cells)?;
    }
    writeln!(
        out,
        "The last three are upper bounds, and each includes the one before: memory compacted; per-CPU lists drained; page cache dropped.\nreserved: there are free blocks, but this zone keeps its memory for requests that no other zone can serve.\n"
    )
}

/// Writes how many page blocks have which contents.
fn page_blocks(look: &Look, out: &mut impl Write) -> fmt::Result {
    let zones: Option<Vec<_>> = named_zones(look)
        .into_iter()
        .map(|(name, zone)| Some((name, summary(zone)?)))
        .collect();
    let Some(zones) = zones.filter(|zones| !zones.is_empty()) else {
        return Ok(());
    };
    let few = format!("by <= {}", BlockSummary::FEW);
    line(
        out,
        "page blocks",
        &[
            "free",
            "movable",
            "in doubt",
            "mixed",
            &few,
            "unmovable",
            "huge",
        ],
    )?;
    for (name, of) in &zones {
        let cells = [
            of.free,
            of.movable,
            of.perhaps,
            of.mixed,
            of.mixed_by_few,
            of.unmovable,
            of.huge,
        ];
        line(out, &format!("  {name}"), &cells)?;
    }
    for (name, of) in zones.iter().filter(|(_, of)| of.mixed > 0) {
        let held = PageUse::ALL
            .into_iter()
            .filter(|&usage| of.in_mixed[usage as usize] > 0);
        let held = held.map(|usage| {
            let size = amount(of.in_mixed[usage as usize], look.frame_bytes);
            format!("{} {size}", usage.name())
        });
        let held: Vec<_> = held.collect();
        writeln!(out, "  mixed in {name}: {}", held.join(", "))?;
    }
    writeln!(
        out,
        "mixed: movable pages next to pages that cannot be moved; the next column counts the blocks with few of those. in doubt: next to single pages without a flag, which may be in per-CPU lists.\n"
    )
}

fn per_cpu(look: &Look, out: &mut impl Write) -> fmt::Result {
    line(
        out,
        "per-CPU lists",
        &["CPUs", "pages idle", "MiB", "most on one"],
    )?;
    for (name, zone) in named_zones(look) {
        let sets = &zone.info.pagesets;
        let idle = zone.info.idle_in_pagesets();
        let most = sets.iter().map(|set| set.count).max().unwrap_or(0);
        let cells = [
            sets.len().to_string(),
            idle.to_string(),
            format!("{:.1}", mib(idle, look.frame_bytes)),
            most.to_string(),
        ];
        line(out, &format!("  {name}"), &cells)?;
    }
    writeln!(out)
}

fn uses(look: &Look, out: &mut impl Write) -> fmt::Result {
    line(out, "memory by use", &["MiB"])?;
    for (name, frames) in look.by_use() {
        line(
            out,
            &format!("  {name}"),
            &[format!("{:.1}", mib(frames, look.frame_bytes))],
        )?;
    }
    writeln!(out)
}

/// Writes a line: its label and its cells.
fn line(out: &mut impl Write, label: &str, cells: &[impl ToString]) -> fmt::Result {
    let columns = Columns::new([Column::left().wide(NAME + 7), Column::right().wide(12)]);
    let cells = cells.iter().map(ToString::to_string);
    let texts = [label.to_owned()].into_iter().chain(cells);
    writeln!(out, "{}", columns.line(texts))
}
