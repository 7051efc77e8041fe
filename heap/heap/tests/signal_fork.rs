//! A signal handler may fork, whatever the thread that it interrupts was doing in the heap: also
//! while other threads are in there, and while that thread forks itself.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::process::{Child, Command};
use std::thread;
use std::time::Instant;

use brickyard_heap as heap;

/// The forks after which a process has shown enough.
const ENOUGH: usize = 300;

/// The forks so far.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Whether one child in sixteen goes on where the signal came, as POSIX allows where there is one
/// thread.
static SOME_GO_ON: AtomicBool = AtomicBool::new(false);

/// Such children so far.
static GO_ON: AtomicUsize = AtomicUsize::new(0);

/// Whether this process is one.
static IN_CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn fork_at_once(_signal: libc::c_int) {
    let number = FORKS.fetch_add(1, Ordering::Relaxed);
    if number >= ENOUGH || IN_CHILD.load(Ordering::Relaxed) {
        return;
    }
    let goes_on = SOME_GO_ON.load(Ordering::Relaxed) && number.is_multiple_of(16);
    GO_ON.fetch_add(usize::from(goes_on), Ordering::Relaxed);
    // SAFETY: a child ends at once, or has this thread alone and goes on with it. Its alarm ends it
    // if it stands still.
    unsafe {
        if libc::fork() == 0 {
            if !goes_on || IN_CHILD.swap(true, Ordering::Relaxed) {
                libc::_exit(0);
            }
            libc::alarm(10);
        }
    }
}

/// Does in a child that goes on what the heap is needed for, and ends it.
fn end_child(ended: &AtomicUsize) -> ! {
    churn();
    // SAFETY: the child of the child ends at once. (Nobody need wait for it: SIGCHLD is ignored.)
    unsafe {
        if libc::fork() == 0 {
            libc::_exit(0);
        }
        ended.fetch_add(1, Ordering::Relaxed);
        libc::_exit(0);
    }
}

/// Lets these signals fork. None interrupts its own handler; `nest` says whether they interrupt
/// each other's. Children that have ended leave nothing behind.
fn handle(signals: &[libc::c_int], nest: bool) {
    // SAFETY: all zeros is an empty mask and no flags; the handler lives as long as the program.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        for &signal in signals {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = fork_at_once as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            if !nest {
                libc::sigfillset(&raw mut action.sa_mask);
            }
            assert_eq!(
                libc::sigaction(signal, &raw const action, core::ptr::null_mut()),
                0
            );
        }
    }
}

/// Allocates runs of pages and objects, most of which take slow paths.
fn churn() {
    for round in 1..64 {
        let memory = [round * 40_000, round * 500, round * 16].map(heap::alloc);
        for memory in memory {
            assert!(!memory.is_null());
            // SAFETY: just taken.
            unsafe { heap::free(memory) };
        }
    }
}

fn churn_until_enough() {
    let begun = Instant::now();
    let goes_on = || FORKS.load(Ordering::Relaxed) < ENOUGH && !IN_CHILD.load(Ordering::Relaxed);
    while goes_on() && begun.elapsed() < Duration::from_secs(20) {
        churn();
    }
}

/// A number that children share with their parent.
fn shared() -> &'static AtomicUsize {
    let (rights, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, which stays, and is zero.
    unsafe {
        let memory = libc::mmap(core::ptr::null_mut(), 4096, rights, kind, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        &*memory.cast::<AtomicUsize>()
    }
}

/// One thread, two processes that send it a signal each. Some children go on.
fn alone() {
    let ended = shared();
    SOME_GO_ON.store(true, Ordering::Relaxed);
    let signals = [libc::SIGUSR1, libc::SIGUSR2];
    handle(&signals, true);
    // SAFETY: plain calls; a child sends signals until it is killed or its parent is gone.
    let senders = signals.map(|signal| unsafe {
        let parent = libc::getpid();
        let child = libc::fork();
        if child == 0 {
            while libc::getppid() == parent && libc::kill(parent, signal) == 0 {
                libc::usleep(100);
            }
            libc::_exit(0);
        }
        child
    });
    churn_until_enough();
    if IN_CHILD.load(Ordering::Relaxed) {
        end_child(ended);
    }
    for sender in senders {
        // SAFETY: this process's own child, which nobody has waited for.
        unsafe { libc::kill(sender, libc::SIGKILL) };
    }
    let (begun, all) = (Instant::now(), GO_ON.load(Ordering::Relaxed));
    while ended.load(Ordering::Relaxed) < all && begun.elapsed() < Duration::from_secs(15) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ended.load(Ordering::Relaxed), all, "a child stood still");
}

/// This thread gets signals, and others are in the heap.
fn among_others() {
    handle(&[libc::SIGUSR1], false);
    let stop = AtomicBool::new(false);
    // SAFETY: a plain call.
    let this = unsafe { libc::pthread_self() };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    churn();
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let before = FORKS.load(Ordering::Relaxed);
                // SAFETY: that thread lives as long as the scope.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                // So that it gets on between two signals.
                while FORKS.load(Ordering::Relaxed) == before && !stop.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_micros(200));
                }
                thread::sleep(Duration::from_micros(200));
            }
        });
        churn_until_enough();
        stop.store(true, Ordering::Relaxed);
    });
}

const VARIABLE: &str = "BRICKYARD_TEST_SIGNAL_FORK";

/// Waits for a process for at most a minute. Returns true if it ended well.
fn ends_well(mut process: Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if let Some(status) = process.try_wait().unwrap() {
            return status.success();
        }
        thread::sleep(Duration::from_millis(5));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    false
}

/// Runs this program again, to do only this.
fn in_a_process(name: &str) {
    let process = Command::new(std::env::current_exe().unwrap())
        .env(VARIABLE, name)
        .env("BRICKYARD_BACKGROUND", "0")
        .spawn()
        .unwrap();
    assert!(
        ends_well(process),
        "{name}: it stood still, or forked too seldom"
    );
    println!("test {name} ... ok");
}

/// Without the test harness, whose second thread would get signals too.
fn main() {
    const TESTS: [(&str, fn()); 2] = [
        ("two_signals_fork_in_each_others_handlers", alone),
        ("a_signal_forks_while_others_are_in_the_heap", among_others),
    ];
    let Some(wanted) = std::env::var_os(VARIABLE) else {
        TESTS.iter().for_each(|(name, _)| in_a_process(name));
        return;
    };
    let (_, work) = TESTS.iter().find(|(name, _)| *name == wanted).unwrap();
    work();
    let forks = FORKS.load(Ordering::Relaxed);
    std::process::exit(i32::from(forks < ENOUGH));
}
