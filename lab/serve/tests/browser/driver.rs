//! A browser, driven through its own debugging protocol.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::{env, fs, thread};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::hosts::folder;

const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Half a minute: others may have the processors.
const WAITS: u32 = 600;

pub(crate) fn browser() -> Option<PathBuf> {
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
pub(crate) struct Page {
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
    pub(crate) fn start(browser: &PathBuf, name: &str, size: &str) -> Self {
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
            .set_read_timeout(Some(Duration::from_secs(120)))
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
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
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

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Returns the value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", parameters)["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, id: &str) -> String {
        let text = self.value(&format!(
            "document.getElementById({id:?})?.textContent ?? ''"
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the text of an element has this part; returns all of it.
    pub(crate) fn wait(&mut self, id: &str, part: &str) -> String {
        let mut text = String::new();
        for _ in 0..WAITS {
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

    /// Waits until an expression in the page is true.
    pub(crate) fn until(&mut self, expression: &str) {
        for _ in 0..WAITS {
            if self.value(expression) == true {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!(
            "never true: {expression}; trouble: {:?}; {:?}",
            self.text("trouble"),
            self.complaints()
        );
    }

    /// Returns how many pixels of a canvas have this colour.
    pub(crate) fn pixels(&mut self, id: &str, [red, green, blue]: [u8; 3]) -> u64 {
        let count = format!(
            "(() => {{ const c = document.getElementById({id:?}); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] === {red} && d[i + 1] === {green} && d[i + 2] === {blue}; return n; }})()"
        );
        self.value(&count).as_u64().unwrap()
    }

    /// Waits until a canvas has more than so many pixels of this colour.
    pub(crate) fn paints(&mut self, id: &str, colour: [u8; 3], least: u64) {
        let mut pixels = 0;
        for _ in 0..WAITS {
            pixels = self.pixels(id, colour);
            if pixels > least {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{pixels} pixels of {id} are {colour:?}");
    }

    /// Gives the keys to an element.
    pub(crate) fn focus(&mut self, id: &str) {
        self.value(&format!("document.getElementById({id:?}).focus()"));
    }

    /// Returns what was asked of the server whose path has this part.
    pub(crate) fn asked(&mut self, part: &str) -> Vec<String> {
        self.value("1");
        let urls = self.events.iter().filter_map(|told| {
            let is_request = told["method"] == "Network.requestWillBeSent";
            let url = told["params"]["request"]["url"].as_str()?;
            (is_request && url.contains(part)).then(|| url.to_owned())
        });
        urls.collect()
    }

    /// Returns the place of an element's middle.
    pub(crate) fn middle(&mut self, id: &str) -> (f64, f64) {
        let place = format!(
            "(() => {{ const e = document.getElementById({id:?}); e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let place = self.value(&place);
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    pub(crate) fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: Value) {
        let mut parameters = json!({ "type": kind, "x": x, "y": y });
        parameters
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.call("Input.dispatchMouseEvent", parameters);
    }

    pub(crate) fn click(&mut self, id: &str) {
        let place = self.middle(id);
        for kind in ["mousePressed", "mouseReleased"] {
            self.mouse(kind, place, json!({ "button": "left", "clickCount": 1 }));
        }
    }

    pub(crate) fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut parameters = json!({ "type": kind, "key": key });
            if key.len() == 1 && kind == "keyDown" {
                parameters["text"] = key.into();
            }
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// Returns what the page complained of: exceptions, errors, violations of its policy; and
    /// requests to any but its own server.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.value("1");
        let of_page = |told: &Value| {
            let method = told["method"].as_str()?;
            let url = told["params"]["request"]["url"]
                .as_str()
                .unwrap_or_default();
            let is_foreign = method == "Network.requestWillBeSent"
                && !url.starts_with("http://127.0.0.1:")
                && !url.starts_with("data:");
            // The test itself reads pictures.
            let text = told["params"]["entry"]["text"].as_str();
            let is_own = text.is_some_and(|text| text.contains("getImageData"));
            let is_bad = !is_own
                && matches!(
                    method,
                    "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled"
                );
            (is_bad || is_foreign).then(|| told.to_string())
        };
        self.events.iter().filter_map(of_page).collect()
    }

    /// Saves a picture of the page where `BRICKYARD_PICTURES` says.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(to) = env::var_os("BRICKYARD_PICTURES") else {
            return;
        };
        let parameters = json!({ "format": "png", "captureBeyondViewport": true });
        let shot = self.call("Page.captureScreenshot", parameters);
        let path = PathBuf::from(to).join(format!("{name}.png.base64"));
        fs::write(path, shot["data"].as_str().unwrap()).unwrap();
    }
}
