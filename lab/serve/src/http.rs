//! The server: HTTP/1.1, one request a connection, with a limit on everything that a client could
//! use up. What is answered is up to [`routes`].
//!
//! | limit | |
//! |---|---|
//! | connections at once | 32; for another one gives way (`places.rs`) |
//! | answers made at once that read files | 2, in threads of their own |
//! | time for the head of a request | 5 s |
//! | time for all of a request and its answer | 30 s |
//! | length of the head | 16 KiB |
//! | body of a request | none is read |

use core::convert::Infallible;
use core::time::Duration;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::board::Board;
use crate::places::{Place, Places};
use crate::routes::{self, Answer, Asked, Names};

const CONNECTIONS: usize = 32;
const ANSWERS: usize = 2;
const HEAD: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 16 << 10;
/// After a failed accept, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Sent with every answer: the page may load only what this server sends, nobody may embed it, no
/// other site may read an answer, and nothing is kept.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The server could not be started.
#[derive(Debug)]
pub struct HttpError(pub io::Error);

/// The running server.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the server; requests may call it by these names.
    pub(crate) fn start(
        listener: TcpListener,
        board: Arc<Board>,
        names: Vec<String>,
    ) -> Result<Self, HttpError> {
        listener.set_nonblocking(true).map_err(HttpError)?;
        let mut runtime = Builder::new_current_thread();
        runtime
            .enable_all()
            .max_blocking_threads(ANSWERS)
            .thread_name("answering");
        let runtime = runtime.build().map_err(HttpError)?;
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::new(Shared {
            board,
            room: Arc::new(Semaphore::new(ANSWERS)),
            names: Names::new(names),
        });
        let thread = thread::Builder::new().name("serving".into());
        let thread = thread.spawn(move || run(runtime, listener, &shared, stopped));
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.map_err(HttpError)?),
        })
    }

    /// Returns false if its thread has ended.
    pub(crate) fn is_running(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the server, and all connections with it.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Shared {
    board: Arc<Board>,
    /// For answers that read files: whoever goes away before has no part in the queue.
    room: Arc<Semaphore>,
    names: Names,
}

fn run(
    runtime: Runtime,
    listener: TcpListener,
    shared: &Arc<Shared>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.spawn(accept(listener, Arc::clone(shared)));
    // Ends when the sender is dropped.
    let _ = runtime.block_on(stopped);
    // Without waiting for an answer that is being made.
    runtime.shutdown_background();
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let places = Places::new(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (place, is_given) = places.take();
        if is_given {
            shared.board.refuse();
        }
        let (number, place) = (place.number(), Arc::new(place));
        let shared = Arc::clone(&shared);
        let connection = tokio::spawn(async move {
            let answering =
                service_fn(|request| answer(request, Arc::clone(&shared), Arc::clone(&place)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(HEAD_BYTES)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answering);
            // A client that goes away or sends what is not HTTP is its own business.
            if !matches!(timeout(WHOLE, connection).await, Ok(Ok(()))) {
                shared.board.refuse();
            }
        });
        places.is_of(number, connection.abort_handle());
        // So that it is answered, if it has asked already, before another comes; and those that gave
        // way are closed.
        tokio::task::yield_now().await;
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    place: Arc<Place>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let answer = if request.method() == Method::GET || is_head {
        let host = request.headers().get(HOST);
        let host = host.map(|host| host.to_str().unwrap_or("?").to_owned());
        let asked = Asked {
            host,
            site: site(&request),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
        };
        make(&shared, &place, asked).await
    } else {
        Answer::error(405, "only GET and HEAD are answered")
    };
    if answer.status >= 400 {
        shared.board.refuse();
    }
    Ok(response(answer, is_head))
}

/// Returns from where a browser says that the request comes.
fn site(request: &Request<Incoming>) -> Option<String> {
    let site = request.headers().get("sec-fetch-site")?;
    Some(site.to_str().unwrap_or("?").to_owned())
}

/// Makes an answer. One that may read files is made by another thread.
async fn make(shared: &Arc<Shared>, place: &Arc<Place>, asked: Asked) -> Answer {
    if !routes::reads_files(&asked) {
        return routes::answer(&shared.board, &shared.names, &asked);
    }
    let Ok(room) = Arc::clone(&shared.room).acquire_owned().await else {
        return Answer::error(503, "the service ends");
    };
    let _kept = place.keep();
    let shared = Arc::clone(shared);
    let made = tokio::task::spawn_blocking(move || {
        let answer = routes::answer(&shared.board, &shared.names, &asked);
        drop(room);
        answer
    });
    made.await
        .unwrap_or_else(|_| Answer::error(500, "the answer could not be made"))
}

fn response(answer: Answer, is_head: bool) -> Response<Full<Bytes>> {
    let length = answer.body.len();
    let body = if is_head { Bytes::new() } else { answer.body };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    let kind = HeaderValue::from_static(answer.kind);
    headers.insert(hyper::header::CONTENT_TYPE, kind);
    headers.insert(hyper::header::CONTENT_LENGTH, HeaderValue::from(length));
    if answer.status == 405 {
        headers.insert(hyper::header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
