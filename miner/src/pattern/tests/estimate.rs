//! Estimated chances, compared with computed and counted ones. Estimates are not random: the same
//! shapes always have the same estimate.

use super::super::chance::estimated_chance;
use super::super::chance::{Effort, chance_of_any};
use super::super::pattern::{KeyShape, values_of};
use super::super::{Difficulty, PatternSet};
use super::*;

/// The largest relative error that an estimate may have. The largest that these sets have is 2 %.
const ERROR: f64 = 0.06;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| pattern(text)).collect()
}

fn shapes_of(texts: &[&str]) -> Vec<KeyShape> {
    patterns(texts).iter().flat_map(Pattern::shapes).collect()
}

#[test]
fn an_estimate_is_near_the_computed_chance() {
    let sets: &[&[&str]] = &[
        &["m0ctane"],
        &["*q*", "*p*", "*z*"],
        &["*aa*", "*aaa*", "*[ac]a*"],
        &["=3*", "*777*"],
        &["*cat*", "*ca*", "c*t*@9", "ca*"],
        &["a*c*@9", "*ac*@9", "[ac]?[ac]"],
        &["*cat", "*?at", "*c??", "*cat*"],
        &["*a*c*e*", "*e*c*a*", "*c*"],
        &["q*7*q", "*7*7*7*", "*q"],
        &["*[qp]?????", "*q??????", "*s??????"],
        &["*0s000000", "*00000000*", "l7*"],
        &["~m0ctane*", "words:7", "zeros:9"],
    ];
    for texts in sets {
        let shapes = shapes_of(texts);
        let exact = chance_of_any(&shapes, &mut Effort::full()).unwrap();
        let estimate = estimated_chance(&shapes, &mut Effort::full()).unwrap();
        println!("{texts:?}: {estimate:e}, {:+.2} %", 100.0 * (estimate / exact - 1.0));
        assert!((estimate / exact - 1.0).abs() < ERROR, "{texts:?}: {estimate:e}, not {exact:e}");
        assert_eq!(estimated_chance(&shapes, &mut Effort::full()), Some(estimate), "{texts:?}");
    }
}

#[test]
fn a_set_that_is_too_intricate_has_an_estimate() {
    let texts =
        ["*a*c*e*t*", "*q*p*z*r*", "*0*2*3*4*", "*7*6*5*s*", "*m*u*h*k*", "*n*4*j*w*", "*l*g*f*8*", "*x*9*y*d*"];
    let (set, shapes) = (PatternSet::new(patterns(&texts)), shapes_of(&texts));
    assert_eq!(chance_of_any(&shapes, &mut Effort::full()), None, "it is too intricate");
    let chance = 1.0 / set.difficulty().unwrap().candidates();
    let mut random = random();
    let texts = (0..40_000).map(|_| values_of(&Npub(random.random())));
    let counted = texts.filter(|values| shapes.iter().any(|shape| shape.matches(values))).count() as f64 / 40_000.0;
    println!("{chance:.3} estimated, {counted:.3} counted");
    // Six standard deviations of the count are 0.015.
    assert!((chance - counted).abs() < 0.015 + ERROR * counted, "{chance}, not {counted}");
    let sum = Difficulty::any_of(set.iter().map(|(_, pattern)| pattern.difficulty())).unwrap();
    assert!(1.0 / sum.candidates() > 1.3 * counted, "the sum of the chances says much more: {}", sum.candidates());
}

#[test]
fn little_effort_is_enough_for_the_patterns_of_a_message() {
    let set = PatternSet::new(patterns(&["*aa*", "*aaa*", "*[ac]a*", "*ca*", "c*a", "*e*", "*e*e*", "*00*"]));
    let exact = set.difficulty().unwrap().candidates();
    let estimate = set.difficulty_within(&mut Effort::steps(1)).unwrap().candidates();
    assert!((estimate / exact - 1.0).abs() < 2.0 * ERROR, "{estimate}, not {exact}");
    // A set of many shapes has the sum of their chances in place of an estimate.
    let pairs = ALPHABET.iter().flat_map(|&one| ALPHABET.iter().map(move |&other| [one, other].map(char::from)));
    let many = pairs.map(|[one, other]| pattern(&format!("*{one}{other}*"))).collect();
    assert_eq!(PatternSet::new(many).difficulty_within(&mut Effort::steps(1)).unwrap().candidates(), 1.0);
}
