// The second form of the search: every product by a constant of the table on the tensor cores. Compute capability 8.0 and up.
//
// With t = 1/(z - u), z·t = 1 + u·t, and so (A' = u + z + 14) A'·t = 1 + (2u + 14)·t. The six sums that the tops are made of
// become, up to the -xA and -xi that the formula subtracts anyway, centre times a linear image of (t, t²):
//
//     A'·Y0 - xA = xA·W0            W0 = (5u + 14)·t + 3u(2u + 14)·t²
//     A'·Y1 - xi = xi + W1          W1 = xi(7u + 28)·t + 3u·xi(2u + 14)·t²
//     A'·Y2      = xA²·W2           W2 = 3xi²·t + 3xi²(2u + 14)·t²
//     B·Y0       = xA·yA·V0         V0 = 2yi·t + 6u·yi·t²
//     B·Y1       = yA·V1            V1 = 4xi·yi·t + 6u·xi·yi·t²
//     B·Y2       = xA²·yA·V2        V2 = 6xi²·yi·t²
//
// A warp multiplies its 32 values of t and t² at once by m16n8k32. Of W1 only the top is wanted, and comes straight out of its
// matrix. The five others come back through the warp's shared memory to a value a thread, and take two truncated products
// each, by a constant of the centre and β times it.
#pragma once

#include "matrices.cuh"

#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)

// A warp's own shared memory: 32 values in rows of 48 bytes on the way in (no bank conflicts for ldmatrix), or 32 values and
// their carries on the way out.
#define SCRATCH_WORDS (32 * 12)

// 32 values of a warp as the left operand: two tiles of 16 rows.
struct Rows {
    u32 a[2][4];
};

// A warp's sums of byte columns: [tile of rows][tile of columns][row g column 0, 1, row g + 8 column 0, 1].
struct Sums {
    int at[2][4][4];
};

FN void mma(int *sum, const u32 *a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

FN void load_rows(u32 *a, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

FN void write_row(u32 *buffer, u32 lane, const Fe &v) {
    uint4 *row = (uint4 *)(buffer + lane * 12);
    row[0] = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
    row[1] = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
}

FN Rows rows_of(const u32 *buffer, u32 lane) {
    Rows r;
    u32 from = (u32)__cvta_generic_to_shared(buffer) + lane % 16 * 48 + lane / 16 * 16;
    load_rows(r.a[0], from);
    load_rows(r.a[1], from + 16 * 48);
    return r;
}

FN void multiply_add(Sums &s, const Rows &v, const uint4 *matrix, u32 lane) {
    uint4 low = __ldg(matrix + lane), high = __ldg(matrix + 32 + lane);
#pragma unroll
    for (int m = 0; m < 2; m++) {
        mma(s.at[m][0], v.a[m], low.x, low.y);
        mma(s.at[m][1], v.a[m], low.z, low.w);
        mma(s.at[m][2], v.a[m], high.x, high.y);
        mma(s.at[m][3], v.a[m], high.z, high.w);
    }
}

FN u32 two_columns(const int *sum) { return (u32)sum[0] + ((u32)sum[1] << 8); }

// Where a value stands on the way out, in words: 16 bytes stay free after every four, so that reading meets no bank conflicts.
FN u32 value_at(u32 row) { return row * 8 + row / 4 * 4; }

// Sums to a value a thread, through the scratch. What leaves 2^256 is folded once; Quick loses a carry out of limb 3 there.
template <Care care>
FN Fe settle(u32 *scratch, u32 lane, const Sums &s) {
    u32 row = lane / 4, quarter = lane % 4;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < 2; m++) {
        u32 carries[2];
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            u32 r = row + 16 * m + 8 * upper;
            u32 x0 = two_columns(s.at[m][0] + 2 * upper), y0 = two_columns(s.at[m][1] + 2 * upper);
            u32 x1 = two_columns(s.at[m][2] + 2 * upper), y1 = two_columns(s.at[m][3] + 2 * upper);
            // Two limbs x + 2^16·y of 47 bits; what leaves the first goes to the second.
            x1 += (y0 + (x0 >> 16)) >> 16;
            carries[upper] = y1 + (x1 >> 16);
            *(uint2 *)(scratch + r * 8 + ((quarter / 2 ^ (r >> 2 & 1)) * 4) + quarter % 2 * 2) = make_uint2(x0 + (y0 << 16), x1 + (y1 << 16));
        }
        scratch[value_at(32) + (row + 8 * m) * 4 + quarter] = __byte_perm(carries[0], carries[1], 0x7632);
    }
    __syncwarp();
    const uint4 *at = (const uint4 *)(scratch + lane * 8);
    u32 swap = lane >> 2 & 1;
    uint4 a = at[swap], b = at[swap ^ 1], c = *(const uint4 *)(scratch + value_at(32) + (lane % 8 + lane / 16 * 8) * 4);
    u32 pick = lane & 8 ? 0x4432 : 0x4410;
    Fe r = Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    u32 top = add_carries(r.v + 2, __byte_perm(c.x, 0, pick), __byte_perm(c.y, 0, pick), __byte_perm(c.z, 0, pick));
    top += __byte_perm(c.w, 0, pick);
    if (care == Quick) {
        fold_tiny(r.v, top * FOLD, top);
    } else {
        u32 carry = add_small(r.v, top * FOLD, top, 0);
        add_tiny(r.v, (0 - carry) & FOLD, carry);
    }
    return r;
}

FN void top_sums(int (&s)[2][2][4], const Rows &v, uint4 matrix) {
#pragma unroll
    for (int m = 0; m < 2; m++) {
        mma(s[m][0], v.a[m], matrix.x, matrix.y);
        mma(s[m][1], v.a[m], matrix.z, matrix.w);
    }
}

// The top 32 bits of W = c·t + d·t² and of β·W, low by one or two.
FN uint2 tops_of_sum(u32 *scratch, u32 lane, const Rows &t, const Rows &t2, const uint4 *matrix) {
    int s[2][2][4] = {};
    top_sums(s, t, __ldg(matrix + lane));
    top_sums(s, t2, __ldg(matrix + 32 + lane));
    u32 row = lane / 4, quarter = lane % 4;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            u32 low = two_columns(s[m][0] + 2 * upper), high = two_columns(s[m][1] + 2 * upper);
            // Even quarters hold bytes 24…27, of which only what carries into the top counts.
            scratch[(row + 16 * m + 8 * upper) * 4 + quarter] = quarter & 1 ? low + (high << 16) : (high + (low >> 16)) >> 16;
        }
    __syncwarp();
    uint4 parts = *(const uint4 *)(scratch + lane * 4);
    return make_uint2(parts.x + parts.y, parts.z + parts.w);
}

// Every lane's value as rows for the tensor cores.
FN Rows gather(u32 *scratch, u32 lane, const Fe &v) {
    __syncwarp();
    write_row(scratch, lane, v);
    __syncwarp();
    return rows_of(scratch, lane);
}

// The form. Of a centre's constants the first SHARED are kept in shared memory, the others in device memory.
template <int SHARED>
struct Tensor {
    static constexpr u32 THREADS = TENSOR_THREADS;
    static constexpr u32 SHARED_BYTES = TENSOR_SHARED_BYTES(SHARED);

    uint4 *shared, *global;  // of this thread
    u32 *scratch;

    FN Tensor(const Search &s, uint4 *memory) {
        shared = memory + threadIdx.x;
        global = (uint4 *)s.constants + (blockIdx.x * TENSOR_CONSTANTS * 2) * THREADS + threadIdx.x;
        scratch = (u32 *)(memory + SHARED * 2 * THREADS) + threadIdx.x / 32 * SCRATCH_WORDS;
    }

    FN uint4 *place(int n) const { return (n < SHARED ? shared : global) + 2 * n * THREADS; }

    FN void keep(int n, const Fe &v) {
        uint4 *at = place(n);
        at[0] = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
        at[THREADS] = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
    }

    FN Fe kept(int n) const {
        const uint4 *at = place(n);
        uint4 a = at[0], b = at[THREADS];
        return Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    }

    FN void keep_both(int n, const Fe &v) {
        keep(n, v);
        keep(n + 1, fe_mul(v, fe_beta()));
    }

    FN void stand_on(const Fe &x, const Fe &y) {
        Fe x2 = fe_sqr(x);
        keep(0, fe_canonical(fe_mul(x2, x)));
        keep_both(1, x);
        keep_both(3, x2);
        keep_both(5, fe_mul(x, y));
        keep_both(7, y);
        keep_both(9, fe_mul(x2, y));
    }

    FN Fe z() const { return kept(0); }

    FN void tops_by(u32 *three, int n, const Fe &v) const {
        three[0] = fe_top(v, kept(n));
        three[1] = fe_top(v, kept(n + 1));
        three[2] = 0 - three[0] - three[1];
    }

    // All lanes of the warp come here together.
    FN Tops tops(const Search &s, u32 i, const Entry &e, const Fe &, const Fe &t, u32 shift) const {
        const u32 lane = threadIdx.x % 32;
        const uint4 *matrix = (const uint4 *)s.matrices + i * MATRICES * (MATRIX_WORDS / 4);
        Rows t1 = gather(scratch, lane, t), t2 = gather(scratch, lane, fe_sqr<Quick>(t));
        Tops r;
        uint2 w1 = tops_of_sum(scratch, lane, t1, t2, matrix + (MATRICES - 1) * (MATRIX_WORDS / 4));
        r.a[1][0] = w1.x + e.x_top[0];
        r.a[1][1] = w1.y + e.x_top[1];
        r.a[1][2] = 0 - r.a[1][0] - r.a[1][1];
        u32 *results[5] = {r.a[0], r.a[2], r.b[0], r.b[1], r.b[2]};
#pragma unroll
        for (int n = 0; n < 5; n++) {
            Sums sums = {};
            if (n < 4) multiply_add(sums, t1, matrix + (2 * n) * (MATRIX_WORDS / 4), lane);
            multiply_add(sums, t2, matrix + (n < 4 ? 2 * n + 1 : 8) * (MATRIX_WORDS / 4), lane);
            tops_by(results[n], 2 * n + 1, settle<Quick>(scratch, lane, sums));
        }
        for (int m = 0; m < 3; m++) r.a[0][m] -= shift;
        return r;
    }
};

#endif
