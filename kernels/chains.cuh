// Carry chains: every line of inline PTX of the field arithmetic, and the same for a host compiler.
//
// Contract. A number is an array of 32-bit limbs, least significant first. Each function below is one closed chain: no
// carry enters it and none is left in the flag, so that the compiler may move it freely. What leaves the top is returned
// where the name says `_carry`, and is known to be zero otherwise. `products<n>(acc, a, b)` touches 2n limbs of `acc`:
// limb pair 2j, 2j+1 takes a[2j]·b, so that the products of a chain sit next to each other and a pair `mad.lo`,
// `madc.hi` becomes one IMAD.WIDE.
#pragma once

#include "abi.h"

#ifdef __CUDACC__
#define FN __device__ __forceinline__
#else
#define FN static inline
#endif

#ifdef __CUDA_ARCH__

FN u64 wide(u32 a, u32 b) {
    u64 r;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(r) : "r"(a), "r"(b));
    return r;
}

FN u64 wide_add(u32 a, u32 b, u64 c) {
    u64 r;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(c));
    return r;
}

FN u32 high(u32 a, u32 b) { return __umulhi(a, b); }

FN void products4_add(u32 *r, const u32 *a, u32 b) {
    asm("mad.lo.cc.u32 %0, %8, %12, %0; madc.hi.cc.u32 %1, %8, %12, %1;"
        "madc.lo.cc.u32 %2, %9, %12, %2; madc.hi.cc.u32 %3, %9, %12, %3;"
        "madc.lo.cc.u32 %4, %10, %12, %4; madc.hi.cc.u32 %5, %10, %12, %5;"
        "madc.lo.cc.u32 %6, %11, %12, %6; madc.hi.u32 %7, %11, %12, %7;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7])
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
}

FN u32 products4_add_carry(u32 *r, const u32 *a, u32 b) {
    u32 carry;
    asm("mad.lo.cc.u32 %0, %9, %13, %0; madc.hi.cc.u32 %1, %9, %13, %1;"
        "madc.lo.cc.u32 %2, %10, %13, %2; madc.hi.cc.u32 %3, %10, %13, %3;"
        "madc.lo.cc.u32 %4, %11, %13, %4; madc.hi.cc.u32 %5, %11, %13, %5;"
        "madc.lo.cc.u32 %6, %12, %13, %6; madc.hi.cc.u32 %7, %12, %13, %7; addc.u32 %8, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "=r"(carry)
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
    return carry;
}

FN void products3_add(u32 *r, const u32 *a, u32 b) {
    asm("mad.lo.cc.u32 %0, %6, %9, %0; madc.hi.cc.u32 %1, %6, %9, %1;"
        "madc.lo.cc.u32 %2, %7, %9, %2; madc.hi.cc.u32 %3, %7, %9, %3;"
        "madc.lo.cc.u32 %4, %8, %9, %4; madc.hi.u32 %5, %8, %9, %5;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5])
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
}

FN u32 products3_add_carry(u32 *r, const u32 *a, u32 b) {
    u32 carry;
    asm("mad.lo.cc.u32 %0, %7, %10, %0; madc.hi.cc.u32 %1, %7, %10, %1;"
        "madc.lo.cc.u32 %2, %8, %10, %2; madc.hi.cc.u32 %3, %8, %10, %3;"
        "madc.lo.cc.u32 %4, %9, %10, %4; madc.hi.cc.u32 %5, %9, %10, %5; addc.u32 %6, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "=r"(carry)
        : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
    return carry;
}

FN void products2_add(u32 *r, const u32 *a, u32 b) {
    asm("mad.lo.cc.u32 %0, %4, %6, %0; madc.hi.cc.u32 %1, %4, %6, %1;"
        "madc.lo.cc.u32 %2, %5, %6, %2; madc.hi.u32 %3, %5, %6, %3;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])
        : "r"(a[0]), "r"(a[2]), "r"(b));
}

FN u32 products2_add_carry(u32 *r, const u32 *a, u32 b) {
    u32 carry;
    asm("mad.lo.cc.u32 %0, %5, %7, %0; madc.hi.cc.u32 %1, %5, %7, %1;"
        "madc.lo.cc.u32 %2, %6, %7, %2; madc.hi.cc.u32 %3, %6, %7, %3; addc.u32 %4, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "=r"(carry)
        : "r"(a[0]), "r"(a[2]), "r"(b));
    return carry;
}

FN void products1_add(u32 *r, const u32 *a, u32 b) {
    asm("mad.lo.cc.u32 %0, %2, %3, %0; madc.hi.u32 %1, %2, %3, %1;" : "+r"(r[0]), "+r"(r[1]) : "r"(a[0]), "r"(b));
}

FN u32 products1_add_carry(u32 *r, const u32 *a, u32 b) {
    u32 carry;
    asm("mad.lo.cc.u32 %0, %3, %4, %0; madc.hi.cc.u32 %1, %3, %4, %1; addc.u32 %2, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "=r"(carry)
        : "r"(a[0]), "r"(b));
    return carry;
}

// r += Σ a[i]²·2^64i over sixteen limbs.
FN void squares8_add(u32 *r, const u32 *a) {
    asm("mad.lo.cc.u32 %0, %16, %16, %0; madc.hi.cc.u32 %1, %16, %16, %1;"
        "madc.lo.cc.u32 %2, %17, %17, %2; madc.hi.cc.u32 %3, %17, %17, %3;"
        "madc.lo.cc.u32 %4, %18, %18, %4; madc.hi.cc.u32 %5, %18, %18, %5;"
        "madc.lo.cc.u32 %6, %19, %19, %6; madc.hi.cc.u32 %7, %19, %19, %7;"
        "madc.lo.cc.u32 %8, %20, %20, %8; madc.hi.cc.u32 %9, %20, %20, %9;"
        "madc.lo.cc.u32 %10, %21, %21, %10; madc.hi.cc.u32 %11, %21, %21, %11;"
        "madc.lo.cc.u32 %12, %22, %22, %12; madc.hi.cc.u32 %13, %22, %22, %13;"
        "madc.lo.cc.u32 %14, %23, %23, %14; madc.hi.u32 %15, %23, %23, %15;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
          "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
}

// r = a + b over eight limbs; returns the carry.
FN u32 add8(u32 *r, const u32 *a, const u32 *b) {
    u32 carry;
    asm("add.cc.u32 %0, %9, %17; addc.cc.u32 %1, %10, %18; addc.cc.u32 %2, %11, %19; addc.cc.u32 %3, %12, %20;"
        "addc.cc.u32 %4, %13, %21; addc.cc.u32 %5, %14, %22; addc.cc.u32 %6, %15, %23; addc.cc.u32 %7, %16, %24;"
        "addc.u32 %8, 0, 0;"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7]), "=&r"(carry)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
          "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    return carry;
}

// r = a - b over eight limbs; returns all ones where it went below zero, else zero.
FN u32 sub8(u32 *r, const u32 *a, const u32 *b) {
    u32 borrow;
    asm("sub.cc.u32 %0, %9, %17; subc.cc.u32 %1, %10, %18; subc.cc.u32 %2, %11, %19; subc.cc.u32 %3, %12, %20;"
        "subc.cc.u32 %4, %13, %21; subc.cc.u32 %5, %14, %22; subc.cc.u32 %6, %15, %23; subc.cc.u32 %7, %16, %24;"
        "subc.u32 %8, 0, 0;"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7]), "=&r"(borrow)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
          "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    return borrow;
}

// r += f0 + f1·2^32 + f2·2^64 over eight limbs; returns the carry.
FN u32 add_small(u32 *r, u32 f0, u32 f1, u32 f2) {
    u32 carry;
    asm("add.cc.u32 %0, %0, %9; addc.cc.u32 %1, %1, %10; addc.cc.u32 %2, %2, %11; addc.cc.u32 %3, %3, 0;"
        "addc.cc.u32 %4, %4, 0; addc.cc.u32 %5, %5, 0; addc.cc.u32 %6, %6, 0; addc.cc.u32 %7, %7, 0; addc.u32 %8, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "=r"(carry)
        : "r"(f0), "r"(f1), "r"(f2));
    return carry;
}

// r -= f0 + f1·2^32 over eight limbs; returns all ones where it went below zero, else zero.
FN u32 sub_small(u32 *r, u32 f0, u32 f1) {
    u32 borrow;
    asm("sub.cc.u32 %0, %0, %9; subc.cc.u32 %1, %1, %10; subc.cc.u32 %2, %2, 0; subc.cc.u32 %3, %3, 0;"
        "subc.cc.u32 %4, %4, 0; subc.cc.u32 %5, %5, 0; subc.cc.u32 %6, %6, 0; subc.cc.u32 %7, %7, 0; subc.u32 %8, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "=r"(borrow)
        : "r"(f0), "r"(f1));
    return borrow;
}

// The same as add_small and sub_small where nothing leaves limb 4, limb 3: for values as good as random.
FN void add_small_quick(u32 *r, u32 f0, u32 f1, u32 f2) {
    asm("add.cc.u32 %0, %0, %5; addc.cc.u32 %1, %1, %6; addc.cc.u32 %2, %2, %7; addc.cc.u32 %3, %3, 0; addc.u32 %4, %4, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]) : "r"(f0), "r"(f1), "r"(f2));
}

FN void sub_small_quick(u32 *r, u32 f0, u32 f1) {
    asm("sub.cc.u32 %0, %0, %4; subc.cc.u32 %1, %1, %5; subc.cc.u32 %2, %2, 0; subc.u32 %3, %3, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(f0), "r"(f1));
}

// The same over the lowest three limbs only, where nothing can leave them.
FN void add_tiny(u32 *r, u32 f0, u32 f1) {
    asm("add.cc.u32 %0, %0, %3; addc.cc.u32 %1, %1, %4; addc.u32 %2, %2, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]) : "r"(f0), "r"(f1));
}

// r[0..16) += o[1..15) + top·2^480, limb by limb: merges the odd products into the even ones.
FN void merge15(u32 *r, const u32 *o) {
    asm("add.cc.u32 %0, %0, %15; addc.cc.u32 %1, %1, %16; addc.cc.u32 %2, %2, %17; addc.cc.u32 %3, %3, %18;"
        "addc.cc.u32 %4, %4, %19; addc.cc.u32 %5, %5, %20; addc.cc.u32 %6, %6, %21; addc.cc.u32 %7, %7, %22;"
        "addc.cc.u32 %8, %8, %23; addc.cc.u32 %9, %9, %24; addc.cc.u32 %10, %10, %25; addc.cc.u32 %11, %11, %26;"
        "addc.cc.u32 %12, %12, %27; addc.cc.u32 %13, %13, %28; addc.u32 %14, %14, %29;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
          "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14])
        : "r"(o[0]), "r"(o[1]), "r"(o[2]), "r"(o[3]), "r"(o[4]), "r"(o[5]), "r"(o[6]), "r"(o[7]), "r"(o[8]), "r"(o[9]),
          "r"(o[10]), "r"(o[11]), "r"(o[12]), "r"(o[13]), "r"(o[14]));
}

// r[0..7) += o[0..7), then (hi0, hi1) = o[7] + c8 + carry, and what that leaves + c9.
FN void merge_fold(u32 *r, const u32 *o, u32 c8, u32 c9, u32 &hi0, u32 &hi1) {
    asm("add.cc.u32 %0, %0, %9; addc.cc.u32 %1, %1, %10; addc.cc.u32 %2, %2, %11; addc.cc.u32 %3, %3, %12;"
        "addc.cc.u32 %4, %4, %13; addc.cc.u32 %5, %5, %14; addc.cc.u32 %6, %6, %15; addc.cc.u32 %7, %16, %17;"
        "addc.u32 %8, %18, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "=&r"(hi0), "=&r"(hi1)
        : "r"(o[0]), "r"(o[1]), "r"(o[2]), "r"(o[3]), "r"(o[4]), "r"(o[5]), "r"(o[6]), "r"(o[7]), "r"(c8), "r"(c9));
}

// r[0..6) += c0 + c1·2^64 + c2·2^128; returns the carry.
FN u32 add_carries(u32 *r, u32 c0, u32 c1, u32 c2) {
    u32 carry;
    asm("add.cc.u32 %0, %0, %7; addc.cc.u32 %1, %1, 0; addc.cc.u32 %2, %2, %8; addc.cc.u32 %3, %3, 0;"
        "addc.cc.u32 %4, %4, %9; addc.cc.u32 %5, %5, 0; addc.u32 %6, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "=&r"(carry) : "r"(c0), "r"(c1), "r"(c2));
    return carry;
}

// r[0..4) += f0 + f1·2^32, and what leaves them is lost.
FN void fold_tiny(u32 *r, u32 f0, u32 f1) {
    asm("add.cc.u32 %0, %0, %4; addc.cc.u32 %1, %1, %5; addc.cc.u32 %2, %2, 0; addc.u32 %3, %3, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(f0), "r"(f1));
}

#else  // the same for a host compiler, checked against each other by the tests

FN u64 wide(u32 a, u32 b) { return (u64)a * b; }
FN u64 wide_add(u32 a, u32 b, u64 c) { return (u64)a * b + c; }
FN u32 high(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }

FN u32 host_products(int n, u32 *r, const u32 *a, u32 b) {
    u64 carry = 0;
    for (int j = 0; j < n; j++) {
        u64 product = (u64)a[2 * j] * b;
        u64 low = (u64)r[2 * j] + (u32)product + carry;
        r[2 * j] = (u32)low;
        u64 upper = (u64)r[2 * j + 1] + (product >> 32) + (low >> 32);
        r[2 * j + 1] = (u32)upper;
        carry = upper >> 32;
    }
    return (u32)carry;
}
FN u32 host_add(int n, u32 *r, const u32 *a, const u32 *b) {
    u64 carry = 0;
    for (int j = 0; j < n; j++) {
        carry += (u64)a[j] + b[j];
        r[j] = (u32)carry;
        carry >>= 32;
    }
    return (u32)carry;
}
FN void products4_add(u32 *r, const u32 *a, u32 b) { host_products(4, r, a, b); }
FN u32 products4_add_carry(u32 *r, const u32 *a, u32 b) { return host_products(4, r, a, b); }
FN void products3_add(u32 *r, const u32 *a, u32 b) { host_products(3, r, a, b); }
FN u32 products3_add_carry(u32 *r, const u32 *a, u32 b) { return host_products(3, r, a, b); }
FN void products2_add(u32 *r, const u32 *a, u32 b) { host_products(2, r, a, b); }
FN u32 products2_add_carry(u32 *r, const u32 *a, u32 b) { return host_products(2, r, a, b); }
FN void products1_add(u32 *r, const u32 *a, u32 b) { host_products(1, r, a, b); }
FN u32 products1_add_carry(u32 *r, const u32 *a, u32 b) { return host_products(1, r, a, b); }
FN void squares8_add(u32 *r, const u32 *a) {
    u32 squares[16];
    for (int i = 0; i < 8; i++) {
        u64 square = (u64)a[i] * a[i];
        squares[2 * i] = (u32)square;
        squares[2 * i + 1] = (u32)(square >> 32);
    }
    host_add(16, r, r, squares);
}
FN u32 add8(u32 *r, const u32 *a, const u32 *b) { return host_add(8, r, a, b); }
FN u32 sub8(u32 *r, const u32 *a, const u32 *b) {
    u64 borrow = 0;
    for (int j = 0; j < 8; j++) {
        u64 d = (u64)a[j] - b[j] - borrow;
        r[j] = (u32)d;
        borrow = d >> 63;
    }
    return (u32)(0 - borrow);
}
FN u32 add_small(u32 *r, u32 f0, u32 f1, u32 f2) {
    u32 f[8] = {f0, f1, f2, 0, 0, 0, 0, 0};
    return host_add(8, r, r, f);
}
FN u32 sub_small(u32 *r, u32 f0, u32 f1) {
    u32 f[8] = {f0, f1, 0, 0, 0, 0, 0, 0};
    return sub8(r, r, f);
}
FN void add_small_quick(u32 *r, u32 f0, u32 f1, u32 f2) {
    u32 f[5] = {f0, f1, f2, 0, 0};
    host_add(5, r, r, f);
}
FN void sub_small_quick(u32 *r, u32 f0, u32 f1) {
    u64 low = (u64)r[1] << 32 | r[0], high = (u64)r[3] << 32 | r[2], f = (u64)f1 << 32 | f0;
    high -= low < f;
    low -= f;
    r[0] = (u32)low, r[1] = (u32)(low >> 32), r[2] = (u32)high, r[3] = (u32)(high >> 32);
}
FN void add_tiny(u32 *r, u32 f0, u32 f1) {
    u32 f[3] = {f0, f1, 0};
    host_add(3, r, r, f);
}
FN void merge15(u32 *r, const u32 *o) { host_add(15, r, r, o); }
FN u32 add_carries(u32 *r, u32 c0, u32 c1, u32 c2) {
    u32 c[6] = {c0, 0, c1, 0, c2, 0};
    return host_add(6, r, r, c);
}
FN void fold_tiny(u32 *r, u32 f0, u32 f1) {
    u32 f[4] = {f0, f1, 0, 0};
    host_add(4, r, r, f);
}
FN void merge_fold(u32 *r, const u32 *o, u32 c8, u32 c9, u32 &hi0, u32 &hi1) {
    u64 sum = (u64)host_add(7, r, r, o) + o[7] + c8;
    hi0 = (u32)sum;
    hi1 = c9 + (u32)(sum >> 32);
}

#endif
