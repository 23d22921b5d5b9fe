// Suspects computed in full, by affine addition: what is left matches in the top 64 bits.
#pragma once

#include "points.cuh"

#define CONFIRM_BATCH 8

FN bool is_wanted(const Search &s, u64 top) {
    u32 low = 0, high = s.interval_count;  // the first interval that does not end before `top`
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (s.intervals[middle].last < top) low = middle + 1; else high = middle;
    }
    return low < s.interval_count && s.intervals[low].first <= top;
}

FN Fe turned(Fe x, u32 turn) {
    for (u32 i = 0; i < turn; i++) x = fe_mul(x, fe_beta());
    return x;
}

extern "C" __global__ void __launch_bounds__(128) confirm(Search s, u32 threads) {
    u32 count = min(s.counters->suspects, s.suspect_capacity), all = gridDim.x * blockDim.x;
    for (u32 from = blockIdx.x * blockDim.x + threadIdx.x; from < count; from += all * CONFIRM_BATCH) {
        Fe prefix[CONFIRM_BATCH], difference[CONFIRM_BATCH];
        Fe product = fe_small(1);
        for (int n = 0; n < CONFIRM_BATCH; n++) {
            u32 at = from + n * all;
            prefix[n] = product;
            if (at >= count) continue;
            Suspect suspect = s.suspects[at];
            Fe xi = turned(fe_load(s.table[suspect.entry].x), suspect.which / 6);
            difference[n] = fe_sub(fe_load(s.centres[(size_t)suspect.step * threads + suspect.thread].x), xi);
            // Two points with one x: no candidate of ours, and no reason to lose the others of the batch.
            if (fe_is_zero(difference[n])) difference[n] = fe_small(1);
            product = fe_mul(product, difference[n]);
        }
        Fe rest = fe_inverse(product);
        for (int n = CONFIRM_BATCH - 1; n >= 0; n--) {
            u32 at = from + n * all;
            if (at >= count) continue;
            Suspect suspect = s.suspects[at];
            Fe inverse = fe_mul(rest, prefix[n]);
            rest = fe_mul(rest, difference[n]);
            const Point &centre = s.centres[(size_t)suspect.step * threads + suspect.thread];
            const Entry &e = s.table[suspect.entry];
            Fe xa = fe_load(centre.x), xi = turned(fe_load(e.x), suspect.which / 6);
            // 2·y of both points, so the slope comes out doubled: halve by multiplying with (p + 1) / 2 = 1/2.
            Fe ya = fe_load(centre.y), two_ya = fe_add(ya, ya), two_yi = fe_load(e.two_y);
            Fe half = Fe{{0x7ffffe18u, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0x7fffffffu}};
            bool minus = suspect.which / 3 % 2;
            Fe rise = minus ? fe_add(two_ya, two_yi) : fe_sub(two_ya, two_yi);
            Fe slope = fe_mul(fe_mul(rise, half), inverse);
            Fe x = fe_sub(fe_sub(fe_sqr(slope), xa), xi);
            x = fe_canonical(turned(x, suspect.which % 3));
            if (is_wanted(s, (u64)x.v[7] << 32 | x.v[6])) {
                u32 slot = atomicAdd(&s.counters->hits, 1);
                if (slot < s.hit_capacity) s.hits[slot] = suspect;
            }
        }
    }
}
