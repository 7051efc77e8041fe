//! Boxes in the heap: values of every kind of type, their drops, and what a panic leaves.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::thread;

use brickyard_heap::{NoMemory, Object, usable_size};

fn place<T>(object: &Object<T>) -> *mut u8 {
    (&raw const **object).cast_mut().cast()
}

/// Sizes and alignments that types can have.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Line(u8);

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(4096))]
struct Page([u8; 5000]);

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(65536))]
struct Wide(u8);

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Nothing;

fn many<T: PartialEq + Copy + core::fmt::Debug>(value: T) {
    let objects: Vec<_> = (0..300).map(|_| Object::new(value).unwrap()).collect();
    let mut places = BTreeSet::new();
    for object in &objects {
        assert_eq!(**object, value);
        assert!(place(object).addr().is_multiple_of(align_of::<T>()));
        if size_of::<T>() != 0 {
            assert!(usable_size(place(object)) >= size_of::<T>());
            assert!(places.insert(place(object)));
        }
    }
    for object in objects {
        assert_eq!(object.into_inner(), value);
    }
}

#[test]
fn values_of_every_kind_of_type() {
    many(());
    many(Nothing);
    many([0_u64; 0]);
    many(7_u8);
    many([3_u64; 20]);
    many([3_u8; 40_000]);
    many(Line(1));
    many(Page([9; 5000]));
    many(Wide(4));
}

#[test]
fn a_value_is_dropped_once() {
    struct Counts<'a>(&'a Cell<u32>);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = Cell::new(0);
    drop(Object::new(Counts(&dropped)).unwrap());
    assert_eq!(dropped.get(), 1);
    let value = Object::new(Counts(&dropped)).unwrap().into_inner();
    assert_eq!(dropped.get(), 1);
    drop(value);
    assert_eq!(dropped.get(), 2);
    let raw = Object::new(Counts(&dropped)).unwrap().into_raw();
    assert_eq!(dropped.get(), 2);
    // SAFETY: it came from `into_raw`, and is nobody else's.
    drop(unsafe { Object::from_raw(raw) });
    assert_eq!(dropped.get(), 3);
}

#[test]
fn a_value_whose_drop_panics_gives_its_memory_back() {
    struct Panics<'a>(&'a Cell<u32>, [u64; 500]);
    impl Drop for Panics<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            // Without the hook, which would print.
            std::panic::resume_unwind(Box::new(()));
        }
    }
    let dropped = Cell::new(0);
    let mut places = BTreeSet::new();
    for _ in 0..1000 {
        let one = Object::new(Panics(&dropped, [1; 500])).unwrap();
        assert_eq!(one.1[499], 1);
        places.insert(place(&one));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(one))).is_err());
    }
    assert_eq!(dropped.get(), 1000);
    assert!(
        places.len() < 100,
        "{} objects for one at a time",
        places.len()
    );
}

#[test]
fn objects_go_between_threads() {
    let made = thread::spawn(|| (0..1000).map(|i| Object::new([i; 9]).unwrap()));
    let objects: Vec<Object<[u64; 9]>> = made.join().unwrap().collect();
    let sum: u64 = thread::scope(|scope| {
        let shared = &objects;
        let sums =
            (0..4).map(|_| scope.spawn(move || shared.iter().map(|one| one[8]).sum::<u64>()));
        let sums: Vec<_> = sums.collect();
        sums.into_iter().map(|sum| sum.join().unwrap()).sum()
    });
    assert_eq!(sum, 4 * 499_500);
    thread::spawn(move || drop(objects)).join().unwrap();
}

#[test]
fn without_memory_the_value_comes_back() {
    // The value lies on the stack several times.
    let large = thread::Builder::new().stack_size(64 << 20);
    large
        .spawn(in_a_child_without_memory)
        .unwrap()
        .join()
        .unwrap();
    let error = NoMemory(7_u32);
    assert_eq!(error.to_string(), "no memory for a value of 4 bytes");
}

fn in_a_child_without_memory() {
    // A child process with no more addresses than it has. Its heap may have some of them at hand.
    // SAFETY: the child calls the heap, which is consistent after a fork, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit is there to be read.
        let done = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const none) };
        let mut code = i32::from(done != 0);
        // Above 2 MiB a block is a mapping of its own.
        match Object::new([7_u8; 3 << 20]) {
            Ok(_) => code = 2,
            Err(NoMemory(value)) if value != [7; 3 << 20] => code = 3,
            Err(_) => {}
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the child is this test's, and the status can be written.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}
