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
    void *constants;          // of a block's centres, what the tensor form keeps in device memory: [block][constant][half][thread]
    void *prefixes;           // [entry][half][thread]
    Point *centres;           // [step][thread]
    Suspect *suspects;
    Suspect *hits;
    Counters *counters;
    const u32 *coarse;        // one bit for each value of the top 18 or 19 bits
    const u32 *fine;          // the same of the top FINE_BITS
    const Interval *intervals;
    u32 interval_count;
    u32 first_top, top_width; // the single interval, widened, where there is but one
    u32 entries;              // table entries to search, at most the table's size
    u32 steps;                // centres a thread
    u32 threads_per_base;
    u32 suspect_capacity;
    u32 hit_capacity;
    Point step;               // from one centre to the next: (2·table + 1)·G
};

// Threads of a block of each form of the search. Either way 512 are on a multiprocessor.
#define PLAIN_THREADS 256
#define TENSOR_THREADS 512
// What the tensor form keeps of a centre: xA³; xA, xA², xA·yA, yA, xA²·yA, each followed by β times it.
#define TENSOR_CONSTANTS 11
// As many of them as are kept in shared memory; the others are in device memory.
#define TENSOR_SHARED 8

// The first bitmap of many intervals, in shared memory: bits of the top that it tells apart.
#define PLAIN_COARSE_BITS 18
#define TENSOR_COARSE_BITS 19
#define FINE_BITS 27
// Sums of truncated tops are low or high by at most this: by 12 such products off by 1 (standard deviation) each.
#define SLACK 32

static_assert(sizeof(Point) == 64 && sizeof(Entry) == 272, "as in abi.rs");
static_assert(sizeof(Suspect) == 16 && sizeof(Counters) == 16 && sizeof(Interval) == 16, "as in abi.rs");
static_assert(sizeof(Search) == 13 * 8 + 8 * 4 + 64, "as in abi.rs");

// Shared memory of a block of the tensor form, without the bitmap: each thread's constants, and 1.5 KiB a warp.
constexpr u32 tensor_shared_bytes(u32 constants) { return TENSOR_THREADS * (constants * 32 + 48); }
static_assert(tensor_shared_bytes(TENSOR_SHARED) == 155648 && tensor_shared_bytes(0) == 24576, "as in form.rs");
