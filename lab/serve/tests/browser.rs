//! The page in a real browser, where one is installed: driven as by a user, through the browser's
//! own debugging protocol, against a running service.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::{env, fs, thread};

use brickyard_host::made::Block;
use brickyard_serve::history::Store;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::hosts::{self, folder};
use crate::service;

const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

fn browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let paths = BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = paths.into_iter().find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: none of {} is in PATH", BROWSERS.join(", "));
    }
    found
}

/// A browser with one page.
struct Page {
    browser: Child,
    socket: WebSocket<TcpStream>,
    last: u64,
    /// What the browser told meanwhile.
    events: VecDeque<Value>,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

impl Page {
    fn start(browser: &PathBuf, name: &str, size: &str) -> Self {
        let profile = folder(&format!("browser/{name}"));
        let mut browser = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--window-size={size}"))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(browser.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let listening = lines.find_map(|line| Some(line.split_once("ws://")?.1.to_owned()));
        // Otherwise the browser stops when the pipe is full.
        thread::spawn(move || lines.for_each(drop));
        let listening = listening.expect("the browser says where it listens");
        let address = listening.split('/').next().unwrap().to_owned();
        let mut list = TcpStream::connect(&address).unwrap();
        let ask =
            format!("GET /json/list HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        list.write_all(ask.as_bytes()).unwrap();
        // The browser keeps the connection open.
        let mut head = BufReader::new(list);
        let mut length = 0;
        loop {
            let mut line = String::new();
            head.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut text = vec![0; length];
        head.read_exact(&mut text).unwrap();
        let pages: Value = serde_json::from_slice(&text).unwrap();
        let mut pages = pages.as_array().unwrap().iter();
        let page = pages.find(|page| page["type"] == "page").unwrap();
        let url = page["webSocketDebuggerUrl"].as_str().unwrap();
        let stream = TcpStream::connect(&address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let (socket, _) = tungstenite::client(url, stream).unwrap();
        let mut page = Self {
            browser,
            socket,
            last: 0,
            events: VecDeque::new(),
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    /// Calls a method of the browser, and keeps what else it tells.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let text = json!({ "id": self.last, "method": method, "params": parameters }).to_string();
        self.socket.send(Message::text(text)).unwrap();
        loop {
            let message = self.socket.read().unwrap();
            let Ok(text) = message.to_text() else {
                continue;
            };
            let told: Value = serde_json::from_str(text).unwrap();
            if told["id"] == self.last {
                assert!(told["error"].is_null(), "{method}: {told}");
                return told["result"].clone();
            }
            self.events.push_back(told);
        }
    }

    fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Returns the value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", parameters)["result"]["value"].clone()
    }

    fn text(&mut self, id: &str) -> String {
        let text = self.value(&format!(
            "document.getElementById({id:?})?.textContent ?? ''"
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the text of an element has this part; returns all of it.
    fn wait(&mut self, id: &str, part: &str) -> String {
        let mut text = String::new();
        for _ in 0..200 {
            text = self.text(id);
            if text.contains(part) {
                return text;
            }
            sleep(Duration::from_millis(50));
        }
        panic!(
            "{id} has no {part:?}: {text:?}; trouble: {:?}; {:?}",
            self.text("trouble"),
            self.complaints()
        );
    }

    /// Returns the place of an element's middle.
    fn middle(&mut self, id: &str) -> (f64, f64) {
        let place = format!(
            "(() => {{ const e = document.getElementById({id:?}); e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let place = self.value(&place);
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: Value) {
        let mut parameters = json!({ "type": kind, "x": x, "y": y });
        parameters
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.call("Input.dispatchMouseEvent", parameters);
    }

    fn click(&mut self, id: &str) {
        let place = self.middle(id);
        for kind in ["mousePressed", "mouseReleased"] {
            self.mouse(kind, place, json!({ "button": "left", "clickCount": 1 }));
        }
    }

    fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut parameters = json!({ "type": kind, "key": key });
            if key.len() == 1 && kind == "keyDown" {
                parameters["text"] = key.into();
            }
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// Returns what the page complained of: exceptions, errors, violations of its policy; and requests
    /// to any but its own server.
    fn complaints(&mut self) -> Vec<String> {
        self.value("1");
        let of_page = |told: &Value| {
            let method = told["method"].as_str()?;
            let url = told["params"]["request"]["url"]
                .as_str()
                .unwrap_or_default();
            let is_foreign = method == "Network.requestWillBeSent"
                && !url.starts_with("http://127.0.0.1:")
                && !url.starts_with("data:");
            let is_bad = matches!(
                method,
                "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled"
            );
            (is_bad || is_foreign).then(|| told.to_string())
        };
        self.events.iter().filter_map(of_page).collect()
    }

    /// Saves a picture of the page where `BRICKYARD_PICTURES` says.
    fn picture(&mut self, name: &str) {
        let Some(to) = env::var_os("BRICKYARD_PICTURES") else {
            return;
        };
        let parameters = json!({ "format": "png", "captureBeyondViewport": true });
        let shot = self.call("Page.captureScreenshot", parameters);
        let path = PathBuf::from(to).join(format!("{name}.png.base64"));
        fs::write(path, shot["data"].as_str().unwrap()).unwrap();
    }
}

/// A host of 64 page blocks, some of each kind.
fn some_of_each() -> Vec<Block> {
    let mut blocks = hosts::blocks(3);
    blocks[10] = Block::Slab;
    blocks[11] = Block::Cached;
    blocks[12..20].fill(Block::Single);
    blocks[20] = Block::Untold;
    blocks
}

#[test]
fn memory_is_shown_from_the_whole_to_a_page() {
    let Some(browser) = browser() else { return };
    let running = service::start("browser-zoom", some_of_each(), false);
    let mut page = Page::start(&browser, "zoom", "1280,1000");
    page.open(&format!("http://{}/", running.address()));
    let headline = page.wait("headline", "huge pages of 2.0 MiB can be had now");
    assert!(headline.contains("3 page blocks are mixed"), "{headline}");
    page.wait("level", "128 MiB from 0x0; a cell is 4.0 KiB");
    // 32768 frames are drawn one by one; the frame at the point is told.
    let (x, y) = page.middle("map");
    page.mouse("mouseMoved", (x, y), json!({}));
    let readout = page.wait("readout", "frame ");
    assert!(
        readout.contains("zone Normal of node 0; its page block: free; this page: free"),
        "{readout}"
    );
    page.picture("zoom-whole");
    // The wheel shows less around the point, until a page is large.
    for _ in 0..40 {
        page.mouse("mouseWheel", (x, y), json!({ "deltaX": 0, "deltaY": -100 }));
    }
    page.wait("level", "256 KiB from 0x");
    assert!(
        page.value("location.hash")
            .as_str()
            .unwrap()
            .contains("count=64")
    );
    page.picture("zoom-page");
    // By keys: all of memory, then in at its first frames.
    page.call(
        "Runtime.evaluate",
        json!({ "expression": "document.getElementById('map').focus()" }),
    );
    page.key("0");
    page.wait("level", "128 MiB from 0x0");
    for _ in 0..9 {
        page.key("+");
    }
    page.key("Home");
    page.wait("level", "256 KiB from 0x0");
    let readout = page.wait("readout", "frame 0, address 0x0");
    assert!(
        readout.contains("mixed: movable pages beside ones that cannot move; this page: anonymous"),
        "{readout}"
    );
    page.click("whole");
    page.wait("level", "128 MiB from 0x0");
    // A link leads to the same view, and what is not a view is ignored.
    page.open(&format!(
        "http://{}/#first=5120&count=512",
        running.address()
    ));
    page.wait("level", "2.0 MiB from 0x1400000");
    page.open(&format!(
        "http://{}/#first=-1&count=x&time=9e99",
        running.address()
    ));
    page.wait("level", "128 MiB from 0x0");
    assert_eq!(page.complaints(), Vec::<String>::new());
    // When the service is gone, the page says how old it is.
    drop(running);
    page.wait("trouble", "the service does not answer");
    page.picture("zoom-gone");
}

#[test]
fn time_goes_back() {
    let Some(browser) = browser() else { return };
    // What an earlier run of the service kept: more and more mixed blocks, up to now.
    let history = folder("service/browser-time");
    let mut store = Store::open(&history, "made", 1 << 30).unwrap();
    for minute in 0..30 {
        store
            .add(
                &hosts::sample(
                    "made",
                    "browser-time-before",
                    30 - minute as usize,
                    minute * 60,
                ),
                |_, _| {},
            )
            .unwrap();
    }
    store.flush().unwrap();
    let running = service::start_in("browser-time", hosts::blocks(2), Some(history), 1800);
    let mut page = Page::start(&browser, "time", "1280,1000");
    page.open(&format!("http://{}/", running.address()));
    page.wait("headline", "2 page blocks are mixed");
    page.wait("series", "mixed page blocks: 2 (top of the plot 30)");
    page.call(
        "Runtime.evaluate",
        json!({ "expression": "document.getElementById('time').focus()" }),
    );
    // From map to map.
    page.key("ArrowLeft");
    page.wait("series", "mixed page blocks: 1 ");
    page.key("ArrowLeft");
    page.wait("series", "mixed page blocks: 2 (");
    page.key("Home");
    page.wait("when", "history: page blocks of ");
    page.wait("series", "mixed page blocks: 30 (");
    // The map is of then: the block is mixed which is free now.
    page.call(
        "Runtime.evaluate",
        json!({ "expression": "document.getElementById('map').focus()" }),
    );
    page.key("0");
    let (x, y) = page.middle("map");
    page.mouse("mouseMoved", (x, y - 100.0), json!({}));
    let readout = page.wait("readout", "its page block: ");
    page.picture("time-back");
    let frame = readout
        .strip_prefix("frame ")
        .unwrap()
        .split(", ")
        .next()
        .unwrap();
    let frame: u64 = frame.replace(',', "").parse().unwrap();
    assert!((3 * 512..30 * 512).contains(&frame), "{readout}");
    assert!(readout.contains("its page block: mixed"), "{readout}");
    assert!(
        !readout.contains("this page"),
        "single pages are not known of then: {readout}"
    );
    page.click("live");
    page.wait("when", "frames of ");
    page.wait("level", "a cell is 4.0 KiB");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_read_is_told_and_names_are_only_text() {
    let Some(browser) = browser() else { return };
    let hostile = "<img src=x onerror=alert(1)>";
    let root = folder("hosts/browser-withheld");
    let host = brickyard_host::made::Made::new(hostile, hosts::blocks(2))
        .write(&root)
        .unwrap();
    for file in ["kpageflags", "pagetypeinfo", "vmstat"] {
        fs::remove_file(root.join("proc").join(file)).unwrap();
    }
    let running = service::start_host(host);
    let mut page = Page::start(&browser, "withheld", "360,740");
    page.open(&format!("http://{}/", running.address()));
    page.wait("headline", "can be had now");
    assert_eq!(page.text("host"), hostile);
    let withheld = page.wait("withheld", "kpageflags: ");
    assert!(
        withheld.contains("pagetypeinfo: ") && withheld.contains("vmstat: "),
        "{withheld}"
    );
    page.wait("readout", "is known to root only");
    assert_eq!(
        page.value("document.querySelectorAll('main img, header img').length"),
        0
    );
    assert_eq!(
        page.value("getComputedStyle(document.getElementById('past')).display"),
        "none"
    );
    // It fits on a telephone.
    assert_eq!(
        page.value("document.documentElement.scrollWidth <= innerWidth"),
        true
    );
    page.picture("withheld");
    let complaints = page.complaints();
    // The one thing that is asked for and is not there.
    assert!(
        complaints
            .iter()
            .all(|told| told.contains("/api/series") || told.contains("/api/map")),
        "{complaints:?}"
    );
}
