//! Each rule of happens-before, on sequences written by hand.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use brickyard_machine::{Conflict, HappensBefore};

/// A guarded word.
const DATA: u64 = 64;
/// An atomic word.
const FLAG: u64 = 4096;

/// Three CPUs, of which CPU 0 has written `DATA`.
fn written() -> HappensBefore {
    let mut order = HappensBefore::new(3);
    order.guarded_write(0, DATA).unwrap();
    order
}

#[test]
fn all_cpus_have_seen_what_was_there_before() {
    let mut order = HappensBefore::new(3);
    for cpu in 0..3 {
        order.guarded_read(cpu, DATA).unwrap();
    }
    assert!(order.guarded_write(1, DATA).is_err(), "read by 0 and 2");
    HappensBefore::new(2).guarded_write(1, DATA).unwrap();
}

#[test]
fn one_cpu_is_in_order_with_itself() {
    let mut order = written();
    order.guarded_read(0, DATA).unwrap();
    order.guarded_write(0, DATA).unwrap();
}

#[test]
fn unordered_accesses_are_races_of_each_kind() {
    let race = written().guarded_read(2, DATA).unwrap_err();
    assert_eq!((race.cpu, race.other, race.word), (2, 0, DATA));
    assert_eq!(race.conflict, Conflict::WriteThenRead);
    assert_eq!(
        race.to_string(),
        "CPU 2 reads the guarded word at 0x40 and has not seen that CPU 0 wrote it"
    );
    let race = written().guarded_write(1, DATA).unwrap_err();
    assert_eq!(race.conflict, Conflict::WriteThenWrite);
    let mut order = HappensBefore::new(2);
    order.guarded_read(0, DATA).unwrap();
    let race = order.guarded_write(1, DATA).unwrap_err();
    assert_eq!(race.conflict, Conflict::ReadThenWrite);
    // Neighbouring words are separate.
    written().guarded_write(1, DATA + 4).unwrap();
}

#[test]
fn a_release_is_seen_by_an_acquire() {
    for (release, acquire, seen) in [
        (Release, Acquire, true),
        (SeqCst, SeqCst, true),
        (Relaxed, Acquire, false),
        (Release, Relaxed, false),
    ] {
        let mut order = written();
        order.store(0, FLAG, release);
        order.load(1, FLAG, acquire);
        assert_eq!(
            order.guarded_read(1, DATA).is_ok(),
            seen,
            "{release:?} {acquire:?}"
        );
        // The same with exchanges.
        let mut order = written();
        order.exchange(0, FLAG, release);
        order.exchange(1, FLAG, acquire);
        assert_eq!(
            order.guarded_read(1, DATA).is_ok(),
            seen,
            "{release:?} {acquire:?}"
        );
    }
}

#[test]
fn what_comes_after_a_release_is_not_published_by_it() {
    let mut order = HappensBefore::new(2);
    order.store(0, FLAG, Release);
    order.guarded_write(0, DATA).unwrap();
    order.load(1, FLAG, Acquire);
    assert!(order.guarded_read(1, DATA).is_err());
    // Nor by a release at another word.
    order.store(0, FLAG + 8, Release);
    order.load(1, FLAG, Acquire);
    assert!(order.guarded_read(1, DATA).is_err());
    order.load(1, FLAG + 8, Acquire);
    order.guarded_read(1, DATA).unwrap();
}

#[test]
fn happens_before_is_transitive() {
    let mut order = written();
    order.store(0, FLAG, Release);
    order.load(1, FLAG, Acquire);
    order.store(1, FLAG + 8, Release);
    order.load(2, FLAG + 8, Acquire);
    order.guarded_write(2, DATA).unwrap();
}

#[test]
fn a_relaxed_store_ends_the_release_sequence() {
    // A store of the releasing CPU itself too, since C++20.
    for cpu in 0..2 {
        let mut order = written();
        order.store(0, FLAG, Release);
        order.store(cpu, FLAG, Relaxed);
        order.load(2, FLAG, Acquire);
        assert!(order.guarded_read(2, DATA).is_err(), "CPU {cpu}");
        // An exchange after it does not restore the sequence.
        order.exchange(1, FLAG, Relaxed);
        order.load(2, FLAG, Acquire);
        assert!(order.guarded_read(2, DATA).is_err(), "CPU {cpu}");
    }
}

#[test]
fn a_release_store_of_another_cpu_ends_it_too() {
    let mut order = written();
    order.store(0, FLAG, Release);
    order.store(1, FLAG, Release);
    order.load(2, FLAG, Acquire);
    assert!(order.guarded_read(2, DATA).is_err());
}

#[test]
fn exchanges_continue_the_release_sequence() {
    for carried in [Relaxed, Acquire, Release, AcqRel] {
        let mut order = written();
        order.store(0, FLAG, Release);
        order.exchange(1, FLAG, carried);
        order.load(2, FLAG, Acquire);
        assert!(order.guarded_read(2, DATA).is_ok(), "{carried:?}");
    }
}

#[test]
fn two_release_sequences_continue_as_one() {
    let mut order = written();
    order.guarded_write(1, DATA + 4).unwrap();
    order.store(0, FLAG, Release);
    // CPU 1 publishes its own writes without having seen those of CPU 0.
    order.exchange(1, FLAG, Release);
    assert!(order.guarded_read(1, DATA).is_err());
    order.exchange(2, FLAG, Release);
    order.load(2, FLAG, Acquire);
    order.guarded_read(2, DATA).unwrap();
    order.guarded_read(2, DATA + 4).unwrap();
}

#[test]
fn a_second_acquire_from_the_same_release_changes_nothing() {
    let mut order = written();
    order.store(0, FLAG, Release);
    order.load(1, FLAG, Acquire);
    order.load(1, FLAG, Acquire);
    order.guarded_read(1, DATA).unwrap();
    // What was written since is not seen by acquiring from the old release again.
    order.guarded_write(0, DATA + 8).unwrap();
    order.load(1, FLAG, Acquire);
    assert!(order.guarded_read(1, DATA + 8).is_err());
}

#[test]
fn a_writer_must_have_seen_all_readers() {
    let mut order = HappensBefore::new(4);
    order.guarded_write(0, DATA).unwrap();
    for cpu in 1..4 {
        order.handover(0, cpu);
        order.guarded_read(cpu, DATA).unwrap();
    }
    order.handover(1, 0);
    order.handover(2, 0);
    let race = order.guarded_write(0, DATA).unwrap_err();
    assert_eq!((race.other, race.conflict), (3, Conflict::ReadThenWrite));
    order.handover(3, 0);
    order.guarded_write(0, DATA).unwrap();
    // The vector of readers is reused, empty.
    order.guarded_read(0, DATA).unwrap();
    order.handover(0, 1);
    order.guarded_read(1, DATA).unwrap();
    order.guarded_read(2, DATA).unwrap_err();
    order.handover(0, 2);
    order.guarded_read(2, DATA).unwrap();
    order.handover(2, 1);
    order.guarded_write(1, DATA).unwrap();
}

#[test]
fn a_reader_that_has_seen_the_one_before_replaces_it() {
    let mut order = HappensBefore::new(3);
    order.guarded_read(0, DATA).unwrap();
    order.handover(0, 1);
    order.guarded_read(1, DATA).unwrap();
    order.handover(1, 2);
    order.guarded_write(2, DATA).unwrap();
}

#[test]
fn a_handover_works_one_way_and_once() {
    let mut order = written();
    order.handover(0, 1);
    order.guarded_write(1, DATA).unwrap();
    assert!(order.guarded_read(0, DATA).is_err());
    order.handover(1, 1);
    order.handover(1, 0);
    order.guarded_write(0, DATA).unwrap();
    assert!(order.guarded_read(1, DATA).is_err());
}

#[test]
fn a_lock_guards_only_if_its_unlock_releases() {
    for (unlock, right) in [(Release, true), (Relaxed, false)] {
        let mut order = HappensBefore::new(256);
        let mut ok = true;
        for turn in 0..1000 {
            let cpu = turn * 7 % 256;
            order.exchange(cpu, FLAG, Acquire);
            ok &= order.guarded_read(cpu, DATA).is_ok();
            ok &= order.guarded_write(cpu, DATA).is_ok();
            order.store(cpu, FLAG, unlock);
        }
        assert_eq!(ok, right, "{unlock:?}");
    }
}
