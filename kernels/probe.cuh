// One operation a thread, for the tests: inputs as 8-limb numbers, results likewise.
#pragma once

#include "points.cuh"

#define PROBE_MUL 0
#define PROBE_SQR 1
#define PROBE_ADD 2
#define PROBE_SUB 3
#define PROBE_INVERSE 4
#define PROBE_CANONICAL 5
#define PROBE_TOP 6
#define PROBE_MUL_QUICK 7
#define PROBE_SQR_QUICK 8
#define PROBE_SUB_QUICK 9

FN Fe probe_value(u32 what, const Fe &a, const Fe &b) {
    switch (what) {
    case PROBE_MUL: return fe_canonical(fe_mul(a, b));
    case PROBE_SQR: return fe_canonical(fe_sqr(a));
    case PROBE_ADD: return fe_canonical(fe_add(a, b));
    case PROBE_SUB: return fe_canonical(fe_sub(a, b));
    case PROBE_INVERSE: return fe_canonical(fe_inverse(a));
    case PROBE_CANONICAL: return fe_canonical(a);
    case PROBE_MUL_QUICK: return fe_canonical(fe_mul<Quick>(a, b));
    case PROBE_SQR_QUICK: return fe_canonical(fe_sqr<Quick>(a));
    case PROBE_SUB_QUICK: return fe_canonical(fe_sub<Quick>(fe_canonical(a), fe_canonical(b)));
    default: return fe_small(fe_top(a, b));
    }
}

#ifdef __CUDACC__
extern "C" __global__ void probe(u32 what, const u32 *a, const u32 *b, u32 *out, u32 count) {
    u32 n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    Fe r = probe_value(what, fe_load(a + 8 * n), fe_load(b + 8 * n));
    for (int i = 0; i < 8; i++) out[8 * n + i] = r.v[i];
}

// Products by a constant on the tensor cores: warp w has its own constant c, and 32 values a.
#define PROBE_TIMES 0        // a·c, exact
#define PROBE_TIMES_QUICK 1  // a·c as the search does it
#define PROBE_SUM 2          // a·c + a²·c, exact
#define PROBE_TOPS 3         // in the lowest limbs: the top 32 bits of a·c + a²·c², and of β times that

#define PROBE_MATRICES (2 * MATRIX_WORDS * 4)

extern "C" __global__ void probe_matrices(const u32 *constants, unsigned char *matrices) {
    u32 k = threadIdx.x;
    Fe c = fe_load(constants + 8 * blockIdx.x);
    unsigned char *out = matrices + (size_t)blockIdx.x * PROBE_MATRICES;
    write_matrix_row(out, k, c);
    write_top_matrix_row(out + MATRIX_WORDS * 4, k, 0, c);
    write_top_matrix_row(out + MATRIX_WORDS * 4, k, 1, fe_sqr(c));
}

#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
extern "C" __global__ void probe_tensor(u32 what, const u32 *values, const unsigned char *matrices, u32 *out) {
    __shared__ uint4 memory[SCRATCH_WORDS / 4];
    u32 *scratch = (u32 *)memory, lane = threadIdx.x, n = blockIdx.x * 32 + lane;
    const uint4 *matrix = (const uint4 *)(matrices + (size_t)blockIdx.x * PROBE_MATRICES);
    Fe a = fe_load(values + 8 * n), r = fe_small(0);
    Rows a1 = gather(scratch, a), a2 = gather(scratch, fe_sqr(a));
    Sums sums = {};
    if (what == PROBE_TOPS) {
        uint2 tops = tops_of_sum(scratch, lane, a1, a2, matrix + MATRIX_WORDS / 4);
        r.v[0] = tops.x, r.v[1] = tops.y;
    } else {
        multiply_add(sums, a1, matrix, lane);
        if (what == PROBE_SUM) multiply_add(sums, a2, matrix, lane);
        r = fe_canonical(what == PROBE_TIMES_QUICK ? settle<Quick>(scratch, lane, sums) : settle<Exact>(scratch, lane, sums));
    }
    for (int i = 0; i < 8; i++) out[8 * n + i] = r.v[i];
}
#endif
#endif
