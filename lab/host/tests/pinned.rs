//! Pinned memory: texts of `/proc`, hostile ones too; and a folder of copies.

use std::fs;
use std::path::PathBuf;

use brickyard_host::Host;
use brickyard_host::pinned::{Pinned, Pinning, buffers, is_hidden, pinning};
use proptest::prelude::*;

const STATUS: &str = "Name:\tqemu kvm\nPid:\t7\nVmLck:\t       0 kB\nVmPin:\t    1996 kB\n";
const RING: &str = "pos:\t0\nUserFiles:\t0\nUserBufs:\t3\n    0: 0x7f91a1c64000/4096\n    4: <none>\n    1: 0x7f91a1e64000/12288\nPollList:\n    0: 0x5/1\n";

#[test]
fn a_status_tells_how_much_is_pinned() {
    let expected = Pinning {
        pid: 7,
        name: "qemu kvm".into(),
        pages: 499,
    };
    assert_eq!(pinning(7, STATUS, 4096), Some(expected));
    assert_eq!(pinning(7, &STATUS.replace("1996", "0"), 4096), None);
    assert_eq!(pinning(7, "Name: x\n", 4096), None);
    assert_eq!(pinning(7, "VmPin: many kB", 4096), None);
}

#[test]
fn a_ring_tells_where_its_buffers_are() {
    let expected = [
        0x7f91_a1c6_4000..0x7f91_a1c6_5000,
        0x7f91_a1e6_4000..0x7f91_a1e6_7000,
    ];
    assert_eq!(buffers(RING), expected);
    assert_eq!(buffers("pos: 0\n    0: 0x10/16\n"), []);
    assert_eq!(buffers("UserBufs: 1\n 0: 0xffffffffffffffff/4096\n"), []);
}

#[test]
fn frames_are_located_by_pagemap() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pinned");
    let process = root.join("proc/7");
    fs::create_dir_all(process.join("fdinfo")).unwrap();
    fs::create_dir_all(root.join("proc/self")).unwrap();
    fs::write(process.join("status"), STATUS).unwrap();
    // Pages 2 and 3 are registered; page 3 is not present.
    let ring = "UserBufs:\t2\n    0: 0x2000/8192\n    1: 0x9999000/4096\n";
    fs::write(process.join("fdinfo/3"), ring).unwrap();
    let words = [0_u64, 0, 1 << 63 | 0x1234, 0x55];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(process.join("pagemap"), bytes).unwrap();
    let found = Host::at(&root).pinned();
    assert_eq!(
        (found.pages(), found.frames.as_slice()),
        (499, [0x1234].as_slice())
    );
    assert_eq!(Host::at(&root.join("none")).pinned(), Pinned::default());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(text in ".{0,200}", frame_bytes in any::<u32>()) {
        let name = format!("UserBufs:\n{text}");
        prop_assert!(buffers(&name).iter().all(|buffer| buffer.start <= buffer.end));
        let status = format!("VmPin:{text}");
        let _ = pinning(1, &status, frame_bytes);
    }
}

#[test]
fn hidden_processes_are_noticed() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hidden");
    let _ = fs::remove_dir_all(&root);
    assert!(!is_hidden(&root), "there is nothing that could be hidden");
    let process = |pid: &str| {
        let folder = root.join("proc").join(pid);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("status"), STATUS).unwrap();
    };
    process("self");
    assert!(!is_hidden(&root));
    // Its own process is there, and the first is not.
    process("7");
    assert!(is_hidden(&root));
    process("1");
    assert!(!is_hidden(&root));
}
