//! Rows and scripts in the page: complete, harmless, and the same each time.

use brickyard_experiments::page::Embedded;
use brickyard_pictures::pagetypes::html;
use brickyard_pictures::policy;

use super::{embedded, figures};
use crate::page_sample;

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
