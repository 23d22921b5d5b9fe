// The screened search of whole keys. It computes all eighteen keys of an entry and makes quick
// tests of them. It is for GPUs whose tensor cores count bits, and for patterns that a `Screen` can
// express. `whole_keys` takes all other cases. Two of the three forms make only the tests of
// frequent patterns: one group of parities, without or with runs.
//
// Each thread can keep one key that passed, in shared memory. Every few entries a warp tests the
// texts of its kept keys together, because a thread that tests alone would make its warp wait for
// thousands of cycles. A key that passes while its thread keeps another is a suspect at once.
#pragma once

#include "screen.cuh"
#include "sums.cuh"
#include "suspects.cuh"
#include "tensor.cuh"
#include "text_tests.cuh"

// The tensor cores of later GPUs have no operation that counts bits.
#if (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000) || !defined(__CUDA_ARCH__)

// Entries between two tests of the keys that threads keep.
#define ENTRIES_BETWEEN_TESTS 16

// The shared memory of a block: fields, kept keys, scratch memory, the names of the kept keys, and
// the parities.
struct WholeShared {
    uint4 fields[WHOLE_FIELDS][2][TENSOR_THREADS];
    uint4 keys[2][TENSOR_THREADS];
    u32 scratch[WARPS][2][SCRATCH_WORDS];
    u32 names[TENSOR_THREADS];
    uint4 parities[PARITY_GROUPS][32];
};
static_assert(sizeof(WholeShared) ==
                  TENSOR_THREADS * (WHOLE_FIELDS * 32 + 32 + 2 * SCRATCH_BYTES + 4) + PARITY_GROUPS * 512,
              "as in screened.rs");

FN void write_shared(uint4 (&to)[2][TENSOR_THREADS], const Fe &v) {
    to[0][threadIdx.x] = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
    to[1][threadIdx.x] = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
}

FN Fe read_shared(const uint4 (&from)[2][TENSOR_THREADS]) {
    uint4 a = from[0][threadIdx.x], b = from[1][threadIdx.x];
    return Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

struct KeptFields {
    WholeShared &shared;
    FN void set(int n, const Fe &v) { write_shared(shared.fields[n], v); }
    FN Fe get(int n) const { return read_shared(shared.fields[n]); }
};

// y of a centre. A point's address is a multiple of 16.
FN Fe read_y(const Point &centre) {
    const uint4 *at = (const uint4 *)centre.y;
    uint4 a = at[0], b = at[1];
    return Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// Tests the texts of the keys that the warp keeps, reports those that pass, and drops all of them.
__device__ __noinline__ void test_kept(const Search &s, const WholeSearch &w, WholeShared &shared) {
    u32 name = shared.names[threadIdx.x];
    if (name) {
        shared.names[threadIdx.x] = 0;
        if (passes(w, w.accepted, w.checksums, read_shared(shared.keys))) report_named(s, thread_number(), name);
    }
    __syncwarp();
}

// Keeps a key that passed, or reports it if the thread keeps another already.
FN void keep_key(const Search &s, WholeShared &shared, const Fe &x, u32 name) {
    if (shared.names[threadIdx.x]) {
        report_named(s, thread_number(), name);
    } else {
        write_shared(shared.keys, x);
        shared.names[threadIdx.x] = name;
    }
}

// Counts the common bits of 16 rows and 8 columns of 256 bits.
FN void count_bits(int (&sum)[4], const u32 *a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Bits of the lanes for which one of these numbers is odd. Written in assembly, because the
// compiler would test the numbers one by one.
FN u32 vote_odd(int a, int b, int c, int d) {
    u32 lanes;
    asm volatile("{.reg .b32 any; .reg .pred odd;\n"
                 "lop3.b32 any, %1, %2, %3, 0xfe;\n"
                 "lop3.b32 any, any, %4, 1, 0xa8;\n"
                 "setp.ne.u32 odd, any, 0;\n"
                 "vote.sync.ballot.b32 %0, odd, 0xffffffff;}"
                 : "=r"(lanes) : "r"(a), "r"(b), "r"(c), "r"(d));
    return lanes;
}

// Whether all parities of this lane's key are even. `keys` are those of the warp.
FN bool has_even_parities(const Rows &keys, uint4 group) {
    const u32 lane = threadIdx.x % 32;
    u32 odd[2][2];  // four bits for each of eight rows
#pragma unroll
    for (int m = 0; m < 2; m++) {
        int first[4] = {}, second[4] = {};
        count_bits(first, keys.a[m], group.x, group.y);
        count_bits(second, keys.a[m], group.z, group.w);
        odd[m][0] = vote_odd(first[0], first[1], second[0], second[1]);
        odd[m][1] = vote_odd(first[2], first[3], second[2], second[3]);
    }
    u32 rows = lane & 16 ? (lane & 8 ? odd[1][1] : odd[1][0]) : (lane & 8 ? odd[0][1] : odd[0][0]);
    return !(rows >> lane % 8 * 4 & 15);
}

// The tests that a form of the kernel makes. The general form checks for each kind of test whether
// there are any.
struct AnyTests { static constexpr bool GENERAL = true, RUNS = true; };
struct EndTests { static constexpr bool GENERAL = false, RUNS = false; };
struct RunTests { static constexpr bool GENERAL = false, RUNS = true; };

// Tests the three keys of a point: x, βx and β²x. `name` is the name of the first key.
template <class Tests>
FN void test_point(const Search &s, const Screen &screen, WholeShared &shared, const uint4 *beta, const Fe &x, u32 name, bool ok) {
    const u32 lane = threadIdx.x % 32;
    u32 *scratch[2] = {shared.scratch[threadIdx.x / 32][0], shared.scratch[threadIdx.x / 32][1]};
    Rows rows[KEYS];
    rows[0] = gather(scratch[0], lane, x);
    Sums sums = {};
    multiply_add(sums, rows[0], beta, lane);
    Fe keys[KEYS] = {x, settle<Quick>(scratch[1], lane, sums), Fe{}};
    keys[2] = fe_negative_sum(x, keys[1]);
    u32 passing = passing_limbs<Tests::GENERAL, Tests::RUNS>(screen, keys);
    if (!Tests::GENERAL || screen.parity_groups) {
        __syncwarp();
        write_row(scratch[1], lane, keys[1]);
        write_row(scratch[0], lane, keys[2]);
        __syncwarp();
        rows[1] = rows_of(scratch[1], lane);
        rows[2] = rows_of(scratch[0], lane);
        u32 group = 0;
#pragma unroll 1
        do {
#pragma unroll
            for (int j = 0; j < KEYS; j++) passing |= (u32)has_even_parities(rows[j], shared.parities[group][lane]) << j;
        } while (Tests::GENERAL && ++group < screen.parity_groups);
    }
    if (!passing || !ok) return;
#pragma unroll 1
    do {
        u32 which = __ffs(passing) - 1;
        passing &= passing - 1;
        Fe key;
#pragma unroll
        for (int i = 0; i < 8; i++) key.v[i] = which == 0 ? keys[0].v[i] : which == 1 ? keys[1].v[i] : keys[2].v[i];
        keep_key(s, shared, key, name + which);
    } while (passing);
}

template <class Tests>
FN void search_screened(const Search &s, const WholeSearch &w, const Screen &screen, const WholeEntry *table,
                        const uint4 *beta) {
    extern __shared__ uint4 memory[];
    WholeShared &shared = *(WholeShared *)memory;
    KeptFields kept{shared};
    shared.names[threadIdx.x] = 0;
    for (u32 i = threadIdx.x; i < PARITY_GROUPS * 128; i += blockDim.x) ((u32 *)shared.parities)[i] = (&screen.parities[0][0][0])[i];
    __syncthreads();
    const u32 threads = gridDim.x * TENSOR_THREADS, thread = blockIdx.x * TENSOR_THREADS + threadIdx.x;
    uint4 *prefixes = (uint4 *)s.prefixes;
    Fe x, y;
    bool ok = first_centre(s, thread, x, y);
    const u32 stage = thread / 32 % WARPS * STAGES / WARPS;
    const u32 first_entries = s.entries / GROUP * (stage + 1) / STAGES * GROUP;
    for (u32 step = 0; step <= s.steps; step++) {
        const u32 entries = step == 0 ? first_entries : step == s.steps ? s.entries - first_entries : s.entries;
        if (step == s.steps && entries == 0) break;
        {
            Point &centre = centre_at(s, step, threads);
            for (int i = 0; i < 8; i++) centre.x[i] = x.v[i], centre.y[i] = y.v[i];
        }
        keep_centre(kept, x);
        Fe product = fe_sub(x, fe_load(s.step.x)), z = kept.get(SUM_Z);
        for (u32 i = 0; i < entries; i++) {
            store_prefix(prefixes, i, threads, thread, product);
            product = fe_mul<Quick>(product, fe_sub<Quick>(z, fe_load_wide(table[i].u)));
        }
        bool usable = !fe_is_zero(product);
        if (ok && !usable) atomicAdd(&s.counters->skipped, s.steps + 1 - step);
        ok = ok && usable;
        // One inversion gives 1/xA too. From here on, `rest` is 2·xA over the product of the
        // differences that are left.
        kept.set(SUM_S, product);
        Fe rest = fe_inverse(fe_mul(product, x));
        kept.set(SUM_INVERSE_S_X, fe_mul(fe_mul(rest, kept.get(SUM_S)), fe_inverse_s()));
        Fe xx = fe_sqr(x);
        rest = fe_mul(rest, fe_add(xx, xx));

        for (u32 i = entries; i-- > 0;) {
            const WholeEntry &e = table[i];
            if (i) expect_prefix(prefixes, i - 1, threads, thread);
            Fe q = fe_mul<Quick>(rest, load_prefix(prefixes, i, threads, thread));
            rest = fe_mul<Quick>(rest, fe_sub<Quick>(kept.get(SUM_Z), fe_load_wide(e.u)));
            keep_sums(kept, e, read_y(centre_at(s, step, threads)), q);
            // Not unrolled, because the loop would not fit into the instruction cache.
#pragma unroll 1
            for (u32 point = 0; point < 6; point++) {
                Fe key = point_of_sums(kept, e, point / 2, point % 2);
                test_point<Tests>(s, screen, shared, beta, key, name_of(step, i, 3 * point), ok);
            }
            if (i % ENTRIES_BETWEEN_TESTS == 0) test_kept(s, w, shared);
        }

        Point &centre = centre_at(s, step, threads);
        x = fe_load(centre.x);
        y = fe_load(centre.y);
        // 2·xA/(xA - xS), times 1/(2·xA).
        rest = fe_mul(rest, fe_mul(kept.get(SUM_INVERSE_S_X), fe_half_s()));
        next_centre(s, rest, x, y);
    }
    __syncwarp();
    test_kept(s, w, shared);
}

#define SCREENED(name, Tests)                                                                                            \
    extern "C" __global__ void __launch_bounds__(TENSOR_THREADS, 1)                                                      \
    name(const __grid_constant__ Search s, const __grid_constant__ WholeSearch w, const __grid_constant__ Screen screen, \
         const WholeEntry *table, const uint4 *beta) {                                                                   \
        search_screened<Tests>(s, w, screen, table, beta);                                                               \
    }

SCREENED(whole_screened, AnyTests)
SCREENED(whole_ends, EndTests)
SCREENED(whole_runs, RunTests)

// Builds the table from the points i·G, and the matrix of β.
extern "C" __global__ void build_whole_table(const Point *points, WholeEntry *table, u32 count, unsigned char *beta) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) table[i] = whole_entry_of(points[i]);
    if (i < 32) write_matrix_row(beta, i, fe_beta());
}

#endif
