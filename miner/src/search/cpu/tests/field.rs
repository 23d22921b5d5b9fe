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

/// A number of the kernel `avx2` with the same digits in every lane.
#[cfg(target_arch = "x86_64")]
fn with_digits(digits: [u64; 9]) -> Fe4 {
    Fe4(bytemuck::cast(digits.map(|digit| [digit; 4])))
}

/// Operations are right for digits at the bounds that `avx2` states, and keep those bounds.
#[cfg(target_arch = "x86_64")]
#[test]
fn digits_at_their_bounds_are_reduced() {
    if !has_avx2() {
        return;
    }
    const PRODUCT: [u64; 2] = [(1 << 29) + (1 << 19) - 1, (1 << 24) - 1];
    const BY_FACTOR: [u64; 2] = [PRODUCT[0], (1 << 26) - 1];
    const SUM: [u64; 2] = [(1 << 30) + (1 << 20) - 1, (1 << 26) + (1 << 24) - 1];
    let mut random = random();
    let value = |digits: &[u64; 9]| {
        digits.iter().rev().fold(Fe::ZERO, |value, &digit| {
            let moved = slow_product(value, Fe::from_small(1 << 29));
            slow_sum(moved, Fe::from_small(digit))
        })
    };
    for round in 0..300 {
        // All of the largest digits first.
        let mut number = |[lower, top]: [u64; 2]| -> [u64; 9] {
            std::array::from_fn(|at| {
                let most = if at < 8 { lower } else { top };
                let choices = [most, most, most - 1, (1 << 24) - 1, 1, 0];
                if round == 0 { most } else { choices[random.random_range(0..6)] }
            })
        };
        let (a, b, addend) = (number(SUM), number(SUM), number(BY_FACTOR));
        let factor: [[u64; 9]; 9] = std::array::from_fn(|_| number(PRODUCT));
        let constant: [[u64; 9]; 9] = std::array::from_fn(|_| number([(1 << 29) - 1, (1 << 24) - 1]));
        let (x, y, z) = (value(&a), value(&b), value(&addend));
        let by = |rows: &[[u64; 9]; 9]| {
            let part = |(digit, row)| slow_product(Fe::from_small(digit), value(row));
            a.into_iter().zip(rows).map(part).fold(Fe::ZERO, slow_sum)
        };
        let (fa, fb, fz) = (with_digits(a), with_digits(b), with_digits(addend));
        let check = |number: Fe4, expected: Fe, [lower, top]: [u64; 2], what: &str| {
            assert_eq!(number.lane(3).canonical().0, expected.0, "{what}: {a:x?}, {b:x?}, {addend:x?}");
            let digits: [[u64; 4]; 9] = bytemuck::cast(number.0);
            assert!(digits[..8].iter().all(|digit| digit[3] <= lower) && digits[8][3] <= top, "{what}: {digits:x?}");
        };
        let (xx, xy) = (slow_product(x, x), slow_product(x, y));
        check(fa, x, SUM, "as it is");
        check(fa.mul(fb), xy, PRODUCT, "mul");
        check(fa.square(), xx, PRODUCT, "square");
        check(fa.square_plus(fz.summand()), slow_sum(xx, z), PRODUCT, "square_plus");
        check(fa.sub(fb), difference_of(x, y), PRODUCT, "sub");
        let factor_of_digits = Factor4(factor.map(|row| with_digits(row).0));
        check(fa.times_plus(&factor_of_digits, fz.summand()), slow_sum(by(&factor), z), BY_FACTOR, "times_plus");
        check(
            fa.times_constant(&constant.map(|row| row.map(|digit| digit as u32))),
            by(&constant),
            BY_FACTOR,
            "times_constant",
        );
        let product = with_digits(number(PRODUCT));
        check(Fe4::sum(fz.summand(), product.summand()), slow_sum(z, product.lane(3).canonical()), SUM, "sum");
        for (top_words, expected) in [
            (Fe4::top_words_of_products(&fa, &fb, &product), slow_product(slow_sum(x, y), product.lane(3).canonical())),
            (Fe4::top_words_of_products(&fb, &fb, &product), slow_product(slow_sum(y, y), product.lane(3).canonical())),
        ] {
            let off = expected.top().wrapping_sub(Fe4::top_word(top_words, false, 3)).wrapping_add(Fe4::SLACK / 3);
            assert!(off <= Fe4::SLACK / 3 * 2, "top word: {a:x?}, {b:x?}");
        }
    }
}

/// Operations are right for limbs at their bounds, with leftover bits above the 52 that count.
#[cfg(target_arch = "x86_64")]
#[test]
fn limbs_at_their_bounds_are_reduced() {
    if !has_ifma() {
        return;
    }
    let mut random = random();
    let power = |bits: usize| (0..bits).fold(Fe::ONE, |power, _| slow_sum(power, power));
    let limb = |random: &mut StdRng| {
        let value = [0, 1, (1 << 51) - 1, 1 << 51, (1 << 52) - 2, (1 << 52) - 1][random.random_range(0..6)];
        value | random.random_range(0..1 << 12) << 52
    };
    let top = |random: &mut StdRng| {
        // The largest one is the sum of a product by a prepared factor and a product.
        [0, 1, (1 << 48) - 1, (1 << 48) + 63, (1 << 51) + 63, (1 << 51) + (1 << 48) + 127][random.random_range(0..6)]
    };
    for _ in 0..500 {
        let mut number =
            || [limb(&mut random), limb(&mut random), limb(&mut random), limb(&mut random), top(&mut random)];
        let (a, b) = (number(), number());
        let value = |limbs: [u64; 5]| {
            limbs.iter().enumerate().fold(Fe::ZERO, |sum, (at, &limb)| {
                let counts = if at < 4 { limb & ((1 << 52) - 1) } else { limb };
                slow_sum(sum, slow_product(Fe::from_small(counts), power(52 * at)))
            })
        };
        let (x, y) = (value(a), value(b));
        let (fa, fb) = (Fe8::from_limbs(a), Fe8::from_limbs(b));
        let same = |number: Fe8, expected: Fe, what: &str| {
            assert_eq!(number.lane(3).canonical().0, expected.0, "{what}: {a:x?}, {b:x?}");
        };
        let xy = slow_product(x, y);
        same(fa, x, "as it is");
        same(fa.mul(fb), xy, "mul");
        same(fa.square(), slow_product(x, x), "square");
        same(fa.square_plus(fb.summand()), slow_sum(slow_product(x, x), y), "square_plus");
        same(fa.times_plus(&fb.factor(), fb.summand()), slow_sum(xy, y), "times_plus");
        same(fa.times_constant(&Fe8::constant_factor(y)), xy, "times_constant");
        same(fa.sub(fb), difference_of(x, y), "sub");
        let top_words = Fe8::top_words_of_products(&fa, &fb, &fb);
        let expected = slow_sum(xy, slow_product(y, y)).top();
        assert!(
            expected.wrapping_sub(Fe8::top_word(top_words, false, 3)).wrapping_add(Fe8::SLACK / 3)
                <= Fe8::SLACK / 3 * 2
        );
    }
}
