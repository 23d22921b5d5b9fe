//! Field operations compared with slow, bit-by-bit ones.

use super::*;
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::avx2::Factor4;

/// Values at which wrong carries, folds and comparisons show, and random values: uniform ones, and
/// runs of ones and zeros.
fn values(random: &mut StdRng) -> Vec<Fe> {
    const P: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
    let near_p = [-2i64, -1, 0, 1, 2].map(|d| Fe([P[0].wrapping_add_signed(d), P[1], P[2], P[3]]));
    let limbs = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX - 1, u64::MAX];
    let mut values = vec![Fe::from_small(0), Fe::ONE, Fe([u64::MAX; 4]), Fe::BETA, Fe([0x1_0000_03d1, 0, 0, 0])];
    values.extend(near_p);
    values.extend(limbs.map(|limb| Fe([0, 0, 0, limb])));
    values.extend(limbs.map(|limb| Fe([limb; 4])));
    values.extend((0..20).map(|_| Fe(random.random())));
    values.extend((0..20).map(|_| {
        let (start, length) = (random.random_range(0..256u32), random.random_range(1..256u32));
        let mut limbs = [0u64; 4];
        (start..start + length).for_each(|bit| limbs[(bit % 256 / 64) as usize] |= 1 << (bit % 64));
        Fe(limbs)
    }));
    values
}

/// `a·b mod p`, one bit after the other.
fn slow_product(a: Fe, b: Fe) -> Fe {
    let (a, b) = (a.canonical(), b.canonical());
    (0..256).rev().fold(Fe::from_small(0), |sum, bit| {
        let doubled = slow_sum(sum, sum);
        if b.0[bit / 64] >> (bit % 64) & 1 == 1 { slow_sum(doubled, a) } else { doubled }
    })
}

/// `a + b mod p` of canonical values, limb by limb.
fn slow_sum(a: Fe, b: Fe) -> Fe {
    let mut limbs = [0u64; 5];
    let mut carry = 0u128;
    for ((limb, a), b) in limbs.iter_mut().zip(a.0).zip(b.0) {
        carry += u128::from(a) + u128::from(b);
        *limb = carry as u64;
        carry >>= 64;
    }
    if carry == 0 {
        return Fe([limbs[0], limbs[1], limbs[2], limbs[3]]).canonical();
    }
    // Above 2^256: subtracting p is adding 2^32 + 977 and dropping 2^256.
    let mut add = 0x1_0000_03d1u128;
    for limb in limbs.iter_mut().take(4) {
        add += u128::from(*limb);
        *limb = add as u64;
        add >>= 64;
    }
    Fe([limbs[0], limbs[1], limbs[2], limbs[3]]).canonical()
}

/// Compares every operation of a field type, on every pair and lane by lane, with the slow one.
fn check_field<F: SimdField>(values: &[Fe]) {
    for (at, &a) in values.iter().enumerate() {
        let factor = F::constant_factor(a);
        for chunk in values.chunks(F::LANES) {
            // Fills all lanes with different values, and rotates `a` through the lanes.
            let b: Vec<Fe> = (0..F::LANES).map(|lane| chunk[lane % chunk.len()]).collect();
            let others: Vec<Fe> =
                (0..F::LANES).map(|lane| if lane % 2 == 0 { a } else { values[(at + lane) % values.len()] }).collect();
            let (fa, fb) = (F::from_lanes(&others), F::from_lanes(&b));
            // The largest unreduced value: a sum with a product by a prepared factor.
            let loose = F::sum(fa.times_constant(&factor).summand(), fb.summand());
            for lane in 0..F::LANES {
                let (x, y, c) = (others[lane].canonical(), b[lane].canonical(), a.canonical());
                let same = |value: F, expected: Fe, what: &str| {
                    assert_eq!(value.lane(lane).canonical().0, expected.0, "{what}: {x:?}, {y:?}, {c:?}");
                };
                let (xy, xx) = (slow_product(x, y), slow_product(x, x));
                same(fa.mul(fb), xy, "mul");
                same(fa.square(), xx, "square");
                same(fa.square_plus(fb.summand()), slow_sum(xx, y), "square_plus");
                same(F::sum(fa.summand(), fb.summand()), slow_sum(x, y), "sum");
                same(fa.sub(fb), difference_of(x, y), "sub");
                same(fa.times_constant(&factor), slow_product(x, c), "times_constant");
                let expected = slow_sum(slow_product(x, slow_product(y, y)), y);
                same(fa.times_plus(&fb.mul(fb).factor(), fb.summand()), expected, "times_plus");
                let z = slow_sum(slow_product(x, c), y);
                same(loose, z, "loose");
                same(loose.mul(loose), slow_product(z, z), "loose mul");
                same(loose.square(), slow_product(z, z), "loose square");
                same(loose.square_plus(loose.summand()), slow_sum(slow_product(z, z), z), "loose square_plus");
                same(loose.times_constant(&factor), slow_product(z, c), "loose times_constant");
                same(fa.sub(loose), difference_of(x, z), "sub of loose");
                same(loose.sub(fb), difference_of(z, y), "sub from loose");
                // The top word of a sum or difference has two of a candidate's six terms, so its
                // error is within a third of the slack. The error may wrap around 0.
                for (top_words, one, two) in [
                    (F::top_words_of_products(&fa, &fb, &fb), xy, slow_product(y, y)),
                    (F::top_words_of_products(&loose, &fa, &loose), slow_product(z, z), slow_product(x, z)),
                ] {
                    for (difference, expected) in [(false, slow_sum(one, two)), (true, difference_of(one, two))] {
                        let off = expected
                            .top()
                            .wrapping_sub(F::top_word(top_words, difference, lane))
                            .wrapping_add(F::SLACK / 3);
                        let by = off.wrapping_sub(F::SLACK / 3) as i64;
                        assert!(off <= F::SLACK / 3 * 2, "top of {x:?}, {y:?}, {z:?}: off by {by}");
                    }
                }
            }
        }
        let many: Vec<Fe> = (0..F::LANES).map(|lane| values[(at + lane) % values.len()]).collect();
        let inverse = F::from_lanes(&many).invert();
        for (lane, &value) in many.iter().enumerate() {
            let one = u64::from(!value.is_zero());
            assert_eq!(value.mul(inverse.lane(lane)).canonical().0, [one, 0, 0, 0], "1 / {value:?}");
        }
    }
}

/// `a - b mod p` of canonical values.
fn difference_of(a: Fe, b: Fe) -> Fe {
    // p - b. For b = 0 that is p, which is the same number as 0.
    let mut minus = [0u64; 4];
    let mut borrow = false;
    for ((limb, p), b) in minus.iter_mut().zip([0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX]).zip(b.0) {
        let (first, one) = p.overflowing_sub(b);
        let (second, two) = first.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (second, one | two);
    }
    slow_sum(a, Fe(minus).canonical())
}

#[test]
fn field_operations_agree_with_slow_ones() {
    let mut random = random();
    let values = values(&mut random);
    for_each_field!(check_field(&values));
}

/// The bounds of a number's parts that the vector kernels state, by where it comes from.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
enum Bound {
    Product,
    ByFactor,
    Sum,
}

/// Operations are right for numbers at their bounds, and keep those bounds. `number` makes one of random
/// parts at a bound, `value` computes what it stands for.
#[cfg(target_arch = "x86_64")]
fn check_bounds<F: SimdField + std::fmt::Debug>(
    mut number: impl FnMut(Bound) -> F,
    value: impl Fn(F) -> Fe,
    is_within: impl Fn(F, Bound) -> bool,
) {
    for _ in 0..400 {
        let [a, b, z, product] = [Bound::Sum, Bound::Sum, Bound::ByFactor, Bound::Product].map(&mut number);
        let [x, y, w, v] = [a, b, z, product].map(&value);
        let check = |number: F, expected: Fe, bound: Bound, what: &str| {
            assert_eq!(number.lane(1 % F::LANES).canonical().0, expected.0, "{what}: {a:x?}, {b:x?}, {z:x?}");
            assert!(is_within(number, bound), "{what}: {number:x?} of {a:x?}, {b:x?}, {z:x?}");
        };
        let (xx, xv) = (slow_product(x, x), slow_product(x, v));
        check(a, x, Bound::Sum, "as it is");
        check(a.mul(b), slow_product(x, y), Bound::Product, "mul");
        check(a.square(), xx, Bound::Product, "square");
        check(a.square_plus(z.summand()), slow_sum(xx, w), Bound::Product, "square_plus");
        check(a.sub(b), difference_of(x, y), Bound::Product, "sub");
        check(a.times_plus(&product.factor(), z.summand()), slow_sum(xv, w), Bound::ByFactor, "times_plus");
        check(a.times_constant(&F::constant_factor(v)), xv, Bound::ByFactor, "times_constant");
        check(F::sum(z.summand(), product.summand()), slow_sum(w, v), Bound::Sum, "sum");
        for (other, sum) in [(a, slow_sum(x, y)), (b, slow_sum(y, y))] {
            let top = F::top_word(F::top_words_of_products(&other, &b, &product), false, 0);
            let off = slow_product(sum, v).top().wrapping_sub(top).wrapping_add(F::SLACK / 3);
            assert!(off <= F::SLACK / 3 * 2, "top word: {a:x?}, {b:x?}, {product:x?}");
        }
    }
}

/// The sum of parts, each times a power of `2^bits`.
#[cfg(target_arch = "x86_64")]
fn sum_of_parts(parts: &[u64], bits: u32) -> Fe {
    let moved = |value: Fe| slow_product(value, Fe::from_small(1 << bits));
    parts.iter().rev().fold(Fe::ZERO, |value, &part| slow_sum(moved(value), Fe::from_small(part)))
}

#[cfg(target_arch = "x86_64")]
#[test]
fn digits_at_their_bounds_are_reduced() {
    if !has_avx2() {
        return;
    }
    // Of the lower eight digits, and of the top one.
    let most = |bound: Bound| match bound {
        Bound::Product => [(1u64 << 29) + (1 << 19) - 1, (1 << 24) - 1],
        Bound::ByFactor => [(1 << 29) + (1 << 19) - 1, (1 << 26) - 1],
        Bound::Sum => [(1 << 30) + (1 << 20) - 1, (1 << 26) + (1 << 24) - 1],
    };
    let (mut random, mut made) = (random(), 0);
    let mut number = |bound: Bound| -> [u64; 9] {
        made += 1;
        std::array::from_fn(|at| {
            let most = most(bound)[usize::from(at == 8)];
            // The first numbers have all of the largest digits.
            let choices = [most, most, most - 1, (1 << 24) - 1, 1, 0];
            if made <= 40 { most } else { choices[random.random_range(0..6)] }
        })
    };
    let with_digits = |digits: [u64; 9]| Fe4(bytemuck::cast(digits.map(|digit| [digit; 4])));
    let digits = |number: Fe4| bytemuck::cast::<_, [[u64; 4]; 9]>(number.0).map(|digit| digit[1]);
    // Prepared factors of any digits: columns have their largest values.
    for _ in 0..40 {
        let (a, z, rows) = (number(Bound::Sum), number(Bound::ByFactor), [0; 9].map(|_| number(Bound::Product)));
        let part = |(&digit, row): (&u64, &[u64; 9])| slow_product(Fe::from_small(digit), sum_of_parts(row, 29));
        let expected = a.iter().zip(&rows).map(part).fold(sum_of_parts(&z, 29), slow_sum);
        let product = with_digits(a).times_plus(&Factor4(rows.map(|row| with_digits(row).0)), with_digits(z).summand());
        assert_eq!(product.lane(1).canonical().0, expected.0, "{a:x?} {z:x?} {rows:x?}");
        let [lower, top] = most(Bound::ByFactor);
        assert!(digits(product)[..8].iter().all(|&digit| digit <= lower) && digits(product)[8] <= top);
    }
    check_bounds(
        |bound| with_digits(number(bound)),
        |number| sum_of_parts(&digits(number), 29),
        |number, bound| {
            let ([lower, top], digits) = (most(bound), digits(number));
            digits[..8].iter().all(|&digit| digit <= lower) && digits[8] <= top
        },
    );
}

/// A number of the kernel `ifma` with the same limbs in every lane.
#[cfg(target_arch = "x86_64")]
pub fn with_limbs(limbs: [u64; 5]) -> Fe8 {
    Fe8(bytemuck::cast(limbs.map(|limb| [limb; 8])))
}

/// The lower limbs have leftover bits above the 52 that count.
#[cfg(target_arch = "x86_64")]
#[test]
fn limbs_at_their_bounds_are_reduced() {
    if !has_ifma() {
        return;
    }
    let most = |bound: Bound| match bound {
        Bound::Product => (1u64 << 48) + (1 << 6) - 1,
        Bound::ByFactor => (1 << 51) + (1 << 6) - 1,
        Bound::Sum => (1 << 51) + (1 << 48) + (1 << 7) - 1,
    };
    let mut random = random();
    let number = |bound: Bound| {
        let mut limbs: [u64; 5] = std::array::from_fn(|_| {
            let value = [0, 1, (1 << 51) - 1, 1 << 51, (1 << 52) - 2, (1 << 52) - 1][random.random_range(0..6)];
            value | random.random_range(0..1 << 12) << 52
        });
        limbs[4] = [0, 1, (1 << 48) - 1, most(bound), most(bound), most(bound)][random.random_range(0..6)];
        with_limbs(limbs)
    };
    let limbs = |number: Fe8| bytemuck::cast::<_, [[u64; 8]; 5]>(number.0).map(|limb| limb[1]);
    let value = |number: Fe8| {
        let [a, b, c, d, top] = limbs(number);
        let lower = [a, b, c, d].map(|limb| limb & ((1 << 52) - 1));
        sum_of_parts(&[lower[0], lower[1], lower[2], lower[3], top], 52)
    };
    check_bounds(number, value, |number, bound| limbs(number)[4] <= most(bound));
}
