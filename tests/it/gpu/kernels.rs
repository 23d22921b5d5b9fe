//! The kernels compared with plain arithmetic: on the GPU, and the same source compiled for the
//! host. The test binary can be copied to a machine with a GPU. Tests that cannot run are listed as
//! skipped.

use super::host_probe::HostProbe;
use crate::support::harness::{Test, needs_gpu, skip, test};
use crate::support::hex;
use npubbot::key::reference::{Number, P, canonical, from_limbs, product, remainder, sum, to_limbs, top_word_error};
use npubbot::search::cuda::KERNEL_REPORTS;
use npubbot::search::cuda::probe::{FieldOperation, TensorOperation, compile_for, operate, operate_on_constants};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub const TESTS: &[Test] = &[
    test!(products_by_constants_on_the_tensor_cores_are_right),
    test!(field_arithmetic_on_the_gpu_is_right),
    test!(field_arithmetic_compiled_for_the_host_is_right),
    test!(the_search_kernels_stay_within_the_registers_planned),
    test!(the_kernels_compile_at_run_time),
];

const OPERATIONS: [FieldOperation; 7] = [
    FieldOperation::Mul,
    FieldOperation::Sqr,
    FieldOperation::Add,
    FieldOperation::Sub,
    FieldOperation::Inverse,
    FieldOperation::Canonical,
    FieldOperation::Top,
];

/// Operations as the search uses them, which fail for rare inputs. Random inputs are practically
/// never among these, so only random inputs are tested. A prepared factor (`fe_ready`) exceeds its
/// error bounds if one of its top limbs is 0 or all ones, which happens about once in 2^28 random
/// factors.
const QUICK_OPERATIONS: [FieldOperation; 5] = [
    FieldOperation::MulQuick,
    FieldOperation::SqrQuick,
    FieldOperation::SubQuick,
    FieldOperation::TopFine,
    FieldOperation::TopRough,
];

/// A generator with a printed seed, which `NPUBBOT_TEST_SEED` sets.
fn seeded() -> StdRng {
    StdRng::seed_from_u64(crate::support::seed())
}

/// All pairs of edge values, then random limbs, edge limbs, and runs of ones and zeros.
fn inputs() -> Vec<(Number, Number)> {
    let mut rng = seeded();
    let top = [0xff; 32];
    let p = from_limbs(P);
    let low = |value: u8, from: Number| {
        let mut n = from;
        n[31] = n[31].wrapping_add(value);
        n
    };
    let n = secp256k1::constants::CURVE_ORDER;
    let mut edges =
        vec![[0; 32], low(1, [0; 32]), low(2, [0; 32]), p, low(255, p), low(1, p), n, low(255, n), top, low(255, top)];
    for limb in [0x7fff_ffffu32, 0x8000_0000, 0xffff_ffff, 1] {
        edges.push(std::array::from_fn(|i| limb.to_be_bytes()[i % 4]));
        edges.push(std::array::from_fn(|i| if i / 4 % 2 == 0 { limb.to_be_bytes()[i % 4] } else { 0 }));
    }
    let mut pairs: Vec<_> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
    let mut number = |kind: usize| -> Number {
        match kind {
            0 => rng.random(),
            1 => {
                let limbs: [u32; 8] =
                    std::array::from_fn(|_| [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff][rng.random_range(0..5)]);
                std::array::from_fn(|i| limbs[i / 4].to_be_bytes()[i % 4])
            }
            _ => {
                let (mut bit, mut bytes) = (rng.random::<bool>(), [0u8; 32]);
                for at in 0..256 {
                    bit ^= rng.random_range(0..24) == 0;
                    bytes[at / 8] |= u8::from(bit) << (at % 8);
                }
                bytes
            }
        }
    };
    for round in 0..6000 {
        pairs.push((number(round % 3), number(round / 3 % 3)));
    }
    pairs
}

fn check(run: impl Fn(FieldOperation, &[(Number, Number)]) -> Vec<Number>) {
    let pairs = inputs();
    for operation in OPERATIONS {
        check_one(operation, &pairs, &run);
    }
    let mut rng = seeded();
    let random: Vec<(Number, Number)> = (0..6000).map(|_| (rng.random(), rng.random())).collect();
    for operation in QUICK_OPERATIONS {
        check_one(operation, &random, &run);
    }
}

fn check_one(
    operation: FieldOperation,
    pairs: &[(Number, Number)],
    run: &impl Fn(FieldOperation, &[(Number, Number)]) -> Vec<Number>,
) {
    let results = run(operation, pairs);
    assert_eq!(results.len(), pairs.len(), "{operation:?}");
    for ((a, b), result) in pairs.iter().zip(&results) {
        let right = match operation {
            FieldOperation::Mul | FieldOperation::MulQuick => *result == from_limbs(product(a, b)),
            FieldOperation::Sqr | FieldOperation::SqrQuick => *result == from_limbs(product(a, a)),
            FieldOperation::Add => *result == from_limbs(sum(a, b)),
            FieldOperation::Sub | FieldOperation::SubQuick => {
                sum(result, b) == remainder(&to_limbs(a)) && canonical(result) == *result
            }
            FieldOperation::Inverse if canonical(a) == [0; 32] => *result == [0; 32],
            FieldOperation::Inverse => product(a, result) == [1, 0, 0, 0],
            FieldOperation::Canonical => *result == canonical(a),
            FieldOperation::Top => (-6..=6).contains(&top_word_error(a, b, result)),
            // The bounds stated in `kernels/field.cuh`, and the wrap-around of a product that
            // is not reduced.
            FieldOperation::TopFine => (-7..=2).contains(&top_word_error(a, b, result)),
            FieldOperation::TopRough => (-743..=246).contains(&top_word_error(a, b, result)),
        };
        assert!(right, "{operation:?} of {a:02x?} and {b:02x?} gave {result:02x?}");
    }
}

/// β, a cube root of 1 modulo p.
const BETA: [u64; 4] = [0xc139_6c28_7195_01ee, 0x9cf0_4975_12f5_8995, 0x6e64_479e_ac34_34e9, 0x7ae9_6a2b_657c_0710];

/// Constants, each with 32 values. Both include edge values: 0, 1, p - 1, and all ones in the top
/// limb; with `edges_too` also p, all ones, 2, and the highest bit alone.
fn groups(edges_too: bool) -> Vec<(Number, [Number; 32])> {
    let mut rng = seeded();
    let mut random = |kind: usize| -> Number {
        let mut n: Number = rng.random();
        if kind == 1 {
            n[..4].fill(0xff);
        }
        n
    };
    let mut edges = vec![[0; 32], from_limbs([1, 0, 0, 0]), from_limbs([P[0] - 1, P[1], P[2], P[3]]), random(1)];
    if edges_too {
        edges.extend([from_limbs(P), [0xff; 32], from_limbs([2, 0, 0, 0]), from_limbs([0, 0, 0, 1 << 63])]);
    }
    let mut groups = Vec::new();
    for round in 0..400 {
        let constant = if round < edges.len() { edges[round] } else { random(round % 2) };
        let edge_values = edges_too || round >= edges.len();
        let values = std::array::from_fn(|i| if edge_values && i < edges.len() { edges[i] } else { random(i % 2) });
        groups.push((constant, values));
    }
    groups
}

fn products_by_constants_on_the_tensor_cores_are_right() {
    needs_gpu();
    use TensorOperation::{Sum, Times, TopWords};
    for operation in [Times, Sum, TopWords] {
        let groups = groups(operation == TopWords);
        let Some(results) = operate_on_constants(0, operation, &groups).unwrap() else {
            skip("the GPU is older than compute capability 7.5");
        };
        assert_eq!(results.len(), 32 * groups.len());
        let pairs = groups.iter().flat_map(|(c, values)| values.iter().map(move |a| (c, a)));
        for ((c, a), result) in pairs.zip(&results) {
            let square = from_limbs(product(a, a));
            let times = from_limbs(product(a, c));
            let right = match operation {
                Times => *result == times,
                Sum => *result == from_limbs(sum(&times, &from_limbs(product(&square, c)))),
                TopWords => {
                    let exact = from_limbs(sum(&times, &from_limbs(product(&times, &times))));
                    let turned = product(&exact, &from_limbs(BETA));
                    let [low, ..] = to_limbs(result);
                    let off = |exact: u64, given: u32| ((exact >> 32) as u32).wrapping_sub(given).wrapping_add(1) <= 4;
                    off(to_limbs(&exact)[3], low as u32) && off(turned[3], (low >> 32) as u32)
                }
            };
            assert!(right, "{operation:?} of {a:02x?} with {c:02x?} gave {result:02x?}");
        }
    }
}

fn field_arithmetic_on_the_gpu_is_right() {
    needs_gpu();
    check(|operation, pairs| operate(0, operation, pairs).unwrap());
}

fn field_arithmetic_compiled_for_the_host_is_right() {
    let probe = HostProbe::compile();
    check(|operation, pairs| {
        let lines: String = pairs
            .iter()
            .map(|(a, b)| format!("{} {} {}\n", operation as u32, hex::encode(a), hex::encode(b)))
            .collect();
        probe.run(&[], lines).lines().map(|line| hex::decode(line).try_into().unwrap()).collect()
    });
}

/// Bounds for the machine code of search kernels.
struct Bounds {
    kernels: &'static [&'static str],
    /// Architectures for which these kernels are compiled.
    archs: RangeInclusive<u32>,
    /// Registers of a thread: with 128 of them, 512 threads fit on a multiprocessor.
    registers: u32,
    /// Bytes of spill loads. The few spilled values are addresses, read once per entry.
    spilled: u32,
}

const BOUNDS: [Bounds; 8] = [
    Bounds { kernels: &["plain_one", "plain_few"], archs: 75..=120, registers: 128, spilled: 64 },
    // This kernel also collects top words while the constants of a centre are in registers.
    Bounds { kernels: &["plain_many"], archs: 75..=120, registers: 128, spilled: 144 },
    Bounds { kernels: &["tensor_one", "tensor_few", "tensor_many"], archs: 90..=100, registers: 128, spilled: 48 },
    Bounds { kernels: &["saving_one", "saving_few", "saving_many"], archs: 90..=100, registers: 168, spilled: 48 },
    Bounds { kernels: &["middle_one", "middle_few", "middle_many"], archs: 80..=120, registers: 128, spilled: 48 },
    Bounds { kernels: &["small_one", "small_few", "small_many"], archs: 75..=75, registers: 128, spilled: 48 },
    Bounds { kernels: &["middle_any", "middle_ends", "middle_texts"], archs: 80..=120, registers: 128, spilled: 64 },
    // Where the tensor cores do not count bits, this one has all tests on the integer units.
    Bounds { kernels: &["middle_runs"], archs: 80..=120, registers: 128, spilled: 192 },
];

fn the_search_kernels_stay_within_the_registers_planned() {
    let archs: BTreeSet<&str> = KERNEL_REPORTS.iter().map(|report| report.arch).collect();
    if archs.is_empty() {
        skip("the build had no NVRTC (NPUBBOT_NVRTC)");
    }
    for arch in archs {
        for bounds in BOUNDS.iter().filter(|bounds| bounds.archs.contains(&arch.parse().unwrap())) {
            for &kernel in bounds.kernels {
                let report = KERNEL_REPORTS.iter().find(|report| (report.arch, report.kernel) == (arch, kernel));
                let report = report.unwrap_or_else(|| panic!("no report on {kernel} for {arch}: {KERNEL_REPORTS:?}"));
                println!("{report:?}");
                assert!(report.registers <= bounds.registers && report.spilled <= bounds.spilled, "{report:?}");
            }
        }
    }
    // The driver takes local memory for every thread that the GPU can run, beside `gpu_memory`: on
    // an H100 this is 87 MB.
    for report in KERNEL_REPORTS {
        assert!(report.stack <= 320, "{report:?}");
    }
}

fn the_kernels_compile_at_run_time() {
    for capability in [75, 90] {
        match compile_for(capability) {
            Some(result) => result.unwrap(),
            None => skip("no NVRTC library"),
        }
    }
}
