//! The reader of profiles: what it reads, what it refuses, and that nothing makes it fall over.

use brickyard_heap_profile::{Amount, Mapping, Named, Order, Profile, Sample, Space, sites};
use proptest::prelude::*;

const GOOD: &str = "\
heap profile:      3:     1200 [    10:     5000] @ heap_v2/524288
     1:      400 [     4:     1600] @ 0x55d0c0a1b2c3 0x7f0011223344
     2:      800 [     6:     3400] @ 0x7f0011223345

MAPPED_LIBRARIES:
7f0011000000-7f0012000000 r-xp 00022000 fe:00 1234    /usr/lib/libwith space.so
55d0c0a00000-55d0c0b00000 r-xp 00002000 08:01 131      /usr/bin/cat
55d0c0b00000-55d0c0c00000 rw-p 00102000 08:01 131      /usr/bin/cat
";

fn read(text: &str) -> Profile {
    Profile::read(text.as_bytes()).unwrap()
}

const fn amount(objects: u64, bytes: u64) -> Amount {
    Amount { objects, bytes }
}

#[test]
fn a_profile_is_read_whole() {
    let profile = read(GOOD);
    assert_eq!(profile.period, 524_288);
    let first = Sample {
        live: amount(1, 400),
        all: amount(4, 1600),
        stack: vec![0x55d0_c0a1_b2c3, 0x7f00_1122_3344],
    };
    assert_eq!(profile.samples[0], first);
    assert_eq!(profile.samples.len(), 2);
    let code = [
        (0x55d0_c0a0_0000, 0x55d0_c0b0_0000, 0x2000, "/usr/bin/cat"),
        (
            0x7f00_1100_0000,
            0x7f00_1200_0000,
            0x22000,
            "/usr/lib/libwith space.so",
        ),
    ];
    let code = code.map(|(start, end, offset, path)| Mapping {
        start,
        end,
        offset,
        path: path.to_owned(),
    });
    assert_eq!(profile.mappings, code);
    assert_eq!(profile.odd_mappings, Some(0));
    assert_eq!(profile.mapping_of(0x7f00_1122_3344), Some(1));
    assert_eq!(profile.mapping_of(0x55d0_c0b0_0000), None);
    assert!(profile.has_all());
}

#[test]
fn a_profile_without_mappings_or_samples_is_read_and_told() {
    let profile = read("heap profile: 0: 0 [0: 0] @ heap_v2/1");
    assert_eq!((profile.samples.len(), profile.odd_mappings), (0, None));
    let named = Named::of(&profile);
    assert!(named.notes[0].contains("cut short"), "{:?}", named.notes);
    assert_eq!(sites(&named, Space::Live, Order::Own), []);
    let profile = read("heap profile: 1: 5 [0: 0] @ heapprofile\n1: 5 [0: 0] @ 0x5\n");
    assert!(!profile.has_all());
    assert_eq!(Named::of(&profile).total(Space::Live), amount(1, 5));
}

#[test]
fn mappings_that_make_no_sense_are_counted() {
    let text = GOOD.to_owned()
        + "build=/somewhere\n55d0c0a00001-55d0c0a00002 r-xp 0 0 0 /overlaps\n2-1 r-xp 0 0 0 x\n7f";
    let profile = read(&text);
    assert_eq!((profile.mappings.len(), profile.odd_mappings), (2, Some(3)));
    let notes = Named::of(&profile).notes;
    assert!(
        notes.iter().any(|note| note.ends_with("no mappings: 3")),
        "{notes:?}"
    );
}

#[test]
fn an_error_names_the_line_and_what_is_expected() {
    let first = "heap profile: 1: 5 [1: 5] @ heap_v2/9\n";
    let behind = |line: &str| format!("{first}# a comment\n{line}\n");
    let long = "1: 5 [1: 5] @".to_owned() + &" 0x1".repeat(4097);
    let cases = [
        (String::new(), 1, "begins with"),
        ("--- heapz 1 ---".to_owned(), 1, "begins with"),
        (
            "heap profile: 1: 5 [1: 5] @ heap/5".to_owned(),
            1,
            "only `heap_v2",
        ),
        (
            "heap profile: 1: 5 [1: 5] @ heap_v2/0".to_owned(),
            1,
            "`0` is no period",
        ),
        (
            "heap profile: 1: [1: 5] @ heap_v2/1".to_owned(),
            1,
            "a number is expected at `[1: 5]",
        ),
        (behind("1: 5 [1: 5] @"), 3, "no address behind"),
        (behind("1: 5 [1: 5] 0x5"), 3, "`@` is expected at `0x5`"),
        (behind("1: 5 [1: 5] @ 5"), 3, "`5` is no address"),
        (
            behind("1: 5 [1: 5] @ 0x10000000000000000"),
            3,
            "is no address",
        ),
        (
            behind("-1: 5 [1: 5] @ 0x5"),
            3,
            "a number is expected at `-1",
        ),
        (
            behind("9223372036854775808: 5 [1: 5] @ 0x5"),
            3,
            "too large",
        ),
        (behind("0: 5 [1: 5] @ 0x5"), 3, "no object has 5 bytes"),
        (behind("1: 5 [1: 5] @ 0x5\u{e9}"), 3, "ASCII"),
        (behind(&long), 3, "more than 4096"),
    ];
    for (text, line, what) in cases {
        let error = Profile::read(text.as_bytes()).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.to_string().contains(what), "{error}, not {what}");
    }
}

/// Lines as a profile has them, and others that are close to them.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "heap profile: [0-9]{1,20}: [0-9]{1,3} \\[1: 5\\] @ heap_v2/[0-9]{0,20}",
        "[0-9]{1,19}: ?[0-9]{1,19} \\[[0-9]{1,19}: [0-9]{1,19}\\] @( 0x[0-9a-f]{1,17}){0,5}",
        "MAPPED_LIBRARIES:",
        "[0-9a-f]{1,17}-[0-9a-f]{1,17} r-xp [0-9a-f]{1,4} 08:01 1 (\\[x\\]|/nonexistent)?",
        ".{0,30}",
    ]
}

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(lines in prop::collection::vec(line(), 0..12), cut in 0..900usize) {
        let mut text = GOOD.lines().next().unwrap().to_owned() + "\n" + &lines.join("\n");
        while text.len() > cut && !text.is_char_boundary(cut) {
            let _ = text.pop();
        }
        text.truncate(cut.max(1));
        match Profile::read(text.as_bytes()) {
            Ok(profile) => {
                let named = Named::of(&profile);
                let of = |space| sites(&named, space, Order::Own);
                for space in [Space::Live, Space::All] {
                    let own: Amount = of(space).iter().map(|site| site.own).sum();
                    assert_eq!(own, named.total(space));
                }
            }
            Err(error) => assert!(error.line <= text.lines().count().max(1), "{error}"),
        }
    }

    #[test]
    fn what_is_written_is_read_again(
        period in 1..=i64::MAX as u64,
        samples in prop::collection::vec(
            (0..1000u64, 1..1_u64 << 40, 1..1000u64, prop::collection::vec(any::<u64>(), 1..9)), 0..9),
    ) {
        let samples: Vec<Sample> = samples.into_iter().map(|(live, bytes, more, stack)| Sample {
            live: amount(live, if live == 0 { 0 } else { bytes }),
            all: amount(live + more, bytes * 2),
            stack,
        }).collect();
        let mut text = format!("heap profile: 1: 1 [1: 1] @ heap_v2/{period}\n");
        for sample in &samples {
            let (live, all) = (sample.live, sample.all);
            text += &format!("{}: {} [{}: {}] @", live.objects, live.bytes, all.objects, all.bytes);
            for address in &sample.stack {
                text += &format!(" {address:#x}");
            }
            text += "\n";
        }
        let profile = read(&text);
        assert_eq!((profile.period, profile.samples), (period, samples));
    }
}
