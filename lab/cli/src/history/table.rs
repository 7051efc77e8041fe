//! The history in the terminal: a headline, each figure over all the time with its curve, and a
//! table of spans.

use brickyard_results::{Column, Columns, counted, printable};
use brickyard_serve::history::figures::{FIGURES, HostRow, Unit, place_of};
use brickyard_serve::history::spans::{Range, round_length, spans, whole};

use super::time::text;
use super::{Shown, sparkline};
use brickyard_measure::amount;
use brickyard_serve::history::{millis, time_of};

/// Lines of the table of spans, about.
const LINES: u64 = 24;
/// The widest curve.
const CURVE_MOST: usize = 80;
/// The narrowest.
const CURVE_LEAST: usize = 8;

/// Returns the text for one host. `width` is that of the terminal, if there is one.
pub(super) fn of_host(shown: &Shown<'_>, width: Option<usize>) -> String {
    let mut lines = headline(shown);
    lines.push(String::new());
    lines.extend(figures(shown, width));
    lines.push(String::new());
    lines.extend(by_span(shown, width));
    lines.join("\n") + "\n"
}

/// Returns what the newest sample says, and how it was when the first was taken.
pub(super) fn headline(shown: &Shown<'_>) -> Vec<String> {
    let (first, last) = (&shown.rows[0], shown.last());
    let mut lines = vec![format!(
        "{}, Linux {}: {} from {} to {} UTC",
        printable(&last.host),
        printable(&last.kernel),
        counted(shown.rows.len() as u64, "sample", "samples"),
        text(time_of(first.time)),
        text(time_of(last.time)),
    )];
    let whole = |row: &HostRow, name| row.get(name).map(|value| format!("{value:.0}"));
    if let Some(free) = whole(last, "huge_free") {
        let mut line = format!("huge pages: {free} would come now");
        if let Some(pool) = whole(last, "huge_pool_likely") {
            line += &format!(", {pool} by nr_hugepages");
        }
        if let Some(dropped) = whole(last, "huge_dropped_likely") {
            line += &format!(", {dropped} with page cache dropped and memory compacted");
        } else {
            line += "; its frames were not read, so there is no forecast";
        }
        lines.push(line);
    }
    // Of the first that has it: the first samples may be from before the first reading.
    let mixed = |row: &HostRow| row.get("blocks_mixed");
    if let (Some(before), Some(now)) = (shown.rows.iter().find_map(mixed), mixed(last)) {
        let change = now - before;
        let change = match change {
            0.0 => "as many as at the start".to_owned(),
            more if more > 0.0 => format!("{more:.0} more than at the start"),
            fewer => format!("{:.0} fewer than at the start", -fewer),
        };
        lines.push(format!("mixed page blocks: {now:.0}, {change}"));
    }
    lines
}

/// Returns a line for each figure: its range over all the time, the newest value, and its curve if
/// this is a terminal.
fn figures(shown: &Shown<'_>, width: Option<usize>) -> Vec<String> {
    let Some(all) = whole(shown.rows, shown.places) else {
        return Vec::new();
    };
    let mut lines = vec![["", "least", "median", "most", "newest"].map(str::to_owned)];
    for (&place, range) in shown.places.iter().zip(&all.figures) {
        let figure = FIGURES[place];
        let of = |value| amount_of(value, figure.unit);
        let [least, median, most, newest] = match (range, figure.unit) {
            (None, _) => ["-"; 4].map(str::to_owned),
            (Some(range), Unit::Total) => {
                let none = String::new;
                [none(), none(), none(), format!("+{}", of(range.median))]
            }
            (Some(range), _) => [range.least, range.median, range.most, range.last].map(of),
        };
        lines.push([figure.name.to_owned(), least, median, most, newest]);
    }
    let columns = Columns::new([Column::left(), Column::right().after(2)]);
    let texts = columns.lines(&lines);
    let used = texts.iter().map(|line| line.chars().count()).max();
    let room = width.map_or(0, |width| width.saturating_sub(used.unwrap_or(0) + 3));
    let room = room.min(CURVE_MOST);
    if room < CURVE_LEAST {
        return texts;
    }
    let curves = shown.places.iter().map(|&place| curve(shown, place, room));
    let heads = texts[..1].iter().cloned();
    let curves = texts[1..].iter().zip(curves);
    let lines = curves.map(|(line, curve)| format!("{line}  {curve}").trim_end().to_owned());
    heads.chain(lines).collect()
}

/// Returns the curve of a figure; of a total, how much it grew.
fn curve(shown: &Shown<'_>, place: usize, width: usize) -> String {
    // Twice as many spans as characters.
    let every = (shown.length() / (2 * width as u64)).max(1);
    let values = spans(shown.rows, every, &[place]);
    let values = values.iter().filter_map(|span| {
        let range = span.figures.first().copied().flatten()?;
        Some((span.start.max(shown.rows[0].time), range.median))
    });
    let ends = (shown.rows[0].time, shown.last().time + 1);
    sparkline::draw(values, ends, width)
}

/// Returns the length of the spans of the table.
pub(super) fn span_length(shown: &Shown<'_>, most: u64) -> u64 {
    let length = || round_length(shown.length(), most);
    shown.every.unwrap_or_else(length)
}

/// Returns the table of spans.
fn by_span(shown: &Shown<'_>, width: Option<usize>) -> Vec<String> {
    let every = span_length(shown, LINES);
    let figures = shown.places.iter().map(|&place| FIGURES[place].name);
    let head = ["UTC", "samples"].into_iter().chain(figures);
    let mut lines = vec![head.map(str::to_owned).collect()];
    for span in spans(shown.rows, every, shown.places) {
        let mut line = vec![text(time_of(span.start)), span.samples.to_string()];
        let cells = shown.places.iter().zip(&span.figures);
        line.extend(cells.map(|(&place, range)| cell(*range, FIGURES[place].unit)));
        lines.push(line);
    }
    let note = format!(
        "Each line: the median of {} and, where they differ, the least and the most; of totals (+), \
         how much they grew.",
        humantime::format_duration(core::time::Duration::from_millis(every))
    );
    fitting(lines, width, note)
}

/// Returns the lines of a table without the columns that do not fit, and what they say.
fn fitting(mut lines: Vec<Vec<String>>, width: Option<usize>, note: String) -> Vec<String> {
    let left_out = fit(&mut lines, width);
    let columns = Columns::new([Column::left(), Column::right().after(2)]);
    let mut texts = columns.lines(&lines);
    texts.push(note);
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        texts.push(format!(
            "Not shown, for want of room: {names}. --columns chooses."
        ));
    }
    texts
}

/// Removes the last columns until the others fit, and returns their names. The first three stay.
fn fit(lines: &mut [Vec<String>], width: Option<usize>) -> Vec<String> {
    let Some(width) = width else {
        return Vec::new();
    };
    let count = lines.first().map_or(0, Vec::len);
    let mut used = 0;
    let mut shown = count;
    for column in 0..count {
        let widest = lines.iter().map(|line| line[column].chars().count()).max();
        used += widest.unwrap_or(0) + if column == 0 { 0 } else { 2 };
        if used > width && column >= 3 {
            shown = column;
            break;
        }
    }
    let mut names = Vec::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let rest = line.split_off(shown);
        if number == 0 {
            names = rest;
        }
    }
    names
}

fn cell(range: Option<Range>, unit: Unit) -> String {
    let Some(range) = range else {
        return "-".to_owned();
    };
    let of = |value| amount_of(value, unit);
    if unit == Unit::Total {
        return format!("+{}", of(range.median));
    }
    let (least, median, most) = (of(range.least), of(range.median), of(range.most));
    if least == most {
        return median;
    }
    // The unit once, if all have the same.
    let unit_of = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    if unit_of(&median) == unit_of(&least) && unit_of(&median) == unit_of(&most) {
        let number = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        return format!("{median} ({} to {})", number(&least), number(&most));
    }
    format!("{median} ({least} to {most})")
}

/// Formats a value in its unit.
pub(super) fn amount_of(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => amount::rounded(value.max(0.0) as u64),
        Unit::Count | Unit::Total => format!("{value:.0}"),
        Unit::Share => format!("{value:.3}"),
        Unit::Seconds => format!("{value:.1} s"),
    }
}

/// Returns a line a host: its newest figures.
pub(super) fn of_hosts(hosts: &[&[HostRow]], places: &[usize], width: Option<usize>) -> String {
    let figures = places.iter().map(|&place| FIGURES[place].name);
    let head = ["host", "samples", "newest, UTC"]
        .into_iter()
        .chain(figures);
    let mut lines = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    for rows in hosts {
        let last = &rows[rows.len() - 1];
        let mut line = vec![
            printable(&last.host),
            rows.len().to_string(),
            text(time_of(last.time)),
        ];
        let all = whole(rows, places);
        let ranges = all.into_iter().flat_map(|all| all.figures);
        line.extend(places.iter().zip(ranges).map(|(&place, range)| {
            let unit = FIGURES[place].unit;
            let sign = if unit == Unit::Total { "+" } else { "" };
            range.map_or_else(
                || "-".to_owned(),
                |range| format!("{sign}{}", amount_of(range.last, unit)),
            )
        }));
        lines.push(line);
    }
    let hosts = counted(hosts.len() as u64, "host", "hosts");
    let note = "the newest figures; of totals (+), how much they grew. --host NAME shows one.";
    fitting(lines, width, format!("{hosts}: {note}")).join("\n") + "\n"
}

/// Returns when the shown time begins, for axes.
pub(super) fn begin(shown: &Shown<'_>) -> u64 {
    shown.rows[0].time.max(millis(shown.from))
}

/// Returns the places of these figures.
pub(super) fn places_of(names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| place_of(name)).collect()
}
