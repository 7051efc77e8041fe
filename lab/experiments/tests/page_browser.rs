//! The report in a real browser, if one is installed: it tests itself, in a wide window and as
//! narrow as a phone.
//!
//! With `#selftest` the page checks its figures and every curve, opens and closes the dialog by
//! keys, measures contrasts in both colour schemes and its own width, runs the player's self-test,
//! and reports the result on the console. Anything else on the console fails the test.

use crate::page_sample;

use core::time::Duration;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use brickyard_experiments::data::Data;
use brickyard_experiments::page::Embedded;
use tempfile::TempDir;

const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A browser without output for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(180);

fn browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let found = BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: none of {} is in PATH", BROWSERS.join(", "));
    }
    found
}

/// Ends the browser that this test started, even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(browser: &Path, folder: &TempDir) -> Command {
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        "--window-size=1280,900",
    ]);
    let profile = folder.path().join("profile");
    command.arg(format!("--user-data-dir={}", profile.display()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Returns the console's lines up to the result of the page's self-test.
fn self_test(browser: &Path, folder: &TempDir, url: &str) -> Vec<String> {
    console_lines(browser, folder, url, |lines| {
        let last = lines.last();
        last.is_some_and(|line| line.contains("\"page selftest "))
    })
}

/// Returns the console's lines until there are enough.
fn console_lines(
    browser: &Path,
    folder: &TempDir,
    url: &str,
    is_enough: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let mut running = Running(command(browser, folder).arg(url).spawn().unwrap());
    let stderr = BufReader::new(running.0.stderr.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = stderr.lines().map_while(Result::ok);
        for line in lines.filter(|line| line.contains("CONSOLE")) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut lines = Vec::new();
    while !is_enough(&lines) {
        let line = receiver
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("no output from the page; before: {lines:#?}"));
        lines.push(line);
    }
    lines
}

/// Checks that all results are good: those of the players, then the page's; returns the last.
fn assert_ok(lines: &[String], players: usize) -> &str {
    assert_eq!(lines.len(), players + 1, "{lines:#?}");
    let (page, frames) = lines.split_last().unwrap();
    assert!(
        frames.iter().all(|line| line.contains("\"selftest ok: ")),
        "{lines:#?}"
    );
    assert!(page.contains("\"page selftest ok: "), "{page}");
    println!("{page}");
    page
}

/// Writes the page as a file; with `BRICKYARD_PAGES=FOLDER` also into that folder, for inspection.
fn write_page(folder: &TempDir, name: &str, html: &str) -> PathBuf {
    let page = folder.path().join(name);
    fs::write(&page, html).unwrap();
    if let Some(kept) = env::var_os("BRICKYARD_PAGES") {
        fs::write(PathBuf::from(kept).join(name), html).unwrap();
    }
    page
}

#[test]
fn the_self_test_passes() {
    let Some(browser) = browser() else { return };
    let folder = TempDir::with_prefix("brickyard-page-").unwrap();
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let html = page_sample::page(&documents, &data, vec![page_sample::player()]);
    let page = write_page(&folder, "sample.html", &html);
    let lines = self_test(
        &browser,
        &folder,
        &format!("file://{}#selftest", page.display()),
    );
    let message = assert_ok(&lines, 1);
    assert!(
        message.contains("3 plots, 15 curves, 1 players"),
        "{message}"
    );
}

#[test]
fn the_page_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = TempDir::with_prefix("brickyard-page-").unwrap();
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let html = page_sample::page(&documents, &data, vec![page_sample::player()]);
    let page = write_page(&folder, "phone.html", &html);
    // A window cannot be that narrow; a frame can.
    let phone = folder.path().join("frame.html");
    let frame = format!(
        "<!doctype html><iframe width=360 height=740 src=\"file://{}#selftest\"></iframe>",
        page.display()
    );
    fs::write(&phone, frame).unwrap();
    let lines = self_test(&browser, &folder, &format!("file://{}", phone.display()));
    let message = assert_ok(&lines, 1);
    assert!(message.contains("360 wide"), "{message}");
}

#[test]
fn a_run_without_rows_has_a_page_too() {
    let Some(browser) = browser() else { return };
    let folder = TempDir::with_prefix("brickyard-page-").unwrap();
    let html = page_sample::page(&page_sample::documents(), &Data::default(), Vec::new());
    let page = write_page(&folder, "nothing.html", &html);
    let lines = self_test(
        &browser,
        &folder,
        &format!("file://{}#selftest", page.display()),
    );
    let message = assert_ok(&lines, 0);
    assert!(message.contains("0 figures, 0 plots"), "{message}");
}

/// Even if foreign text got through as markup, in the page or in an embedded page, no script of it
/// would run.
#[test]
fn a_foreign_script_does_not_run() {
    let Some(browser) = browser() else { return };
    let folder = TempDir::with_prefix("brickyard-page-").unwrap();
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let script = "<script>console.error('foreign ran')</script>";
    let foreign = Embedded {
        html: format!("<body onload=\"console.error('foreign ran')\">{script}</body>"),
        ..page_sample::player()
    };
    let html = page_sample::page(&documents, &data, vec![foreign]);
    // Frames out of view are not loaded.
    let html = html.replace("loading=\"lazy\"", "");
    let html = html.replacen("</main>", &format!("{script}</main>"), 1);
    let page = write_page(&folder, "foreign.html", &html);
    let url = format!("file://{}", page.display());
    let lines = console_lines(&browser, &folder, &url, |lines| lines.len() == 3);
    for line in &lines {
        assert!(
            line.contains("Content Security Policy") && !line.contains("\"foreign ran\""),
            "{lines:#?}"
        );
    }
}
