//! The page of a comparison: free blocks at the end as plots, all figures as tables. It fetches
//! nothing and has no script.

use core::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use brickyard::{MigrateType, Order};
use brickyard_pictures::markup::{Escaped, fill};
use brickyard_pictures::plot::{self, Axis, Curve, Plot, Point, Scale};
use brickyard_pictures::policy;
use brickyard_workload::fidelity::{self, TYPES, ZoneTable};

use super::{Compared, HOST, Host, START};
use crate::filming::write_file;
use crate::sheet::Sheet;

/// The text of the page, with markers for what differs.
const PAGE: &str = include_str!("page.html");

/// Writes the page of a trace's comparison. Costs time in proportion to the draws.
pub(super) fn write(
    path: &Path,
    trace: &Path,
    host: &Host,
    compared: &[Compared],
    sheet: &Sheet,
) -> anyhow::Result<()> {
    let name = trace.file_name().unwrap_or(trace.as_os_str());
    let name = name.to_string_lossy();
    write_file(path, |out| {
        fill(PAGE, out, |marker, out| match marker {
            "policy" => write!(out, "{}", policy::of(&[])),
            "style" => out.write_all(plot::STYLE.as_bytes()),
            "name" => write!(out, "{}", Escaped(&name)),
            "head" => paragraphs(sheet.heads(), out),
            "plots" => plots(host, compared, out),
            "tables" => sheet.write_markup(out),
            "notes" => paragraphs(sheet.notes(), out),
            other => unreachable!("the page has no marker {other}"),
        })
    })
}

fn paragraphs(lines: &[String], out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        writeln!(out, "<p>{}</p>", Escaped(line))?;
    }
    Ok(())
}

/// Writes a plot of the free blocks by order: of all types, and of each type that has any.
fn plots(host: &Host, compared: &[Compared], out: &mut impl Write) -> io::Result<()> {
    let all = plot_of("all types", &TYPES, host, compared);
    let each = TYPES.map(|kind| plot_of(kind.name(), &[kind], host, compared));
    for plot in core::iter::once(all).chain(each) {
        let any = |curve: &Curve| curve.points.iter().any(|point| point.y > 0.0);
        if plot.curves.iter().any(any) {
            let title = Escaped(&plot.title);
            figure(&title, &plot.svg(), out)?;
        }
    }
    Ok(())
}

fn figure(title: &dyn Display, svg: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "<figure><figcaption><h3>{title}</h3></figcaption>{svg}</figure>"
    )
}

/// Returns the plot of the free blocks of these types: the host's at its end, at its start, and the
/// median of each configuration's draws, with their spread.
fn plot_of(label: &str, types: &[MigrateType], host: &Host, compared: &[Compared]) -> Plot {
    let curve = |name: &str, draws: &[Vec<ZoneTable>]| Curve {
        name: name.to_owned(),
        points: orders(host)
            .map(|order| point(order, types, draws))
            .collect(),
    };
    let ends = |of: &Compared| {
        let draws = of
            .outcomes
            .iter()
            .map(|outcome| fidelity::of_replay(&outcome.zones));
        draws.collect::<Vec<_>>()
    };
    let real = [
        curve(HOST, core::slice::from_ref(&host.end)),
        curve(START, core::slice::from_ref(&host.start)),
    ];
    let own = compared.iter().map(|of| curve(of.config.name(), &ends(of)));
    Plot {
        id: label.replace(' ', "-"),
        title: format!("Free blocks, {label}"),
        about: format!("Free blocks of {label} by order at the end, the host's and the replays'."),
        x: Axis {
            label: "order".to_owned(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "blocks".to_owned(),
            scale: Scale::Log,
        },
        curves: real.into_iter().chain(own).collect(),
    }
}

/// Returns the orders that the host has lists for, and at least those up to a huge page's.
fn orders(host: &Host) -> impl Iterator<Item = Order> {
    let any = |order: &Order| {
        let counts = host.end.iter().chain(&host.start);
        let counts = counts.flat_map(|zone| zone.free[order.index()]);
        counts.sum::<usize>() > 0
    };
    let last = Order::HUGE.up_to(Order::MAX).rfind(any);
    Order::ZERO.up_to(last.unwrap_or(Order::HUGE))
}

/// Returns the median of the draws at one order, and their spread where they differ.
fn point(order: Order, types: &[MigrateType], draws: &[Vec<ZoneTable>]) -> Point {
    let blocks = |tables: &Vec<ZoneTable>| {
        let zones = tables.iter().map(|zone| &zone.free[order.index()]);
        let counts =
            zones.map(|counts| types.iter().map(|kind| counts[kind.index()]).sum::<usize>());
        counts.sum::<usize>() as f64
    };
    let mut values: Vec<f64> = draws.iter().map(blocks).collect();
    values.sort_by(f64::total_cmp);
    let median = Point::new(f64::from(order.get()), values[values.len() / 2]);
    match (values[0], values[values.len() - 1]) {
        (low, high) if low < high => median.spread(low, high),
        _ => median,
    }
}
