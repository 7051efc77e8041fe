//! `traceable`: every figure of the page is computed again from the rows that it names, with an
//! independent implementation of the statistics.

use crate::page_sample;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use brickyard_experiments::data::{Data, Key};
use brickyard_experiments::directions::{ANSWER_RULE, Directions};
use brickyard_experiments::document::{Among, Document, Figure, Points, Statistic};
use brickyard_experiments::documents;
use brickyard_experiments::judge::{Judge, NONE_RULE, SIGN_RULE, SIZE_RULE, SWEEP_RULE, Verdict};
use brickyard_experiments::page::Embedded;
use brickyard_experiments::raw::{CellRows, Method, Raw};
use brickyard_report::markup::Escaped;
use brickyard_report::pagetypes::html;
use brickyard_report::{Better, policy};

/// A figure's element: its attributes and its text.
struct Element<'p> {
    tag: &'p str,
    text: &'p str,
}

impl Element<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.tag.split_once(&format!(" {name}=\""))?;
        rest.split('"').next()
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).unwrap().parse().unwrap()
    }

    fn rows(&self) -> Vec<usize> {
        let places = self.get("data-rows").unwrap().split(',');
        places.map(|place| place.parse().unwrap()).collect()
    }
}

fn figures(page: &str) -> Vec<Element<'_>> {
    page.split("<a class=\"figure")
        .skip(1)
        .map(|rest| {
            let (tag, rest) = rest.split_once('>').unwrap();
            let text = rest.split("</a>").next().unwrap();
            Element { tag, text }
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

/// Computes the value of a figure from its rows alone.
fn computed(element: &Element<'_>, data: &Data) -> f64 {
    let rows = element.rows();
    let values: Vec<f64> = rows
        .iter()
        .map(|&place| data.row(place).unwrap().1.value)
        .collect();
    let better = data.row(rows[0]).unwrap().1.better;
    let statistic = element.get("data-statistic").unwrap();
    if statistic == "gmean-speedup" {
        return gmean(element, data);
    }
    let (of, against) = values.split_at(element.number("data-n") as usize);
    let times = |of: f64, against: f64| match better {
        Better::Higher => of / against,
        Better::Lower => against / of,
        Better::Neither => panic!("a speedup of {statistic}, where neither way is better"),
    };
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match statistic {
        "value" | "mean" => mean(of),
        "median" => median(of),
        "min" => least(of),
        "max" => most(of),
        "range" => most(of) - least(of),
        "stddev" => deviation(of),
        "interval95" => 1.959_963_984_540_054 * deviation(of) / (of.len() as f64).sqrt(),
        "speedup" => times(mean(of), mean(against)),
        "gain" => gain(better, mean(of), mean(against)),
        "gain-min" => gain(better, least(of), least(against)),
        "gain-max" => gain(better, most(of), most(against)),
        "gain-stddev" => gain(Better::Lower, deviation(of), deviation(against)),
        "gain-range" => gain(
            Better::Lower,
            most(of) - least(of),
            most(against) - least(against),
        ),
        "difference" => mean(of) - mean(against),
        "difference-percent" => (mean(of) - mean(against)) * 100.0 / mean(against).abs(),
        "share" => mean(of) * 100.0 / mean(against),
        other => panic!("{other} is no statistic"),
    }
}

fn gain(better: Better, of: f64, against: f64) -> f64 {
    match better {
        Better::Lower => 100.0 - of * 100.0 / against,
        Better::Higher => of * 100.0 / against - 100.0,
        Better::Neither => panic!("a gain where neither way is better"),
    }
}

/// Computes a geometric mean: its rows are pairs of groups, one of a key and one of its baseline.
fn gmean(element: &Element<'_>, data: &Data) -> f64 {
    let mut groups: Vec<(String, Better, Vec<f64>)> = Vec::new();
    for place in element.rows() {
        let (_, raw) = data.row(place).unwrap();
        let name = format!(
            "{}|{}|{}|{}",
            raw.machine, raw.workload, raw.config, raw.metric
        );
        match groups.last_mut() {
            Some((last, _, values)) if *last == name => values.push(raw.value),
            _ => groups.push((name, raw.better, vec![raw.value])),
        }
    }
    let logarithms: Vec<f64> = groups
        .chunks(2)
        .map(|pair| {
            let (of, against) = (mean(&pair[0].2), mean(&pair[1].2));
            match pair[0].1 {
                Better::Higher => (of / against).ln(),
                Better::Lower => (against / of).ln(),
                Better::Neither => panic!("a speedup where neither way is better"),
            }
        })
        .collect();
    assert_eq!(logarithms.len() as f64, element.number("data-n"));
    mean(&logarithms).exp()
}

/// Checks all figures; returns how many there are.
fn check_figures(page: &str, data: &Data) -> usize {
    let figures = figures(page);
    for element in &figures {
        let (given, computed) = (element.number("data-value"), computed(element, data));
        // A difference of zero leaves only rounding errors.
        let near = 1e-9 * computed.abs().max(1e-3);
        assert!(
            (given - computed).abs() <= near,
            "{} {}: the page has {given}, {computed} is computed",
            element.tag,
            element.text
        );
        assert_eq!(element.get("href"), Some("#raw"));
    }
    figures.len()
}

#[test]
fn every_figure_follows_from_its_rows() {
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let page = page_sample::page(&documents, &data, Vec::new());
    let count = check_figures(&page, &data);
    // Two tables of 12 by 8, one of 2 by 5 with the two ends of 8 sweeps, the winner, findings in the
    // summary and the section, and every point of three plots.
    assert_eq!(count, 2 * 96 + 10 + 2 * 8 + 1 + 2 + 3 + 5 * (8 + 5 + 120));
    // What is shown is the value, scaled and rounded.
    let mut scales = BTreeSet::new();
    for element in figures(&page) {
        let shown: Result<f64, _> = element.text.replace([',', '%'], "").parse();
        if let Ok(shown) = shown {
            let scale = element.get("data-scale").unwrap_or("1");
            scales.insert(scale.to_owned());
            let scaled = element.number("data-value") * scale.parse::<f64>().unwrap();
            assert!(
                (shown - scaled).abs() <= 0.005_000_1_f64.max(scaled.abs() * 0.001),
                "{shown} is shown, the value is {scaled}"
            );
        }
    }
    assert!(scales.iter().eq(["-1", "0.01", "1", "1000"]), "{scales:?}");
}

#[test]
fn every_statistic_has_a_name_and_words_of_its_own() {
    let page = page_sample::page(&[], &Data::default(), Vec::new());
    let statistics = &embedded(&page)["statistics"];
    let mut words = BTreeSet::new();
    for statistic in Statistic::ALL {
        let name = statistic.name();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
        assert!(words.insert(statistic.words()), "{name}");
        assert_eq!(statistics[name][0], statistic.words());
        assert_eq!(statistics[name][1].as_str(), statistic.better());
        // No two variants share a name.
        let spelled = format!("{statistic:?}").to_lowercase();
        assert_eq!(name.replace('-', ""), spelled);
    }
    // A single row is not a statistic, but is described like one.
    assert_eq!(
        statistics.as_object().unwrap().len(),
        Statistic::ALL.len() + 1
    );
    assert_eq!(statistics["value"][0], "the value of one row");
}

/// Returns made-up rows for every key that the documents refer to.
fn rows_for(documents: &[Document]) -> Data {
    let mut samples: BTreeSet<Key> = BTreeSet::new();
    let mut series: BTreeSet<Key> = BTreeSet::new();
    for document in documents {
        for figure in document.figures() {
            samples.extend(figure.keys().cloned());
        }
        for curve in document.plots.iter().flat_map(|plot| &plot.curves) {
            match &curve.points {
                Points::Samples(places) => {
                    samples.extend(places.iter().map(|(_, key)| key.clone()))
                }
                Points::Series(key) => {
                    series.insert(key.clone());
                }
            }
        }
    }
    let raw = |key: &Key, run: u32, at: Option<f64>, number: usize| Raw {
        machine: key.machine.clone(),
        workload: key.workload.clone(),
        config: key.config.clone(),
        metric: key.metric.clone(),
        unit: "things".to_owned(),
        better: if key.metric.len().is_multiple_of(2) {
            Better::Lower
        } else {
            Better::Higher
        },
        run,
        at,
        value: 1.0 + (number * 7919 % 1009) as f64 / 97.0 + f64::from(run * run % 5) / 50.0,
    };
    let samples = samples.iter().enumerate().map(|(number, key)| {
        let rows = (1..=7).map(|run| raw(key, run, None, number)).collect();
        (key, number, rows)
    });
    let series = series.iter().enumerate().map(|(number, key)| {
        let rows = (0..20)
            .map(|i| raw(key, 1, Some(f64::from(i)), number + i as usize))
            .collect();
        (key, 1_000_000 + number, rows)
    });
    let cells = samples
        .chain(series)
        .map(|(key, number, rows): (_, _, Vec<Raw>)| CellRows {
            cell: format!("{}.made-up.{number}", key.experiment),
            kind: Method::Simulated,
            seed: 1,
            host: brickyard_report::Host::unknown(),
            program: String::new(),
            rows,
        });
    Data::new(cells.collect()).unwrap()
}

#[test]
fn every_figure_of_the_five_documents_follows_from_its_rows() {
    let documents = documents::all();
    let data = rows_for(&documents);
    let page = page_sample::page(&documents, &data, Vec::new());
    let count = check_figures(&page, &data);
    println!("{count} figures, {} rows, {} bytes", data.len(), page.len());
    // With rows for all keys nothing is left out.
    assert!(
        !page.contains("no rows<")
            && !page.contains("in this run.")
            && !page.contains("Not measured")
            && !page.contains("nothing was measured")
    );
    let figures: usize = documents
        .iter()
        .map(|document| {
            document
                .figures()
                .filter(|figure| !figure.of.is_empty())
                .count()
        })
        .sum();
    assert!(
        count >= figures,
        "{count} of {figures} figures are in the page"
    );
    for document in &documents {
        for plot in &document.plots {
            assert!(page.contains(&format!("id=\"{}-picture-title\"", plot.id)));
        }
    }
    if let Some(kept) = std::env::var_os("BRICKYARD_PAGES") {
        fs::write(PathBuf::from(kept).join("documents.html"), &page).unwrap();
    }
}

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

/// If no difference was published and none is measured, it is not counted as a direction.
#[test]
fn no_difference_in_either_is_no_direction() {
    let mut documents = page_sample::documents();
    documents.truncate(1);
    let data = page_sample::data();
    let judge = Judge::new(&documents, &data);
    let judged = |figure: &Figure| {
        let mut judgement = judge.judge(figure)?;
        judgement.verdict = judgement.verdict.map(|_| Verdict::NoDifference);
        Some(judgement)
    };
    let counts = Directions::of(&judged, &documents[0], Among::All);
    assert_eq!(counts.all(), 0);
    assert!(counts.none > 0);
    let page = page_sample::page_judged(&documents, &data, Vec::new(), &judged);
    assert!(page.contains("Of <b>0</b> published differences"));
    let count = format!(
        "<li class=\"verdict none\"><span aria-hidden=\"true\">=</span> <b>{}</b> no difference in either</li>",
        counts.none
    );
    // In the line of the document, and in the totals.
    assert_eq!(page.matches(&count).count(), 2);
    assert!(page.contains("title=\"no difference in either\""));
    assert!(page.contains("<span class=\"muted\">no direction was judged in this run</span>"));
    // A count of zero is left out.
    let page = page_sample::page(&documents, &data, Vec::new());
    assert!(!page.contains("no difference in either"));
}

/// The first thing on the page is whether each document's claims came out.
#[test]
fn the_page_opens_with_what_came_out() {
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let page = page_sample::page(&documents, &data, Vec::new());
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = [
        "<h1>",
        "<p class=\"answers\"><b class=",
        "Did it come out here?</th>",
        "<a href=\"#pagealloc\">Magazines in front of the buddy lists</a> <span class=\"muted\">Gorman 2013</span><p>Two magazines that all CPUs share",
        "What decides it\">Made-up rounds on a made-up host: the interval of <code>a/b</code>.</td>",
        "<div class=\"totals\">",
        "How it is judged",
        "What today's allocators do on the same work",
        "<p class=\"winner\">",
        "<section class=\"part\" id=\"pagealloc\"",
        "Where the document is wrong",
        "1 slip, which changes no conclusion",
    ];
    for two in order.windows(2) {
        assert!(place(two[0]) < place(two[1]), "{} after {}", two[0], two[1]);
    }
    for rule in [ANSWER_RULE, SIGN_RULE, SIZE_RULE, SWEEP_RULE, NONE_RULE] {
        assert!(page.contains(&Escaped(rule).to_string()), "{rule}");
    }
    // The slip is in a closed fold.
    assert!(page.contains("<details><summary>1 slip, which changes no conclusion</summary>"));
    let (_, fold) = page
        .split_once("1 slip, which changes no conclusion")
        .unwrap();
    let (fold, _) = fold.split_once("</details>").unwrap();
    assert!(fold.contains("One table says cycles") && !fold.contains("batch"));
}

/// Each verdict has its mark and its count, and each answer its word.
#[test]
fn every_verdict_has_a_mark_and_every_answer_a_word() {
    let mut documents = page_sample::documents();
    documents.truncate(1);
    let data = page_sample::data();
    let judge = Judge::new(&documents, &data);
    let mut signs = BTreeSet::new();
    for verdict in Verdict::ALL {
        let judged = |figure: &Figure| {
            let mut judgement = judge.judge(figure)?;
            judgement.verdict = judgement.verdict.map(|_| verdict);
            Some(judgement)
        };
        let page = page_sample::page_judged(&documents, &data, Vec::new(), &judged);
        let counts = Directions::of(&judged, &documents[0], Among::All);
        let all = counts.all() + counts.none_published() + counts.not_testable;
        assert!(
            page.contains(&format!("<b>{all}</b> {}</li>", verdict.name())),
            "{verdict:?}"
        );
        let (_, mark) = page
            .split_once(&format!("title=\"{}", verdict.name()))
            .unwrap();
        let (_, sign) = mark.split_once("aria-hidden=\"true\">").unwrap();
        signs.insert((sign.chars().next(), verdict.name()));
        if let Some(answer) = counts.answer() {
            // In the sentence and in the table.
            let words = answer.words();
            let sentence = format!("\">{words}</b>: <a href=\"#pagealloc\">pagealloc</a>.</p>");
            assert!(page.contains(&sentence), "{verdict:?}: {sentence}");
            assert_eq!(
                page.matches(&format!("\">{words}</b>")).count(),
                2,
                "{verdict:?}"
            );
        }
    }
    assert_eq!(signs.len(), Verdict::ALL.len());
}

/// The ends of a sweep are figures of their own, with the rows of their members.
#[test]
fn a_sweep_shows_its_ends() {
    let (mut documents, data) = (page_sample::documents(), page_sample::data());
    documents.truncate(1);
    let page = page_sample::page(&documents, &data, Vec::new());
    let (_, table) = page.split_once("id=\"pagealloc-assumed\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let rows: Vec<&str> = table.split("<tr>").skip(2).collect();
    assert_eq!(rows.len(), 5);
    for (line, row) in rows.iter().enumerate() {
        let swept = line < 4;
        assert_eq!(
            row.matches("class=\"sweep\"").count(),
            if swept { 2 } else { 0 }
        );
        assert_eq!(
            row.matches(", 3 assumptions</span>").count(),
            if swept { 2 } else { 0 }
        );
        assert_eq!(figures(row).len(), if swept { 6 } else { 2 });
        let elements = figures(row);
        let verdicts: Vec<&str> = elements
            .iter()
            .filter_map(|element| element.get("data-verdict"))
            .collect();
        assert_eq!(verdicts.len(), 2);
        if !swept {
            assert_eq!(verdicts, [Verdict::NotSwept.name(); 2]);
        }
        for element in figures(row) {
            if let Some(sweep) = element.get("data-sweep") {
                assert!(sweep.contains("under 3 assumptions (lowest: "), "{sweep}");
            }
        }
    }
    // One memory turns the first machine round.
    assert!(rows[0].contains(Verdict::Depends.name()));
}

#[test]
fn names_do_not_become_markup() {
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let page = page_sample::page(&documents, &data, Vec::new());
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("<script").count(), 2);
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=console.error(1)&gt;"));
    assert!(page.contains("12.3 &lt;b&gt;"));
    assert!(page.contains("default-src 'none'"));
    for outside in ["src=\"http", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
}

/// The page allows its own script and the player's, each by its hash, and no other. Without a
/// script each figure is a link to the explanation of the rows.
#[test]
fn only_the_pages_own_scripts_may_run() {
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let player = page_sample::player();
    let (_, own) = player.html.rsplit_once("<script>").unwrap();
    assert_eq!(own.split("</script>").next(), Some(&*html::script()));
    let page = page_sample::page(&documents, &data, vec![player]);
    let (_, own) = page.rsplit_once("<script>").unwrap();
    let own = own.split("</script>").next().unwrap();
    let policy = policy::of(&[own, &html::script()]);
    assert!(page.contains(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">"
    )));
    assert!(!page.contains("script-src 'unsafe-inline'"));
    // The content of a foreign page does not get into the policy.
    let foreign = Embedded {
        html: "<script>1</script>".to_owned(),
        ..page_sample::player()
    };
    let page = page_sample::page(&documents, &data, vec![foreign]);
    assert!(page.contains(&policy));
    for element in figures(&page) {
        assert_eq!(element.get("href"), Some("#raw"));
        assert_eq!(element.get("tabindex"), None);
    }
}

/// Returns the JSON embedded in the page.
fn embedded(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"rows-embedded\">").unwrap();
    serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap()
}

#[test]
fn the_rows_in_the_page_are_the_rows() {
    let data = page_sample::data();
    let page = page_sample::page(&page_sample::documents(), &data, Vec::new());
    let json = embedded(&page);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), data.len());
    for (place, row) in rows.iter().enumerate() {
        let (cell, raw) = data.row(place).unwrap();
        let key = &json["keys"][row[0].as_u64().unwrap() as usize];
        let words = [
            &raw.machine,
            &raw.workload,
            &raw.config,
            &raw.metric,
            &raw.unit,
        ];
        for (embedded, word) in key.as_array().unwrap().iter().zip(words) {
            assert_eq!(embedded, word);
        }
        assert_eq!(key[5], raw.better.name());
        let fields = &json["cells"][row[1].as_u64().unwrap() as usize];
        assert_eq!(
            (fields[0].as_str(), fields[1].as_str()),
            (Some(cell.cell.as_str()), Some(cell.kind.name()))
        );
        assert_eq!(fields[2], cell.seed.to_string());
        assert_eq!(row[2], raw.run);
        assert_eq!(row[3].as_f64(), Some(raw.value));
        assert_eq!(row.get(4).and_then(serde_json::Value::as_f64), raw.at);
    }
}

#[test]
fn the_same_run_gives_the_same_page() {
    let one = page_sample::page(&page_sample::documents(), &page_sample::data(), Vec::new());
    assert_eq!(
        one,
        page_sample::page(&page_sample::documents(), &page_sample::data(), Vec::new())
    );
}
