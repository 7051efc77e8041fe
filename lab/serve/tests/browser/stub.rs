//! A server with the real page and answers that are made up: what no host in a test has.

use core::net::SocketAddr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use brickyard_serve::board::Board;
use brickyard_serve::routes::{self, Asked, Names};
use serde_json::{Value, json};

/// The policy of the real server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Starts a server of this host and this map, which has no single pages. It ends with the program.
pub(crate) fn start(host: &Value, map: &Value) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers = Arc::new((host.to_string(), map.to_string()));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answers = Arc::clone(&answers);
            thread::spawn(move || serve(&stream, &answers));
        }
    });
    address
}

fn serve(mut stream: &TcpStream, (host, map): &(String, String)) {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else {
        return;
    };
    let (kind, body) = if path.starts_with("/api/") {
        let answer = if path == "/api/now" { host } else { map };
        ("application/json", answer.clone().into_bytes())
    } else {
        let asked = Asked {
            host: Some("localhost".to_owned()),
            path: path.to_owned(),
            query: String::new(),
        };
        let answer = routes::answer(&Arc::new(Board::new(None)), &Names::new(Vec::new()), &asked);
        (answer.kind, answer.body.to_vec())
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\ncontent-security-policy: {POLICY}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The browser may have gone.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body));
}

/// A host of this many page blocks, every text of which is `text`.
pub(crate) fn host(blocks: u64, text: &str) -> Value {
    json!({
        "host": text, "kernel": text, "version": text, "time_ms": 1_795_755_600_000_u64,
        "frame_bytes": 4096, "huge_order": 9, "block_order": 9, "available_bytes": 1 << 30,
        "zones": [{
            "node": 0, "name": text, "start_frame": 0, "frames": blocks * 512,
            "managed": blocks * 512, "free": 512, "min": 1, "low": 2, "high": 3, "idle": 0,
            "free_blocks": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], "unusable": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        }],
        "memory_use": { text: 512 },
        "blocks": { "mixed": 1 },
        "forecasts": {
            "order": 9, "time_ms": 1_795_755_600_000_u64,
            "ways": [{ "way": text, "likely": 5, "at_least": 1, "at_most": 9 }],
        },
        "frames": { "time_ms": 1_795_755_600_000_u64, "pass_seconds": 2.5 },
        "pass": null,
        "counters": {},
        "fallbacks": [{ "process": text, "mobility": text, "from": text, "count": 7 }],
        "withheld": [{ "source": text, "why": text }],
        "cost": { "cpu_seconds": 1.0, "share": 0.003, "resident_bytes": 1 << 20 },
        "history": null,
    })
}

/// A map of this many page blocks, in runs of one to four.
pub(crate) fn map(blocks: u64) -> Value {
    let mut runs = Vec::new();
    let mut first = 0;
    while first < blocks {
        let count = (1 + (first * 7 + first / 5) % 4).min(blocks - first);
        runs.push(json!([first, count, 1 + (first * 13 + first / 3) % 6]));
        first += count;
    }
    let kinds = [
        "absent",
        "free",
        "huge",
        "movable",
        "perhaps",
        "mixed",
        "unmovable",
    ];
    json!({ "time_ms": 1_795_755_600_000_u64, "block_order": 9, "kinds": kinds, "runs": runs })
}
