//! The recorder: formats as kernels write them, sub-buffers made by hand and from random bytes,
//! records through the spool, and a live recording where this machine permits one.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use brickyard::{MigrateType, Order};
use brickyard_trace::record::decode::{Decoder, TypeNumbers};
use brickyard_trace::record::format::{Content, Format, FormatError};
use brickyard_trace::record::page::{Layout, Missed, PageError};
use brickyard_trace::record::row::{Body, Codec, Record};
use brickyard_trace::record::spool::Spool;
use brickyard_trace::record::{Group, Plan, RecordError, Recorder, Tracefs};
use brickyard_trace::{Event, PageState, PageUse, StateRun, States, Step, What};
use proptest::prelude::*;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
";

fn text(name: &str, id: u16, fields: &[(&str, usize, usize)]) -> String {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n{COMMON}\n");
    for (declared, offset, size) in fields {
        text += &format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
    }
    text + "\nprint fmt: \"pfn=0x%lx order=%d\", REC->pfn, REC->order\n"
}

fn format(name: &str, id: u16, fields: &[(&str, usize, usize)]) -> Format {
    Format::parse(&text(name, id, fields)).unwrap()
}

/// The formats of a kernel whose `long` has this many bytes.
fn page_formats(long: usize) -> [Format; 3] {
    let at = |offset: usize| 8 + offset;
    let flags = (at(long) + 4).next_multiple_of(long);
    [
        format(
            "mm_page_alloc",
            650,
            &[
                ("unsigned long pfn", at(0), long),
                ("unsigned int order", at(long), 4),
                ("unsigned long gfp_flags", flags, long),
                ("int migratetype", flags + long, 4),
            ],
        ),
        format(
            "mm_page_free",
            651,
            &[
                ("unsigned long pfn", at(0), long),
                ("unsigned int order", at(long), 4),
            ],
        ),
        format(
            "mm_page_alloc_extfrag",
            652,
            &[
                ("unsigned long pfn", at(0), long),
                ("int alloc_order", at(long), 4),
                ("int fallback_order", at(long) + 4, 4),
                ("int alloc_migratetype", at(long) + 8, 4),
                ("int fallback_migratetype", at(long) + 12, 4),
                ("int change_ownership", at(long) + 16, 4),
            ],
        ),
    ]
}

/// The bytes of an event, its fields set by name.
fn event(format: &Format, pid: i32, values: &[(&str, u64)]) -> Vec<u8> {
    let end = format.fields.iter().map(|field| field.offset + field.size);
    let mut bytes = vec![0; end.max().unwrap()];
    let pid = ("common_pid", u64::from(pid.cast_unsigned()));
    let kind = ("common_type", u64::from(format.id));
    for &(name, value) in values.iter().chain([&pid, &kind]) {
        let field = format.field(name).unwrap();
        let value = &value.to_le_bytes()[..field.size];
        let value: Vec<u8> = if cfg!(target_endian = "big") {
            value.iter().rev().copied().collect()
        } else {
            value.to_vec()
        };
        bytes[field.offset..][..field.size].copy_from_slice(&value);
    }
    bytes
}

#[test]
fn fields_are_found_by_name() {
    let alloc = &page_formats(8)[0];
    assert_eq!((alloc.name.as_str(), alloc.id), ("mm_page_alloc", 650));
    let flags = alloc.field("gfp_flags").unwrap();
    assert_eq!((flags.offset, flags.size), (24, 8));
    let pid = alloc.field("common_pid").unwrap();
    assert_eq!((pid.offset, pid.size, pid.content), (4, 4, Content::Inline));
    assert!(alloc.field("page").is_none());

    let texts = format(
        "task_rename",
        7,
        &[
            ("pid_t pid", 8, 4),
            ("char oldcomm[16]", 12, 16),
            ("__data_loc char[] newcomm", 28, 4),
            ("struct page * page", 32, 8),
            ("const char *name", 40, 8),
        ],
    );
    let names: Vec<_> = texts.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(&names[4..], ["pid", "oldcomm", "newcomm", "page", "name"]);
    assert_eq!(texts.field("newcomm").unwrap().content, Content::DataLoc);
}

#[test]
fn a_text_that_is_no_format_is_refused() {
    assert_eq!(Format::parse(""), Err(FormatError::Missing("ID:")));
    assert_eq!(Format::parse("ID: 3\n"), Err(FormatError::Missing("name:")));
    let large = Format::parse("name: a\nID: 70000\n").unwrap_err();
    assert_eq!(large, FormatError::Line("ID: 70000".to_owned()));
    let torn = "name: a\nID: 7\n\tfield:int b;\toffset:8;\n";
    let torn = Format::parse(torn).unwrap_err();
    assert!(matches!(torn, FormatError::Line(_)), "{torn}");
}

#[test]
fn numbers_of_every_size_are_read() {
    let format = format(
        "e",
        1,
        &[
            ("u8 a", 8, 1),
            ("short b", 10, 2),
            ("int c", 12, 4),
            ("u64 d", 16, 8),
            ("odd e", 24, 3),
        ],
    );
    let bytes = [0xff; 24];
    let field = |name: &str| format.field(name).unwrap();
    assert_eq!(field("a").unsigned(&bytes), Some(0xff));
    assert_eq!(field("b").signed(&bytes), Some(-1));
    assert_eq!(field("c").unsigned(&bytes), Some(0xffff_ffff));
    assert_eq!(field("c").signed(&bytes), Some(-1));
    assert_eq!(field("d").unsigned(&bytes), Some(u64::MAX));
    assert_eq!(field("d").unsigned(&bytes[..23]), None, "too short");
    assert_eq!(field("e").unsigned(&[0; 64]), None, "no number has 3 bytes");
}

#[test]
fn an_event_on_32_and_on_64_bits() {
    for long in [4, 8] {
        let formats = page_formats(long);
        let types = TypeNumbers::parse("");
        let decoder = Decoder::new(&formats, &[], types, 1000).unwrap();
        let [alloc, free, fallback] = &formats;
        let bytes = event(
            alloc,
            -7,
            &[
                ("pfn", 0x1234),
                ("order", 3),
                ("gfp_flags", 0xcc0),
                ("migratetype", 1),
            ],
        );
        let mobility = MigrateType::Movable;
        let record = Record {
            time: 234,
            pid: -7,
            body: Body::Page {
                frame: 0x1234,
                order: Order::new(3),
                what: What::Alloc {
                    mobility,
                    flags: 0xcc0,
                },
            },
        };
        assert_eq!(decoder.decode(1234, &bytes), Some(record));

        let failed = event(
            alloc,
            7,
            &[("pfn", u64::MAX), ("order", 9), ("migratetype", 1)],
        );
        let body = decoder.decode(1234, &failed).unwrap().body;
        let what = What::Failure { mobility, flags: 0 };
        let expected = Body::Page {
            frame: 0,
            order: Order::HUGE,
            what,
        };
        assert_eq!(body, expected, "{long}");

        let bytes = event(free, 7, &[("pfn", 5), ("order", 10)]);
        let body = decoder.decode(0, &bytes).unwrap();
        assert_eq!(body.time, 0, "never before the beginning");
        let expected = Body::Page {
            frame: 5,
            order: Order::new(10),
            what: What::Free,
        };
        assert_eq!(body.body, expected);

        let bytes = event(
            fallback,
            7,
            &[
                ("pfn", 5),
                ("alloc_order", 1),
                ("fallback_order", 9),
                ("fallback_migratetype", 2),
                ("change_ownership", 1),
            ],
        );
        let expected = Body::Page {
            frame: 5,
            order: Order::new(1),
            what: What::Fallback {
                mobility: MigrateType::Unmovable,
                from_order: Order::HUGE,
                from: MigrateType::Reclaimable,
                claimed: true,
            },
        };
        assert_eq!(decoder.decode(2000, &bytes).unwrap().body, expected);

        // Unknown event numbers, and orders and types that cannot exist.
        let unknown = event(&format("other", 9, &[]), 7, &[]);
        assert_eq!(decoder.decode(0, &unknown), None);
        let wide = event(free, 7, &[("order", 60)]);
        assert_eq!(decoder.decode(0, &wide), None);
        let strange = event(alloc, 7, &[("migratetype", 77)]);
        assert_eq!(decoder.decode(0, &strange), None);
        assert_eq!(decoder.decode(0, &bytes[..12]), None);
    }
}

#[test]
fn names_of_tasks_are_read() {
    let newtask = format(
        "task_newtask",
        20,
        &[("pid_t pid", 8, 4), ("char comm[16]", 12, 16)],
    );
    // As in later kernels: the running task, and a text after the fields.
    let rename = format("task_rename", 21, &[("__data_loc char[] newcomm", 8, 4)]);
    let tasks = [newtask.clone(), rename.clone()];
    let decoder = Decoder::new(&page_formats(8), &tasks, TypeNumbers::parse(""), 0).unwrap();
    let mut bytes = event(&newtask, 7, &[("pid", 8)]);
    bytes[12..16].copy_from_slice(b"make");
    let named = |bytes: &[u8]| match decoder.decode(0, bytes).unwrap().body {
        Body::Named { pid, comm } => (pid, String::from_utf8(comm.to_vec()).unwrap()),
        other => panic!("{other:?}"),
    };
    let (pid, name) = named(&bytes);
    assert_eq!((pid, name.trim_end_matches('\0')), (8, "make"));

    let mut bytes = event(&rename, 7, &[("newcomm", 5 << 16 | 12)]);
    bytes.extend_from_slice(b"rust\0");
    let (pid, name) = named(&bytes);
    assert_eq!((pid, name.trim_end_matches('\0')), (7, "rust"));
    bytes[10] = 0xff; // a length far past the end
    assert_eq!(decoder.decode(0, &bytes), None);
}

#[test]
fn a_kernel_that_is_too_old_is_an_error() {
    let mut formats = page_formats(8);
    formats[0] = format("mm_page_alloc", 650, &[("struct page * page", 8, 8)]);
    let error = Decoder::new(&formats, &[], TypeNumbers::parse(""), 0).unwrap_err();
    assert!(matches!(error, RecordError::TooOld { field: "pfn", .. }));
    assert!(error.to_string().contains("too old"), "{error}");
}

#[test]
fn types_are_numbered_as_the_kernel_does() {
    let old = "Page block order: 9\n\
        Node    0, zone      DMA, type    Unmovable      0      0\n\
        Node    0, zone      DMA, type  Reclaimable      0      0\n\
        Node    0, zone      DMA, type      Movable      0      0\n\
        Node    0, zone      DMA, type      Reserve      0      0\n\
        Node    0, zone      DMA, type          CMA      0      0\n\
        Node    0, zone      DMA, type      Isolate      0      0\n\
        Node    0, zone   Normal, type    Unmovable      0      0\n";
    let formats = page_formats(8);
    let decoder = Decoder::new(&formats, &[], TypeNumbers::parse(old), 0).unwrap();
    let types = [0, 1, 2, 3, 4, 5, 6].map(|number| {
        let bytes = event(&formats[0], 1, &[("migratetype", number)]);
        match decoder.decode(0, &bytes)?.body {
            Body::Page {
                what: What::Alloc { mobility, .. },
                ..
            } => Some(mobility),
            other => panic!("{other:?}"),
        }
    });
    let expected = [
        Some(MigrateType::Unmovable),
        Some(MigrateType::Reclaimable),
        Some(MigrateType::Movable),
        Some(MigrateType::HighAtomic),
        Some(MigrateType::Movable),
        Some(MigrateType::Isolate),
        None,
    ];
    assert_eq!(types, expected);
}

/// `events/header_page` of a kernel with this size of `long` and of sub-buffers.
fn layout(long: usize, bytes: usize) -> Layout {
    let data = 8 + long;
    Layout::parse(&format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:{data};\tsize:{};\tsigned:0;\n",
        bytes - data
    ))
    .unwrap()
}

/// Builds sub-buffers.
struct Page {
    long: usize,
    time: u64,
    flags: u64,
    data: Vec<u8>,
}

impl Page {
    fn new(long: usize, time: u64) -> Self {
        Self {
            long,
            time,
            flags: 0,
            data: Vec::new(),
        }
    }

    fn word(&mut self, word: u32) -> &mut Self {
        self.data.extend_from_slice(&word.to_ne_bytes());
        self
    }

    fn head(&mut self, kind: u32, delta: u32) -> &mut Self {
        self.word(if cfg!(target_endian = "big") {
            kind << 27 | delta
        } else {
            delta << 5 | kind
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.time.to_ne_bytes().to_vec();
        let commit = self.flags | self.data.len() as u64;
        if self.long == 8 {
            bytes.extend_from_slice(&commit.to_ne_bytes());
        } else {
            bytes.extend_from_slice(&(commit as u32).to_ne_bytes());
        }
        bytes.extend_from_slice(&self.data);
        bytes.resize(bytes.len().max(4096), 0);
        bytes
    }
}

/// Times and data of all records, up to the first error.
fn records(long: usize, bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, Option<PageError>) {
    let layout = layout(long, 4096);
    let page = match layout.open(bytes) {
        Ok(page) => page,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut all = Vec::new();
    for record in page.records() {
        match record {
            Ok(record) => all.push((record.time, record.data.to_vec())),
            Err(error) => return (all, Some(error)),
        }
    }
    (all, None)
}

#[test]
fn records_of_every_type() {
    for long in [4, 8] {
        let time = 3 << 60 | 1000;
        let mut page = Page::new(long, time);
        page.head(1, 5).word(0xa).head(28, 0);
        for word in 0..28 {
            page.word(word);
        }
        page.head(0, 2).word(4 + 6).word(0xb).word(0xc); // 6 bytes of data, padded to 8
        page.head(30, 1).word(2); // 1 + 2 * 2^27
        page.head(29, 10).word(8).word(0xdead); // discarded, after 10
        page.head(29, 1).word(4); // discarded, after 0
        page.head(1, 1).word(0xd);
        page.head(31, 7).word(9); // absolute, except for the upper bits
        page.head(2, 1).word(0xe).word(0xf);
        page.head(29, 0).word(0xffff_ffff).word(0xffff_ffff); // the end
        let (all, error) = records(long, &page.bytes());
        assert_eq!(error, None);
        let times: Vec<u64> = all.iter().map(|(time, _)| *time).collect();
        let extended = time + 7 + (1 + (2 << 27)) + 10 + 1;
        let absolute = (3 << 60) | ((7 + (9 << 27)) + 1);
        assert_eq!(times, [time + 5, time + 5, time + 7, extended, absolute]);
        let lengths: Vec<usize> = all.iter().map(|(_, data)| data.len()).collect();
        assert_eq!(lengths, [4, 112, 6, 4, 8]);
        assert_eq!(all[3].1, 0xd_u32.to_ne_bytes());
    }
}

#[test]
fn lost_records_are_counted() {
    for long in [4, 8] {
        let layout = layout(long, 4096);
        let missed = |page: &Page, bytes: &[u8]| {
            let page_read = layout.open(bytes).unwrap();
            assert_eq!(page_read.records().count(), 1);
            assert_eq!(page_read.time, page.time);
            page_read.missed
        };
        let mut page = Page::new(long, 77);
        page.head(1, 0).word(1);
        assert_eq!(missed(&page, &page.bytes()), Missed::Nothing);
        page.flags = 1 << 31;
        assert_eq!(missed(&page, &page.bytes()), Missed::Some);
        page.flags = 3 << 30;
        let mut bytes = page.bytes();
        let behind = 8 + long + page.data.len();
        let count = 12345_u64;
        if long == 8 {
            bytes[behind..][..8].copy_from_slice(&count.to_ne_bytes());
        } else {
            bytes[behind..][..4].copy_from_slice(&(count as u32).to_ne_bytes());
        }
        assert_eq!(missed(&page, &bytes), Missed::Count(count));
        bytes.truncate(behind + 2);
        assert_eq!(missed(&page, &bytes), Missed::Some, "the number is cut off");
    }
}

#[test]
fn torn_pages_are_errors() {
    let mut page = Page::new(8, 1);
    page.head(1, 1).word(7).head(3, 1).word(8);
    let (all, error) = records(8, &page.bytes());
    assert_eq!((all.len(), error), (1, Some(PageError::Record(8))));
    let whole = page.bytes();
    assert_eq!(records(8, &whole[..15]).1, Some(PageError::Short(15)));
    let declared = 16;
    assert_eq!(
        records(8, &whole[..20]).1,
        Some(PageError::Commit {
            declared,
            present: 4
        })
    );
    let mut page = Page::new(8, 1);
    page.head(0, 1).word(3); // a length below that of its own word
    assert_eq!(records(8, &page.bytes()).1, Some(PageError::Record(0)));
    let mut page = Page::new(8, 1);
    page.head(0, 1).word(u32::MAX);
    assert_eq!(records(8, &page.bytes()).1, Some(PageError::Record(0)));
    assert_eq!(records(8, &Page::new(8, 1).bytes()), (Vec::new(), None));
}

#[test]
fn sub_buffers_of_any_size() {
    let large = layout(8, 64 << 10);
    assert_eq!(large.bytes(), 64 << 10);
    let mut page = Page::new(8, 0);
    for word in 0..8000 {
        page.head(1, 1).word(word);
    }
    let mut bytes = page.bytes();
    bytes.resize(64 << 10, 0);
    let page = large.open(&bytes).unwrap();
    assert_eq!(page.records().last().unwrap().unwrap().time, 8000);
    assert!(Layout::parse("").is_err());
    let huge = "field: u64 timestamp; offset:0; size:8;\nfield: local_t commit; offset:8; size:8;\n\
        field: char data; offset:16; size:18446744073709551600;\n";
    assert!(Layout::parse(huge).is_err());
}

fn any_type() -> impl Strategy<Value = MigrateType> {
    (0..5_usize).prop_map(|index| MigrateType::ALL[index])
}

fn any_order() -> impl Strategy<Value = Order> {
    (0..=18_u8).prop_map(Order::new)
}

fn any_what() -> impl Strategy<Value = What> {
    let request = || (any_type(), any::<u64>());
    let fallback = (any_type(), any_order(), any_type(), any::<bool>());
    prop_oneof![
        request().prop_map(|(mobility, flags)| What::Alloc { mobility, flags }),
        request().prop_map(|(mobility, flags)| What::Failure { mobility, flags }),
        Just(What::Free),
        Just(What::Batched),
        (any_type(), any::<bool>()).prop_map(|(mobility, refill)| What::Taken { mobility, refill }),
        any_type().prop_map(|mobility| What::Drained { mobility }),
        (0..Step::ALL.len(), any::<[u32; 3]>()).prop_map(|(step, numbers)| What::Step {
            step: Step::ALL[step],
            numbers,
        }),
        fallback.prop_map(|(mobility, from_order, from, claimed)| What::Fallback {
            mobility,
            from_order,
            from,
            claimed
        }),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let page = (any::<u64>(), any_order(), any_what());
    let body = prop_oneof![
        4 => page.prop_map(|(frame, order, what)| Body::Page { frame, order, what }),
        1 => (any::<i32>(), any::<[u8; 16]>()).prop_map(|(pid, comm)| Body::Named { pid, comm }),
    ];
    (any::<u64>(), prop_oneof![Just(1), any::<i32>()], body).prop_map(|(time, pid, body)| Record {
        time,
        pid,
        body,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes are read to an end, within the page.
    #[test]
    fn hostile_pages_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..600), commit in 0_u64..700, flags in 0_u64..4) {
        if let Some(place) = bytes.get_mut(8..16) {
            place.copy_from_slice(&(flags << 30 | commit).to_ne_bytes());
        }
        for long in [4, 8] {
            let (all, _) = records(long, &bytes);
            prop_assert!(all.iter().map(|(_, data)| data.len()).sum::<usize>() <= bytes.len());
        }
    }

    #[test]
    fn hostile_events_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in 648_u16..654) {
        let formats = page_formats(8);
        let decoder = Decoder::new(&formats, &[], TypeNumbers::parse(""), 0).unwrap();
        let mut bytes = bytes;
        if let Some(place) = bytes.get_mut(..2) {
            place.copy_from_slice(&kind.to_ne_bytes());
        }
        let _ = decoder.decode(0, &bytes);
    }

    #[test]
    fn hostile_formats_do_no_harm(text in "(name: a\nID: 1\n)?(\tfield:[a-z _\\[\\]*]{0,12};?\t?(offset:[0-9]{1,20};)?(size:[0-9]{1,20};)?\n){0,4}") {
        if let Ok(format) = Format::parse(&text) {
            for field in &format.fields {
                let _ = (field.unsigned(&[0; 32]), field.signed(&[0; 32]), field.text(&[0; 32]), field.all_ones());
            }
        }
        let _ = Layout::parse(&text);
    }

    #[test]
    fn records_come_back_from_their_bytes(records in prop::collection::vec(any_record(), 0..40)) {
        let mut bytes = Vec::new();
        let mut codec = Codec::default();
        for record in &records {
            codec.put(record, &mut bytes);
        }
        let mut rest = &bytes[..];
        let mut codec = Codec::default();
        for record in &records {
            prop_assert_eq!(codec.get(&mut rest), Some(*record));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn hostile_spools_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut rest = &bytes[..];
        let mut codec = Codec::default();
        while codec.get(&mut rest).is_some() {}
    }
}

/// A path for a spool.
fn spool_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("brickyard-test-{}-{name}", std::process::id()))
}

#[test]
fn a_spool_leaves_nothing_and_overwrites_nothing() {
    let path = spool_path("spool");
    let spool = Spool::create(&path, 2).unwrap();
    assert!(!path.exists(), "it is unlinked");
    assert!(spool.room().unwrap() > 0);
    fs::write(&path, "mine").unwrap();
    let error = Spool::create(&path, 2).unwrap_err();
    assert!(matches!(error, RecordError::Spool { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
}

/// Starts a recording; prints why none is possible here.
fn recorder(name: &str) -> Option<(Recorder, PathBuf)> {
    let spool = spool_path(name);
    let plan = Plan {
        buffer_kib: Some(8 << 10),
        groups: Group::ALL.to_vec(),
        spool: spool.clone(),
        pagetypeinfo: fs::read_to_string("/proc/pagetypeinfo").unwrap_or_default(),
    };
    match Recorder::start(&plan) {
        Ok(recorder) => Some((recorder, spool)),
        Err(
            error @ (RecordError::NotPermitted { .. }
            | RecordError::NoTracefs
            | RecordError::NoEvent { .. }),
        ) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn instances() -> Vec<String> {
    let own = format!("brickyard-{}", std::process::id());
    let tracefs = Tracefs::find().unwrap();
    let entries = fs::read_dir(tracefs.path().join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&own)).collect()
}

/// Everything that this process does with tracing is in one test, so that leftovers can be seen.
#[test]
fn a_live_recording_sees_every_page_of_a_known_load() {
    const PAGES: usize = 20_000;
    let Some((recorder, spool)) = recorder("live") else {
        return;
    };
    let clock = recorder.clock();
    // A new thread has its own number and name, and a new mapping has pages that no other task
    // requests.
    let load = std::thread::Builder::new().name("known-load".to_owned());
    let load = load.spawn(|| {
        let mut memory = vec![0_u8; PAGES * 4096];
        for page in memory.chunks_mut(4096) {
            page[0] = 1;
        }
        core::hint::black_box(&memory);
        let link = fs::read_link("/proc/thread-self").unwrap();
        link.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .parse::<i32>()
            .unwrap()
    });
    let pid = load.unwrap().join().unwrap();
    let done = clock.now();
    let ran = std::process::Command::new("true").status().unwrap();
    assert!(ran.success());
    let recorded = recorder.stop().unwrap();
    assert_eq!(recorded.header.lost, []);
    assert_eq!(recorded.senseless, 0);
    assert!(recorded.header.duration > done && recorded.header.cpus > 0);
    assert_eq!(instances(), Vec::<String>::new(), "the instance is gone");

    let mut events: Vec<Event> = Vec::new();
    let mut names = Vec::new();
    let merged = recorded
        .merge::<RecordError>(&States::default(), &States::default(), |batch, known| {
            events.extend_from_slice(batch);
            names = known.to_vec();
            Ok(())
        })
        .unwrap();
    assert_eq!(merged.events, events.len() as u64);
    assert!(events.is_sorted_by_key(|event| event.time));
    let name = |event: &Event| names[event.name.0 as usize].as_str();
    let own = events.iter().filter(|event| event.pid == pid);
    let taken = own
        .clone()
        .filter(|event| matches!(event.what, What::Alloc { .. }));
    let frames: usize = taken.clone().map(|event| event.order.frames()).sum();
    assert!(frames >= PAGES, "{frames} of {PAGES} frames were seen");
    let named = taken.clone().filter(|event| name(event) == "known-load");
    assert!(named.count() * 10 > taken.count() * 9, "by its name");
    assert!(
        events.iter().any(|event| name(event) == "true"),
        "{names:?}"
    );

    // No frame is allocated twice without a free between.
    let mut owned: HashMap<u64, u64> = HashMap::new();
    for event in &events {
        match event.what {
            What::Alloc { .. } => {
                let before = owned.insert(event.frame, event.time);
                assert_eq!(before, None, "{event:?}");
            }
            What::Free => {
                let end = event.frame + event.order.frames() as u64;
                for frame in event.frame..end {
                    owned.remove(&frame);
                }
            }
            _ => {}
        }
    }

    // Events that page states account for are left out: here the states of all frames, at the start
    // and at the end, were read halfway.
    let half = events[events.len() / 2].time;
    let run = StateRun {
        time: half,
        frame: 0,
        frames: 1 << 52,
        order: 0,
        state: PageState::of(PageUse::Untold),
    };
    let at_half = States::from(vec![run]);
    let never = States::default();
    let count = |start: &States, end: &States| {
        let merged = recorded.merge::<RecordError>(start, end, |_, _| Ok(()));
        merged.unwrap()
    };
    let (late, early) = (count(&at_half, &never), count(&never, &at_half));
    let of_frames = events.iter().filter(|event| event.what.has_frames());
    let before = of_frames.clone().filter(|event| event.time < half).count() as u64;
    assert_eq!((late.start.left_out, late.end.left_out), (before, 0));
    assert_eq!(late.events + late.start.left_out, merged.events);
    assert_eq!(early.events + early.end.left_out, merged.events);
    let then = of_frames.clone().filter(|event| event.time == half).count() as u64;
    assert_eq!((late.start.unsure, early.end.unsure), (then, then));
    assert!(
        early.events > before,
        "an event at the time of the read stays"
    );

    // A read that takes from then to the end: what happens meanwhile stays, and is counted.
    let mut slow = at_half;
    slow.reads[0].ended = u64::MAX;
    let (late, early) = (count(&slow, &never), count(&never, &slow));
    let after = of_frames.filter(|event| event.time >= half).count() as u64;
    assert_eq!((late.start.left_out, late.start.unsure), (before, after));
    assert_eq!((early.end.left_out, early.end.unsure), (0, after));
    assert_eq!((late.start.began, late.start.ended), (half, u64::MAX));
    drop(recorded);
    assert!(!spool.exists());

    // Dropped halfway: nothing is left.
    let (recorder, spool) = self::recorder("given-up").unwrap();
    assert_eq!(instances().len(), 1);
    drop(recorder);
    assert_eq!(instances(), Vec::<String>::new());
    assert!(!spool.exists());
}

/// Returns the format of an event with these fields of four or eight bytes.
fn simple(name: &str, id: u16, fields: &[(&str, usize)]) -> Format {
    let mut at = 8;
    let mut placed = Vec::new();
    for &(field, size) in fields {
        placed.push((field, at, size));
        at += size;
    }
    format(name, id, &placed)
}

#[test]
fn events_of_zones_and_steps_are_decoded() {
    let taken = simple(
        "mm_page_alloc_zone_locked",
        10,
        &[
            ("unsigned long pfn", 8),
            ("unsigned int order", 4),
            ("int migratetype", 4),
            ("int percpu_refill", 4),
        ],
    );
    let drained = simple(
        "mm_page_pcpu_drain",
        11,
        &[
            ("unsigned long pfn", 8),
            ("unsigned int order", 4),
            ("int migratetype", 4),
        ],
    );
    let batched = simple("mm_page_free_batched", 12, &[("unsigned long pfn", 8)]);
    let unknown = simple("mm_vmscan_lru_isolate", 16, &[("int order", 4)]);
    // A kernel whose event lacks a field that is needed: such events are left out.
    let torn = simple(
        "mm_compaction_migratepages",
        17,
        &[("unsigned long nr_failed", 8)],
    );
    let more = [&taken, &drained, &batched, &unknown, &torn];
    let more: Vec<Format> = more.into_iter().cloned().collect();
    let decoder = Decoder::new(&page_formats(8), &[], TypeNumbers::parse(""), 0).unwrap();
    let decoder = decoder.with_optional(&more);
    let of = |format: &Format, values: &[(&str, u64)]| {
        let record = decoder.decode(5, &event(format, 7, values));
        record.map(|record| match record.body {
            Body::Page { frame, order, what } => (frame, order.get(), what),
            Body::Named { .. } => panic!("{record:?}"),
        })
    };
    let values = [
        ("pfn", 64),
        ("order", 3),
        ("migratetype", 2),
        ("percpu_refill", 1),
    ];
    let mobility = MigrateType::Reclaimable;
    let refill = true;
    assert_eq!(
        of(&taken, &values),
        Some((64, 3, What::Taken { mobility, refill }))
    );
    assert_eq!(
        of(&drained, &values[..3]),
        Some((64, 3, What::Drained { mobility }))
    );
    assert_eq!(of(&batched, &values[..1]), Some((64, 0, What::Batched)));
    assert_eq!(of(&unknown, &[("order", 4)]), None);
    assert_eq!(of(&torn, &[("nr_failed", 4)]), None);
    // A type that this kernel does not have, and an order that no kernel has.
    assert_eq!(of(&drained, &[("pfn", 64), ("migratetype", 9)]), None);
    assert_eq!(of(&drained, &[("pfn", 64), ("order", 99)]), None);
}

/// An event's name, its fields with a value each, and the frame, order, step and numbers that it
/// becomes.
type StepCase<'a> = (
    &'a str,
    &'a [(&'a str, usize, u64)],
    (u64, u8, Step, [u32; 3]),
);

#[test]
fn every_step_is_decoded() {
    let range: &[_] = &[
        ("unsigned long start_pfn", 8, 512),
        ("unsigned long end_pfn", 8, 640),
        ("unsigned long nr_scanned", 8, 99),
        ("unsigned long nr_taken", 8, 32),
    ];
    let zone: &[_] = &[
        ("unsigned long zone_start", 8, 4096),
        ("unsigned long migrate_pfn", 8, 5000),
        ("unsigned long free_pfn", 8, 9000),
        ("unsigned long zone_end", 8, 1 << 40),
        ("bool sync", 1, 1),
        ("int status", 4, 8),
    ];
    let result: &[_] = &[
        ("int nid", 4, 1),
        ("enum zone_type idx", 4, 2),
        ("int order", 4, 9),
        ("int ret", 4, 3),
    ];
    let put_off: &[_] = &[
        ("int nid", 4, 1),
        ("enum zone_type idx", 4, 2),
        ("int order", 4, 9),
        ("unsigned int considered", 4, 5),
        ("unsigned int defer_shift", 4, 6),
        ("int order_failed", 4, 4),
    ];
    let woken: &[_] = &[
        ("int nid", 4, 1),
        ("int order", 4, 4),
        ("enum zone_type highest_zoneidx", 4, 2),
    ];
    let woken_before_5_8: &[_] = &[
        ("int nid", 4, 1),
        ("int order", 4, u64::MAX),
        ("enum zone_type classzone_idx", 4, 2),
    ];
    let kswapd: &[_] = &[
        ("int nid", 4, 1),
        ("int zid", 4, 2),
        ("int order", 4, 4),
        ("unsigned long gfp_flags", 8, 0xcc0),
    ];
    let place = 1 << 16 | 2;
    let cases: [StepCase<'_>; 22] = [
        (
            "mm_compaction_begin",
            zone,
            (5000, 0, Step::CompactionBegins, [1, 4000, u32::MAX]),
        ),
        (
            "mm_compaction_end",
            zone,
            (5000, 0, Step::CompactionEnds, [8, 4000, u32::MAX]),
        ),
        // Without what it does not need.
        (
            "mm_compaction_end",
            &zone[1..],
            (5000, 0, Step::CompactionEnds, [8, 4000, 0]),
        ),
        (
            "mm_compaction_isolate_migratepages",
            range,
            (512, 0, Step::SourcesIsolated, [32, 99, 128]),
        ),
        (
            "mm_compaction_isolate_freepages",
            range,
            (512, 0, Step::TargetsIsolated, [32, 99, 128]),
        ),
        (
            "mm_compaction_fast_isolate_freepages",
            range,
            (512, 0, Step::TargetsPicked, [32, 99, 128]),
        ),
        (
            "mm_compaction_migratepages",
            &[
                ("unsigned long nr_migrated", 8, 30),
                ("unsigned long nr_failed", 8, 2),
            ],
            (0, 0, Step::Migrated, [30, 2, 0]),
        ),
        (
            "mm_compaction_finished",
            result,
            (0, 9, Step::CompactionFinished, [3, 0, place]),
        ),
        (
            "mm_compaction_suitable",
            result,
            (0, 9, Step::CompactionSuitable, [3, 0, place]),
        ),
        (
            "mm_compaction_deferred",
            put_off,
            (0, 9, Step::CompactionDeferred, [5, 6, place]),
        ),
        (
            "mm_compaction_defer_compaction",
            put_off,
            (0, 9, Step::CompactionDefers, [5, 6, place]),
        ),
        (
            "mm_compaction_defer_reset",
            put_off,
            (0, 9, Step::CompactionResumes, [5, 6, place]),
        ),
        (
            "mm_compaction_kcompactd_wake",
            woken,
            (0, 4, Step::KcompactdWakes, [1, 2, 0]),
        ),
        (
            "mm_compaction_wakeup_kcompactd",
            woken,
            (0, 4, Step::KcompactdCalled, [1, 2, 0]),
        ),
        // For no order, as it compacts of its own accord.
        (
            "mm_compaction_kcompactd_wake",
            woken_before_5_8,
            (0, 18, Step::KcompactdWakes, [1, 2, 0]),
        ),
        (
            "mm_compaction_kcompactd_sleep",
            &woken[..1],
            (0, 0, Step::KcompactdSleeps, [1, 0, 0]),
        ),
        (
            "mm_vmscan_wakeup_kswapd",
            kswapd,
            (0, 4, Step::KswapdCalled, [1, 2, 0xcc0]),
        ),
        (
            "mm_vmscan_kswapd_wake",
            &kswapd[..3],
            (0, 4, Step::KswapdWakes, [1, 2, 0]),
        ),
        (
            "mm_vmscan_kswapd_wake",
            &[kswapd[0], kswapd[2]],
            (0, 4, Step::KswapdWakes, [1, 0, 0]),
        ),
        (
            "mm_vmscan_kswapd_sleep",
            &kswapd[..1],
            (0, 0, Step::KswapdSleeps, [1, 0, 0]),
        ),
        (
            "mm_vmscan_direct_reclaim_begin",
            &kswapd[2..],
            (0, 4, Step::ReclaimBegins, [0xcc0, 0, 0]),
        ),
        (
            "mm_vmscan_direct_reclaim_end",
            &[("unsigned long nr_reclaimed", 8, 40)],
            (0, 0, Step::ReclaimEnds, [40, 0, 0]),
        ),
    ];
    for (name, fields, (frame, order, step, numbers)) in cases {
        let sizes: Vec<_> = fields
            .iter()
            .map(|&(field, size, _)| (field, size))
            .collect();
        let format = simple(name, 20, &sizes);
        let values = fields.iter().map(|&(field, _, value)| {
            let (_, name) = field.rsplit_once(' ').unwrap();
            (name, value)
        });
        let values: Vec<_> = values.collect();
        let decoder = Decoder::new(&page_formats(8), &[], TypeNumbers::parse(""), 0).unwrap();
        let decoder = decoder.with_optional(core::slice::from_ref(&format));
        let decoded = decoder.decode(5, &event(&format, 7, &values));
        let body = Body::Page {
            frame,
            order: Order::new(order),
            what: What::Step { step, numbers },
        };
        assert_eq!(decoded.map(|record| record.body), Some(body), "{name}");
    }
    for step in Step::ALL {
        let has_case = cases.iter().any(|(_, _, (_, _, of, _))| *of == step);
        assert!(has_case, "{step:?}");
    }
}
