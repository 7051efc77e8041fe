//! Plots as well-formed SVG: for any input every curve is drawn, and lies within the view box.

use brickyard_pictures::plot::{Axis, Curve, Plot, Point, STYLE, Scale};
use proptest::prelude::*;

fn plot(x: Scale, y: Scale, curves: Vec<Curve>) -> Plot {
    Plot {
        id: "a-plot".into(),
        title: "A <plot>".into(),
        about: "What \"is\" & what is not.".into(),
        x: Axis {
            label: "CPUs".into(),
            scale: x,
        },
        y: Axis {
            label: "faults/s".into(),
            scale: y,
        },
        curves,
    }
}

fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
    Curve {
        name: name.into(),
        points: points.iter().map(|&(x, y)| Point::new(x, y)).collect(),
    }
}

fn names() -> Scale {
    Scale::Names(
        ["bl6-13", "elm3b14", "elm3b245", "gekko-lp1", "gekko-lp4"]
            .map(String::from)
            .into(),
    )
}

/// Returns all values of an attribute.
fn attributes<'s>(svg: &'s str, name: &str) -> Vec<&'s str> {
    svg.split(&format!(" {name}=\""))
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// Returns the numbers in a text.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap())
        .collect()
}

/// Checks that every element is closed, every number is valid, and all lies within the view box.
fn assert_sound(svg: &str) {
    for bad in ["NaN", "inf", "--", "undefined"] {
        assert!(!svg.contains(bad), "{bad} in {svg}");
    }
    let view = numbers(attributes(svg, "viewBox")[0]);
    let (width, height) = (view[2], view[3]);
    for at in attributes(svg, "transform") {
        let place = numbers(at);
        assert!(
            (0.0..=width).contains(&place[0]) && (0.0..=height).contains(&place[1]),
            "{at} lies outside of {width} by {height}"
        );
    }
    let lines = svg.split("<path class=\"").skip(1);
    for line in lines.filter(|line| {
        ["line\"", "band\"", "whisker\"", "stem\""]
            .iter()
            .any(|class| line.starts_with(class))
    }) {
        for number in numbers(
            line.split(" d=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap(),
        ) {
            assert!(
                (0.0..=width.max(height)).contains(&number),
                "{number} in {line}"
            );
        }
    }
    for element in ["g", "text", "title", "desc", "svg"] {
        let open = svg.matches(&format!("<{element} ")).count()
            + svg.matches(&format!("<{element}>")).count();
        assert_eq!(
            open,
            svg.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
}

#[test]
fn a_plot_has_a_title_and_a_description() {
    let svg = plot(
        Scale::Log,
        Scale::Linear,
        vec![
            curve("brickyard", &[(1.0, 2.0), (2.0, 4.0)]),
            curve("<vanilla>", &[(1.0, 1.0)]),
        ],
    )
    .svg();
    assert_sound(&svg);
    assert!(
        svg.contains("role=\"img\"")
            && svg.contains("aria-labelledby=\"a-plot-title a-plot-about\"")
    );
    assert!(svg.contains("<title id=\"a-plot-title\">A &lt;plot&gt;</title>"));
    assert!(svg.contains("What &quot;is&quot; &amp; what is not. Horizontal axis: CPUs, logarithmic. Vertical axis: faults/s. Shown: brickyard, &lt;vanilla&gt;.</desc>"));
    assert_eq!(
        attributes(&svg, "data-curve"),
        ["brickyard", "&lt;vanilla&gt;"]
    );
    assert!(svg.contains("<title>brickyard, 2: 4</title>"));
    assert!(!svg.contains("<script") && !svg.contains("style="));
}

#[test]
fn a_configuration_looks_the_same_in_every_plot() {
    let looks = |scale: Scale, others: &[&str]| {
        let mut curves: Vec<Curve> = others
            .iter()
            .map(|name| curve(name, &[(0.0, 1.0)]))
            .collect();
        curves.push(curve("list-2007", &[(0.0, 3.0), (1.0, 4.0)]));
        let svg = plot(scale, Scale::Linear, curves).svg();
        let of = svg.split("data-curve=\"list-2007\"").nth(1).unwrap();
        let hue = svg
            .split("data-curve=\"list-2007\"")
            .next()
            .unwrap()
            .rsplit("class=\"")
            .next()
            .unwrap();
        let mark = of.split("class=\"mark\"").nth(1).unwrap();
        (hue.trim().to_owned(), attributes(mark, "d")[0].to_owned())
    };
    assert_eq!(
        looks(Scale::Linear, &[]),
        looks(names(), &["vanilla", "brickyard", "x"])
    );
    for hue in 0..8 {
        assert!(STYLE.contains(&format!(".plot .hue-{hue} {{ --hue: light-dark(")));
    }
}

#[test]
fn a_spread_is_a_band_over_numbers_and_whiskers_over_names() {
    let spread = |name: &str| Curve {
        name: name.into(),
        points: vec![
            Point::new(0.0, 5.0).spread(4.0, 6.0),
            Point::new(1.0, 7.0).spread(7.5, 6.5),
            Point::new(2.0, 8.0),
        ],
    };
    let line = plot(Scale::Linear, Scale::Linear, vec![spread("brickyard")]).svg();
    assert_eq!(line.matches("class=\"band\"").count(), 1);
    let dots = plot(
        names(),
        Scale::Log,
        vec![spread("brickyard"), spread("vanilla")],
    )
    .svg();
    // A spread with its ends swapped collapses to the point's value.
    assert_eq!(
        (
            dots.matches("class=\"whisker\"").count(),
            dots.matches("class=\"band\"").count()
        ),
        (2, 0)
    );
    assert_eq!(dots.matches("<title>").count(), 6);
    for svg in [line, dots] {
        assert_sound(&svg);
    }
}

#[test]
fn zero_on_a_logarithmic_axis_is_drawn_at_its_end() {
    let svg = plot(
        Scale::Log,
        Scale::Log,
        vec![curve("release", &[(1.0, 0.0), (2.0, 10.0), (4.0, 1000.0)])],
    )
    .svg();
    assert_sound(&svg);
    assert_eq!(svg.matches("class=\"mark hollow\"").count(), 1);
    let all = plot(
        Scale::Linear,
        Scale::Log,
        vec![curve("release", &[(1.0, 0.0), (2.0, -3.0)])],
    )
    .svg();
    assert_sound(&all);
    assert_eq!(all.matches("class=\"mark hollow\"").count(), 2);
}

#[test]
fn an_empty_plot_says_so() {
    let empty = curve("brickyard", &[(f64::NAN, 1.0), (1.0, f64::INFINITY)]);
    for scale in [Scale::Linear, Scale::Log, names(), Scale::Names(Vec::new())] {
        let svg = plot(scale, Scale::Linear, vec![empty.clone()]).svg();
        assert_sound(&svg);
        assert!(svg.contains("nothing was measured") && svg.contains("Shown: nothing."));
    }
}

#[test]
fn a_long_series_has_few_markers_and_all_of_its_line() {
    let points: Vec<(f64, f64)> = (0..700)
        .map(|i| (f64::from(i) * 2.0, f64::from(i % 90)))
        .collect();
    let svg = plot(
        Scale::Linear,
        Scale::Linear,
        vec![curve("vanilla", &points)],
    )
    .svg();
    assert_sound(&svg);
    let line = svg
        .split("class=\"line\"")
        .nth(1)
        .unwrap()
        .split("/>")
        .next()
        .unwrap();
    assert_eq!(line.matches(['M', 'L']).count(), 700);
    assert!((5..=10).contains(&svg.matches("<title>").count()));
}

#[test]
fn many_and_long_names_go_below() {
    let many: Vec<Curve> = (0..20)
        .map(|i| {
            curve(
                &format!("configuration number {i}"),
                &[(0.0, f64::from(i)), (3.0, 2.0)],
            )
        })
        .collect();
    let svg = plot(Scale::Linear, Scale::Linear, many).svg();
    assert_sound(&svg);
    assert_eq!(svg.matches("class=\"name\"").count(), 20);
    assert!(!svg.contains("class=\"lead\""));
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e4..1e4_f64,
        2 => prop::num::f64::NORMAL,
        1 => prop::num::f64::ANY,
        1 => Just(0.0),
        1 => Just(f64::MAX),
        1 => Just(f64::MIN_POSITIVE),
        1 => (0..9).prop_map(f64::from),
        1 => 999.999_999..1_000.000_001_f64,
    ]
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Log),
        Just(names()),
        prop::collection::vec(".{0,40}", 0..9).prop_map(Scale::Names)
    ]
}

fn point() -> impl Strategy<Value = Point> {
    (value(), value(), prop::option::of((value(), value()))).prop_map(|(x, y, spread)| Point {
        x,
        y,
        spread,
    })
}

fn any_curve() -> impl Strategy<Value = Curve> {
    let name = prop_oneof![Just("brickyard".to_owned()), ".{0,30}"];
    let points = prop_oneof![
        prop::collection::vec(point(), 0..40),
        // All the same.
        (point(), 1..5_usize).prop_map(|(point, count)| vec![point; count])
    ];
    (name, points).prop_map(|(name, points)| Curve { name, points })
}

/// The dots of the third of three curves are right of their position, which is at the right end.
#[test]
fn a_dot_between_the_last_name_and_the_end_stays_inside() {
    let curve = |x| Curve {
        name: "brickyard".to_owned(),
        points: vec![Point {
            x,
            y: 0.0,
            spread: None,
        }],
    };
    let names = Scale::Names(vec![String::new(), String::new()]);
    let curves = vec![curve(0.0), curve(0.0), curve(1.376)];
    assert_sound(&plot(names, Scale::Linear, curves).svg());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_plot_is_drawn_inside(x in scale(), y in scale(), curves in prop::collection::vec(any_curve(), 0..9)) {
        let count = match &x { Scale::Names(names) => names.len() as f64, _ => f64::INFINITY };
        let bounded = matches!(x, Scale::Names(_));
        let drawn = curves.iter().filter(|curve| curve.points.iter().any(|point| {
            point.x.is_finite() && point.y.is_finite() && (!bounded || (point.x >= -0.5 && point.x < count - 0.5))
        })).count();
        let mut plot = plot(x, y, curves);
        // Names are arbitrary text, which the test of the numbers would not parse.
        for curve in &mut plot.curves {
            curve.name.retain(|c| c.is_ascii_alphanumeric());
            curve.name = curve.name.replace("NaN", "").replace("inf", "");
        }
        if let Scale::Names(names) = &mut plot.x.scale {
            for name in names {
                name.retain(|c| c.is_ascii_alphanumeric());
                *name = name.replace("NaN", "").replace("inf", "");
            }
        }
        let svg = plot.svg();
        assert_sound(&svg);
        prop_assert_eq!(attributes(&svg, "data-curve").len(), drawn);
        let groups: Vec<&str> = svg.split("data-curve=").skip(1).collect();
        prop_assert!(groups.iter().all(|group| group.split("</g>").next().unwrap().contains("class=\"mark")));
        let labels: Vec<&str> = svg.split("<text class=\"tick\" text-anchor=\"end\" x=").skip(1).map(|rest| rest.split('>').nth(1).unwrap()).collect();
        for (i, label) in labels.iter().enumerate() {
            prop_assert!(!labels[..i].contains(label), "{} twice among {:?}", label, labels);
        }
    }
}
