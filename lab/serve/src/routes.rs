//! What is asked to what is answered. Paths are compared with a fixed list: none leads into the
//! file system. Of a query only numbers are taken.

use core::net::IpAddr;
use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::Value;

use crate::api;
use crate::board::Board;
use crate::history::time_of;
use crate::metrics;

const JSON: &str = "application/json";
/// Frames that one answer has at most.
const FRAMES: u64 = 1 << 16;
/// Rows that one answer has at most.
const POINTS: u64 = 2000;

/// The page's script. Its parts are in order: what runs at once uses what is before it.
const SCRIPT: &str = concat!(
    include_str!("page/words.js"),
    include_str!("page/kinds.js"),
    include_str!("page/layout.js"),
    include_str!("page/frames.js"),
    include_str!("page/map.js"),
    include_str!("page/draw.js"),
    include_str!("page/hand.js"),
    include_str!("page/time.js"),
    include_str!("page/figures.js"),
    include_str!("page/page.js"),
);

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The header `Host`.
    pub host: Option<String>,
    /// The header `Sec-Fetch-Site`, which browsers send.
    pub site: Option<String>,
    /// The path.
    pub path: String,
    /// What follows the question mark.
    pub query: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The content type.
    pub kind: &'static str,
    /// The content.
    pub body: Bytes,
}

impl Answer {
    fn of(kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            kind,
            body: body.into(),
        }
    }

    fn json(value: &Value) -> Self {
        Self::of(JSON, value.to_string())
    }

    /// An error, as the API has it.
    pub(crate) fn error(status: u16, why: &str) -> Self {
        let body = serde_json::json!({ "error": why }).to_string().into();
        Self {
            status,
            kind: JSON,
            body,
        }
    }
}

/// The names by which requests may call the server. A page of another site could otherwise let its
/// own name lead here, and read what it is answered.
#[derive(Debug, Clone)]
pub struct Names(Vec<String>);

impl Names {
    /// Creates the list: these names, `localhost`, and all addresses.
    #[must_use]
    pub fn new(mut names: Vec<String>) -> Self {
        names.push("localhost".to_owned());
        Self(names)
    }

    /// Returns true if a request with this header `Host` may be answered.
    #[must_use]
    pub fn allow(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok() || self.0.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Returns true if the answer may need files of the history.
pub(crate) fn reads_files(asked: &Asked) -> bool {
    matches!(asked.path.as_str(), "/api/now" | "/api/map" | "/api/series")
}

/// Returns the answer.
#[must_use]
pub fn answer(board: &Arc<Board>, names: &Names, asked: &Asked) -> Answer {
    match &asked.host {
        Some(host) if names.allow(host) => {}
        Some(host) => {
            let why = format!("{host} is not a name of this server; see --allow-host");
            return Answer::error(421, &why);
        }
        None => return Answer::error(400, "the request has no Host"),
    }
    // A page of another site cannot read an answer, but it shall not cause work either. A link to
    // the page itself may be followed from anywhere.
    if asked.path != "/" && matches!(asked.site.as_deref(), Some("cross-site" | "same-site")) {
        return Answer::error(403, "another site's page asks");
    }
    match asked.path.as_str() {
        "/" => Answer::of("text/html; charset=utf-8", include_str!("page/index.html")),
        "/page.js" => Answer::of("text/javascript; charset=utf-8", SCRIPT),
        "/page.css" => Answer::of("text/css; charset=utf-8", include_str!("page/page.css")),
        "/metrics" => Answer::of(metrics::CONTENT_TYPE, metrics::text(board)),
        path => of_api(board, path, &asked.query).unwrap_or_else(|answer| answer),
    }
}

fn of_api(board: &Board, path: &str, query: &str) -> Result<Answer, Answer> {
    let query = Query::parse(query)?;
    let nothing = || Answer::error(404, "there is no sample yet");
    let value = match path {
        "/api/now" => api::now(board, &*board.newest().ok_or_else(nothing)?),
        "/api/map" => {
            let time = query.get("time").map(time_of);
            let map = api::map(board, time).map_err(|why| Answer::error(404, &why))?;
            return Ok(Answer::of(JSON, map));
        }
        "/api/frames" => {
            let first = query.required("first")?;
            let count = query.required("count")?;
            if count > FRAMES {
                return Err(Answer::error(400, &format!("count: at most {FRAMES}")));
            }
            let sample = board.newest().ok_or_else(nothing)?;
            api::frames(&sample, first, count).map_err(|why| Answer::error(404, &why))?
        }
        "/api/series" => {
            let (from, to) = (query.required("from")?, query.required("to")?);
            let points = query.get("points").unwrap_or(500).clamp(1, POINTS);
            api::series(board, time_of(from)..time_of(to), points as usize)
                .map_err(|why| Answer::error(404, &why))?
        }
        _ => return Err(Answer::error(404, "there is nothing of this name")),
    };
    Ok(Answer::json(&value))
}

/// The numbers of a query.
struct Query(Vec<(String, u64)>);

impl Query {
    fn parse(text: &str) -> Result<Self, Answer> {
        let parts = text.split('&').filter(|part| !part.is_empty());
        let parsed = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number = value.parse().map_err(|_| {
                Answer::error(400, "a query has numbers, such as ?first=0&count=512")
            })?;
            Ok((name.to_owned(), number))
        });
        Ok(Self(parsed.collect::<Result<_, Answer>>()?))
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.0
            .iter()
            .find(|(own, _)| own == name)
            .map(|&(_, value)| value)
    }

    fn required(&self, name: &str) -> Result<u64, Answer> {
        self.get(name)
            .ok_or_else(|| Answer::error(400, &format!("{name} is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, query: &str) -> Asked {
        let host = Some("localhost:9797".to_owned());
        Asked {
            host,
            site: None,
            path: path.to_owned(),
            query: query.to_owned(),
        }
    }

    fn status(path: &str, query: &str) -> u16 {
        let board = Arc::new(Board::new(None));
        answer(&board, &Names::new(Vec::new()), &asked(path, query)).status
    }

    #[test]
    fn only_its_own_names_are_answered() {
        let names = Names::new(vec!["watch.example".to_owned()]);
        for own in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:9797",
            "10.1.2.3",
            "[::1]:9797",
            "watch.example:80",
        ] {
            assert!(names.allow(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example:9797",
            "",
            "127.0.0.1.evil.example",
            "[::1",
            "[evil]",
        ] {
            assert_eq!(names.allow(foreign), foreign == "[::1", "{foreign}");
        }
        let board = Arc::new(Board::new(None));
        let foreign = Asked {
            host: Some("evil.example".to_owned()),
            ..asked("/metrics", "")
        };
        assert_eq!(answer(&board, &names, &foreign).status, 421);
        let none = Asked {
            host: None,
            ..asked("/metrics", "")
        };
        assert_eq!(answer(&board, &names, &none).status, 400);
    }

    #[test]
    fn other_sites_cause_no_work() {
        let (board, names) = (Arc::new(Board::new(None)), Names::new(Vec::new()));
        let status = |path, site: &str| {
            let site = Some(site.to_owned());
            answer(
                &board,
                &names,
                &Asked {
                    site,
                    ..asked(path, "")
                },
            )
            .status
        };
        for site in ["cross-site", "same-site"] {
            assert_eq!(status("/metrics", site), 403);
            assert_eq!(status("/", site), 200, "a link may be followed");
        }
        assert_eq!(
            [
                status("/metrics", "none"),
                status("/metrics", "same-origin")
            ],
            [200; 2]
        );
    }

    #[test]
    fn no_path_leads_to_a_file() {
        for path in [
            "/../../etc/passwd",
            "//etc/passwd",
            "/%2e%2e/etc/passwd",
            "/api/../page.js",
            "/page.js/",
            "",
            "/metrics\0",
        ] {
            assert_eq!(status(path, ""), 404, "{path}");
        }
        for path in ["/", "/page.js", "/page.css", "/metrics"] {
            assert_eq!(status(path, ""), 200, "{path}");
        }
    }

    #[test]
    fn a_query_that_is_not_numbers_is_refused() {
        for query in [
            "first",
            "first=",
            "first=-1",
            "first=0&count=18446744073709551616",
            "first=0x10&count=1",
        ] {
            assert_eq!(status("/api/frames", query), 400, "{query}");
        }
        assert_eq!(status("/api/frames", "first=0"), 400);
        assert_eq!(status("/api/frames", "first=0&count=65537"), 400);
        assert_eq!(
            status("/api/frames", "first=18446744073709551615&count=65536"),
            404
        );
        assert_eq!(status("/api/series", "from=0&to=18446744073709551615"), 404);
        assert_eq!(status("/api/now", ""), 404, "there is no sample");
    }
}
