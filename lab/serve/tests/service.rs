//! The service as its clients see it: what it answers, what it refuses, and that no client keeps it
//! from answering others.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{ErrorKind, Read, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread::{scope, sleep};

use crate::synthetic::Block;
use brickyard_host::Host;
use brickyard_serve::service::{History, Options, Service, Trace};
use serde_json::Value;

use crate::hosts::{self, blocks, folder};

/// Starts a service that watches a made-up host, and waits until it has read all frames.
pub(crate) fn start(of: &str, blocks: Vec<Block>, history: bool) -> Service {
    let folder = history.then(|| folder(&format!("service/{of}")));
    start_in(of, blocks, folder, 0)
}

/// As [`start`], with this history, at this second.
pub(crate) fn start_in(
    of: &str,
    blocks: Vec<Block>,
    history: Option<PathBuf>,
    second: u64,
) -> Service {
    let service = Service::start(options(hosts::host("made", of, blocks, second), history));
    let service = service.unwrap();
    for _ in 0..200 {
        if service
            .board()
            .newest()
            .is_some_and(|sample| sample.reading.is_some())
        {
            return service;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("no pass over the frames was complete in ten seconds");
}

/// Starts a service without a history.
pub(crate) fn start_host(host: Host) -> Service {
    Service::start(options(host, None)).unwrap()
}

fn options(host: Host, history: Option<PathBuf>) -> Options {
    Options {
        host,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        names: vec!["watch.example".to_owned()],
        interval: Duration::from_secs(1),
        share: 0.5,
        history: history.map(|folder| History {
            folder,
            most_bytes: 1 << 30,
            interval: Duration::from_secs(1),
        }),
        trace: Trace::Off,
        user: None,
    }
}

/// Sends these bytes and returns all that comes; connections that end early give what came.
fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(40)))
        .unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    exchange(
        address,
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes(),
    )
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn json(address: SocketAddr, path: &str) -> Value {
    serde_json::from_str(body(&get(address, path))).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("nothing")
}

/// Returns the value of a line of metrics.
fn metric(text: &str, line: &str) -> f64 {
    let found = text
        .lines()
        .find_map(|own| own.strip_prefix(line)?.strip_prefix(' '));
    found
        .unwrap_or_else(|| panic!("{line} is not in\n{text}"))
        .parse()
        .unwrap()
}

#[test]
fn metrics_say_what_the_host_has() {
    let mut all = blocks(3);
    all[10] = Block::Slab;
    let service = start("metrics", all, true);
    let answer = get(service.address(), "/metrics");
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    let text = body(&answer);
    assert!(text.ends_with("# EOF\n"));
    let zone = r#"{node="0",zone="Normal""#;
    assert_eq!(
        metric(
            text,
            &format!("brickyard_page_blocks{zone},kind=\"mixed\"}}")
        ),
        3.0
    );
    assert_eq!(
        metric(
            text,
            &format!("brickyard_page_blocks{zone},kind=\"free\"}}")
        ),
        60.0
    );
    assert_eq!(
        metric(text, &format!("brickyard_page_blocks_mixed_by_few{zone}}}")),
        3.0
    );
    assert_eq!(
        metric(text, &format!("brickyard_zone_free_bytes{zone}}}")),
        60.0 * 2_097_152.0
    );
    assert_eq!(
        metric(text, "brickyard_mixed_page_blocks_bytes{use=\"slab\"}"),
        3.0 * 4096.0
    );
    assert_eq!(
        metric(
            text,
            "brickyard_huge_pages_forecast{way=\"now\",bound=\"likely\"}"
        ),
        metric(text, "brickyard_huge_pages_free")
    );
    assert_eq!(metric(text, "brickyard_compaction_stalls_total"), 3.0);
    assert_eq!(
        metric(text, "brickyard_source_readable{source=\"tracing\"}"),
        0.0
    );
    assert_eq!(
        metric(text, "brickyard_source_readable{source=\"kpageflags\"}"),
        1.0
    );
    assert!(metric(text, "process_cpu_seconds_total") > 0.0);
    // Each family is described once, and a line of each name comes after its description.
    let mut described: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap();
            assert!(!described.contains(&name), "{name} twice");
            described.push(name);
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let family = ["_total", "_info"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            assert_eq!(described.last(), Some(&family.unwrap_or(name)), "{line}");
        }
    }
}

#[test]
fn the_page_is_told_what_it_asks_for() {
    let service = start("api", blocks(3), true);
    let address = service.address();
    let now = json(address, "/api/now");
    assert_eq!(
        (now["host"].as_str(), now["kernel"].as_str()),
        (Some("made"), Some("6.18.0-made"))
    );
    assert_eq!(now["blocks"]["mixed"], 3);
    assert_eq!(now["zones"][0]["frames"], 64 * 512);
    let map = json(address, "/api/map");
    assert_eq!(map["runs"], serde_json::json!([[0, 3, 5], [3, 61, 1]]));
    assert_eq!(map["kinds"][5], "mixed");
    let frames = json(address, "/api/frames?first=199&count=3");
    let uses = frames["uses"].as_array().unwrap();
    let letters = frames["frames"].as_str().unwrap().bytes();
    let named: Vec<_> = letters
        .map(|letter| uses[usize::from(letter - b'A')].as_str().unwrap())
        .collect();
    assert_eq!(named, ["anonymous", "slab", "anonymous"]);
    let begin = hosts::BEGIN * 1000;
    let series = json(
        address,
        &format!("/api/series?from={begin}&to={}&points=10", begin + 1),
    );
    assert_eq!(series["columns"][0], "time_ms");
    assert_eq!(series["rows"][0][0], begin);
    assert_eq!(series["maps"], serde_json::json!([begin]));
    assert_eq!(
        json(address, &format!("/api/map?time={begin}"))["runs"][0][1],
        3
    );
    assert_eq!(
        status(&get(address, &format!("/api/map?time={}", begin - 1))),
        "404"
    );
    for path in ["/", "/page.js", "/page.css"] {
        let answer = get(address, path);
        assert_eq!(status(&answer), "200", "{path}");
        assert!(answer.contains("content-security-policy: default-src 'none';"));
    }
}

#[test]
fn what_is_not_asked_properly_is_refused() {
    let service = start("refused", blocks(0), false);
    let address = service.address();
    let long = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "a".repeat(1 << 16)
    );
    let cases: [(&[u8], &str); 9] = [
        (
            b"POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n",
            "405",
        ),
        (b"DELETE / HTTP/1.1\r\nhost: localhost\r\n\r\n", "405"),
        (
            b"GET /metrics HTTP/1.1\r\nhost: evil.example\r\n\r\n",
            "421",
        ),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "400"),
        (
            b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n",
            "404",
        ),
        (
            b"GET /api/frames?first=x HTTP/1.1\r\nhost: localhost\r\n\r\n",
            "400",
        ),
        (b"\x16\x03\x01 hello\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (long.as_bytes(), "431"),
    ];
    for (bytes, wanted) in cases {
        let answer = exchange(address, bytes);
        assert_eq!(
            status(&answer),
            wanted,
            "{}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(60)])
        );
    }
    let head = exchange(
        address,
        b"HEAD /metrics HTTP/1.1\r\nhost: watch.example:80\r\n\r\n",
    );
    assert_eq!((status(&head), body(&head)), ("200", ""));
    let refused = metric(
        body(&get(address, "/metrics")),
        "brickyard_http_refused_total",
    );
    assert!(refused >= 8.0, "{refused}");
}

#[test]
fn clients_that_ask_nothing_keep_nobody_out() {
    let service = start("idle", blocks(0), false);
    let address = service.address();
    let idle: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    // These are more than the server has room for, and this one more.
    assert_eq!(status(&get(address, "/metrics")), "200");
    let mut gone = 0;
    for mut stream in idle {
        let short = Some(Duration::from_millis(100));
        stream.set_read_timeout(short).unwrap();
        match stream.read(&mut [0; 12]) {
            Ok(read) => gone += u32::from(read == 0),
            Err(why) if why.kind() == ErrorKind::ConnectionReset => gone += 1,
            Err(why) => assert_eq!(why.kind(), ErrorKind::WouldBlock, "{why}"),
        }
    }
    // 32 have their places, one of which was free again.
    assert!(gone >= 100 - 32, "{gone}");
}

#[test]
fn clients_that_ask_at_once_are_all_answered() {
    let service = start("burst", blocks(0), false);
    let address = service.address();
    // More than there are places.
    let together = Barrier::new(40);
    let answered: Vec<String> = scope(|scope| {
        let ask = || {
            together.wait();
            status(&get(address, "/metrics")).to_owned()
        };
        let clients: Vec<_> = (0..40).map(|_| scope.spawn(ask)).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    assert_eq!(answered, ["200"; 40]);
}

#[test]
fn a_client_that_takes_no_answer_does_not_stop_the_service() {
    let service = start("slow", blocks(0), false);
    let address = service.address();
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .write_all(b"GET /page.js HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    assert_eq!(status(&get(address, "/metrics")), "200");
    // It ends while they are still connected.
    drop(service);
    assert!(TcpStream::connect(address).is_err());
    drop(slow);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let service = start("taken", blocks(0), false);
    let address = service.address();
    let host = hosts::host("made", "taken-again", blocks(0), 0);
    let again = Service::start(Options {
        listen: address,
        ..options(host, None)
    });
    let why = again.unwrap_err().to_string();
    assert!(
        why.contains(&address.to_string()) && why.contains("--listen"),
        "{why}"
    );
}
