//! The service: opens what it needs, gives up root, samples in one thread, writes the history in
//! another, and answers requests in a third.

use core::net::SocketAddr;
use core::time::Duration;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use brickyard_host::Host;
use brickyard_trace::record::fallbacks::Tracing;

use crate::board::Board;
use crate::error::ServeError;
use crate::history::Store;
use crate::http::{self, Server};
use crate::keeper::Keeper;
use crate::privileges::{Become, give_up_capabilities};
use crate::recording::{Ended, Recording};
use crate::sample::Sample;
use crate::sampler::{Fallen, Sampler};

/// Frames are read, and what is asked of the thread is looked at, so often.
const STEP: Duration = Duration::from_secs(1);

/// What the service shall do.
#[derive(Debug)]
pub struct Options {
    /// The host that is watched.
    pub host: Host,
    /// Where it listens; port 0 is any that is free.
    pub listen: SocketAddr,
    /// Names by which requests may call it, beside `localhost` and addresses.
    pub names: Vec<String>,
    /// How often samples are taken.
    pub interval: Duration,
    /// The share of one CPU that sampling may take, 0 to 1.
    pub share: f64,
    /// Where samples are kept.
    pub history: Option<History>,
    /// Whether fallbacks are traced.
    pub trace: Trace,
    /// The user that it becomes; `None` to stay who it is.
    pub user: Option<Become>,
}

/// Where samples are kept.
#[derive(Debug, Clone)]
pub struct History {
    /// The folder.
    pub folder: PathBuf,
    /// How many bytes this host's files may take.
    pub most_bytes: u64,
    /// How often a sample is kept.
    pub interval: Duration,
}

/// Whether fallbacks are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// If the kernel allows it.
    Try,
    /// They are not.
    Off,
}

/// A running service. Dropping it ends it.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    board: Arc<Board>,
    server: Server,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    sampling: Option<JoinHandle<()>>,
    // After the thread, which has the instance's files open.
    _keeper: Option<Keeper>,
}

impl Service {
    /// Starts the service. There is a sample when this returns.
    ///
    /// # Errors
    /// [`ServeError`]; nothing is left behind.
    pub fn start(options: Options) -> Result<Self, ServeError> {
        let address = options.listen;
        let listening = |why| ServeError::Listen { address, why };
        let listener = TcpListener::bind(address).map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let host = options.host.keep_open();
        // Dropped in the opposite order: the keeper waits until the instance's files are closed.
        let (keeper, fallen) = trace(options.trace, options.user);
        give_up_root(options.user, options.history.as_ref())?;
        // By who will write it.
        let store = open_history(options.history.as_ref(), &host)?;
        let folder = options
            .history
            .as_ref()
            .map(|history| history.folder.clone());
        let board = Arc::new(Board::new(folder));
        let mut sampler = Sampler::new(host, options.share, fallen);
        board.publish(Arc::new(sampler.sample()?));
        let server = Server::start(listener, Arc::clone(&board), options.names)?;
        let (stop, stopped) = mpsc::channel::<()>();
        let recording = store.map(|(store, interval)| Recording::start(store, interval, &board));
        let sampling = Sampling {
            sampler,
            board: Arc::clone(&board),
            recording: recording.transpose().map_err(ServeError::Thread)?,
        };
        let interval = options.interval;
        let thread = thread::Builder::new().name("sampling".into());
        let thread = thread.spawn(move || {
            sampling.run(interval, |pause| {
                stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
            });
        });
        Ok(Self {
            address,
            board,
            server,
            stop: Some(stop),
            sampling: Some(thread.map_err(ServeError::Thread)?),
            _keeper: keeper,
        })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns false if one of its threads has ended, which none does by itself.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let sampling = self.sampling.as_ref();
        sampling.is_some_and(|thread| !thread.is_finished()) && self.server.is_running()
    }

    /// Returns what it has published.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.stop();
        drop(self.stop.take());
        if let Some(thread) = self.sampling.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Takes one sample with all frames, and adds it to the history, as this user.
///
/// # Errors
/// [`ServeError`]
pub fn once(
    host: Host,
    history: Option<&History>,
    user: Option<Become>,
) -> Result<Sample, ServeError> {
    let host = host.keep_open();
    give_up_root(user, history)?;
    let store = open_history(history, &host)?;
    let untraced = Fallen::Untraced("a single sample has no events".to_owned());
    let mut sampler = Sampler::new(host, 1.0, untraced);
    sampler.read_all_frames();
    let sample = sampler.sample()?;
    if let (Some((mut store, _)), Some(history)) = (store, history) {
        let kept = store.add(&sample, |_, _| {}).and_then(|()| store.flush());
        kept.map_err(|why| failed(history, &why))?;
    }
    Ok(sample)
}

fn failed(history: &History, why: &impl ToString) -> ServeError {
    let folder = history.folder.clone();
    ServeError::History {
        folder,
        why: why.to_string(),
    }
}

/// Becomes this user, if one is given; makes the folder of the history for it before. Whoever is
/// not root then has no capability either.
fn give_up_root(user: Option<Become>, history: Option<&History>) -> Result<(), ServeError> {
    if let Some(user) = user {
        if let Some(history) = history {
            let made = user.make_folder(&history.folder);
            made.map_err(|why| failed(history, &why))?;
        }
        user.give_up_root()?;
    }
    give_up_capabilities()
}

fn open_history(
    history: Option<&History>,
    host: &Host,
) -> Result<Option<(Store, Duration)>, ServeError> {
    let Some(history) = history else {
        return Ok(None);
    };
    let store = Store::open(&history.folder, &host.name(), history.most_bytes);
    let store = store.map_err(|why| failed(history, &why))?;
    Ok(Some((store, history.interval)))
}

/// Begins to trace. Whoever gives up root needs a keeper.
fn trace(trace: Trace, user: Option<Become>) -> (Option<Keeper>, Fallen) {
    if trace == Trace::Off {
        return (None, Fallen::Untraced("off, by --trace off".to_owned()));
    }
    let tracing = match Tracing::start() {
        Ok(tracing) => tracing,
        Err(why) => return (None, Fallen::Untraced(why)),
    };
    if user.is_none() {
        return (None, Fallen::Traced(Box::new(tracing)));
    }
    match Keeper::start(tracing.folder()) {
        Ok(keeper) => (Some(keeper), Fallen::Traced(Box::new(tracing))),
        Err(why) => {
            let why = format!("nobody would end it: /bin/sh: {why}");
            (None, Fallen::Untraced(why))
        }
    }
}

/// The thread that samples.
#[derive(Debug)]
struct Sampling {
    sampler: Sampler,
    board: Arc<Board>,
    recording: Option<Recording>,
}

impl Sampling {
    /// Samples until `wait`, which is given how long, returns false, or the history's thread has
    /// ended.
    fn run(mut self, interval: Duration, wait: impl Fn(Duration) -> bool) {
        let mut next = Instant::now();
        loop {
            let is_new = self.sampler.read_frames();
            if is_new || next <= Instant::now() {
                next = Instant::now() + interval;
                match self.sampler.sample() {
                    Ok(sample) => {
                        if self.publish(sample).is_err() {
                            return;
                        }
                    }
                    // The lists could be read when the service began; it tries again.
                    Err(why) => self.board.fail(why.to_string()),
                }
            }
            if !wait(STEP.min(next.saturating_duration_since(Instant::now()))) {
                break;
            }
        }
        if let Some(recording) = self.recording {
            recording.end();
        }
    }

    fn publish(&mut self, sample: Sample) -> Result<(), Ended> {
        let sample = Arc::new(sample);
        self.board.publish(Arc::clone(&sample));
        let recording = self.recording.as_mut();
        recording.map_or(Ok(()), |recording| recording.offer(&sample))
    }
}

impl From<http::HttpError> for ServeError {
    fn from(error: http::HttpError) -> Self {
        Self::Thread(error.0)
    }
}
