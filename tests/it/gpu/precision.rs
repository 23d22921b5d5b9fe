//! The errors of truncated products: how they are distributed, and that sums of twelve stay within
//! the slack by which intervals are widened.

use super::host_probe::HostProbe;
use crate::support::harness::{Test, test};
use crate::support::hex;
use npubbot::key::reference::{Number, top_word_error};
use npubbot::search::cuda::probe::{FieldOperation, ROUGH_SLACK, SLACK};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::RangeInclusive;

pub const TESTS: &[Test] = &[test!(truncated_products_err_as_stated)];

/// The statements on one kind of truncated product in `kernels/field.cuh`.
struct Stated {
    operation: FieldOperation,
    /// The error of one product, in units of the top word.
    error: RangeInclusive<i32>,
    /// The standard deviation of the error, for random limbs and for limbs next to a carry, each
    /// measured on 250,000 products. If several rows have limbs next to a carry, the largest is
    /// stated.
    deviation: [f64; 2],
    /// The slack of the kernels that use it.
    slack: u32,
    /// Whether the bounds hold for any second factor. For a prepared factor they hold unless one of
    /// its top limbs is 0 or all ones, as for one random factor in 2^28.
    any_factor: bool,
}

const STATED: [Stated; 3] = [
    Stated { operation: FieldOperation::Top, error: -6..=6, deviation: [0.97, 1.32], slack: SLACK, any_factor: true },
    Stated {
        operation: FieldOperation::TopFine,
        error: -7..=2,
        deviation: [0.83, 0.99],
        slack: SLACK,
        any_factor: false,
    },
    Stated {
        operation: FieldOperation::TopRough,
        error: -743..=246,
        deviation: [215.5, 270.2],
        slack: ROUGH_SLACK,
        any_factor: false,
    },
];

/// Factor by which a measured standard deviation may exceed the stated one. The margin is six times
/// the 1.1 to 1.6 % by which that of 2,500 products varied in forty runs.
const SAMPLING: f64 = 1.1;

/// Products of each kind that are compared.
const COUNT: usize = 2_500;

/// The most products that are added up to a top word: six, each of which may be minus the sum of
/// two.
const PRODUCTS: usize = 12;

/// A number of random limbs, or of limbs next to a carry.
fn number(rng: &mut StdRng, is_extreme: bool) -> Number {
    if !is_extreme {
        return rng.random();
    }
    let limbs: [u32; 8] =
        std::array::from_fn(|_| [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff][rng.random_range(0..6)]);
    std::array::from_fn(|i| limbs[i / 4].to_be_bytes()[i % 4])
}

fn truncated_products_err_as_stated() {
    let probe = HostProbe::compile();
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    for stated in STATED {
        for (extreme, extreme_factor) in [(false, false), (true, false), (false, true), (true, true)] {
            if extreme_factor && !stated.any_factor {
                continue;
            }
            let pairs: Vec<(Number, Number)> =
                (0..COUNT).map(|_| (number(&mut rng, extreme), number(&mut rng, extreme_factor))).collect();
            let lines = pairs
                .iter()
                .map(|(a, b)| format!("{} {} {}\n", stated.operation as u32, hex::encode(a), hex::encode(b)));
            let results = probe.run(&[], lines.collect());
            let results: Vec<Number> = results.lines().map(|line| hex::decode(line).try_into().unwrap()).collect();
            assert_eq!(results.len(), COUNT);
            let errors: Vec<i32> =
                pairs.iter().zip(&results).map(|((a, b), result)| top_word_error(a, b, result)).collect();
            check(
                &stated,
                &errors,
                &mut rng,
                extreme || extreme_factor,
                &format!("limbs at carries: {extreme}, {extreme_factor}"),
            );
        }
    }
}

fn check(stated: &Stated, errors: &[i32], rng: &mut StdRng, is_extreme: bool, what: &str) {
    let count = errors.len() as f64;
    let mean = errors.iter().map(|&error| f64::from(error)).sum::<f64>() / count;
    let deviation = (errors.iter().map(|&error| (f64::from(error) - mean).powi(2)).sum::<f64>() / count).sqrt();
    let (least, most) = (errors.iter().min().unwrap(), errors.iter().max().unwrap());
    let sums = errors.chunks_exact(PRODUCTS).map(|twelve| {
        // Products with odd powers of y are added for one point and subtracted for the other.
        twelve.iter().map(|&error| if rng.random() { error } else { -error }).sum::<i32>().unsigned_abs()
    });
    let farthest = sums.max().unwrap();
    let operation = stated.operation;
    println!("{operation:?}, {what}: {least} to {most}, mean {mean:.2}, deviation {deviation:.2}, twelve: {farthest}");
    assert!(stated.error.contains(least) && stated.error.contains(most), "{operation:?}, {what}: {least} to {most}");
    let most_deviation = SAMPLING * stated.deviation[usize::from(is_extreme)];
    assert!(deviation <= most_deviation, "{operation:?}, {what}: deviation {deviation}");
    assert!(farthest <= stated.slack, "{operation:?}, {what}: a sum of twelve is off by {farthest}");
}
