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
#include "whole.cuh"

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

// Warps per multiprocessor.
#define WARPS 16

// Waits for the other warps of the same stage. Only used if one block fills a multiprocessor.
FN void wait_for_stage(u32 stage) {
    asm volatile("bar.sync %0, %1;" ::"r"(stage + 1), "n"(WARPS * 32 / STAGES) : "memory");
}

// Prefetches the matrices of an entry into L1 for all warps of a stage. Each warp fetches a part.
FN void expect_matrices(const Search &s, u32 entry) {
    const u32 line = threadIdx.x % (WARPS * 32 / STAGES), bytes = MATRICES * MATRIX_BYTES;
    const char *at = (const char *)s.matrices + entry * bytes + line * 128;
    if (line < bytes / 128) asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}

// Returns the inverse of the product of the two differences z - u of entries i - 1 and i. `rest` is
// the inverse of the product of all differences up to these two. Removes the two from `rest`.
template <class Variant>
FN Fe next_pair(const Search &s, Variant &variant, const uint4 *prefixes, u32 i, u32 threads, u32 thread, Fe &rest) {
    const u32 group = i / GROUP;
    Fe before = load_prefix(prefixes, group, threads, thread), pair;
    if (i % GROUP == 3) {
        if (group) expect_prefix(prefixes, group - 1, threads, thread);
        Fe first = variant.product_of_two(s, group, 0);
        variant.keep(Variant::PAIR, first);
        before = fe_mul<Quick>(before, first);
        pair = variant.product_of_two(s, group, 1);
    } else {
        pair = variant.kept(Variant::PAIR);
    }
    Fe inverse = fe_mul<Quick>(rest, before);
    rest = fe_mul<Quick>(rest, pair);
    return inverse;
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

template <class Filter, class Variant, class More>
FN void search(const Search &s, const More &more) {
    extern __shared__ uint4 shared[];
    Variant variant(s, shared);
    Filter filter(s, (u32 *)shared + Variant::SHARED_BYTES / 4, more);
    const u32 threads = gridDim.x * Variant::THREADS, thread = blockIdx.x * Variant::THREADS + threadIdx.x;
    uint4 *prefixes = (uint4 *)s.prefixes;

    Fe x, y;
    bool ok = first_centre(s, thread, x, y);
    // Different warps are at different stages of a centre. For most of them the first centre is cut
    // short, and the entries left out there are made up for with one more centre at the end.
    const u32 stage = thread / 32 % WARPS * STAGES / WARPS;
    const u32 first_entries = s.entries / GROUP * (stage + 1) / STAGES * GROUP;
    for (u32 step = 0; step <= s.steps; step++) {
        const u32 entries = step == 0 ? first_entries : step == s.steps ? s.entries - first_entries : s.entries;
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

        Fe of_pair;  // 1 / (the product of the pair's differences)
        for (u32 i = entries; i-- > 0;) {
            const Entry &e = s.table[i];
            Fe t, d;
            if constexpr (Variant::GROUPS) {
                // Keeps the warps of a stage close together, so that they all find the matrices in
                // L1.
                if (i % GROUP == GROUP - 1) wait_for_stage(stage);
                if (i) expect_matrices(s, i - 1);
                if (i % 2 == 1) of_pair = next_pair(s, variant, prefixes, i, threads, thread, rest);
                t = fe_mul<Quick>(of_pair, fe_sub<Quick>(variant.z(), fe_load_wide(s.table[i ^ 1].u)));
            } else {
                if (i) expect_prefix(prefixes, i - 1, threads, thread);
                t = fe_mul<Quick>(rest, load_prefix(prefixes, i, threads, thread));
                d = fe_sub<Quick>(variant.z(), fe_load_wide(e.u));
                rest = fe_mul<Quick>(rest, d);
            }
            u32 found;
            TopWords words;
            if constexpr (Filter::IS_WHOLE) {
                found = filter.test(variant.c, e, d, t);
            } else {
                words = variant.template top_words<Filter::PRECISION>(s, i, e, d, t, filter.shift());
                found = filter.test(words);
            }
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

#define SEARCH(name, Filter, Variant)                                                               \
    extern "C" __global__ void __launch_bounds__(Variant::THREADS, 1) name(Search s) { search<Filter, Variant>(s, Nothing{}); }

SEARCH(plain_one, OneInterval, Plain)
SEARCH(plain_few, Cells<PLAIN_COARSE_BITS>, Plain)
SEARCH(plain_many, Bitmaps<PLAIN_COARSE_BITS>, Plain)
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
SEARCH(tensor_one, OneInterval, Tensor<ONE_SHARED>)
SEARCH(tensor_few, Cells<TENSOR_FEW_BITS>, Tensor<FEW_SHARED>)
SEARCH(tensor_many, Bitmaps<TENSOR_COARSE_BITS>, Tensor<MANY_SHARED>)
// For GPUs with less shared memory per multiprocessor.
SEARCH(lean_one, OneInterval, Tensor<LEAN_ONE_SHARED>)
SEARCH(lean_few, Cells<TENSOR_FEW_BITS>, Tensor<LEAN_FEW_SHARED>)
SEARCH(lean_many, Bitmaps<PLAIN_COARSE_BITS>, Tensor<LEAN_MANY_SHARED>)
#endif

extern "C" __global__ void __launch_bounds__(Plain::THREADS, 1) whole_keys(Search s, WholeSearch whole) {
    search<WholeKeys, Plain>(s, whole);
}

// Builds the table from the points i·G.
extern "C" __global__ void build_table(const Point *points, Entry *table, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[i] = entry_of(points[i]);
}

#include "confirm.cuh"
#include "screened.cuh"
#include "probe.cuh"
