//! `serve` as an operator runs it: on this host, with root given up, and everything put back when
//! it ends, however it ends.

use core::time::Duration;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;

use crate::synthetic::{Block, SyntheticHost};

use crate::command::{brickyard, text};

fn folder(name: &str) -> PathBuf {
    let all = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("serve");
    emptied(all.join(name))
}

fn emptied(folder: PathBuf) -> PathBuf {
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A new folder that the user can reach that the service becomes. Cargo's own may lie in one that
/// is root's alone (as `mktemp -d` makes it); then it is a temporary one, which is removed on drop.
struct Reachable {
    folder: PathBuf,
    is_temporary: bool,
}

impl Reachable {
    fn new(name: &str) -> Self {
        let usual = folder(name);
        let is_reachable = usual.ancestors().all(|folder| {
            let found = fs::metadata(folder).unwrap();
            found.permissions().mode() & 0o1 != 0
        });
        if is_reachable {
            return Self {
                folder: usual,
                is_temporary: false,
            };
        }
        let own = format!("brickyard-serve-{}-{name}", std::process::id());
        Self {
            folder: emptied(env::temp_dir().join(own)),
            is_temporary: true,
        }
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A running service, killed on drop.
struct Running {
    process: Child,
    url: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    fn start(more: &[&str]) -> Self {
        Self::start_by(&[], more)
    }

    /// Starts it by another program, which gets the words before.
    fn start_by(by: &[&str], more: &[&str]) -> Self {
        let words = [by, &[env!("CARGO_BIN_EXE_brickyard")]].concat();
        let mut process = Command::new(words[0])
            .args(&words[1..])
            .args(["serve", "--listen", "127.0.0.1:0", "--every", "1s"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .strip_prefix("serving ")
            .and_then(|rest| rest.split(' ').next());
        let url = url.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { process, url }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.process.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Returns the folder of its tracing instance, whether it exists or not.
    fn instance(&self) -> PathBuf {
        PathBuf::from(format!(
            "/sys/kernel/tracing/instances/brickyard-{}",
            self.process.id()
        ))
    }

    /// Returns a line of its status in `/proc`.
    fn status(&self, name: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    }
}

fn is_root() -> bool {
    fs::write("/proc/sys/kernel/ns_last_pid", "").is_ok() || fs::read("/proc/kpageflags").is_ok()
}

fn gone(path: &std::path::Path) -> bool {
    (0..100).any(|_| {
        sleep(Duration::from_millis(50));
        !path.exists()
    })
}

#[test]
fn it_answers_with_root_given_up_and_ends_when_asked() {
    // It makes the folder, and gives it to whom it becomes.
    let reachable = Reachable::new("history");
    let history = reachable.folder.join("made");
    let mut running = Running::start(&["--cpu", "50", "--history", history.to_str().unwrap()]);
    let checked = brickyard(&["serve", "--check", &running.url]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    assert_eq!(text(&checked.stdout), "ok\n");
    let was_traced = running.instance().exists();
    if is_root() {
        for ids in ["Uid:", "Gid:"] {
            let ids = running.status(ids);
            assert!(ids.split_whitespace().all(|id| id != "0"), "{ids}");
        }
        for capabilities in ["CapEff:", "CapPrm:"] {
            assert_eq!(running.status(capabilities), "0000000000000000");
        }
    } else {
        println!("skipped: only root can give up root");
    }
    if !was_traced {
        println!("skipped: fallbacks cannot be traced here");
    }
    running.signal("-TERM");
    assert_eq!(running.process.wait().unwrap().code(), Some(0));
    assert!(
        gone(&running.instance()),
        "the tracing instance is still there"
    );
    // The first sample was kept.
    let kept = fs::read_dir(history.join("hosts")).unwrap().count();
    assert_eq!(kept, 1);
}

#[test]
fn a_killed_one_leaves_no_tracing_instance() {
    let mut running = Running::start(&[]);
    if !running.instance().exists() {
        println!("skipped: fallbacks cannot be traced here");
        return;
    }
    running.signal("-KILL");
    running.process.wait().unwrap();
    assert!(
        gone(&running.instance()),
        "the tracing instance is still there"
    );
}

#[test]
fn single_samples_are_added_to_a_history() {
    let reachable = Reachable::new("once");
    let history = reachable.folder.join("made");
    let root = emptied(reachable.folder.join("root"));
    SyntheticHost::new("made", vec![Block::Free; 8])
        .write(&root)
        .unwrap();
    let arguments = [
        "serve",
        "--once",
        "--root",
        root.to_str().unwrap(),
        "--history",
        history.to_str().unwrap(),
    ];
    for kept in [1, 2] {
        let run = brickyard(&arguments);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let said = text(&run.stdout);
        assert!(
            said.starts_with("made: 16.0 MiB free, huge pages to be had now: "),
            "{said}"
        );
        assert_eq!(fs::read_dir(history.join("blocks")).unwrap().count(), kept);
    }
}

#[test]
fn wrong_usage_names_the_fix() {
    let running = Running::start(&["--trace", "off"]);
    let taken = running
        .url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let file = folder("wrong").join("file");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let mut cases: Vec<(Vec<&str>, i32, &str)> = vec![
        (
            vec!["--listen", &taken],
            1,
            "give another address with --listen",
        ),
        (vec!["--listen", "here"], 2, "--listen"),
        (vec!["--every", "0s"], 2, "give 1s to 1day"),
        (vec!["--every", "15"], 2, "write 15s or 1m"),
        (vec!["--cpu", "0"], 2, "give 0.01 to 100"),
        (vec!["--cpu", "NaN"], 2, "give 0.01 to 100"),
        (vec!["--root", "/"], 2, "--once"),
        (vec!["--history-size", "1G"], 2, "--history"),
        (
            vec!["--once", "--root", "/nonesuch"],
            1,
            "/nonesuch does not exist",
        ),
        (vec!["--listen", "127.0.0.1:0", "--history", file], 1, file),
        (vec!["--check", "http://127.0.0.1:1/"], 1, "does not answer"),
        (vec!["--check", "nowhere"], 2, "write http://127.0.0.1:9797"),
    ];
    // One that exists stays whose it is, also behind a link: root gives nothing away.
    let roots = folder("roots");
    let link = folder("link").join("history");
    std::os::unix::fs::symlink(&roots, &link).unwrap();
    let link = link.to_str().unwrap();
    if is_root() {
        cases.push((
            vec!["--listen", "127.0.0.1:0", "--history", link],
            1,
            "must be able to write there",
        ));
        cases.push((
            vec!["--listen", "127.0.0.1:0", "--user", "nonesuch"],
            1,
            "there is no user nonesuch",
        ));
    } else {
        cases.push((vec!["--user", "nobody"], 2, "only root can"));
    }
    for (arguments, code, fix) in cases {
        let run = brickyard(&[&["serve"], arguments.as_slice()].concat());
        let why = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{arguments:?}: {why}");
        assert!(why.contains(fix), "{arguments:?}: {why}");
        assert!(why.matches("nonesuch").count() < 3, "{why}");
    }
    use std::os::unix::fs::MetadataExt as _;
    let owner = fs::metadata(&roots).unwrap().uid();
    assert_eq!(
        owner,
        fs::metadata(env!("CARGO_TARGET_TMPDIR")).unwrap().uid()
    );
    assert_eq!(fs::read_dir(&roots).unwrap().count(), 0);
}

#[test]
fn capabilities_of_an_ordinary_user_are_given_up() {
    let by = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    ];
    let can = Command::new(by[0]).args(&by[1..]).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: this user cannot run setpriv with a capability");
        return;
    }
    let running = Running::start_by(&by, &["--trace", "off"]);
    assert_eq!(running.status("Uid:").split('\t').next(), Some("65534"));
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(running.status(set), "0000000000000000", "{set}");
    }
    assert_eq!(running.status("NoNewPrivs:"), "1");
}
