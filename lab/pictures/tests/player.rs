//! The player's page in a real browser, where one is installed: its self-test, and screenshots.
//!
//! With `#selftest` the page decodes every shot and compares checksums, then plays, steps, points,
//! zooms and pinches by events like a user's, and reports the outcome on the console. Any other
//! console message fails the test.

use core::time::Duration;
use std::{
    env, fs,
    io::{BufRead, BufReader, Cursor},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use brickyard_pictures::pagetypes::{Film, PageKind, Plan, ZoneSpan, html};

const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// After so long without a message the browser is taken to hang.
const TIMEOUT: Duration = Duration::from_secs(120);

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

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("brickyard-player-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("profile")).unwrap();
        Self(path)
    }

    fn page(&self, films: &[&Film], title: &str) -> PathBuf {
        let path = self.0.join("page.html");
        html::write(films, title, &mut fs::File::create(&path).unwrap()).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A browser may still be writing its profile; files left in the temporary folder are
        // harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(browser: &Path, folder: &Folder) -> Command {
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]);
    command.args([
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        "--window-size=1280,900",
    ]);
    command.arg(format!(
        "--user-data-dir={}",
        folder.0.join("profile").display()
    ));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A browser started by this test, killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the page's console messages, up to the outcome of its self-test.
fn self_test(browser: &Path, folder: &Folder, page: &Path) -> Vec<String> {
    let url = format!("file://{}#selftest", page.display());
    let mut running = Running(command(browser, folder).arg(url).spawn().unwrap());
    let stderr = BufReader::new(running.0.stderr.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in stderr
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains("CONSOLE"))
        {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut lines = Vec::new();
    loop {
        let line = receiver
            .recv_timeout(TIMEOUT)
            .unwrap_or_else(|_| panic!("no more messages from the page; before: {lines:#?}"));
        let last = line.contains("\"selftest ");
        lines.push(line);
        if last {
            return lines;
        }
    }
}

fn assert_ok(lines: &[String]) {
    assert_eq!(
        lines.len(),
        1,
        "only the outcome is on the console: {lines:#?}"
    );
    assert!(lines[0].contains("\"selftest ok: "), "{}", lines[0]);
    println!("{}", lines[0]);
}

fn film(name: &str, zones: &[(&str, u64, u64)], shots: u64, step_ns: u64) -> Film {
    let zones = zones.iter().map(|&(name, start, frames)| ZoneSpan {
        name: name.to_owned(),
        start,
        frames,
    });
    let plan = Plan {
        zones: zones.collect(),
        box_order: 10,
        huge_order: 9,
        frame_bytes: 4096,
    };
    let frames = plan.frames();
    let mut film = Film::new(name.to_owned(), plan).unwrap();
    for shot in 0..shots {
        let kind = |frame: u64| match frame * 7 / frames {
            6 if shot % 2 == 1 => PageKind::Absent,
            part => PageKind::ALL[usize::try_from((part + (frame % (shot + 2)) / 2) % 7).unwrap()],
        };
        let kinds: Vec<PageKind> = (0..frames).map(kind).collect();
        film.push(
            5_000 + shot * step_ns,
            &kinds,
            &[("moved pages", format!("{} pages", shot * 10))],
        )
        .unwrap();
    }
    film
}

#[test]
fn films_of_different_lengths_play_in_step() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("step");
    let one = film(
        "one",
        &[("DMA", 1, 4095), ("Normal", 4096, 20_000)],
        40,
        2_000_000_000,
    );
    let other = film(
        "other",
        &[("Normal", 0, 16_384), ("Movable", 16_384, 7712)],
        17,
        3_000_000_000,
    );
    let single = film("single", &[("Normal", 3, 1000)], 1, 1);
    assert_ok(&self_test(
        &browser,
        &folder,
        &folder.page(&[&one, &other, &single], "three"),
    ));
}

#[test]
fn one_shot_of_one_page_is_shown() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("one");
    let tiny = film("tiny", &[("Normal", 0, 1)], 1, 1);
    assert_ok(&self_test(
        &browser,
        &folder,
        &folder.page(&[&tiny], "one page"),
    ));
}

#[test]
fn large_memory_is_shown_in_fewer_cells() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("large");
    let large = film(
        "large",
        &[("DMA32", 1, (1 << 20) - 1), ("Normal", 1 << 20, 4 << 20)],
        3,
        1_000_000_000,
    );
    let page = folder.page(&[&large], "20 GiB");
    assert!(fs::read_to_string(&page).unwrap().contains("\"scale\":1,"));
    assert_ok(&self_test(&browser, &folder, &page));
}

#[test]
fn hostile_names_do_nothing() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("hostile");
    let hostile = "</script></title><img src=x onerror=console.error(1)><script>console.error('owned')</script>{{script}}";
    let mut film = film(hostile, &[(hostile, 0, 2048)], 2, 1_000_000_000);
    film.push(
        u64::MAX,
        &[PageKind::Movable; 2048],
        &[(hostile, hostile.to_owned())],
    )
    .unwrap();
    assert_ok(&self_test(
        &browser,
        &folder,
        &folder.page(&[&film], hostile),
    ));
}

#[test]
fn the_pictures_are_visible_in_light_and_dark_and_on_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("visible");
    let film = film("visible", &[("Normal", 0, 65_536)], 6, 1_000_000_000);
    let page = folder.page(&[&film, &film], "visible");
    for (theme, size) in [
        ("light", "1280,900"),
        ("dark", "1280,900"),
        ("light", "390,844"),
    ] {
        let shot = folder.0.join("shot.png");
        let mut command = command(&browser, &folder);
        command
            .arg(format!("--screenshot={}", shot.display()))
            .arg(format!("--window-size={size}"));
        command
            .arg("--virtual-time-budget=20000")
            .arg(format!("file://{}#theme={theme}&shot=2", page.display()));
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut reader = png::Decoder::new(Cursor::new(fs::read(&shot).unwrap()))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let bytes = info.color_type.samples();
        for kind in [
            PageKind::Free,
            PageKind::Movable,
            PageKind::Reclaimable,
            PageKind::Unmovable,
        ] {
            let color = if theme == "dark" {
                kind.dark_color()
            } else {
                kind.color()
            };
            let found = pixels[..info.buffer_size()]
                .chunks(bytes)
                .filter(|pixel| pixel[..3] == color)
                .count();
            assert!(
                found > 200,
                "{kind:?} is visible in {theme}, {size}: {found} pixels"
            );
        }
    }
}
