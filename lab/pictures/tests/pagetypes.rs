//! Pictures show each page at its position, in the colour of its kind.

use std::{fs, io::Cursor};

use brickyard_pictures::pagetypes::{
    Artist, Film, Fit, PageKind, PictureError, Plan, PlanError, ZoneSpan, html, png,
};
use proptest::prelude::*;

const INK: [u8; 3] = [0x11, 0x14, 0x1a];

fn zone(name: &str, start: u64, frames: u64) -> ZoneSpan {
    ZoneSpan {
        name: name.to_owned(),
        start,
        frames,
    }
}

fn plan(zones: Vec<ZoneSpan>) -> Plan {
    Plan {
        zones,
        box_order: 10,
        huge_order: 9,
        frame_bytes: 4096,
    }
}

/// Returns pseudo-random kinds.
fn mixed(frames: u64, seed: u64) -> Vec<PageKind> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    };
    (0..frames)
        .map(|_| PageKind::ALL[usize::try_from(next() % 7).unwrap()])
        .collect()
}

fn film(zones: Vec<ZoneSpan>, shots: u64) -> Film {
    let mut film = Film::new("a film".into(), plan(zones)).unwrap();
    for shot in 0..shots {
        let numbers = [("allocations", (shot * 1000).to_string())];
        film.push(
            shot * 2_000_000_000,
            &mixed(film.plan().frames(), shot + 1),
            &numbers,
        )
        .unwrap();
    }
    film
}

/// Decodes a PNG: width, height, and colours in rows.
fn decoded(bytes: &[u8]) -> (u32, u32, Vec<[u8; 3]>) {
    let mut decoder = ::png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(::png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (
        info.width,
        info.height,
        pixels[..info.buffer_size()]
            .chunks(3)
            .map(|rgb| rgb.try_into().unwrap())
            .collect(),
    )
}

#[test]
fn every_page_has_its_pixel() {
    let film = film(vec![zone("DMA", 1, 3000), zone("Normal", 4096, 5000)], 2);
    let artist = Artist::new(&film, Fit::default());
    for shot in 0..2 {
        let mut bytes = Vec::new();
        png::write(&film, shot, &mut bytes).unwrap();
        let (width, height, pixels) = decoded(&bytes);
        assert_eq!((width, height), (artist.width(), artist.height()));
        let kinds = film.shot(shot).unwrap().kinds;
        let places = (0..3000)
            .map(|frame| (0, frame))
            .chain((0..5000).map(|frame| (1, frame)));
        for ((zone, frame), kind) in places.zip(kinds) {
            let (x, y) = artist.pixel_of(zone, frame).unwrap();
            for (dx, dy) in [(0, 0), (artist.cell() - 1, artist.cell() - 1)] {
                let color = pixels[((y + dy) * width + x + dx) as usize];
                assert_eq!(color, kind.color(), "frame {frame} of zone {zone}");
            }
        }
    }
    assert_eq!(artist.pixel_of(0, 3000), None);
    assert_eq!(artist.pixel_of(2, 0), None);
}

#[test]
fn pages_run_in_rows_through_a_box_and_boxes_through_the_picture() {
    let film = film(vec![zone("Normal", 0, 1 << 18)], 1);
    let artist = Artist::new(&film, Fit { side_max: 600 });
    assert_eq!((artist.cell(), artist.scale()), (1, 0));
    let at = |frame| artist.pixel_of(0, frame).unwrap();
    let (x, y) = at(0);
    assert_eq!(at(31), (x + 31, y));
    assert_eq!(at(32), (x, y + 1));
    assert_eq!(at(1023), (x + 31, y + 31));
    // A gap of two pixels, and sixteen boxes per row.
    assert_eq!(at(1024), (x + 34, y));
    assert_eq!(at(16 * 1024), (x, y + 34));
}

#[test]
fn boxes_of_odd_orders_are_twice_as_wide_as_high() {
    let plan = Plan {
        box_order: 9,
        ..plan(vec![zone("Normal", 0, 4096)])
    };
    let mut film = Film::new("odd".into(), plan).unwrap();
    film.push(0, &mixed(4096, 1), &[]).unwrap();
    let artist = Artist::new(&film, Fit::default());
    let (x, y) = artist.pixel_of(0, 0).unwrap();
    assert_eq!(artist.pixel_of(0, 31), Some((x + 31 * artist.cell(), y)));
    assert_eq!(
        artist.pixel_of(0, 511),
        Some((x + 31 * artist.cell(), y + 15 * artist.cell()))
    );
}

#[test]
fn only_the_first_box_of_a_zone_has_an_outline() {
    let film = film(
        vec![zone("Normal", 0, 4096), zone("Movable", 4096, 4096)],
        1,
    );
    let artist = Artist::new(&film, Fit::default());
    let picture = artist.draw(0).unwrap();
    let outlined = |zone: usize, frame: u64| {
        let (x, y) = artist.pixel_of(zone, frame).unwrap();
        [
            picture.color(x - 1, y),
            picture.color(x, y - 1),
            picture.color(x - 1, y + 9),
            picture.color(x + 9, y - 1),
        ]
        .map(|color| color == Some(INK))
    };
    assert_eq!(outlined(0, 0), [true; 4]);
    assert_eq!(outlined(1, 0), [true; 4]);
    assert_eq!(outlined(0, 1024), [false; 4]);
    assert_eq!(outlined(1, 1024), [false; 4]);
}

#[test]
fn large_memory_gets_a_pixel_for_several_pages() {
    let frames = 1 << 20;
    let mut film = Film::new("large".into(), plan(vec![zone("Normal", 0, frames)])).unwrap();
    let mut kinds = vec![PageKind::Free; usize::try_from(frames).unwrap()];
    kinds[..64].fill(PageKind::Movable);
    kinds[70_000] = PageKind::Unmovable;
    film.push(0, &kinds, &[]).unwrap();
    let artist = Artist::new(&film, Fit { side_max: 300 });
    assert!(artist.scale() > 0 && artist.width() < 700 && artist.height() < 700);
    let picture = artist.draw(0).unwrap();
    let color = |frame| {
        artist
            .pixel_of(0, frame)
            .and_then(|(x, y)| picture.color(x, y))
            .unwrap()
    };
    assert_eq!(color(0), PageKind::Movable.color());
    assert_eq!(color(1 << 19), PageKind::Free.color());
    // One page of several is a tint, neither free nor full.
    assert!(![PageKind::Free.color(), PageKind::Unmovable.color()].contains(&color(70_000)));
}

#[test]
fn all_shots_are_those_that_are_drawn_one_by_one() {
    let film = film(vec![zone("Normal", 0, 1024)], 2);
    let artist = Artist::new(&film, Fit::default());
    let (one, other) = (artist.draw(0).unwrap(), artist.draw(1).unwrap());
    assert_ne!(one, other);
    assert_eq!(artist.draw_all().collect::<Vec<_>>(), [one, other]);
}

#[test]
fn pictures_take_any_text() {
    let long = "x".repeat(10_000);
    for name in ["", "\u{1f9f1} Ziegel\n\0", &long] {
        let mut film = Film::new(name.to_owned(), plan(vec![zone(name, 0, 1)])).unwrap();
        film.push(
            u64::MAX,
            &[PageKind::Free],
            &[(name, long.clone()), ("", String::new())],
        )
        .unwrap();
        let mut bytes = Vec::new();
        png::write(&film, 0, &mut bytes).unwrap();
        html::write(&[&film], name, &mut bytes).unwrap();
    }
}

#[test]
fn a_folder_of_frames_is_numbered() {
    let folder = std::env::temp_dir().join(format!("brickyard-frames-{}", std::process::id()));
    let film = film(vec![zone("Normal", 0, 2048)], 3);
    let paths = png::write_all(&film, &folder).unwrap();
    assert_eq!(
        paths
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap())
            .collect::<Vec<_>>(),
        ["00000.png", "00001.png", "00002.png"]
    );
    let mut single = Vec::new();
    png::write(&film, 1, &mut single).unwrap();
    assert_eq!(fs::read(&paths[1]).unwrap(), single);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn bad_plans_and_shots_are_refused() {
    let refused = |plan: Plan| match Film::new("bad".into(), plan).unwrap_err() {
        PictureError::Plan(error) => error,
        other => panic!("{other}"),
    };
    assert_eq!(refused(plan(vec![])), PlanError::Empty);
    assert_eq!(
        refused(plan(vec![zone("Normal", 5, 0)])),
        PlanError::EmptyZone("Normal".into())
    );
    assert_eq!(
        refused(plan(vec![zone("Normal", u64::MAX, 2)])),
        PlanError::TooHigh("Normal".into())
    );
    // The sum is too large: that is not the fault of whichever zone comes last.
    let many = || vec![zone("Normal", 0, 1 << 48), zone("Movable", 0, 1)];
    for zones in [many(), many().into_iter().rev().collect()] {
        let error = refused(plan(zones));
        let largest = "Normal".into();
        assert_eq!(error, PlanError::TooMany { largest });
    }
    // One zone that ends too high is named wherever it is.
    assert_eq!(
        refused(plan(vec![zone("High", 1 << 48, 1), zone("Low", 0, 1)])),
        PlanError::TooHigh("High".into())
    );
    let good = plan(vec![zone("Normal", 0, 2)]);
    assert_eq!(
        refused(Plan {
            box_order: 21,
            ..good.clone()
        }),
        PlanError::BoxOrder(21)
    );
    assert_eq!(
        refused(Plan {
            huge_order: 11,
            ..good.clone()
        }),
        PlanError::HugeOrder {
            huge: 11,
            largest: 10
        }
    );
    assert_eq!(
        refused(Plan {
            frame_bytes: 0,
            ..good.clone()
        }),
        PlanError::FrameBytes(0)
    );

    let mut film = Film::new("good".into(), good).unwrap();
    assert!(matches!(
        film.push(0, &[PageKind::Free], &[]),
        Err(PictureError::Length {
            given: 1,
            frames: 2
        })
    ));
    film.push(5, &[PageKind::Free; 2], &[]).unwrap();
    assert!(matches!(
        film.push(4, &[PageKind::Free; 2], &[]),
        Err(PictureError::Backwards {
            last_ns: 5,
            time_ns: 4
        })
    ));
    let error = png::write(&film, 1, &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no shot 1: the film has 1, counted from 0"
    );
    assert!(matches!(
        html::write(&[], "none", &mut Vec::new()),
        Err(PictureError::NoFilm)
    ));
    let empty = Film::new("empty".into(), film.plan().clone()).unwrap();
    assert!(matches!(
        html::write(&[&empty], "none", &mut Vec::new()),
        Err(PictureError::NoSuchShot { .. })
    ));
}

#[test]
fn huge_pages_are_counted_by_aligned_frame_numbers() {
    // Frames 256 to 2303: 512..1024, 1024..1536 and 1536..2048 are whole, both ends are not.
    let mut film = Film::new("huge".into(), plan(vec![zone("Normal", 256, 2048)])).unwrap();
    let mut kinds = vec![PageKind::Free; 2048];
    film.push(0, &kinds, &[]).unwrap();
    kinds[256 + 512] = PageKind::PerCpu;
    film.push(1, &kinds, &[]).unwrap();
    assert_eq!(
        (film.free_huge(0), film.free_huge(1), film.free_huge(2)),
        (Some(3), Some(2), None)
    );
    assert_eq!(film.counts(1).unwrap()[PageKind::Free.index()], 2047);
}

#[test]
fn a_hostile_name_stays_text() {
    let hostile = "</script><script>alert(1)</script><!--{{script}}\u{2028}&\"'";
    let mut film = Film::new(hostile.into(), plan(vec![zone(hostile, 0, 1024)])).unwrap();
    film.push(0, &mixed(1024, 1), &[(hostile, hostile.into())])
        .unwrap();
    let mut page = Vec::new();
    html::write(&[&film], hostile, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains("<!--"));
    // Three of the page's own: the description, one film, the player; none from the name.
    assert_eq!(page.matches("</script>").count(), 3);
    assert_eq!(
        page.matches("{{").count(),
        page.matches("{{script}}").count()
    );
    let scheme = page.matches("http://").count() + page.matches("https://").count();
    assert_eq!(
        scheme,
        page.matches("http://www.w3.org/2000/svg").count(),
        "the page names no address to load"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_film_returns_what_was_pushed(
        start in 0_u64..3000,
        frames in 1_u64..700,
        seeds in prop::collection::vec((0_u64..4, 0_u64..1_000_000), 1..40),
    ) {
        let mut film = Film::new("film".into(), plan(vec![zone("Normal", start, frames)])).unwrap();
        let mut time = 0;
        let mut pushed = Vec::new();
        for (seed, step) in seeds {
            time += step;
            let kinds = mixed(frames, seed);
            film.push(time, &kinds, &[("seed", seed.to_string())]).unwrap();
            pushed.push((time, kinds, seed));
        }
        prop_assert_eq!(film.len(), pushed.len());
        let all: Vec<_> = film.shots().collect();
        for (i, (time, kinds, seed)) in pushed.iter().enumerate() {
            let shot = film.shot(i).unwrap();
            prop_assert_eq!(shot.time_ns, *time);
            prop_assert_eq!(&shot.kinds, kinds);
            prop_assert_eq!(&shot.numbers, &[("seed".to_owned(), seed.to_string())]);
            prop_assert_eq!(&all[i], &shot);
            let movable = kinds.iter().filter(|&&kind| kind == PageKind::Movable).count() as u64;
            prop_assert_eq!(film.counts(i).unwrap()[PageKind::Movable.index()], movable);
        }
        prop_assert!(film.shot(pushed.len()).is_none());
    }

    #[test]
    fn any_memory_has_a_pixel_for_each_page(
        start in 0_u64..5000,
        frames in 1_u64..20_000,
        box_order in 0_u8..12,
        side_max in 64_u32..400,
    ) {
        let plan = Plan { box_order, huge_order: 0, ..plan(vec![zone("A", start, frames), zone("B", 7, 9)]) };
        let mut film = Film::new("any".into(), plan).unwrap();
        film.push(0, &mixed(frames + 9, start), &[]).unwrap();
        let artist = Artist::new(&film, Fit { side_max });
        let picture = artist.draw(0).unwrap();
        let mut places = std::collections::BTreeSet::new();
        for (zone, frame) in (0..frames).map(|frame| (0, frame)).chain((0..9).map(|frame| (1, frame))) {
            let (x, y) = artist.pixel_of(zone, frame).unwrap();
            prop_assert!(x < picture.width() && y < picture.height());
            places.insert((x, y));
        }
        // As many pixels as cells: no two cells share one.
        let cells = |start: u64, frames: u64| ((start + frames - 1) >> artist.scale()) - (start >> artist.scale()) + 1;
        prop_assert_eq!(places.len() as u64, cells(start, frames) + cells(7, 9));
    }
}
