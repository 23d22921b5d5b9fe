// Which of the eighteen tops of an entry may belong to a pattern. Never misses; may let others through.
#pragma once

#include "points.cuh"

// One interval of tops: the tops come shifted by its first value, and one comparison each is left.
struct OneInterval {
    u32 first, width;
    FN OneInterval(const Search &s) : first(s.first_top), width(s.top_width) {}
    FN u32 shift() const { return first; }
    FN u32 test(const Tops &t) const {
        bool any = false;
#pragma unroll
        for (int n = 0; n < 18; n++) any |= tops_at(t, n / 6, n / 3 % 2, n % 3) <= width;
        u32 found = 0;
        if (any) {
#pragma unroll
            for (int n = 0; n < 18; n++) found |= (u32)(tops_at(t, n / 6, n / 3 % 2, n % 3) <= width) << n;
        }
        return found;
    }
};

// Any number of intervals: a small bitmap in shared memory, and a finer one in device memory for what passes it.
struct Bitmaps {
    const u32 *fine;
    u32 *coarse;
    FN Bitmaps(const Search &s) : fine(s.fine) {
        __shared__ u32 shared[1 << (COARSE_BITS - 5)];
        coarse = shared;
        for (u32 i = threadIdx.x; i < 1 << (COARSE_BITS - 5); i += blockDim.x) coarse[i] = s.coarse[i];
        __syncthreads();
    }
    FN u32 shift() const { return 0; }
    FN u32 test(const Tops &t) const {
        u32 found = 0;
#pragma unroll
        for (int n = 0; n < 18; n++) {
            u32 top = tops_at(t, n / 6, n / 3 % 2, n % 3);
            found |= (coarse[top >> (37 - COARSE_BITS)] >> (top >> (32 - COARSE_BITS) & 31) & 1) << n;
        }
        if (found) {
            u32 sure = 0;
#pragma unroll
            for (int n = 0; n < 18; n++) {
                u32 top = tops_at(t, n / 6, n / 3 % 2, n % 3);
                if (found >> n & 1) sure |= (__ldg(fine + (top >> (37 - FINE_BITS))) >> (top >> (32 - FINE_BITS) & 31) & 1) << n;
            }
            found = sure;
        }
        return found;
    }
};

// Sets the bits of all tops that a candidate of the intervals can show, in both bitmaps (which are zero before).
FN void set_bits(u32 *map, u32 bits, u64 first, u64 last) {
    for (u64 bit = first >> (32 - bits); bit <= last >> (32 - bits);) {
        if ((bit & 31) == 0 && bit + 31 <= last >> (32 - bits)) {
            map[bit >> 5 & ((1u << (bits - 5)) - 1)] = ~0u;
            bit += 32;
        } else {
            atomicOr(map + (bit >> 5 & ((1u << (bits - 5)) - 1)), 1u << (bit & 31));
            bit++;
        }
    }
}

extern "C" __global__ void build_filter(const Interval *intervals, u32 count, u32 *coarse, u32 *fine) {
    // A block an interval; its threads share a wide one between them.
    for (u32 i = blockIdx.x; i < count; i += gridDim.x) {
        u64 first = (intervals[i].first >> 32) + 0x100000000ull - SLACK, last = (intervals[i].last >> 32) + 0x100000000ull + SLACK;
        u64 share = ((last - first) / blockDim.x / 1024 + 1) * 1024;
        u64 from = first + share * threadIdx.x, to = from + share - 1 < last ? from + share - 1 : last;
        if (from <= last) {
            set_bits(coarse, COARSE_BITS, from, to);
            set_bits(fine, FINE_BITS, from, to);
        }
    }
}
