//! Memory of a machine that the host does not have: it costs what other memory costs.

use core::cell::Cell;

use brickyard_machine::{AccessKind, Affinity, Machine, Profile, Setup, current};

#[test]
fn a_line_of_it_moves_between_cpus() {
    let mut machine = Machine::new(Setup::new(Profile::by_name("xeon-x5355").unwrap(), 2, 1));
    // As much as that machine has: nothing of it is the host's.
    let memory = machine.reserve(8 << 30);
    let cycles = Cell::new([0; 3]);
    let timed = |place: usize, work: &dyn Fn()| {
        let began = current::now();
        work();
        let mut all = cycles.get();
        all[place] = current::now() - began;
        cycles.set(all);
    };
    let page = (8 << 30) - 4096;
    machine.task("first", Affinity::Cpu(0), || {
        timed(0, &|| current::access(memory, page, AccessKind::Store));
        current::clear(memory, page, 4096);
    });
    machine.task("second", Affinity::Cpu(1), || {
        current::sleep(1_000_000);
        timed(1, &|| {
            current::access(memory, page + 8, AccessKind::Exchange)
        });
        timed(2, &|| current::access(memory, page + 16, AccessKind::Load));
        assert_eq!(current::traffic().transfers, 1);
    });
    let ended = machine.run().unwrap();
    let [fetched, moved, hit] = cycles.get();
    // From memory, from the other CPU with an atomic instruction, and from the own cache.
    assert!((294..294 + 12).contains(&fetched), "{fetched}");
    assert!((278..278 + 12).contains(&moved), "{moved}");
    assert_eq!(hit, 1);
    // One access, the 64 lines of the page, and two more.
    assert_eq!((ended.accesses, ended.unmapped), (67, 0));
    assert_eq!(ended.traffic[0].memory, 64);
}
