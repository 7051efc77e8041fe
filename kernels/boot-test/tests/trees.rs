//! Device trees: a good one is read, and no bytes at all make the reader panic.

use crate::device_tree::{Malformed, read};

/// A device tree that is being written.
#[derive(Default)]
struct Writer {
    structure: Vec<u8>,
    strings: Vec<u8>,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

impl Writer {
    fn token(&mut self, token: u32) {
        self.structure.extend(token.to_be_bytes());
    }

    fn pad(&mut self) {
        while !self.structure.len().is_multiple_of(4) {
            self.structure.push(0);
        }
    }

    fn node(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.token(1);
        self.structure.extend(name.as_bytes());
        self.structure.push(0);
        self.pad();
        inside(self);
        self.token(2);
    }

    fn property(&mut self, name: &str, value: &[u8]) {
        self.token(3);
        self.token(value.len() as u32);
        self.token(self.strings.len() as u32);
        self.structure.extend(value);
        self.pad();
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
    }

    fn finish(mut self, reserved: &[(u64, u64)]) -> Vec<u8> {
        self.token(9);
        let mut map: Vec<u8> = Vec::new();
        for (from, size) in reserved.iter().copied().chain([(0, 0)]) {
            map.extend(from.to_be_bytes());
            map.extend(size.to_be_bytes());
        }
        let structure = 40 + map.len() as u32;
        let strings = structure + self.structure.len() as u32;
        let size = strings + self.strings.len() as u32;
        let head = [0xd00d_feed, size, structure, strings, 40, 17, 16, 0];
        let mut bytes = words(&head);
        bytes.extend(words(&[
            self.strings.len() as u32,
            self.structure.len() as u32,
        ]));
        bytes.extend(map);
        bytes.extend(self.structure);
        bytes.extend(self.strings);
        bytes
    }
}

fn tree() -> Vec<u8> {
    let mut tree = Writer::default();
    tree.node("", |root| {
        root.property("#address-cells", &words(&[2]));
        root.property("#size-cells", &words(&[2]));
        root.node("reserved-memory", |node| {
            node.property("#address-cells", &words(&[2]));
            node.property("#size-cells", &words(&[1]));
            node.node("firmware@80000000", |node| {
                node.property("reg", &words(&[0, 0x8000_0000, 0x8_0000]));
            });
        });
        root.node("chosen", |node| node.property("bootargs", b"seed=3\0"));
        root.node("cpus", |node| {
            node.property("#address-cells", &words(&[1]));
            node.property("timebase-frequency", &words(&[10_000_000]));
            for hart in [5, 2] {
                node.node(&format!("cpu@{hart}"), |node| {
                    node.property("reg", &words(&[hart]));
                });
            }
            node.node("cpu-map", |_| {});
        });
        root.node("memory@80000000", |node| {
            let (one, two) = ([0, 0x8000_0000, 0, 0x1000_0000], [1, 0, 2, 0]);
            node.property("reg", &words(&[one, two].concat()));
        });
    });
    tree.finish(&[(0x9000, 0x1000)])
}

#[test]
fn a_tree_is_read() {
    let bytes = tree();
    let tree = read(&bytes).unwrap();
    let memory: Vec<_> = tree.map.memory.iter().collect();
    assert_eq!(memory, [(0x8000_0000, 0x9000_0000), (1 << 32, 3 << 32)]);
    let reserved: Vec<_> = tree.map.reserved.iter().collect();
    assert_eq!(reserved, [(0x9000, 0xa000), (0x8000_0000, 0x8008_0000)]);
    assert_eq!(tree.cpus(), [5, 2]);
    assert_eq!(tree.ticks_per_second, Some(10_000_000));
    assert_eq!(tree.arguments, b"seed=3");
}

#[test]
fn what_is_no_tree_is_an_error() {
    assert_eq!(read(&[]).unwrap_err(), Malformed::Short);
    assert_eq!(read(&[0; 64]).unwrap_err(), Malformed::Magic(0));
    let bytes = tree();
    for len in 0..bytes.len() - 1 {
        assert!(read(&bytes[..len]).is_err(), "cut after {len} bytes");
    }
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let good = tree();
    let mut read_anyway = 0;
    for at in 4..good.len() {
        for value in [0, 1, 2, 3, 9, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            read_anyway += usize::from(read(&bytes).is_ok());
        }
    }
    assert!(read_anyway > 0);
    // Nodes without an end, and ends without a node.
    let mut deep = Writer::default();
    (0..1000).for_each(|_| deep.node("x", |_| {}));
    deep.token(2);
    assert_eq!(read(&deep.finish(&[])).unwrap_err(), Malformed::Nesting);
    let mut deep = Writer::default();
    for _ in 0..100 {
        deep.token(1);
        deep.token(0);
    }
    assert_eq!(read(&deep.finish(&[])).unwrap_err(), Malformed::Nesting);
    let mut wrong = Writer::default();
    wrong.token(77);
    assert_eq!(read(&wrong.finish(&[])).unwrap_err(), Malformed::Token(77));
}
