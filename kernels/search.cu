// The prefix search: every thread walks `steps` centres, and at each the whole table in both directions.
//
// Forward it multiplies up the differences d_i = xA³ - xi³ and leaves the partial products in memory; one inversion; and
// backward it takes each 1/d_i out again and tests the eighteen candidates of the entry by their top 32 bits. What passes
// is a suspect, and `confirm.cuh` computes it in full.

#include "filter.cuh"
#include "points.cuh"
#include "tensor.cuh"

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

// Brings a prefix near, for the entry after this one: it is a trip to device memory.
FN void expect_prefix(const uint4 *prefixes, u32 entry, u32 threads, u32 thread) {
    const uint4 *at = prefixes + entry * 2 * threads + thread;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at + threads));
}

FN void report(const Search &s, u32 thread, u32 step, u32 entry, u32 found) {
    while (found) {
        u32 which = __ffs(found) - 1;
        found &= found - 1;
        u32 slot = atomicAdd(&s.counters->suspects, 1);
        if (slot < s.suspect_capacity) s.suspects[slot] = Suspect{thread, step, entry, which};
    }
}

// The number of this thread in the launch. Asked for anew where it is rarely needed: it is not worth a register meanwhile.
FN u32 thread_number() {
    u32 block, size, thread;
    asm volatile("mov.u32 %0, %%ctaid.x; mov.u32 %1, %%ntid.x; mov.u32 %2, %%tid.x;" : "=r"(block), "=r"(size), "=r"(thread));
    return block * size + thread;
}

FN Point &centre_at(const Search &s, u32 step, u32 threads) {
    return s.centres[(size_t)step * threads + thread_number()];
}

template <class Filter, class Form>
FN void search(const Search &s) {
    extern __shared__ uint4 shared[];
    Form form(s, shared);
    Filter filter(s, (u32 *)shared + Form::SHARED_BYTES / 4);
    const u32 threads = gridDim.x * Form::THREADS, thread = blockIdx.x * Form::THREADS + threadIdx.x;
    const Point &base = s.bases[thread / s.threads_per_base];
    const Point &start = s.starts[thread % s.threads_per_base];
    uint4 *prefixes = (uint4 *)s.prefixes;

    Fe x, y;
    bool ok = true;
    {
        Fe bx = fe_load(base.x), by = fe_load(base.y), sx = fe_load(start.x), sy = fe_load(start.y);
        Fe d = fe_sub(bx, sx);
        ok = !fe_is_zero(d);
        if (!ok) atomicAdd(&s.counters->skipped, s.steps);
        Fe slope = fe_mul(fe_sub(by, sy), fe_inverse(d));
        x = fe_canonical(fe_sub(fe_sub(fe_sqr(slope), bx), sx));
        y = fe_canonical(fe_sub(fe_mul(slope, fe_sub(bx, x)), by));
    }
    for (u32 step = 0; step < s.steps; step++) {
        {
            Point &centre = centre_at(s, step, threads);
            for (int i = 0; i < 8; i++) centre.x[i] = x.v[i], centre.y[i] = y.v[i];
        }
        form.stand_on(x, y);

        Fe product = fe_sub(x, fe_load(s.step.x));
        for (u32 i = 0; i < s.entries; i++) {
            store_prefix(prefixes, i, threads, thread, product);
            product = fe_mul<Quick>(product, fe_sub<Quick>(form.z(), fe_load_wide(s.table[i].u)));
        }
        // One difference that is zero makes the whole product zero: nothing can be said about this centre, nor about
        // those after it. The thread goes on, for its warp works together, but what it finds is nothing.
        bool usable = !fe_is_zero(product);
        if (ok && !usable) atomicAdd(&s.counters->skipped, s.steps - step);
        ok = ok && usable;
        Fe rest = fe_inverse(product);

        for (u32 i = s.entries; i-- > 0;) {
            const Entry &e = s.table[i];
            if (i) expect_prefix(prefixes, i - 1, threads, thread);
            Fe t = fe_mul<Quick>(rest, load_prefix(prefixes, i, threads, thread));
            Fe d = fe_sub<Quick>(form.z(), fe_load_wide(e.u));
            rest = fe_mul<Quick>(rest, d);
            Tops tops = form.tops(s, i, e, d, t, filter.shift());
            u32 found = filter.test(tops);
            if (found && ok) report(s, thread_number(), step, i, found);
        }

        // `rest` is now 1 / (xA - xS): on to the next centre.
        Point &centre = centre_at(s, step, threads);
        x = fe_load(centre.x);
        y = fe_load(centre.y);
        Fe sx = fe_load(s.step.x);
        Fe slope = fe_mul(fe_sub(y, fe_load(s.step.y)), rest);
        Fe next = fe_canonical(fe_sub(fe_sub(fe_sqr(slope), x), sx));
        y = fe_canonical(fe_sub(fe_mul(slope, fe_sub(x, next)), y));
        x = next;
    }
}

#define SEARCH(name, Filter, Form, blocks)                                                               \
    extern "C" __global__ void __launch_bounds__(Form::THREADS, blocks) name(Search s) { search<Filter, Form>(s); }

SEARCH(plain_one, OneInterval, Plain, 2)
SEARCH(plain_many, Bitmaps<PLAIN_COARSE_BITS>, Plain, 2)
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
SEARCH(tensor_one, OneInterval, Tensor<TENSOR_SHARED>, 1)
SEARCH(tensor_many, Bitmaps<TENSOR_COARSE_BITS>, Tensor<TENSOR_SHARED>, 1)
// For GPUs with little shared memory.
SEARCH(lean_one, OneInterval, Tensor<0>, 1)
SEARCH(lean_many, Bitmaps<PLAIN_COARSE_BITS>, Tensor<0>, 1)
#endif

// The table from the points i·G.
extern "C" __global__ void build_table(const Point *points, Entry *table, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[i] = entry_of(points[i]);
}

#include "confirm.cuh"
#include "probe.cuh"
