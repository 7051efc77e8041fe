//! The page of the report: its figures, its content, its verdicts, and what it embeds.

mod content;
mod embedding;
mod traced;
mod verdicts;

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

/// Returns the JSON embedded in the page.
fn embedded(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"rows-embedded\">").unwrap();
    serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap()
}
