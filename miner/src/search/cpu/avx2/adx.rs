//! Products modulo p = 2^256 - F, F = 2^32 + 977, of numbers of four limbs of 64 bits, by `mulx`,
//! `adcx` and `adox`. The compiler does not make the two carry chains of these instructions.
//!
//! Operands and results may have any value below 2^256. A product of 512 bits, w0…w7, is folded
//! down twice:
//!
//! ```text
//! w3…w0 + w7…w4·F = v4·2^256 + v3…v0        v4 ≤ F, because w7…w4 ≤ 2^256 - 2
//! v3…v0 + v4·F                              v4·F < 2^68
//! ```
//!
//! The last sum may carry out of v3. Then v3…v0 is below 2^68, and adding F once more carries at
//! most into v1.
//!
//! **The contract of every `unsafe` here:** the processor has BMI2 and ADX.

use std::arch::asm;

/// Folds the product in w0…w7 down to w0…w3. Two carry chains: the low halves by `adcx`, the high
/// ones by `adox`. Uses `rdx`, t and u.
macro_rules! fold {
    () => {
        "mov rdx, 0x1000003d1
        xor {t:e}, {t:e}
        mulx {u}, {t}, {w4}
        adcx {w0}, {t}
        adox {w1}, {u}
        mulx {u}, {t}, {w5}
        adcx {w1}, {t}
        adox {w2}, {u}
        mulx {u}, {t}, {w6}
        adcx {w2}, {t}
        adox {w3}, {u}
        mulx {w4}, {t}, {w7}
        mov {u:e}, 0
        adcx {w3}, {t}
        adox {w4}, {u}
        adcx {w4}, {u}
        mulx {u}, {t}, {w4}
        add {w0}, {t}
        adc {w1}, {u}
        adc {w2}, 0
        adc {w3}, 0
        sbb {t}, {t}
        and {t}, rdx
        add {w0}, {t}
        adc {w1}, 0"
    };
}

/// `wide += a·b[i]·2^(64·i)` for the limb of b in `rdx`: adds to the limbs $w0…$w3 and makes $w4.
macro_rules! row {
    ($w0:literal $w1:literal $w2:literal $w3:literal $w4:literal) => {
        concat!(
            "xor {",
            $w4,
            ":e}, {",
            $w4,
            ":e}
            mulx {u}, {t}, [{a}]
            adcx {",
            $w0,
            "}, {t}
            adox {",
            $w1,
            "}, {u}
            mulx {u}, {t}, [{a} + 8]
            adcx {",
            $w1,
            "}, {t}
            adox {",
            $w2,
            "}, {u}
            mulx {u}, {t}, [{a} + 16]
            adcx {",
            $w2,
            "}, {t}
            adox {",
            $w3,
            "}, {u}
            mulx {u}, {t}, [{a} + 24]
            adcx {",
            $w3,
            "}, {t}
            adox {",
            $w4,
            "}, {u}
            adc {",
            $w4,
            "}, 0"
        )
    };
}

/// `a·b` modulo p, below 2^256.
///
/// # Safety
/// The contract above.
#[inline(always)]
pub unsafe fn product(a: &[u64; 4], b: [u64; 4]) -> [u64; 4] {
    let (w0, w1, w2, w3);
    // SAFETY: the contract above. Reads only the four limbs of `a`.
    unsafe {
        asm!(
            "mulx {w1}, {w0}, [{a}]
            mulx {w2}, {t}, [{a} + 8]
            add {w1}, {t}
            mulx {w3}, {t}, [{a} + 16]
            adc {w2}, {t}
            mulx {w4}, {t}, [{a} + 24]
            adc {w3}, {t}
            adc {w4}, 0
            mov rdx, {w5}",
            row!("w1" "w2" "w3" "w4" "w5"),
            "mov rdx, {w6}",
            row!("w2" "w3" "w4" "w5" "w6"),
            "mov rdx, {w7}",
            row!("w3" "w4" "w5" "w6" "w7"),
            fold!(),
            a = in(reg) a.as_ptr(),
            inout("rdx") b[0] => _,
            w0 = out(reg) w0,
            w1 = out(reg) w1,
            w2 = out(reg) w2,
            w3 = out(reg) w3,
            w4 = out(reg) _,
            // A limb of b is read for the last time before its register becomes w5, w6 or w7.
            w5 = inout(reg) b[1] => _,
            w6 = inout(reg) b[2] => _,
            w7 = inout(reg) b[3] => _,
            t = out(reg) _,
            u = out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    [w0, w1, w2, w3]
}

/// `a²` modulo p, below 2^256: the six products of two different limbs, doubled by one carry chain
/// while the other adds the four squares.
///
/// # Safety
/// The contract above.
#[inline(always)]
pub unsafe fn square(a: [u64; 4]) -> [u64; 4] {
    let (w0, w1, w2, w3);
    // SAFETY: the contract above. Touches no memory.
    unsafe {
        asm!(
            "mov rdx, {w0}
            mulx {w2}, {w1}, {a1}
            mulx {w3}, {t}, {a2}
            add {w2}, {t}
            mulx {w4}, {t}, {a3}
            adc {w3}, {t}
            adc {w4}, 0
            mov rdx, {a1}
            xor {w5:e}, {w5:e}
            mulx {u}, {t}, {a2}
            adcx {w3}, {t}
            adox {w4}, {u}
            mulx {u}, {t}, {a3}
            adcx {w4}, {t}
            adox {w5}, {u}
            adc {w5}, 0
            mov rdx, {a2}
            mulx {w6}, {t}, {a3}
            add {w5}, {t}
            adc {w6}, 0
            mov rdx, {w0}
            xor {w7:e}, {w7:e}
            mulx {u}, {w0}, rdx
            adcx {w1}, {w1}
            adox {w1}, {u}
            mov rdx, {a1}
            mulx {u}, {t}, rdx
            adcx {w2}, {w2}
            adox {w2}, {t}
            adcx {w3}, {w3}
            adox {w3}, {u}
            mov rdx, {a2}
            mulx {u}, {t}, rdx
            adcx {w4}, {w4}
            adox {w4}, {t}
            adcx {w5}, {w5}
            adox {w5}, {u}
            mov rdx, {a3}
            mulx {u}, {t}, rdx
            adcx {w6}, {w6}
            adox {w6}, {t}
            adcx {w7}, {w7}
            adox {w7}, {u}",
            fold!(),
            // a0 is read for the last time when w0 is made.
            w0 = inout(reg) a[0] => w0,
            a1 = in(reg) a[1],
            a2 = in(reg) a[2],
            a3 = in(reg) a[3],
            w1 = out(reg) w1,
            w2 = out(reg) w2,
            w3 = out(reg) w3,
            w4 = out(reg) _,
            w5 = out(reg) _,
            w6 = out(reg) _,
            w7 = out(reg) _,
            t = out(reg) _,
            u = out(reg) _,
            out("rdx") _,
            options(pure, nomem, nostack),
        );
    }
    [w0, w1, w2, w3]
}
