// The second form of the search: every product by a constant of the table on the tensor cores.
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
// A product by c is a matrix of bytes: row k is c·2^8k mod p, and the bytes of t times the rows, summed, are c·t. A warp
// multiplies its 32 values of t and t² at once by m16n8k32. Columns are ordered so that a lane gets eight neighbouring
// byte columns of four values. Of W1 only the top is wanted, so that its matrix has only the top eight bytes of W1 and β·W1.
#pragma once

#include "points.cuh"

// Matrices of an entry: the factors of t and t² for W0, W2, V0, V1, that of t² for V2, and the one of W1.
#define MATRICES 10
#define MATRIX_WORDS 256
// xA, xA², xA·yA, yA, xA²·yA, each followed by β times it.
#define CENTRE_CONSTANTS 10
#ifdef ZS
#define KEPT 11
#else
#define KEPT 10
#endif

// A warp's own shared memory: two buffers, of 32 values in rows of 48 bytes on the way in (no bank conflicts for ldmatrix),
// of 32 values and their carries on the way out.
#define BUFFER_WORDS (32 * 12)
#define SCRATCH_WORDS (2 * BUFFER_WORDS)

// Where byte `position` (0…31) of row k stands in a matrix, as a byte offset: lane's eight words hold tiles 0…3 in turn.
FN u32 matrix_offset(u32 k, u32 position) {
    u32 column = position / 8 * 2 + position % 2, tile = position % 8 / 2;
    u32 lane = column * 4 + k % 16 / 4, word = tile * 2 + k / 16;
    return ((word / 4 * 32 + lane) * 4 + word % 4) * 4 + k % 4;
}

// The same for the tops of W1: bytes 24…31 of c (half 0, for t) and of d (half 1, for t²), then of βc and βd.
FN u32 top_matrix_offset(u32 k, u32 half, u32 beta, u32 position) {
    u32 column = (beta * 2 + position / 4) * 2 + position % 2, tile = position % 4 / 2;
    u32 lane = column * 4 + k % 16 / 4, word = tile * 2 + k / 16;
    return ((half * 32 + lane) * 4 + word) * 4 + k % 4;
}

#ifdef __CUDACC__

// A thread a row k of all of an entry's matrices.
extern "C" __global__ void build_matrices(const Entry *table, unsigned char *matrices, u32 count) {
    u32 n = blockIdx.x * blockDim.x + threadIdx.x, i = n / 32, k = n % 32;
    if (i >= count) return;
    const Entry &e = table[i];
    Fe u = fe_load(e.u), x = fe_load(e.x), two_y = fe_load(e.two_y), three_u = fe_load(e.three_u);
    Fe three_xx = fe_load(e.three_xx), two_u_14 = fe_load(e.two_u_14), four_u_28 = fe_add(two_u_14, two_u_14);
    Fe v0 = fe_mul(three_u, two_y), w0 = fe_mul(three_u, two_u_14);
    Fe factors[MATRICES + 1] = {
        fe_add(three_u, two_u_14), w0,
        three_xx, fe_mul(three_xx, two_u_14),
        two_y, v0,
        fe_mul(fe_add(two_y, two_y), x), fe_mul(v0, x),
        fe_mul(three_xx, two_y),
        fe_mul(fe_add(three_u, four_u_28), x), fe_mul(w0, x),
    };
    Fe shift = fe_small(0);
    for (u32 word = 0; word < 8; word++) shift.v[word] = word == k / 4 ? 1u << 8 * (k % 4) : 0;
    unsigned char *out = matrices + (size_t)i * MATRICES * MATRIX_WORDS * 4;
    for (u32 m = 0; m < MATRICES + 1; m++) {
        Fe row = fe_mul(factors[m], shift);
        if (m < MATRICES - 1) {
            row = fe_canonical(row);
            for (u32 at = 0; at < 32; at++) out[m * MATRIX_WORDS * 4 + matrix_offset(k, at)] = row.v[at / 4] >> 8 * (at % 4);
            continue;
        }
        for (u32 beta = 0; beta < 2; beta++) {
            Fe top = fe_canonical(beta ? fe_mul(row, fe_beta()) : row);
            for (u32 at = 0; at < 8; at++) {
                u32 byte = top.v[6 + at / 4] >> 8 * (at % 4);
                out[(MATRICES - 1) * MATRIX_WORDS * 4 + top_matrix_offset(k, m - (MATRICES - 1), beta, at)] = byte;
            }
        }
    }
}

#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)

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

// Sums to a value a thread, through the buffer. What leaves 2^256 is folded once; a carry out of limb 3 there, or
// out of the top after it, is lost: once in 2^64 values, and only a candidate is at stake.
FN Fe settle(u32 *buffer, u32 lane, const Sums &s) {
    u32 row = lane / 4, quarter = lane % 4;
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
            // The two 16-byte halves of every other four rows change places: no bank conflicts on reading.
            *(uint2 *)(buffer + r * 8 + ((quarter / 2 ^ (r >> 2 & 1)) * 4) + quarter % 2 * 2) =
                make_uint2(x0 + (y0 << 16), x1 + (y1 << 16));
        }
        buffer[256 + (row + 8 * m) * 4 + quarter] = __byte_perm(carries[0], carries[1], 0x7632);
    }
    __syncwarp();
    const uint4 *at = (const uint4 *)(buffer + lane * 8);
    u32 swap = lane >> 2 & 1;
    uint4 a = at[swap], b = at[swap ^ 1];
    uint4 c = *(const uint4 *)(buffer + 256 + (lane % 8 + lane / 16 * 8) * 4);
    u32 pick = lane & 8 ? 0x4432 : 0x4410;
    Fe r = Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    u32 top = add_carries(r.v + 2, __byte_perm(c.x, 0, pick), __byte_perm(c.y, 0, pick), __byte_perm(c.z, 0, pick));
    top += __byte_perm(c.w, 0, pick);
    fold_tiny(r.v, top * FOLD, top);
    return r;
}

FN void top_sums(int (&s)[2][2][4], const Rows &v, uint4 matrix) {
#pragma unroll
    for (int m = 0; m < 2; m++) {
        mma(s[m][0], v.a[m], matrix.x, matrix.y);
        mma(s[m][1], v.a[m], matrix.z, matrix.w);
    }
}

// The top 32 bits of W1 and β·W1, low by one or two.
FN uint2 tops_of_w1(u32 *buffer, u32 lane, const Rows &t, const Rows &t2, const uint4 *matrix) {
    int s[2][2][4] = {};
    top_sums(s, t, __ldg(matrix + lane));
    top_sums(s, t2, __ldg(matrix + 32 + lane));
    u32 row = lane / 4, quarter = lane % 4;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            u32 low = two_columns(s[m][0] + 2 * upper), high = two_columns(s[m][1] + 2 * upper);
            // Even quarters hold bytes 24…27, of which only what carries into the top counts.
            buffer[(row + 16 * m + 8 * upper) * 4 + quarter] = quarter & 1 ? low + (high << 16) : (high + (low >> 16)) >> 16;
        }
    __syncwarp();
    uint4 parts = *(const uint4 *)(buffer + lane * 4);
    return make_uint2(parts.x + parts.y, parts.z + parts.w);
}

struct Tensor {
#ifndef ZS
    Fe z;
    FN Fe get_z() const { return z; }
#else
    FN Fe get_z() const { return kept(CENTRE_CONSTANTS); }
#endif
    u32 *scratch;
    uint4 *constants;  // of this thread: THREADS apart

#ifdef CONST_GLOBAL
    FN Tensor(const Search &s) {
        extern __shared__ uint4 shared[];
        constants = (uint4 *)s.constants + blockIdx.x * 2 * CENTRE_CONSTANTS * THREADS + threadIdx.x;
        scratch = (u32 *)shared + threadIdx.x / 32 * SCRATCH_WORDS;
    }
#else
    FN Tensor(const Search &) {
        extern __shared__ uint4 shared[];
        constants = shared + threadIdx.x;
        scratch = (u32 *)(shared + KEPT * 2 * THREADS) + threadIdx.x / 32 * SCRATCH_WORDS;
    }
#endif

    FN void keep(u32 n, const Fe &v) {
        constants[(2 * n) * THREADS] = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
        constants[(2 * n + 1) * THREADS] = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
    }

    FN Fe kept(u32 n) const {
        uint4 a = constants[(2 * n) * THREADS], b = constants[(2 * n + 1) * THREADS];
        return Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    }

    FN void keep_both(u32 n, const Fe &v) {
        keep(2 * n, v);
        keep(2 * n + 1, fe_mul(v, fe_beta()));
    }

    FN void stand_on(const Fe &x, const Fe &y) {
        Fe x2 = fe_sqr(x);
#ifdef ZS
        keep(CENTRE_CONSTANTS, fe_canonical(fe_mul(x2, x)));
#else
        z = fe_canonical(fe_mul(x2, x));
#endif
        keep_both(0, x);
        keep_both(1, x2);
        keep_both(2, fe_mul(x, y));
        keep_both(3, y);
        keep_both(4, fe_mul(x2, y));
    }

    FN void tops_by(u32 *two, u32 n, const Fe &v) const {
        two[0] = fe_top(v, kept(2 * n));
        two[1] = fe_top(v, kept(2 * n + 1));
        two[2] = 0 - two[0] - two[1];
    }

    // All lanes of the warp come here together.
    FN Tops tops(const Search &s, u32 i, const Entry &e, const Fe &d, const Fe &t, u32 shift) const {
        const u32 lane = threadIdx.x % 32;
        const uint4 *matrix = (const uint4 *)s.matrices + (size_t)i * MATRICES * (MATRIX_WORDS / 4);
        u32 *first = scratch, *second = scratch + BUFFER_WORDS;
        __syncwarp();
        write_row(first, lane, t);
        write_row(second, lane, fe_sqr<Quick>(t));
        __syncwarp();
        Rows t1 = rows_of(first, lane), t2 = rows_of(second, lane);
        __syncwarp();
        Tops r;
        uint2 w1 = tops_of_w1(first, lane, t1, t2, matrix + 9 * (MATRIX_WORDS / 4));
        r.a[1][0] = w1.x + e.x_top[0];
        r.a[1][1] = w1.y + e.x_top[1];
        r.a[1][2] = 0 - r.a[1][0] - r.a[1][1];
        u32 *results[5] = {r.a[0], r.a[2], r.b[0], r.b[1], r.b[2]};
#pragma unroll
        for (int n = 0; n < 5; n++) {
            Sums sums = {};
            if (n < 4) multiply_add(sums, t1, matrix + (2 * n) * (MATRIX_WORDS / 4), lane);
            multiply_add(sums, t2, matrix + (n < 4 ? 2 * n + 1 : 8) * (MATRIX_WORDS / 4), lane);
            tops_by(results[n], n, settle(n % 2 ? first : second, lane, sums));
        }
        for (int m = 0; m < 3; m++) r.a[0][m] -= shift;
        return r;
    }
};

#endif
#endif
