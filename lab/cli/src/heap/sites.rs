//! The sites of a profile as a table, CSV or JSON.

use std::io::{self, Write};

use brickyard_heap_profile::{Amount, Order, Site, Space};
use brickyard_report::{Column, Columns, counted};
use serde_json::{Value, json};

use crate::amount::rounded;
use crate::info::tables::visible;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Table,
    Csv,
    Json,
}

/// What is shown of a profile.
#[derive(Debug)]
pub(super) struct Shown<'n> {
    pub(super) space: Space,
    pub(super) order: Order,
    pub(super) period: u64,
    /// The number of objects that were sampled.
    pub(super) samples: u64,
    pub(super) total: Amount,
    pub(super) sites: Vec<Site>,
    /// How many sites are listed.
    pub(super) top: usize,
    pub(super) notes: &'n [String],
}

impl Shown<'_> {
    pub(super) fn write(&self, form: Form, out: &mut dyn Write) -> io::Result<()> {
        match form {
            Form::Table => self.table(out),
            Form::Csv => self.csv(out),
            Form::Json => writeln!(out, "{:#}", self.json()),
        }
    }

    fn listed(&self) -> &[Site] {
        &self.sites[..self.sites.len().min(self.top)]
    }

    /// Returns the amount by which sites are ordered.
    const fn amount(&self, site: &Site) -> Amount {
        match self.order {
            Order::Own => site.own,
            Order::Cumulative => site.cumulative,
        }
    }

    fn percent(&self, amount: Amount) -> f64 {
        100.0 * amount.bytes as f64 / self.total.bytes.max(1) as f64
    }

    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let what = match self.space {
            Space::Live => "live",
            Space::All => "allocated in all",
        };
        let every = match self.period {
            0..=1 => "every object was sampled".to_owned(),
            period => format!(
                "estimated from {}, one in {}",
                counted(self.samples, "sample", "samples"),
                rounded(period)
            ),
        };
        let (bytes, objects) = (rounded(self.total.bytes), self.total.objects);
        let objects = counted(objects, "object", "objects");
        writeln!(out, "{what}: {bytes} in {objects} ({every})\n")?;
        let heads: &[&str] = match self.order {
            Order::Own => &["bytes", "objects", "share", "function", "line", "called by"],
            Order::Cumulative => &["bytes", "objects", "share", "itself", "function"],
        };
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        let lines = self.listed().iter().map(|site| self.line(site));
        let lines: Vec<Vec<String>> = core::iter::once(heads).chain(lines).collect();
        let right = Column::right().after(2);
        let numbers = match self.order {
            Order::Own => 3,
            Order::Cumulative => 4,
        };
        let columns = [Column::right()]
            .into_iter()
            .chain([right; 3].into_iter().take(numbers - 1))
            .chain([Column::left().after(2)]);
        for line in Columns::new(columns).lines(&lines) {
            writeln!(out, "{}", line.trim_end())?;
        }
        let more = self.sites.len() - self.listed().len();
        if more > 0 {
            writeln!(out, "\n{more} more; --top N lists them")?;
        }
        for (index, note) in self.notes.iter().enumerate() {
            let gap = if index == 0 { "\n" } else { "" };
            writeln!(out, "{gap}note: {}", plain(note))?;
        }
        Ok(())
    }

    fn line(&self, site: &Site) -> Vec<String> {
        let amount = self.amount(site);
        let mut line = vec![
            rounded(amount.bytes),
            amount.objects.to_string(),
            format!("{:.1} %", self.percent(amount)),
        ];
        match self.order {
            Order::Own => {
                let place = site.place.as_ref();
                let place = place.map(|(file, line)| format!("{}:{line}", last(file)));
                line.push(plain(&site.function));
                line.push(place.map_or("-".to_owned(), |place| plain(&place)));
                line.push(site.caller.as_deref().map_or("-".to_owned(), plain));
            }
            Order::Cumulative => {
                line.push(rounded(site.own.bytes));
                line.push(plain(&site.function));
            }
        }
        line
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record([
            "bytes",
            "objects",
            "cumulative_bytes",
            "cumulative_objects",
            "function",
            "file",
            "line",
            "caller",
        ])?;
        for site in self.listed() {
            let (file, line) = match &site.place {
                Some((file, line)) => (file.as_str(), line.to_string()),
                None => ("", String::new()),
            };
            csv.write_record([
                &site.own.bytes.to_string(),
                &site.own.objects.to_string(),
                &site.cumulative.bytes.to_string(),
                &site.cumulative.objects.to_string(),
                &site.function,
                file,
                &line,
                site.caller.as_deref().unwrap_or_default(),
            ])?;
        }
        csv.flush()
    }

    fn json(&self) -> Value {
        let amount = |of: Amount| json!({"bytes": of.bytes, "objects": of.objects});
        let sites = self.listed().iter().map(|site| {
            json!({
                "function": site.function,
                "file": site.place.as_ref().map(|(file, _)| file),
                "line": site.place.as_ref().map(|(_, line)| line),
                "caller": site.caller,
                "own": amount(site.own),
                "cumulative": amount(site.cumulative),
            })
        });
        json!({
            "space": match self.space { Space::Live => "live", Space::All => "all" },
            "order": match self.order { Order::Own => "own", Order::Cumulative => "cumulative" },
            "period_bytes": self.period,
            "samples": self.samples,
            "total": amount(self.total),
            "sites": sites.collect::<Vec<_>>(),
            "sites_in_all": self.sites.len(),
            "notes": self.notes,
        })
    }
}

/// Returns the last part of a path.
fn last(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Names come from a file of others, and may hold what a terminal would act on.
fn plain(text: &str) -> String {
    text.chars().flat_map(visible).collect()
}
