// The prefix search. Every thread visits `steps` centres, and tests the whole table on both sides
// of each.
//
// Forward, it multiplies the differences d_i = xA³ - xi³ and stores the partial products in memory,
// one per entry or per group. Then comes one inversion. Backward, it derives each 1/d_i and tests
// the eighteen candidates of the entry by their top 32 bits. A candidate that passes is a suspect;
// `confirm.cuh` computes it in full.

#include "filter.cuh"
#include "points.cuh"
#include "tensor.cuh"

// The compute capability that is compiled for, also in the host's part of a program.
#ifdef __CUDA_ARCH__
#define CAPABILITY __CUDA_ARCH__
#else
#define CAPABILITY __CUDA_ARCH_LIST__
#endif
// The sizes of blocks (constants.h) for which kernels are compiled: those that the GPU can launch.
// On GPUs with large blocks the others serve tests and measurements.
#define HAS_LARGE_BLOCKS (CAPABILITY >= 900 && CAPABILITY < 1200)
#define HAS_MIDDLE_BLOCKS (CAPABILITY >= 800)
#define HAS_SMALL_BLOCKS (HAS_LARGE_BLOCKS || CAPABILITY < 800)

FN void store_prefix(uint4 *prefixes, u32 entry, u32 threads, u32 thread, const Fe &v) {
    uint4 *at = prefixes + entry * 2 * threads + thread;
    at[0] = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
    at[threads] = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
}

FN Fe load_prefix(const uint4 *prefixes, u32 entry, u32 threads, u32 thread) {
    const uint4 *at = prefixes + entry * 2 * threads + thread;
    uint4 a = at[0], b = at[threads];
    return Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// Prefetches the prefix product for the next entry from device memory.
FN void expect_prefix(const uint4 *prefixes, u32 entry, u32 threads, u32 thread) {
    const uint4 *at = prefixes + entry * 2 * threads + thread;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at + threads));
}

FN Point &centre_at(const Search &s, u32 step, u32 threads) {
    return s.centres[(size_t)step * threads + thread_number()];
}

// Waits for the other warps of the same stage. Only used if one block fills a multiprocessor. The
// number of the stage comes from the thread's, because a register for it would be spilled.
FN void wait_for_stage() {
    u32 thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    asm volatile("bar.sync %0, %1;" ::"r"(thread / (32 * STAGE_WARPS) + 1), "n"(32 * STAGE_WARPS) : "memory");
}

// Prefetches the matrices of an entry into L1 for all warps of a stage. Each warp fetches a part.
FN void expect_matrices(const Search &s, u32 entry) {
    const u32 line = threadIdx.x % (32 * STAGE_WARPS), bytes = MATRICES * MATRIX_BYTES;
    const char *at = (const char *)s.matrices + entry * bytes + line * 128;
    if (line < bytes / 128) asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}

// Returns the inverse of the product of the upper two differences z - u of a group, and keeps that
// of the lower two. `rest` is the inverse of the product of all differences up to these four.
// Removes the four from `rest`.
template <class Variant>
FN Fe next_group(const Search &s, Variant &variant, const uint4 *prefixes, u32 group, u32 threads, u32 thread, Fe &rest) {
    Fe before = load_prefix(prefixes, group, threads, thread);
    if (group) expect_prefix(prefixes, group - 1, threads, thread);
    Fe lower = variant.product_of_two(s, group, 0), upper = variant.product_of_two(s, group, 1);
    Fe inverse = fe_mul<Quick>(rest, before);
    rest = fe_mul<Quick>(fe_mul<Quick>(rest, lower), upper);
    variant.keep(Variant::PAIR, fe_mul<Quick>(inverse, upper));
    return fe_mul<Quick>(inverse, lower);
}

// A number that all lanes of a warp have, in a form in which the compiler knows this. Then loops and
// addresses take 15 instructions of an entry less.
FN u32 uniform(u32 number) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, number);
#else
    return number;
#endif
}

// Computes the first centre of a thread: its start point plus its stretch. Returns false if these
// have the same x, and so there is no centre.
FN bool first_centre(const Search &s, u32 thread, Fe &x, Fe &y) {
    const Point &base = s.start_points[thread / s.threads_per_start];
    const Point &start = s.stretches[thread % s.threads_per_start];
    Fe bx = fe_load(base.x), by = fe_load(base.y), sx = fe_load(start.x), sy = fe_load(start.y);
    Fe d = fe_sub(bx, sx);
    bool ok = !fe_is_zero(d);
    if (!ok) atomicAdd(&s.counters->skipped, s.steps);
    Fe slope = fe_mul(fe_sub(by, sy), fe_inverse(d));
    x = fe_canonical(fe_sub(fe_sub(fe_sqr(slope), bx), sx));
    y = fe_canonical(fe_sub(fe_mul(slope, fe_sub(bx, x)), by));
    return ok;
}

// Replaces the centre (x, y) by the next one, given 1/(x - xS).
FN void next_centre(const Search &s, const Fe &inverse, Fe &x, Fe &y) {
    Fe sx = fe_load(s.step.x);
    Fe slope = fe_mul(fe_sub(y, fe_load(s.step.y)), inverse);
    Fe next = fe_canonical(fe_sub(fe_sub(fe_sqr(slope), x), sx));
    y = fe_canonical(fe_sub(fe_mul(slope, fe_sub(x, next)), y));
    x = next;
}

// The entries of the first centre of a thread. Different warps are at different stages of a centre:
// for most of them the first centre is cut short, and the entries left out there are made up for
// with one more centre at the end.
FN u32 first_entries(u32 entries, u32 thread, u32 warps) {
    const u32 stages = warps / STAGE_WARPS, stage = thread / 32 % warps / STAGE_WARPS;
    return entries / GROUP * (stage + 1) / stages * GROUP;
}

template <class Filter, class Variant>
FN void search(const Search &s) {
    extern __shared__ uint4 shared[];
    Variant variant(s, shared);
    Filter filter(s, (u32 *)shared + Variant::SHARED_BYTES / 4);
    constexpr u32 BLOCK = 32 * Variant::BLOCK_WARPS;
    const u32 threads = gridDim.x * BLOCK, thread = blockIdx.x * BLOCK + threadIdx.x;
    uint4 *prefixes = (uint4 *)s.prefixes;

    Fe x, y;
    bool ok = first_centre(s, thread, x, y);
    const u32 first = first_entries(s.entries, thread, Variant::BLOCK_WARPS);
    for (u32 step = 0; step <= s.steps; step++) {
        const u32 entries = uniform(step == 0 ? first : step == s.steps ? s.entries - first : s.entries);
        if (step == s.steps && entries == 0) break;
        {
            Point &centre = centre_at(s, step, threads);
            for (int i = 0; i < 8; i++) centre.x[i] = x.v[i], centre.y[i] = y.v[i];
        }
        variant.template stand_on<Filter::PRECISION>(x, y);

        Fe product = fe_sub(x, fe_load(s.step.x));
        if constexpr (Variant::GROUPS) {
            for (u32 group = 0; group < entries / GROUP; group++) {
                store_prefix(prefixes, group, threads, thread, product);
                product = fe_mul<Quick>(product, variant.product_of_four(s, group));
            }
        } else {
            for (u32 i = 0; i < entries; i++) {
                store_prefix(prefixes, i, threads, thread, product);
                product = fe_mul<Quick>(product, fe_sub<Quick>(variant.z(), fe_load_wide(s.table[i].u)));
            }
        }
        // If one difference is zero, the whole product is zero, and neither this centre nor the
        // later ones can be searched. The thread goes on because its warp works in step, but its
        // results are ignored.
        bool usable = !fe_is_zero(product);
        if (ok && !usable) atomicAdd(&s.counters->skipped, s.steps + 1 - step);
        ok = ok && usable;
        Fe rest = fe_inverse(product);

        Fe next;  // 1 / (the product of the pair's differences), then 1 / (its lower difference)
        for (u32 i = entries; i-- > 0;) {
            const Entry &e = s.table[i];
            Fe t, d;
            if constexpr (Variant::GROUPS) {
                // Keeps the warps of a stage close together, so that they all find the matrices in
                // L1.
                if (i % GROUP == GROUP - 1) wait_for_stage();
                if (i) expect_matrices(s, i - 1);
                if (i % 2) {
                    next = i % GROUP == 3 ? next_group(s, variant, prefixes, i / GROUP, threads, thread, rest)
                                          : variant.kept(Variant::PAIR);
                    t = fe_mul<Quick>(next, fe_sub<Quick>(variant.z(), fe_load_wide(s.table[i - 1].u)));
                    next = variant.lower_of_pair(s, i / GROUP, i / 2 % 2, next, t);
                } else {
                    t = next;
                }
            } else {
                if (i) expect_prefix(prefixes, i - 1, threads, thread);
                t = fe_mul<Quick>(rest, load_prefix(prefixes, i, threads, thread));
                d = fe_sub<Quick>(variant.z(), fe_load_wide(e.u));
                rest = fe_mul<Quick>(rest, d);
            }
            const TopWords words = variant.template top_words<Filter::PRECISION>(s, i, e, d, t, filter.shift());
            const u32 found = filter.test(words);
            if constexpr (Filter::DEFERS) {
                filter.defer(s, words, ok ? found : 0, step, i);
            } else if (found && ok) {
                report(s, thread_number(), step, i, found);
            }
        }
        if constexpr (Filter::DEFERS) filter.test_deferred(s);

        // `rest` is now 1 / (xA - xS), which the step to the next centre needs.
        Point &centre = centre_at(s, step, threads);
        x = fe_load(centre.x);
        y = fe_load(centre.y);
        next_centre(s, rest, x, y);
    }
}

#define SEARCH(name, warps, Filter, ...)                                \
    extern "C" __global__ void __launch_bounds__(32 * warps, 1)         \
    name(const __grid_constant__ Search s) { search<Filter, __VA_ARGS__>(s); }
#define TENSOR(name, bytes, warps, Filter) SEARCH(name, warps, Filter, Tensor<bytes, warps, Filter>)

SEARCH(plain_one, WARPS, OneInterval, Plain)
SEARCH(plain_few, WARPS, Cells<FEW_BITS>, Plain)
SEARCH(plain_many, WARPS, Bitmaps<COARSE_BITS>, Plain)
#if HAS_LARGE_BLOCKS
TENSOR(tensor_one, LARGE_BLOCK, WARPS, OneInterval)
TENSOR(tensor_few, LARGE_BLOCK, WARPS, Cells<FEW_BITS>)
TENSOR(tensor_many, LARGE_BLOCK, WARPS, Bitmaps<LARGE_BITS>)
TENSOR(saving_one, LARGE_BLOCK, FEWER_WARPS, OneInterval)
TENSOR(saving_few, LARGE_BLOCK, FEWER_WARPS, Cells<FEW_BITS>)
TENSOR(saving_many, LARGE_BLOCK, FEWER_WARPS, Bitmaps<LARGE_BITS>)
#endif
#if HAS_MIDDLE_BLOCKS
TENSOR(middle_one, MIDDLE_BLOCK, WARPS, OneInterval)
TENSOR(middle_few, MIDDLE_BLOCK, WARPS, Cells<FEW_BITS>)
TENSOR(middle_many, MIDDLE_BLOCK, WARPS, Bitmaps<COARSE_BITS>)
#endif
#if HAS_SMALL_BLOCKS
TENSOR(small_one, SMALL_BLOCK, WARPS, OneInterval)
TENSOR(small_few, SMALL_BLOCK, WARPS, Cells<FEW_BITS>)
TENSOR(small_many, SMALL_BLOCK, WARPS, Bitmaps<COARSE_BITS>)
#endif

// Builds the table from the points i·G.
extern "C" __global__ void build_table(const Point *points, Entry *table, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[i] = entry_of(points[i]);
}

#include "confirm.cuh"
#include "whole.cuh"
#include "probe.cuh"
