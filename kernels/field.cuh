// Numbers modulo p = 2^256 - 2^32 - 977, for the search.
//
// A `Fe` is any of 0…2^256-1 and stands for its residue: nothing is fully reduced except by `canonical`. Every function
// takes any such value and gives one; the products fold 2^256 = 2^32 + 977 (mod p) twice, and once more where the second
// fold carries.
#pragma once

#include "chains.cuh"

// Exact is right for every input. Quick is for values as good as random: it leaves out carries that such values show less
// than once in 2^64, about never in a search, and there only a candidate would be lost.
enum Care { Exact, Quick };

struct Fe {
    u32 v[8];
};

// 2^256 = 2^32 + 977 (mod p).
#define FOLD 977u

FN Fe fe_small(u32 value) { return Fe{{value, 0, 0, 0, 0, 0, 0, 0}}; }

// β: a cube root of 1 modulo p.
FN Fe fe_beta() {
    return Fe{{0x719501eeu, 0xc1396c28u, 0x12f58995u, 0x9cf04975u, 0xac3434e9u, 0x6e64479eu, 0x657c0710u, 0x7ae96a2bu}};
}

FN Fe fe_add(const Fe &a, const Fe &b) {
    Fe r;
    u32 carry = add8(r.v, a.v, b.v);
    carry = add_small(r.v, (0 - carry) & FOLD, carry, 0);
    add_tiny(r.v, (0 - carry) & FOLD, carry);
    return r;
}

// Quick takes and gives values below p.
template <Care care = Exact>
FN Fe fe_sub(const Fe &a, const Fe &b) {
    Fe r;
    u32 borrow = sub8(r.v, a.v, b.v);
    if (care == Quick) {
        sub_small_quick(r.v, borrow & FOLD, borrow & 1);
        return r;
    }
    borrow = sub_small(r.v, borrow & FOLD, borrow & 1);
    // Twice below zero only where the first result was under 2^33: now it is close to 2^256, and no borrow travels.
    r.v[1] -= (r.v[0] < (borrow & FOLD)) + (borrow & 1);
    r.v[0] -= borrow & FOLD;
    return r;
}

// 512 bits to 256: the upper half times 2^32 + 977, and that which exceeds 256 bits once more.
template <Care care>
FN Fe fe_reduce(u32 *w) {
    u32 odd[8];
    for (int i = 0; i < 8; i++) odd[i] = w[8 + i];
    u32 c9 = products4_add_carry(odd, w + 9 - 0, FOLD);   // odd limbs: h1, h3, h5, h7 at 32·(1…8), with the 2^32 part
    u32 c8 = products4_add_carry(w, w + 8, FOLD);         // even limbs
    u32 top0, top1;
    merge_fold(w + 1, odd, c8, c9, top0, top1);
    u64 low = wide(top0, FOLD);
    u64 mid = (low >> 32) + top0 + (u64)(top1 * FOLD);
    if (care == Quick) {
        add_small_quick(w, (u32)low, (u32)mid, (u32)(mid >> 32) + top1);
    } else {
        u32 carry = add_small(w, (u32)low, (u32)mid, (u32)(mid >> 32) + top1);
        add_tiny(w, (0 - carry) & FOLD, carry);
    }
    Fe r;
    for (int i = 0; i < 8; i++) r.v[i] = w[i];
    return r;
}

// 64 limb products in two accumulators, one whose pairs begin at even limbs and one at odd limbs, merged at the end.
template <Care care = Exact>
FN Fe fe_mul(const Fe &x, const Fe &y) {
    const u32 *a = x.v, *b = y.v;
    u32 even[16] = {0}, odd[16] = {0};  // odd[i] stands at limb i + 1
    products4_add(even, a, b[0]);
    products4_add(odd, a + 1, b[0]);
#pragma unroll
    for (int i = 1; i < 8; i += 2) {
        odd[i + 7] = products4_add_carry(odd + i - 1, a, b[i]);
        products4_add(even + i + 1, a + 1, b[i]);
        if (i == 7) break;
        even[i + 9] = products4_add_carry(even + i + 1, a, b[i + 1]);
        products4_add(odd + i + 1, a + 1, b[i + 1]);
    }
    merge15(even + 1, odd);
    return fe_reduce<care>(even);
}

// 28 mixed products, doubled, and 8 squares.
template <Care care = Exact>
FN Fe fe_sqr(const Fe &x) {
    const u32 *a = x.v;
    u32 even[16] = {0}, odd[16] = {0};  // odd[i] stands at limb i + 1
    products4_add(odd, a + 1, a[0]);
    products3_add(even + 2, a + 2, a[0]);
    odd[8] = products3_add_carry(odd + 2, a + 2, a[1]);
    products3_add(even + 4, a + 3, a[1]);
    products3_add(odd + 4, a + 3, a[2]);
    even[10] = products2_add_carry(even + 6, a + 4, a[2]);
    odd[10] = products2_add_carry(odd + 6, a + 4, a[3]);
    products2_add(even + 8, a + 5, a[3]);
    products2_add(odd + 8, a + 5, a[4]);
    even[12] = products1_add_carry(even + 10, a + 6, a[4]);
    odd[12] = products1_add_carry(odd + 10, a + 6, a[5]);
    products1_add(even + 12, a + 7, a[5]);
    products1_add(odd + 12, a + 7, a[6]);
    merge15(even + 1, odd);
    for (int i = 15; i > 0; i--) even[i] = even[i] << 1 | even[i - 1] >> 31;
    even[0] = 0;
    squares8_add(even, a);
    return fe_reduce<care>(even);
}

// The one value below p.
FN Fe fe_canonical(const Fe &a) {
    Fe r = a;
    // a ≥ p where a + 2^32 + 977 leaves 256 bits.
    u32 carry = add_small(r.v, FOLD, 1, 0);
    return carry ? r : a;
}

FN bool fe_is_zero(const Fe &a) {
    Fe r = fe_canonical(a);
    return (r.v[0] | r.v[1] | r.v[2] | r.v[3] | r.v[4] | r.v[5] | r.v[6] | r.v[7]) == 0;
}

FN Fe fe_sqr_times(Fe a, int times) {
#pragma unroll 1
    for (int i = 0; i < times; i++) a = fe_sqr(a);
    return a;
}

// a^(p-2): 255 squarings and 15 products. Zero gives zero.
#ifdef __CUDACC__
__device__ __noinline__
#else
static
#endif
Fe fe_inverse(Fe a) {
    Fe x2 = fe_mul(fe_sqr(a), a);
    Fe x3 = fe_mul(fe_sqr(x2), a);
    Fe x6 = fe_mul(fe_sqr_times(x3, 3), x3);
    Fe x9 = fe_mul(fe_sqr_times(x6, 3), x3);
    Fe x11 = fe_mul(fe_sqr_times(x9, 2), x2);
    Fe x22 = fe_mul(fe_sqr_times(x11, 11), x11);
    Fe x44 = fe_mul(fe_sqr_times(x22, 22), x22);
    Fe x88 = fe_mul(fe_sqr_times(x44, 44), x44);
    Fe x176 = fe_mul(fe_sqr_times(x88, 88), x88);
    Fe x220 = fe_mul(fe_sqr_times(x176, 44), x44);
    Fe x223 = fe_mul(fe_sqr_times(x220, 3), x3);
    Fe r = fe_mul(fe_sqr_times(x223, 23), x22);
    r = fe_mul(fe_sqr_times(r, 5), a);
    r = fe_mul(fe_sqr_times(r, 3), x2);
    return fe_mul(fe_sqr_times(r, 2), a);
}

// The top 32 bits of a·b mod p, low by 0 to about 10: of the 64 limb products only those that reach them.
FN u32 fe_top(const Fe &a, const Fe &b) {
    u64 mid = wide(a.v[0], b.v[6]);
    u32 top = a.v[0] * b.v[7];
#pragma unroll
    for (int i = 1; i < 7; i++) {
        mid = wide_add(a.v[i], b.v[6 - i], mid);
        top += a.v[i] * b.v[7 - i];
    }
    top += a.v[7] * b.v[0] + (u32)(mid >> 32);
    // What is folded down from beyond 2^256: the limb pairs 14 and 13, times 2^32 + 977.
    u64 over = wide(a.v[7], b.v[7]) + high(a.v[7], b.v[6]) + high(a.v[6], b.v[7]);
    return top + (u32)over + (u32)(over >> 32) * FOLD + high((u32)over, FOLD);
}
