//! The kernels' arithmetic compared with big integers: on the GPU, and the same source compiled for
//! the host. The test binary can be copied to a machine with a GPU. Tests that cannot run are listed
//! as skipped.

use super::host_probe::HostProbe;
use crate::support::harness::{Test, needs_gpu, skip, test};
use cudarc::driver::{LaunchConfig, PushKernelArg};
use npubbot::search::cuda::constants::{MATRIX_BYTES, ROUGH_SLACK, SLACK};
use npubbot::search::cuda::{ASSEMBLER_REPORT, compile_for, kernels_on};
use num_bigint::BigUint;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::RangeInclusive;

pub const TESTS: &[Test] = &[
    test!(products_by_constants_on_the_tensor_cores_are_right),
    test!(field_arithmetic_on_the_gpu_is_right),
    test!(the_search_kernels_stay_within_the_registers_planned),
    test!(the_kernels_compile_at_run_time),
];

/// A number of 32 bytes, big-endian.
type Number = [u8; 32];

/// 2^256 - 2^32 - 977.
fn p() -> BigUint {
    (BigUint::from(1u8) << 256) - (BigUint::from(1u8) << 32) - 977u32
}

fn big(number: &Number) -> BigUint {
    BigUint::from_bytes_be(number)
}

/// The representative below p.
fn reduced(value: BigUint) -> Number {
    bytes_of(value % p())
}

/// A value below 2^256.
fn bytes_of(value: BigUint) -> Number {
    let bytes = value.to_bytes_be();
    let mut number = [0; 32];
    number[32 - bytes.len()..].copy_from_slice(&bytes);
    number
}

fn top_word(number: &Number) -> u32 {
    u32::from_be_bytes(number[..4].try_into().unwrap())
}

/// An operation of `kernels/field.cuh`, numbered as in `kernels/probe.cuh`.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Mul,
    Sqr,
    Add,
    Sub,
    /// 1/a, and 0 for a = 0.
    Inverse,
    Canonical,
    /// The top 32 bits of the product, in the lowest limb. Off by a few units.
    Top,
    /// As the search computes it, and so the next four. They fail for about one in 2^64 random
    /// inputs; chosen inputs can make them fail.
    MulQuick,
    SqrQuick,
    SubQuick,
    /// `Top` with a prepared second factor, for several intervals. A prepared factor exceeds the
    /// bounds if one of its top limbs is 0 or all ones, as happens once in 2^28 random factors.
    TopFine,
    /// `Top` for one interval.
    TopRough,
}

use Operation::{Add, Canonical, Inverse, Mul, MulQuick, Sqr, SqrQuick, Sub, SubQuick, Top, TopFine, TopRough};

/// For any inputs, and for random ones.
const OPERATIONS: [Operation; 7] = [Mul, Sqr, Add, Sub, Inverse, Canonical, Top];
const QUICK_OPERATIONS: [Operation; 5] = [MulQuick, SqrQuick, SubQuick, TopFine, TopRough];

/// A generator with a printed seed, which `NPUBBOT_TEST_SEED` sets.
fn seeded() -> StdRng {
    StdRng::seed_from_u64(crate::support::seed())
}

/// All pairs of edge values, then random limbs, edge limbs, and runs of ones and zeros.
fn inputs() -> Vec<(Number, Number)> {
    let mut rng = seeded();
    let low = |value: u8, from: Number| {
        let mut n = from;
        n[31] = n[31].wrapping_add(value);
        n
    };
    let (top, p, n) = ([0xff; 32], bytes_of(p()), secp256k1::constants::CURVE_ORDER);
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
    pairs.extend((0..RANDOM_PAIRS).map(|round| (number(round % 3), number(round / 3 % 3))));
    pairs
}

fn check(run: impl Fn(Operation, &[(Number, Number)]) -> Vec<Number>) {
    let pairs = inputs();
    let mut rng = seeded();
    let random: Vec<(Number, Number)> = (0..RANDOM_PAIRS).map(|_| (rng.random(), rng.random())).collect();
    let of_any = OPERATIONS.map(|operation| (operation, &pairs));
    for (operation, pairs) in of_any.into_iter().chain(QUICK_OPERATIONS.map(|operation| (operation, &random))) {
        let results = run(operation, pairs);
        assert_eq!(results.len(), pairs.len(), "{operation:?}");
        // The bounds stated in `kernels/field.cuh`, and the wrap-around of a product that is not
        // reduced; and the slack by which intervals are widened.
        match operation {
            Top => check_top_words(operation, pairs, &results, -6..=6, SLACK, &mut rng),
            TopFine => check_top_words(operation, pairs, &results, -7..=2, SLACK, &mut rng),
            TopRough => check_top_words(operation, pairs, &results, -743..=246, ROUGH_SLACK, &mut rng),
            _ => {
                for ((a, b), result) in pairs.iter().zip(&results) {
                    assert!(is_right(operation, a, b, result), "{operation:?} of {a:02x?}, {b:02x?}: {result:02x?}");
                }
            }
        }
    }
}

fn is_right(operation: Operation, a: &Number, b: &Number, result: &Number) -> bool {
    match operation {
        Mul | MulQuick => *result == reduced(big(a) * big(b)),
        Sqr | SqrQuick => *result == reduced(big(a) * big(a)),
        Add => *result == reduced(big(a) + big(b)),
        Sub | SubQuick => *result == reduced(big(a) + p() * 2u8 - big(b)),
        Canonical => *result == reduced(big(a)),
        _ if reduced(big(a)) == [0; 32] => *result == [0; 32],
        _ => reduced(big(a) * big(result)) == bytes_of(BigUint::from(1u8)),
    }
}

/// The most products that are added up to a top word: six, each of which may be minus the sum of
/// two.
const PRODUCTS: usize = 12;

/// Random pairs of factors, the last of [`inputs`].
const RANDOM_PAIRS: usize = 6000;

/// Checks the errors of truncated products, and that sums of twelve stay within the slack. Pairs of
/// edge values are not summed: their neighbours share a factor, so their errors are alike.
fn check_top_words(
    operation: Operation,
    pairs: &[(Number, Number)],
    results: &[Number],
    bounds: RangeInclusive<i32>,
    slack: u32,
    rng: &mut StdRng,
) {
    let error = |((a, b), result): (&(Number, Number), &Number)| {
        let exact = top_word(&reduced(big(a) * big(b)));
        let error = u32::from_be_bytes(result[28..].try_into().unwrap()).wrapping_sub(exact).cast_signed();
        assert!(bounds.contains(&error), "{operation:?} of {a:02x?}, {b:02x?}: off by {error}");
        error
    };
    let errors: Vec<i32> = pairs.iter().zip(results).map(error).collect();
    let sums = errors[errors.len() - RANDOM_PAIRS..].chunks_exact(PRODUCTS).map(|twelve| {
        // Products with odd powers of y are added for one point and subtracted for the other.
        twelve.iter().map(|&error| if rng.random() { error } else { -error }).sum::<i32>().unsigned_abs()
    });
    let farthest = sums.max().unwrap();
    println!("{operation:?}: {:?} to {:?}, twelve: {farthest}", errors.iter().min(), errors.iter().max());
    assert!(farthest <= slack, "{operation:?}: a sum of twelve is off by {farthest}");
}

/// Checks the arithmetic of the kernels compiled for the host.
pub fn field_arithmetic_is_right(probe: &HostProbe) {
    check(|operation, pairs| {
        let lines: String = pairs
            .iter()
            .map(|(a, b)| format!("{} {} {}\n", operation as u32, hex::encode(a), hex::encode(b)))
            .collect();
        probe.run(&[], lines).lines().map(|line| hex::decode(line).unwrap().try_into().unwrap()).collect()
    });
}

/// The limbs of numbers, least significant first.
fn limbs<'a>(numbers: impl Iterator<Item = &'a Number>) -> Vec<u32> {
    let limb = |limb: &[u8]| u32::from_be_bytes(limb.try_into().unwrap());
    numbers.flat_map(|number| number.rchunks(4).map(limb).collect::<Vec<_>>()).collect()
}

fn numbers(limbs: &[u32]) -> Vec<Number> {
    limbs.chunks(8).map(|limbs| std::array::from_fn(|i| limbs[7 - i / 4].to_be_bytes()[i % 4])).collect()
}

fn grid(blocks: usize, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks as u32, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

fn field_arithmetic_on_the_gpu_is_right() {
    needs_gpu();
    let (context, module) = kernels_on(0).unwrap();
    let (stream, probe) = (context.default_stream(), module.load_function("probe").unwrap());
    check(|operation, pairs| {
        let a = stream.clone_htod(&limbs(pairs.iter().map(|(a, _)| a))).unwrap();
        let b = stream.clone_htod(&limbs(pairs.iter().map(|(_, b)| b))).unwrap();
        let mut out = stream.alloc_zeros::<u32>(8 * pairs.len()).unwrap();
        let (what, count) = (operation as u32, pairs.len() as u32);
        let mut launch = stream.launch_builder(&probe);
        launch.arg(&what).arg(&a).arg(&b).arg(&mut out).arg(&count);
        // SAFETY: the arguments match `probe`. The kernel checks the array's end.
        unsafe { launch.launch(grid(pairs.len().div_ceil(128), 128)) }.unwrap();
        numbers(&stream.clone_dtoh(&out).unwrap())
    });
}

/// β, a cube root of 1 modulo p.
const BETA: &str = "7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501ee";

/// An operation of `kernels/tensor.cuh`: a vector of values `a` times a constant `c`, on tensor
/// cores. Its errors are rare only if the values are random. Numbered as in `kernels/probe.cuh`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TensorOperation {
    /// a·c
    Times,
    /// a·c + a²·c
    Sum,
    /// The top 32 bits of a·c + a²·c² in the lowest limb, and of β times that sum in the next. Low
    /// by a few units.
    TopWords,
}

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
    let small = |value: u8| bytes_of(BigUint::from(value));
    let mut edges = vec![small(0), small(1), bytes_of(p() - 1u8), random(1)];
    if edges_too {
        edges.extend([bytes_of(p()), [0xff; 32], small(2), bytes_of(BigUint::from(1u8) << 255)]);
    }
    let group = |round: usize| {
        let constant = if round < edges.len() { edges[round] } else { random(round % 2) };
        let edge_values = edges_too || round >= edges.len();
        let values = std::array::from_fn(|i| if edge_values && i < edges.len() { edges[i] } else { random(i % 2) });
        (constant, values)
    };
    (0..400).map(group).collect()
}

fn products_by_constants_on_the_tensor_cores_are_right() {
    use TensorOperation::{Sum, Times, TopWords};
    needs_gpu();
    let (context, module) = kernels_on(0).unwrap();
    if context.compute_capability().unwrap() < (7, 5) {
        skip("the GPU is older than compute capability 7.5");
    }
    let (stream, probe) = (context.default_stream(), module.load_function("probe_tensor").unwrap());
    let (build, beta) = (module.load_function("probe_matrices").unwrap(), BigUint::parse_bytes(BETA.as_bytes(), 16));
    for operation in [Times, Sum, TopWords] {
        let groups = groups(operation == TopWords);
        let constants = stream.clone_htod(&limbs(groups.iter().map(|(constant, _)| constant))).unwrap();
        let values = stream.clone_htod(&limbs(groups.iter().flat_map(|(_, values)| values))).unwrap();
        let mut matrices = stream.alloc_zeros::<u8>(groups.len() * 2 * MATRIX_BYTES as usize).unwrap();
        let mut out = stream.alloc_zeros::<u32>(8 * 32 * groups.len()).unwrap();
        let what = operation as u32;
        let mut launch = stream.launch_builder(&build);
        launch.arg(&constants).arg(&mut matrices);
        // SAFETY: the arguments match `probe_matrices`, which expects one block per constant.
        unsafe { launch.launch(grid(groups.len(), 32)) }.unwrap();
        let mut launch = stream.launch_builder(&probe);
        launch.arg(&what).arg(&values).arg(&matrices).arg(&mut out);
        // SAFETY: the arguments match `probe_tensor`, which expects one block per constant.
        unsafe { launch.launch(grid(groups.len(), 32)) }.unwrap();
        let results = numbers(&stream.clone_dtoh(&out).unwrap());
        assert_eq!(results.len(), 32 * groups.len());
        let pairs = groups.iter().flat_map(|(c, values)| values.iter().map(move |a| (c, a)));
        for ((c, a), result) in pairs.zip(&results) {
            let (a, c) = (big(a), big(c));
            let right = match operation {
                Times => *result == reduced(&a * &c),
                Sum => *result == reduced(&a * &c + &a * &a * &c),
                TopWords => {
                    let exact = &a * &c + &a * &a * &c * &c;
                    let turned = &exact * beta.as_ref().unwrap();
                    let given = |from: usize| u32::from_be_bytes(result[from..from + 4].try_into().unwrap());
                    let is_near =
                        |exact: BigUint, given: u32| top_word(&reduced(exact)).wrapping_sub(given).wrapping_add(1) <= 4;
                    is_near(exact, given(28)) && is_near(turned, given(24))
                }
            };
            assert!(right, "{operation:?} of {a:x} with {c:x} gave {result:02x?}");
        }
    }
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

/// The assembler's report names each kernel, then its spills, then its registers and its stack.
fn the_search_kernels_stay_within_the_registers_planned() {
    if ASSEMBLER_REPORT.is_empty() {
        skip("the build had no NVRTC (NPUBBOT_NVRTC)");
    }
    let mut left: Vec<(u32, &str)> = Vec::new();
    for kernel in ASSEMBLER_REPORT.split("Compiling entry function '").skip(1) {
        let (name, rest) = kernel.split_once('\'').unwrap();
        let number = |text: &str, before: &str, after: &str| -> Option<u32> {
            text.split_once(before)?.1.split_once(after)?.0.rsplit(' ').next()?.parse().ok()
        };
        let arch = number(rest, "'sm_", "'").unwrap();
        // The first spills are the kernel's own. Those of the functions that it calls follow.
        let spilled = number(rest, "spill stores, ", " bytes spill loads").unwrap();
        let registers = number(rest, "Used ", " registers").unwrap();
        // The driver takes local memory for every thread that the GPU can run, beside `gpu_memory`:
        // on an H100 this is 87 MB.
        let stack = number(rest, "Used ", " bytes cumulative stack size").unwrap_or(0);
        println!("{name} for {arch}: {registers} registers, {spilled} bytes spilled, {stack} bytes of stack");
        assert!(stack <= 320, "{name} for {arch}: {stack} bytes of stack");
        let bounds = BOUNDS.iter().find(|bounds| bounds.kernels.contains(&name) && bounds.archs.contains(&arch));
        if let Some(bounds) = bounds {
            assert!(registers <= bounds.registers && spilled <= bounds.spilled, "{name} for {arch}");
            left.push((arch, name));
        }
    }
    let archs: std::collections::BTreeSet<u32> = left.iter().map(|&(arch, _)| arch).collect();
    for arch in archs {
        let planned = BOUNDS.iter().filter(|bounds| bounds.archs.contains(&arch)).flat_map(|bounds| bounds.kernels);
        planned.for_each(|kernel| assert!(left.contains(&(arch, kernel)), "no report on {kernel} for {arch}"));
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
