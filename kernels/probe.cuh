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

FN Fe probe_value(u32 what, const Fe &a, const Fe &b) {
    switch (what) {
    case PROBE_MUL: return fe_canonical(fe_mul(a, b));
    case PROBE_SQR: return fe_canonical(fe_sqr(a));
    case PROBE_ADD: return fe_canonical(fe_add(a, b));
    case PROBE_SUB: return fe_canonical(fe_sub(a, b));
    case PROBE_INVERSE: return fe_canonical(fe_inverse(a));
    case PROBE_CANONICAL: return fe_canonical(a);
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
#endif
