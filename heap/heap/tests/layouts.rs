//! Memory that is freed by its layout: of the hardened heap, and allocated while another thread
//! forks.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::os::fd::FromRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;

use brickyard_heap::{Object, statistics, usable_size, write_profile};

#[global_allocator]
static HEAP: brickyard_heap::Global = brickyard_heap::Global;

/// Set in a process of its own.
const VARIABLE: &str = "BRICKYARD_TEST_LAYOUTS";

/// Runs a test in a process of its own, with settings of the heap: there it does `work`, and ends.
fn alone(test: &str, settings: &[(&str, &str)], work: fn()) {
    if std::env::var_os(VARIABLE).is_some() {
        work();
        println!("worked");
        std::process::exit(0);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, "1")
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {wrong}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("worked"), "no test is called {test}");
}

/// Collections that grow, shrink, and are kept for a while.
fn churn(rounds: usize) {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut objects: Vec<Object<[usize; 7]>> = Vec::new();
    for round in 0..rounds {
        let bytes = round * 7919 % 3000 + usize::from(round % 50 == 0) * 200_000;
        let mut one = vec![round as u8; bytes];
        one.extend_from_slice(&[1, 2, 3]);
        one.truncate(bytes.max(1));
        one.shrink_to_fit();
        objects.push(Object::new([round; 7]).unwrap());
        kept.push(one);
        if round % 3 == 0 {
            let gone = kept.swap_remove(round * 31 % kept.len());
            assert!(gone.iter().skip(1).all(|&byte| byte == gone[0]));
            let gone = objects.swap_remove(round * 17 % objects.len());
            assert!(gone.iter().all(|&word| word == gone[0]));
        }
    }
    let whole: String = kept
        .iter()
        .map(|one| char::from(b'a' + one.len() as u8 % 26))
        .collect();
    assert_eq!(whole.len(), kept.len());
}

fn inside_hardened() {
    let object = Object::new([1_u64; 3]).unwrap().into_raw();
    // Exactly what was asked for: the hardened heap.
    assert_eq!(usable_size(object.as_ptr().cast()), 24);
    // SAFETY: it came from `into_raw`, and holds a value.
    drop(unsafe { Object::from_raw(object) });
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| churn(4000));
        }
    });
}

#[test]
fn the_hardened_heap_serves_layouts() {
    let test = "the_hardened_heap_serves_layouts";
    let (harden, rows) = (("BRICKYARD_HARDEN", "1"), ("BRICKYARD_ROWS", "thread"));
    alone(test, &[harden], inside_hardened);
    alone(test, &[harden, rows], inside_hardened);
}

fn inside_sampled() {
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| churn(4000));
        }
    });
    // A request of ten megabytes is in every profile, whose line ends with who asked.
    let large = vec![1_u8; 10 << 20];
    let mut pipe = [0; 2];
    // SAFETY: the pipe's two descriptors can be written.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let reader = thread::spawn(move || {
        // SAFETY: the pipe is this test's, and the file closes its end.
        let end = unsafe { std::fs::File::from_raw_fd(pipe[0]) };
        std::io::read_to_string(end).unwrap()
    });
    write_profile(pipe[1]).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::close(pipe[1]) }, 0);
    let text = reader.join().unwrap();
    let line = " 10485760 [     1: 10485760] @ 0x";
    assert!(
        text.starts_with("heap profile: ") && text.contains(line),
        "{text}"
    );
    assert_eq!(large[large.len() - 1], 1);
}

#[test]
fn layouts_are_sampled() {
    let test = "layouts_are_sampled";
    let file = std::env::temp_dir().join(format!("layouts-{}.heap", std::process::id()));
    let profile = ("BRICKYARD_PROFILE", file.to_str().unwrap());
    let every = ("BRICKYARD_PROFILE_PERIOD", "1");
    alone(test, &[profile, every], inside_sampled);
    let (seldom, sample) = (
        ("BRICKYARD_PROFILE_PERIOD", "5000"),
        ("BRICKYARD_SAMPLE", "2"),
    );
    alone(test, &[profile, seldom, sample], inside_sampled);
    let _ = std::fs::remove_file(file);
}

fn inside_use_after_free() {
    // The standard library has set a handler for this signal by now.
    for _ in 0..100 {
        let object = Box::new([1_u8; 40]);
        let address = core::ptr::from_ref(&*object).cast::<u8>();
        drop(object);
        // SAFETY: none: this is the mistake. The memory is mapped, if not for reading.
        core::hint::black_box(unsafe { address.read_volatile() });
    }
}

#[test]
fn a_mistake_with_a_guarded_layout_is_told() {
    let test = "a_mistake_with_a_guarded_layout_is_told";
    if std::env::var_os(VARIABLE).is_some() {
        inside_use_after_free();
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs([(VARIABLE, "1"), ("BRICKYARD_SAMPLE", "1")])
        .output()
        .unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{wrong}");
    assert!(
        wrong.contains("use after free") && wrong.contains("an object of 40 bytes"),
        "{wrong}"
    );
    for event in ["freed", "allocated", "here"] {
        assert!(wrong.contains(&format!("  {event}, by thread")), "{wrong}");
    }
}

static SLOW: AtomicBool = AtomicBool::new(false);
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Called by `fork` before the process is copied, with the gate closed: it is registered first.
unsafe extern "C" fn takes_long() {
    if SLOW.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(100));
    }
}

extern "C" fn register() {
    // SAFETY: the function lives as long as the program.
    unsafe { libc::pthread_atfork(Some(takes_long), None, None) };
}

#[used]
#[unsafe(link_section = ".preinit_array")]
static AT_START: extern "C" fn() = register;

fn inside_slow_fork() {
    let stop = AtomicBool::new(false);
    let before = statistics().runs();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                // Of sizes that slabs serve, and more than lie at hand.
                let kept: Vec<Box<[u8; 200]>> = (0..2000).map(|_| Box::new([1; 200])).collect();
                assert!(kept.iter().all(|one| one[199] == 1));
                DONE.fetch_add(1, Ordering::SeqCst);
            }
        });
        SLOW.store(true, Ordering::SeqCst);
        for _ in 0..5 {
            // SAFETY: the child ends at once.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: ends the process.
                unsafe { libc::_exit(0) };
            }
            let mut status = 0;
            // SAFETY: `status` can be written.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((waited, status), (child, 0));
            let done = DONE.load(Ordering::SeqCst);
            while DONE.load(Ordering::SeqCst) < done + 2 {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    // Every object came out of a slab, and went back to it: no page of a run is among them.
    assert_eq!(statistics().runs(), before);
}

#[test]
fn objects_come_out_of_slabs_while_a_fork_takes_long() {
    let test = "objects_come_out_of_slabs_while_a_fork_takes_long";
    alone(test, &[], inside_slow_fork);
}
