// Quick tests of whole keys (`Screen` in abi.h). They read limbs, not characters. A run of
// characters at any place fills a half of some limb with one of a few values. An end fixes linear
// functions of the bits of x, which are parities.
#pragma once

#include "points.cuh"

// For each half of a limb: `least_sum` returns the lesser of a + b modulo 2^16 and `least`, and
// `least_halves` the lesser of a and b.
#ifdef __CUDA_ARCH__
FN u32 least_sum(u32 a, u32 b, u32 least) { return __viaddmin_u16x2(a, b, least); }
FN u32 least_halves(u32 a, u32 b) { return __vminu2(a, b); }
#else
FN u32 least_halves(u32 a, u32 b) {
    u32 low = (a & 0xffff) < (b & 0xffff) ? a : b, high = a >> 16 < b >> 16 ? a : b;
    return (low & 0xffff) | (high & 0xffff0000);
}
FN u32 least_sum(u32 a, u32 b, u32 least) {
    return least_halves(((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000)), least);
}
#endif

// Keys that are tested at once: those of a point.
#define KEYS 3

// Lowers `least` of each key, half by half, to the least difference of the key's halves from the
// values of runs.
template <bool GENERAL>
FN void least_of_runs(const Screen &screen, const Fe (&keys)[KEYS], u32 (&least)[KEYS]) {
    if (!GENERAL || screen.has_runs) {
#pragma unroll
        for (int n = 0; n < RUN_ROUNDS; n++)
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < KEYS; j++) least[j] = least_sum(keys[j].v[i], screen.run[n][i], least[j]);
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            least[j] = least_sum(keys[j].v[0], screen.extra[0], least[j]);
            least[j] = least_sum(keys[j].v[2], screen.extra[1], least[j]);
            least[j] = least_sum(keys[j].v[5], screen.extra[2], least[j]);
        }
    }
    if (!GENERAL) return;
#pragma unroll 1
    for (u32 n = 0; n < screen.masked_rounds; n++)
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < KEYS; j++)
                least[j] = least_sum(keys[j].v[i] & screen.masked[n][0][i], screen.masked[n][1][i], least[j]);
}

// The least half of the differences of neighbouring characters: below 2 if seven are equal.
FN u32 least_difference(const Fe &x, u32 least) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        u64 two = (u64)x.v[i] << 32 | (i ? x.v[i - 1] : 0);
        least = least_halves(least, x.v[i] ^ (u32)(two >> 27));
    }
    return least;
}

// Bits of the keys that pass a test of their limbs, bit n for key n. The keys are below p. If not
// GENERAL, there are no such tests except, with RUNS, those of runs without masks.
template <bool GENERAL, bool RUNS>
FN u32 passing_limbs(const Screen &screen, const Fe (&keys)[KEYS]) {
    if (!RUNS) return 0;
    u32 passing = 0, least[KEYS] = {~0u, ~0u, ~0u};
    least_of_runs<GENERAL>(screen, keys, least);
    if (GENERAL && screen.has_differences) {
#pragma unroll
        for (int j = 0; j < KEYS; j++) least[j] = least_difference(keys[j], least[j]);
    }
#pragma unroll
    for (int j = 0; j < KEYS; j++) {
        bool passes = !(least[j] & 0xfffe) || !(least[j] & 0xfffe0000);
#pragma unroll
        for (int n = 0; GENERAL && n < LOW_TESTS; n++) passes |= (keys[j].v[0] & screen.low[n][0]) == screen.low[n][1];
        passing |= (u32)passes << j;
    }
    return passing;
}

// Bits of the keys for which all parities of a group are even.
FN u32 with_even_parities(const u32 (&group)[32][4], const Fe (&keys)[KEYS]) {
    u32 odd[KEYS] = {};
#pragma unroll
    for (int n = 0; n < PARITIES; n++) {
        u32 bits[KEYS] = {};
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const u32 mask = group[n % 8 * 4 + i % 4][n / 8 * 2 + i / 4];
#pragma unroll
            for (int j = 0; j < KEYS; j++) bits[j] ^= keys[j].v[i] & mask;
        }
#pragma unroll
        for (int j = 0; j < KEYS; j++) odd[j] |= ones_in(bits[j]);
    }
    return (~odd[0] & 1) | (~odd[1] & 1) << 1 | (~odd[2] & 1) << 2;
}
