//! Claims that a value is at least so large.

use brickyard_experiments::directions::Directions;
use brickyard_experiments::document::{Among, Figure, Verdict};
use brickyard_experiments::judge::Judge;
use brickyard_experiments::raw::Method;
use brickyard_results::Better;

use super::{data, document, key, swept, table};

#[test]
fn a_claim_about_a_value_needs_no_other_side() {
    let of = |kind, value: &[f64]| data(kind, Better::Higher, &[("new", value)]);
    let claim = || Figure::mean(key("new")).at_least(40, 40.0, "at least 40");
    for (kind, values, expected) in [
        (Method::Simulated, &[40.0, 40.0][..], Some(Verdict::Same)),
        (Method::Simulated, &[39.0, 39.0], Some(Verdict::Opposite)),
        (Method::Timed, &[39.0, 42.0], Some(Verdict::Undecided)),
        (Method::Timed, &[39.0], None),
        (Method::Replayed, &[50.0], Some(Verdict::NotSwept)),
    ] {
        let data = of(kind, values);
        let judgement = Judge::new(&[], &data).judge(&claim()).unwrap();
        assert_eq!(judgement.verdict, expected, "{kind} {values:?}");
        assert_eq!(judgement.speedup, None);
    }
    // Under other assumptions.
    let data = swept(
        Method::Replayed,
        &[("", &[1.0], &[50.0]), ("a", &[1.0], &[30.0])],
    );
    let judgement = Judge::new(&[], &data)
        .judge(&claim().swept(&["a"]))
        .unwrap();
    assert_eq!(judgement.verdict, Some(Verdict::Depends));
    let sweep = judgement.sweep.unwrap();
    assert_eq!((sweep.lowest.value, sweep.highest.value), (30.0, 50.0));
}

/// Whatever is measured where the document's own figure does not fulfil its claim: neither for it
/// nor against it.
#[test]
fn a_claim_that_its_own_table_contradicts_is_not_counted() {
    for value in [10.0, 50.0] {
        let data = data(Method::Simulated, Better::Higher, &[("new", &[value; 2])]);
        let claim = Figure::mean(key("new")).at_least(40, 39.0, "at least 40");
        let mut document = document(&[]);
        document.tables = vec![table(core::slice::from_ref(&claim))];
        let judge = Judge::new(core::slice::from_ref(&document), &data);
        let judgement = judge.judge(&claim).unwrap();
        assert_eq!(judgement.verdict, Some(Verdict::Contradicted), "{value}");
        let counts = Directions::of(&|figure| judge.judge(figure), &document, Among::All);
        assert_eq!((counts.all(), counts.number(Verdict::Contradicted)), (0, 1));
    }
}
