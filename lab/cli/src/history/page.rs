//! The page of a history: plots, the picture of page blocks over time, a table. It fetches nothing
//! and has no script.

use std::io::{self, Write};

use brickyard_host::blocks::BlockKind;
use brickyard_pictures::markup::{Escaped, fill};
use brickyard_pictures::plot::{self, Axis, Curve, Plot, Point, Scale};
use brickyard_pictures::policy;
use brickyard_serve::history::figures::{FIGURES, Unit};
use brickyard_serve::history::spans::{Span, round_length, spans};

use super::Shown;
use super::picture::{COLORS, Picture};
use super::table::{amount_of, begin, headline, places_of, span_length};
use super::time::text;
use brickyard_serve::history::time_of;

/// The text of the page, with markers for what differs.
const PAGE: &str = include_str!("page.html");
/// Points of a curve, at most.
const POINTS: u64 = 240;
/// Lines of the table, about.
const LINES: u64 = 48;
/// An hour in milliseconds.
const HOUR: u64 = 3_600_000;

/// Figures in one plot.
struct Group {
    title: &'static str,
    about: &'static str,
    figures: &'static [&'static str],
}

/// The plots that are drawn if no figures were named.
const GROUPS: [Group; 5] = [
    Group {
        title: "Huge pages that would come",
        about: "Huge pages that would come now, by nr_hugepages, after compaction, and after dropping \
                the page cache too.",
        figures: &[
            "huge_free",
            "huge_pool_likely",
            "huge_compacted_likely",
            "huge_dropped_likely",
        ],
    },
    Group {
        title: "Memory",
        about: "Free and available memory, and what the rest is used for.",
        figures: &[
            "free_bytes",
            "available_bytes",
            "use_anonymous_bytes",
            "use_file_bytes",
            "use_slab_bytes",
        ],
    },
    Group {
        title: "Page blocks",
        about: "Page blocks by what is in them.",
        figures: &[
            "blocks_free",
            "blocks_movable",
            "blocks_perhaps",
            "blocks_mixed",
            "blocks_unmovable",
            "blocks_huge",
        ],
    },
    Group {
        title: "Free memory in blocks smaller than a huge page",
        about: "The share of free memory that a request for a huge page cannot use.",
        figures: &["unusable_huge"],
    },
    Group {
        title: "Stalls and fallbacks, per hour",
        about: "Requests that compacted or reclaimed memory themselves, and page faults that got no \
                huge page.",
        figures: &[
            "compaction_stalls",
            "allocation_stalls",
            "thp_fault_fallbacks",
        ],
    },
];

/// Writes the page. `named` are the figures that were asked for by name.
pub(super) fn write(
    shown: &Shown<'_>,
    named: &[String],
    picture: &Picture,
    out: &mut impl Write,
) -> io::Result<()> {
    let lines = headline(shown);
    let plots = plots(shown, named);
    fill(PAGE, out, |marker, out| match marker {
        "policy" => write!(out, "{}", policy::of(&[])),
        "style" => out.write_all(plot::STYLE.as_bytes()),
        "name" => write!(out, "{}", Escaped(&shown.last().host)),
        "head" => lines
            .iter()
            .try_for_each(|line| writeln!(out, "<p>{}</p>", Escaped(line))),
        "plots" => plots.iter().try_for_each(|plot| {
            let title = Escaped(&plot.title);
            let svg = plot.svg();
            writeln!(
                out,
                "<figure><figcaption><h3>{title}</h3></figcaption>{svg}</figure>"
            )
        }),
        "picture" => write_picture(shown, picture, out),
        "table" => write_table(shown, out),
        other => unreachable!("the page has no marker {other}"),
    })
}

/// Returns the plots of the groups, or one for each named figure; those without a value are left
/// out.
fn plots(shown: &Shown<'_>, named: &[String]) -> Vec<Plot> {
    let of_groups = || {
        let groups = GROUPS.iter().enumerate();
        let plots = groups.map(|(number, group)| {
            let places = places_of(group.figures);
            let (title, about) = (group.title.to_owned(), group.about.to_owned());
            plot_of(shown, number, title, about, &places)
        });
        plots.collect::<Vec<_>>()
    };
    let of_figure = |(number, &place): (usize, &usize)| {
        let title = match FIGURES[place].unit {
            Unit::Total => format!("{}, per hour", FIGURES[place].name),
            _ => FIGURES[place].name.to_owned(),
        };
        plot_of(shown, number, title, String::new(), &[place])
    };
    let plots = if named.is_empty() {
        of_groups()
    } else {
        shown.places.iter().enumerate().map(of_figure).collect()
    };
    let any = |plot: &Plot| plot.curves.iter().any(|curve| !curve.points.is_empty());
    plots.into_iter().filter(any).collect()
}

fn plot_of(
    shown: &Shown<'_>,
    number: usize,
    title: String,
    about: String,
    places: &[usize],
) -> Plot {
    let every = round_length(shown.length(), POINTS).max(shown.every.unwrap_or(1));
    let spans = spans(shown.rows, every, places);
    let days = shown.length() > 4 * 24 * HOUR;
    let (unit, name) = if days {
        (24 * HOUR, "days")
    } else {
        (HOUR, "hours")
    };
    let start = begin(shown);
    let across = |span: &Span| span.start.max(start).saturating_sub(start) as f64 / unit as f64;
    let curve = |(column, &place): (usize, &usize)| {
        let points = spans.iter().filter_map(|span| {
            let range = span.figures.get(column).copied().flatten()?;
            let factor = factor(place, every);
            let point = Point::new(across(span), range.median * factor);
            Some(
                if range.least < range.most && FIGURES[place].unit != Unit::Total {
                    point.spread(range.least * factor, range.most * factor)
                } else {
                    point
                },
            )
        });
        Curve {
            name: FIGURES[place].name.to_owned(),
            points: points.collect(),
        }
    };
    let label = match places.first().map(|&place| FIGURES[place].unit) {
        Some(Unit::Bytes) => "GiB",
        Some(Unit::Total) => "per hour",
        Some(Unit::Share) => "share",
        Some(Unit::Seconds) => "seconds",
        _ => "number",
    };
    Plot {
        id: format!("plot-{number}"),
        title,
        about,
        x: Axis {
            label: format!("{name} since {} UTC", text(time_of(start))),
            scale: Scale::Linear,
        },
        y: Axis {
            label: label.to_owned(),
            scale: Scale::Linear,
        },
        curves: places.iter().enumerate().map(curve).collect(),
    }
}

/// Bytes are drawn in GiB, totals per hour.
fn factor(place: usize, every: u64) -> f64 {
    match FIGURES[place].unit {
        Unit::Bytes => 1.0 / (1_u64 << 30) as f64,
        Unit::Total => HOUR as f64 / every as f64,
        _ => 1.0,
    }
}

fn write_picture(shown: &Shown<'_>, picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    let Some(raster) = &picture.raster else {
        return writeln!(
            out,
            "<p>There is no map of this time: the frames were not read, which needs root.</p>"
        );
    };
    let (from, to) = (
        text(time_of(shown.rows[0].time)),
        text(time_of(shown.last().time)),
    );
    let about = format!(
        "What was in {} page blocks of order {} from {from} to {to} UTC",
        picture.blocks, picture.order
    );
    writeln!(
        out,
        "<figure class=\"map\"><img alt=\"{about}\" src=\"{}\"><figcaption><span>{from}</span>\
         <span>{to} UTC</span></figcaption></figure><p>{about}: time from left to right, memory from \
         top to bottom, {} maps. A pixel has the mean colour of its blocks; mixed blocks show even \
         where they are few.</p><ul class=\"legend\">",
        raster.address()?,
        picture.maps,
    )?;
    for (kind, [red, green, blue]) in BlockKind::ALL.into_iter().zip(COLORS) {
        let name = match kind.name() {
            "absent" => "no memory",
            "perhaps" => "in doubt",
            other => other,
        };
        writeln!(
            out,
            "<li><i style=\"background:rgb({red},{green},{blue})\"></i>{name}</li>"
        )?;
    }
    writeln!(out, "</ul>")
}

fn write_table(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let every = span_length(shown, LINES);
    write!(out, "<thead><tr><th>UTC</th><th>samples</th>")?;
    for &place in shown.places {
        write!(out, "<th>{}</th>", FIGURES[place].name)?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for span in spans(shown.rows, every, shown.places) {
        let start = text(time_of(span.start));
        write!(out, "<tr><td>{start}</td><td>{}</td>", span.samples)?;
        for (&place, range) in shown.places.iter().zip(&span.figures) {
            let unit = FIGURES[place].unit;
            match range {
                None => write!(out, "<td>-</td>")?,
                Some(range) if unit == Unit::Total => {
                    write!(out, "<td>+{}</td>", amount_of(range.median, unit))?;
                }
                Some(range) => {
                    let of = |value| amount_of(value, unit);
                    let title = format!("{} to {}", of(range.least), of(range.most));
                    write!(out, "<td title=\"{title}\">{}</td>", of(range.median))?;
                }
            }
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>")
}
