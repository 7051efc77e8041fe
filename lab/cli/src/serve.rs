//! `brickyard serve`: watches this host's memory, for Prometheus, for the history on its disk, and
//! for who looks at the page.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use brickyard_host::Host;
use brickyard_serve::privileges::{Become, is_root};
use brickyard_serve::sample::Sample;
use brickyard_serve::service::{self, History, Options, Service, Trace};
use clap::Args;

use crate::snapshot::host;
use brickyard_measure::amount;
use brickyard_measure::command::misuse::Misuse;
use brickyard_results::bytes_of;
use brickyard_run::interrupt::{self, Holding};
use brickyard_run::terminal::{print, tell};

/// Who it becomes if nobody is named.
const NOBODY: &str = "nobody";
/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(250);
/// Seconds after which a sample is too old for `--check`.
const OLD: f64 = 300.0;
/// How long `--check` waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shown by `--help`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  sudo brickyard serve
      the page at http://127.0.0.1:9797/, for Prometheus http://127.0.0.1:9797/metrics
  sudo brickyard serve --history /var/lib/brickyard --user brickyard
      keeps samples for `brickyard history`; as root it only opens its files
  sudo brickyard serve --once --history /var/lib/brickyard --user brickyard
      adds one sample and ends, for a timer
  brickyard serve --check http://127.0.0.1:9797
      whether one answers, for a container's health check";

/// The options of `brickyard serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen. Anyone who reaches it can read everything; there is no password.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9797")]
    listen: SocketAddr,
    /// A name by which requests may call this server, beside localhost and addresses. Can be given
    /// several times.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// How often to read the lists.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = seconds)]
    every: Duration,
    /// How much of one CPU sampling may take on average, in per cent. Frames are read at the pace
    /// that this allows.
    #[arg(long, value_name = "PERCENT", default_value = "0.4", value_parser = percent)]
    cpu: f64,
    /// Keep samples in this folder, in Parquet files.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// How much the files of this host may take; the oldest are removed.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes_of, requires = "history")]
    history_size: usize,
    /// How often to keep a sample.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds, requires = "history")]
    history_every: Duration,
    /// The user to become when the files that only root may read are open. [default: nobody, if run
    /// by root]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Count which processes' requests fall back on memory of another mobility: a tracing instance
    /// of its own, if the kernel allows one.
    #[arg(long, value_name = "auto|off", default_value = "auto", value_parser = ["auto", "off"])]
    trace: String,
    /// Take one sample of everything, add it to the history, and end.
    #[arg(long)]
    once: bool,
    /// With --once: read another host's files, copied to this folder (DIR/proc/zoneinfo and so on).
    #[arg(long, value_name = "DIR", requires = "once")]
    root: Option<PathBuf>,
    /// Ask the service at this address whether it has a sample that is not older than 5 minutes,
    /// and end: exit code 0 if it has.
    #[arg(long, value_name = "URL", conflicts_with_all = ["once", "history", "user"])]
    check: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|why| format!("{why}; write 15s or 1m"))?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(86_400);
    allowed
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| "give 1s to 1day".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text
        .parse()
        .map_err(|_| "give a number, such as 0.4".to_owned())?;
    let allowed = (0.01..=100.0).contains(&percent);
    allowed
        .then_some(percent)
        .ok_or_else(|| "give 0.01 to 100".to_owned())
}

impl Serve {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if let Some(url) = &self.check {
            return check(url);
        }
        let host = host(self.root.as_deref());
        let history = self.history.as_ref().map(|folder| History {
            folder: folder.clone(),
            most_bytes: self.history_size as u64,
            interval: self.history_every,
        });
        if self.once {
            let user = self.user()?.map(|(_, user)| user);
            let sample = service::once(host, history.as_ref(), user)?;
            return Ok(print(&summary(&sample, history.as_ref()))?);
        }
        self.serve(host, history)
    }

    fn serve(&self, host: Host, history: Option<History>) -> anyhow::Result<()> {
        interrupt::watch()?;
        // A second Ctrl-C would leave a tracing instance.
        let holding = Holding::begin();
        let user = self.user()?;
        let service = Service::start(Options {
            host,
            listen: self.listen,
            names: self.allow_host.clone(),
            interval: self.every,
            share: self.cpu / 100.0,
            history,
            trace: if self.trace == "off" {
                Trace::Off
            } else {
                Trace::Try
            },
            user: user.as_ref().map(|(_, user)| *user),
        })?;
        let address = service.address();
        print(&format!(
            "serving http://{address}/ and http://{address}/metrics\n"
        ))?;
        if !address.ip().is_loopback() {
            tell("anyone who reaches this address can read it: there is no password");
        }
        match user {
            Some((name, _)) => tell(format!("running as {name}")),
            None if is_root() => tell("running as root, as --user says"),
            None => tell("not root: frames cannot be read, unless this user was given that right"),
        }
        if let Some(sample) = service.board().newest() {
            for source in &sample.sources {
                if let Some(why) = &source.withheld {
                    tell(format!("not read: {}: {why}", source.name));
                }
            }
        }
        while !interrupt::asked() {
            let is_whole = service.is_whole();
            anyhow::ensure!(
                is_whole,
                "a thread of the service has ended; start it again"
            );
            thread::sleep(TICK);
        }
        drop(service);
        drop(holding);
        Ok(())
    }

    /// Returns whom to become, and the name.
    fn user(&self) -> anyhow::Result<Option<(String, Become)>> {
        let name = match &self.user {
            Some(name) if name == "root" => return Ok(None),
            Some(_) if !is_root() => {
                return Err(Misuse::new("--user: only root can become another user").into());
            }
            Some(name) => name.as_str(),
            None if is_root() => NOBODY,
            None => return Ok(None),
        };
        let user = Become::user(name)?;
        Ok((!user.is_root()).then(|| (name.to_owned(), user)))
    }
}

/// Returns what `--once` prints.
fn summary(sample: &Sample, history: Option<&History>) -> String {
    let look = &sample.look;
    let free = amount::rounded(sample.free_bytes());
    let mut text = format!(
        "{}: {free} free, huge pages to be had now: {}",
        look.host,
        sample.huge_free()
    );
    if let Some(history) = history {
        text += &format!("; added to {}", history.folder.display());
    }
    text + "\n"
}

/// Asks a service for its metrics.
fn check(url: &str) -> anyhow::Result<()> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let name = rest.split('/').next().unwrap_or_default();
    let wrong = || Misuse::new(format!("--check {url}: write http://127.0.0.1:9797"));
    let addresses: Vec<SocketAddr> = name.to_socket_addrs().map_err(|_| wrong())?.collect();
    if addresses.is_empty() {
        return Err(wrong().into());
    }
    // A name may have several, of which the service listens on one.
    let stream = addresses
        .iter()
        .map(|address| TcpStream::connect_timeout(address, PATIENCE));
    let stream = stream.reduce(|found, next| found.or(next));
    let asked = || -> std::io::Result<String> {
        let mut stream = stream.ok_or(std::io::ErrorKind::NotFound)??;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.take(1 << 22).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = asked().with_context(|| format!("{name} does not answer"))?;
    let status = text.lines().next().unwrap_or_default();
    anyhow::ensure!(status.contains(" 200 "), "{name} answers: {status}");
    let mut lines = text.lines();
    let taken = lines.find_map(|line| line.strip_prefix("brickyard_sample_timestamp_seconds "));
    let taken: Option<f64> = taken.and_then(|taken| taken.trim().parse().ok());
    let taken = taken.with_context(|| format!("{name} has no sample"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let age = now.map_or(0.0, |now| now.as_secs_f64() - taken);
    // By a clock that was put back it may be from the future: then nobody knows how old it is.
    anyhow::ensure!(
        age.abs() < OLD,
        "the newest sample of {name} is {age:.0} s old"
    );
    Ok(print("ok\n")?)
}
