//! The twins of Linux's spin locks: what each call accesses, who comes next, and who can tell.

use core::cell::RefCell;

use brickyard::sync::{RawLock, spin_hint};
use brickyard_designs::classics::Contended;
use brickyard_machine::{Affinity, Machine, Profile, Setup, current};
use brickyard_simulate::linux_lock::{LinuxTestAndSet, LinuxTicket};

fn machine<'a>(cpus: usize) -> Machine<'a> {
    let profile = Profile::by_name("metatm-2007").unwrap();
    Machine::new(Setup::new(profile, cpus, 1))
}

/// Runs one task; returns how many accesses it made.
fn accesses(work: impl FnOnce()) -> u64 {
    let mut machine = machine(1);
    machine.task("one", Affinity::Cpu(0), work);
    machine.run().unwrap().accesses
}

/// Takes the lock on CPU 0 for 1000 cycles, and a little later on each of the others. Returns the
/// order in which they had it.
fn in_order<L: RawLock>(cpus: usize) -> Vec<usize> {
    let lock = L::UNLOCKED;
    in_order_on(&lock, cpus)
}

fn in_order_on<L: RawLock>(lock: &L, cpus: usize) -> Vec<usize> {
    let order = RefCell::default();
    let mut machine = machine(cpus);
    for cpu in 0..cpus {
        let order: &RefCell<Vec<usize>> = &order;
        machine.task(format!("on {cpu}"), Affinity::Cpu(cpu), move || {
            // The last CPU comes first after the holder.
            current::work([0, 100 * (cpus - cpu) as u64][usize::from(cpu > 0)]);
            lock.lock(spin_hint);
            order.borrow_mut().push(cpu);
            current::work(1000);
            // SAFETY: taken above.
            unsafe { lock.unlock() };
        });
    }
    machine.run().unwrap();
    order.into_inner()
}

#[test]
fn a_free_lock_is_taken_by_one_access_and_given_up_by_one() {
    fn pair<L: RawLock>() -> u64 {
        let lock = L::UNLOCKED;
        accesses(|| {
            lock.lock(spin_hint);
            // SAFETY: taken above.
            unsafe { lock.unlock() };
        })
    }
    assert_eq!((pair::<LinuxTestAndSet>(), pair::<LinuxTicket>()), (2, 2));
    let lock = LinuxTicket::UNLOCKED;
    assert_eq!(
        accesses(|| _ = lock.is_contended()),
        1,
        "both halves at once"
    );
    let lock = LinuxTestAndSet::UNLOCKED;
    assert_eq!(
        accesses(|| assert!(!lock.is_contended())),
        0,
        "it cannot tell"
    );
}

#[test]
fn a_ticket_lock_is_handed_on_in_the_order_of_arrival() {
    assert_eq!(in_order::<LinuxTicket>(5), [0, 4, 3, 2, 1]);
    let mut order = in_order::<LinuxTestAndSet>(5);
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3, 4]);
}

#[test]
fn it_is_contended_if_a_second_cpu_waits() {
    let lock = LinuxTicket::UNLOCKED;
    let mut machine = machine(2);
    machine.task("holds", Affinity::Cpu(0), || {
        lock.lock(spin_hint);
        assert!(lock.is_locked() && !lock.is_contended() && !lock.try_lock());
        current::work(1000);
        // Only at an access does the other CPU get its turn.
        assert!(lock.is_locked() && lock.is_contended());
        // SAFETY: taken above.
        unsafe { lock.unlock() };
    });
    machine.task("waits", Affinity::Cpu(1), || {
        current::work(100);
        lock.lock(spin_hint);
        assert!(!lock.is_contended());
        // SAFETY: taken above.
        unsafe { lock.unlock() };
    });
    machine.run().unwrap();
    assert!(!lock.is_locked());
}

/// Both halves have 16 bits, and neither runs over into the other.
#[test]
fn tickets_wrap() {
    let lock = LinuxTicket::UNLOCKED;
    for _ in 0..(1 << 16) + 2 {
        lock.lock(|| panic!("it is free"));
        assert!(lock.is_locked() && !lock.try_lock());
        // SAFETY: taken above.
        unsafe { lock.unlock() };
        assert!(!lock.is_locked() && lock.try_lock());
        // SAFETY: taken above.
        unsafe { lock.unlock() };
    }
    assert_eq!(in_order_on(&lock, 3), [0, 2, 1]);
}
