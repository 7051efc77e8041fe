//! What the page has, and what it says where rows or points are missing.

use std::collections::BTreeSet;

use brickyard_experiments::data::Data;
use brickyard_experiments::document::Points;
use brickyard_experiments::documents;

use super::figures;
use crate::page_sample;

#[test]
fn ids_are_unique_and_links_have_targets() {
    for documents in [page_sample::documents(), documents::all()] {
        let page = page_sample::page(&documents, &Data::default(), Vec::new());
        let of = |name: &str| -> Vec<&str> {
            page.split(&format!(" {name}=\""))
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap())
                .collect()
        };
        let ids = of("id");
        let mut once = BTreeSet::new();
        for id in &ids {
            assert!(once.insert(*id), "{id} is there twice");
        }
        for link in of("href").iter().filter_map(|link| link.strip_prefix('#')) {
            assert!(once.contains(link), "nothing has the id {link}");
        }
        assert!(!page.contains("NaN"));
    }
}

#[test]
fn missing_cells_are_listed_by_reason() {
    let page = page_sample::page(&page_sample::documents(), &page_sample::data(), Vec::new());
    assert!(page.contains("10 cells failed or not run; figures that need them are left out"));
    assert!(page.contains("<li>1 cell: no trace &lt;of it&gt;<ul><li>slab.host.timed.1: <code>brickyard reproduce --cell &#39;slab.host.timed.1&#39; -o report</code></li></ul>"));
    assert_eq!(page.matches("<li>9 cells: interrupted<ul>").count(), 1);
    // The first four, and how many more.
    assert!(page.contains("&#39;slab.host.left.4&#39;") && !page.contains("slab.host.left.5"));
    assert!(page.contains("<li>and 5 more</li>"));
}

#[test]
fn plots_and_lines_without_rows_are_counted() {
    let mut documents = page_sample::documents();
    let mut second = documents[1].plots[0].clone();
    second.id = "slab-second".to_owned();
    documents[1].plots.push(second);
    for figure in documents[1].tables[0]
        .lines
        .iter_mut()
        .take(3)
        .flat_map(|line| line.cells.iter_mut().flatten())
    {
        figure.published = None;
    }
    let page = page_sample::page(&documents, &page_sample::data(), Vec::new());
    assert!(page.contains(">2 plots have no rows in this run.<"));
    assert!(!page.contains("id=\"plot-slab-empty\""));
    assert!(page.contains(">3 lines have no rows in this run.<"));
    assert!(page.contains("Measured here: 7 runs per figure."));
    documents.truncate(1);
    let none = page_sample::page(&documents, &Data::default(), Vec::new());
    assert!(none.contains(">3 plots have no rows in this run.<"));
    assert!(none.contains(">8 lines have no rows in this run.<"));
    assert!(!none.contains("Measured here"));
}

/// A name without points is left out of an axis, and the points of the others keep their names.
#[test]
fn names_without_points_are_left_out() {
    let documents = page_sample::documents();
    let mut cells = page_sample::data().cells().to_vec();
    for cell in &mut cells {
        cell.rows.retain(|raw| raw.machine != "elm3b14");
    }
    let page = page_sample::page(&documents, &Data::new(cells).unwrap(), Vec::new());
    assert!(!page.contains(">elm3b14</text>"));
    for machine in ["bl6-13", "elm3b245", "gekko-lp4"] {
        assert!(page.contains(&format!(">{machine}</text>")));
        assert!(page.contains(&format!("<title>vanilla, {machine}: ")));
    }
}

/// Two points of a curve at the same position are both shown, and so are those after them.
#[test]
fn a_position_may_have_two_points() {
    let (mut documents, data) = (page_sample::documents(), page_sample::data());
    let mut plot = documents[0].plots[0].clone();
    plot.id = "pagealloc-twice".to_owned();
    plot.curves.truncate(1);
    let Points::Samples(places) = &mut plot.curves[0].points else {
        panic!("the first plot is of samples");
    };
    places.insert(1, places[0].clone());
    let count = places.len();
    documents[0].plots = vec![plot];
    let page = page_sample::page(&documents, &data, Vec::new());
    let (_, table) = page.split_once("Every point as a number").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    assert_eq!(figures(table).len(), count);
    assert_eq!(table.matches("</a>, <a ").count(), 1);
    assert!(!table.contains("<td></td>"));
}

/// A gain over a baseline of zero has rows, but no value.
#[test]
fn a_figure_with_rows_but_no_value_is_a_dash() {
    let mut documents = page_sample::documents();
    documents.truncate(1);
    let mut cells = page_sample::data().cells().to_vec();
    for raw in cells.iter_mut().flat_map(|cell| &mut cell.rows) {
        if raw.config == "list-2007" && raw.workload == "order-0 batch-1" {
            raw.value = 0.0;
        }
    }
    let page = page_sample::page(&documents, &Data::new(cells).unwrap(), Vec::new());
    // Speedup, difference in percent, and share, in both tables; nothing else is missing.
    assert!(page.contains("<span class=\"unseen\">no number</span>"));
    assert!(!page.contains("no rows<"));
}
