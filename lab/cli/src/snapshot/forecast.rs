//! The forecasts of a snapshot: how many blocks would come, by which way, at what cost.

use core::fmt::{self, Write};

use brickyard_host::forecast::{Forecast, Forecasts, Way};
use brickyard_results::{Column, Columns};
use serde_json::{Map, Value, json};

use super::View;
use super::figures::{amount, block_size};

/// Pages that compaction moves in a second, at least: measured on virtual machines.
const MOVED_A_SECOND: u64 = 250_000;

/// Returns a way as the table has it.
pub(crate) fn label(way: Way) -> &'static str {
    match way {
        Way::Now => "asked for now, without help",
        Way::Asking => "asked for by nr_hugepages",
        Way::Compacted => "after compact_memory",
        Way::Dropped => "after sync, drop_caches and compact_memory",
    }
}

/// Writes the table, what is in the way, and what to do.
pub(crate) fn write(view: &View<'_>, out: &mut impl Write) -> fmt::Result {
    let Some(forecasts) = &view.forecasts else {
        return Ok(());
    };
    let columns = Columns::new([Column::left().wide(45), Column::right().wide(10)]);
    let size = block_size(view.order.get(), view.look.frame_bytes);
    let title = format!("forecast, order {}, {size}", view.order);
    let heads = [&title, "likely", "at least", "at most"].map(str::to_owned);
    writeln!(out, "{}", columns.line(heads))?;
    for way in Way::ALL {
        let Forecast { likely, low, high } = forecasts.of(way);
        let numbers = [likely, low, high].map(|number| number.to_string());
        let label = [format!("  {}", label(way))];
        writeln!(out, "{}", columns.line(label.into_iter().chain(numbers)))?;
    }
    for line in in_the_way(view, forecasts) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}

/// Returns a sentence on how many of those that were asked for would come; none without a count.
pub(crate) fn of_count(view: &View<'_>) -> Option<String> {
    let (count, forecasts) = (view.count?, view.forecasts.as_ref()?);
    let now = forecasts.of(Way::Now).likely.min(count);
    let pool = forecasts.of(Way::Asking);
    let of = |number: u64| number.min(count);
    Some(if now == count {
        format!("All of {count} would come now, without help.")
    } else if pool.likely >= count {
        format!("Of {count}, {now} would come now, and likely all by nr_hugepages.")
    } else {
        format!(
            "Of {count}, {now} would come now, and by nr_hugepages likely {} ({} to {}).",
            of(pool.likely),
            of(pool.low),
            of(pool.high)
        )
    })
}

/// Returns what would give most, and what it costs.
pub(crate) fn advice(view: &View<'_>) -> Option<String> {
    let forecasts = view.forecasts.as_ref()?;
    let now = forecasts.of(Way::Now).likely;
    let best = forecasts.best();
    let likely = forecasts.of(best).likely;
    let enough = view.count.is_some_and(|count| now >= count);
    if best == Way::Now || enough {
        return (now == 0).then(|| "By no way is one forecast.".into());
    }
    let what = match best {
        Way::Asking => "asking through nr_hugepages, which compacts for each",
        Way::Compacted => "compacting (`echo 1 | sudo tee /proc/sys/vm/compact_memory`)",
        _ => {
            "`sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; echo 1 | sudo tee /proc/sys/vm/compact_memory`"
        }
    };
    let cost = forecasts.cost(best);
    let mut costs = Vec::new();
    if cost.dropped > 0 {
        let dropped = amount(cost.dropped, view.look.frame_bytes);
        costs.push(format!("drops {dropped} of page cache, to be read again"));
    }
    if cost.moved > 0 {
        let moved = amount(cost.moved, view.look.frame_bytes);
        let seconds = cost.moved.div_ceil(MOVED_A_SECOND);
        costs.push(format!("moves {moved}, up to {seconds} s of one CPU"));
    }
    if best == Way::Asking && forecasts.of(best).low < likely {
        let low = forecasts.of(best).low;
        costs.push(format!(
            "only {low} while the kernel puts compaction off after an earlier failure"
        ));
    }
    let costs = match costs.join("; ") {
        none if none.is_empty() => none,
        some => format!(" ({some})"),
    };
    Some(format!(
        "Most would come by {what}: likely {likely} in all{costs}."
    ))
}

/// Returns lines on what makes blocks few.
fn in_the_way(view: &View<'_>, forecasts: &Forecasts) -> Vec<String> {
    let found = &forecasts.obstacles;
    let size = |pages| amount(pages, view.look.frame_bytes);
    let mut lines = Vec::new();
    if found.modified_large > 0 {
        lines.push(format!(
            "Large pages of modified files: {}. Compaction gives up at one that it has no room for; `sync` helps.",
            found.modified_large
        ));
    }
    if found.pinned > 0 {
        let most = view.pinned.by.iter().take(3);
        let most: Vec<_> = most
            .map(|one| format!("{} ({})", one.name.escape_debug(), one.pid))
            .collect();
        let unknown = found.pinned.saturating_sub(found.located);
        let unknown = if unknown > 0 {
            format!("; of {unknown} it is not known where")
        } else {
            String::new()
        };
        lines.push(format!(
            "Pinned pages, which cannot be moved: {} of {}{unknown}.",
            found.pinned,
            most.join(", ")
        ));
    }
    // A page may have several, and short ones come and go.
    if found.references > found.pinned.saturating_mul(2).saturating_add(4096) {
        lines.push(format!(
            "{} more references of devices or the kernel keep pages in their places (nr_foll_pin_acquired less nr_foll_pin_released): where is not known, and `likely` leaves them out.",
            found.references.saturating_sub(found.pinned)
        ));
    }
    if found.set_aside > 0 {
        lines.push(format!(
            "{} free are set aside for requests that must not wait (HighAtomic).",
            size(found.set_aside)
        ));
    }
    if found.idle > 0 {
        lines.push(format!(
            "{} in per-CPU lists, which compact_memory does not empty.",
            size(found.idle)
        ));
    }
    if found.uninitialised > 0 {
        lines.push(format!(
            "{} that the kernel has not begun to manage yet: whole blocks, once they are needed.",
            size(found.uninitialised)
        ));
    }
    lines
}

/// Returns the forecasts as JSON; `null` if there are none.
pub(crate) fn document(view: &View<'_>) -> Value {
    let Some(forecasts) = &view.forecasts else {
        return Value::Null;
    };
    let ways: Map<_, _> = Way::ALL
        .into_iter()
        .map(|way| {
            let (of, cost) = (forecasts.of(way), forecasts.cost(way));
            let value = json!({
                "likely": of.likely,
                "at_least": of.low,
                "at_most": of.high,
                "moved_pages": cost.moved,
                "dropped_pages": cost.dropped,
            });
            (way.name().to_owned(), value)
        })
        .collect();
    let found = &forecasts.obstacles;
    json!({
        "order": view.order.get(),
        "count": view.count,
        "ways": ways,
        "best": forecasts.best().name(),
        "modified_large_pages": found.modified_large,
        "pinned_pages": found.pinned,
        "pinned_pages_located": found.located,
        "references": found.references,
        "set_aside_pages": found.set_aside,
        "per_cpu_pages": found.idle,
        "uninitialised_pages": found.uninitialised,
    })
}
