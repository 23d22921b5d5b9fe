// What the host and the kernels pass to each other. `src/search/cuda/abi.rs` has the same, and both assert the sizes.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

// An affine point: limbs of 32 bits, least significant first, below p.
struct Point {
    u32 x[8], y[8];
};

// The constants of I = i·G = (x, y), u = x³; field elements of 8 limbs.
struct alignas(16) Entry {
    u32 u[8], two_u_14[8], three_u[8], x[8], three_xx[8], two_y[8], beta_two_y[8], beta_u_14[8];
    u32 x_top[2];  // top 32 bits of x and of βx
    u32 unused[2];
};

// One candidate that passed the filter: to be confirmed in full.
struct Suspect {
    u32 thread;  // of the launch
    u32 step;    // which of the thread's centres
    u32 entry;   // i - 1
    u32 which;   // k·6 + sign·3 + j, sign 1 for minus
};

struct Counters {
    u32 suspects;  // found; those beyond the buffer's capacity are lost, and the launch must be searched again
    u32 hits;      // confirmed; likewise
    u32 skipped;   // centres that were not searched because a difference in them was zero
    u32 unused;
};

struct Interval {
    u64 first, last;  // of the top 64 bits of x, both included
};

struct Search {
    const Point *bases;
    const Point *starts;      // (t + 1)·stride·G
    const Entry *table;
    const void *matrices;     // of the table's constants, for the tensor cores
#ifdef CONST_GLOBAL
    void *constants;
#endif
    void *prefixes;           // [entry][half][thread]
    Point *centres;           // [step][thread]
    Suspect *suspects;
    Suspect *hits;
    Counters *counters;
    const u32 *coarse;        // one bit for each value of the top COARSE_BITS
    const u32 *fine;          // one bit for each value of the top FINE_BITS
    const Interval *intervals;
    u32 interval_count;
    u32 first_top, top_width; // the single interval, widened, where there is but one
    u32 entries;              // table entries to search, at most the table's size
    u32 steps;                // centres a thread
    u32 blocks_per_base;
    u32 suspect_capacity;
    u32 hit_capacity;
    Point step;               // from one centre to the next: (2·table + 1)·G
};

#define COARSE_BITS 18
#define FINE_BITS 27
// Truncated tops are low or high by at most this.
#define SLACK 64

static_assert(sizeof(Point) == 64 && sizeof(Entry) == 272, "as in abi.rs");
static_assert(sizeof(Suspect) == 16 && sizeof(Counters) == 16 && sizeof(Interval) == 16, "as in abi.rs");
#ifndef CONST_GLOBAL
static_assert(sizeof(Search) == 12 * 8 + 8 * 4 + 64, "as in abi.rs");
#endif
