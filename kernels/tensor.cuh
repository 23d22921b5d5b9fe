// The tensor variants of the search: every product by a constant of the table is computed on the
// tensor cores. They need compute capability 7.5.
//
// With t = 1/(z - u) and A' = u + z + 14: z·t = 1 + u·t, and so A'·t = 1 + (2u + 14)·t. The formula
// subtracts xA and xi anyway. Apart from these, each of the six sums that make up the top words is
// a constant of the centre times a linear function of (t, t²):
//
//     A'·Y0 - xA = xA·W0            W0 = (5u + 14)·t + 3u(2u + 14)·t²
//     A'·Y1 - xi = xi + W1          W1 = xi(7u + 28)·t + 3u·xi(2u + 14)·t²
//     A'·Y2      = xA²·W2           W2 = 3xi²·t + 3xi²(2u + 14)·t²
//     B·Y0       = xA·yA·V0         V0 = 2yi·t + 6u·yi·t²
//     B·Y1       = yA·V1            V1 = 4xi·yi·t + 6u·xi·yi·t²
//     B·Y2       = xA²·yA·V2        V2 = 6xi²·yi·t²
//
// By u·t = z·t - 1, W0 has only constants of the centre: xA·W0 = xA + xA(6z² + 42z)·t² - xA(7z + 28)·t.
//
// A warp multiplies its 32 values of t and t² at once, by m16n8k32. Of W1 only the top word is
// needed, and its matrix gives that directly. W2, V0, V1 and V2 return through the warp's shared
// memory, one value per thread. Each of them takes two truncated products: by a constant of the
// centre, and by β times that constant. The sum with xA takes four, of t and t² themselves.
//
// Entries are processed in groups of four. Forward, the product of a group's differences is a
// polynomial in z = xA³ whose coefficients are constants of the table. So the tensor cores compute
// it too, and the batch inversion needs one multiplication and one prefix product per group.
// Backward, they also compute the products of both pairs, and five multiplications give the inverse
// of each. One more gives t of the pair's upper entry, and the tensor cores that of its lower entry:
// 1/d₀ = 1/d₁ + (d₁ - d₀)·(1/(d₀·d₁)).
#pragma once

#include "matrices.cuh"

// A warp's own shared memory: 32 values in rows of 32 bytes, then their carries. In every second
// group of four rows the halves are swapped, which avoids bank conflicts.
#define SCRATCH_WORDS (32 * SCRATCH_BYTES / 4)
static_assert(SCRATCH_BYTES == 32 + 8, "a value and four carries of 16 bits");

// 32 values of a warp as the left operand: two tiles of 16 rows.
struct Rows {
    u32 a[2][4];
};

// Sums of byte columns of a warp: [tile of rows][tile of columns][row g column 0, 1, row g + 8
// column 0, 1].
struct Sums {
    int at[2][4][4];
};

FN void mma(int *sum, const u32 *a, u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    // The same in four parts, with the same layout.
#pragma unroll
    for (int part = 0; part < 4; part++)
        asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(sum[part % 2 * 2]), "+r"(sum[part % 2 * 2 + 1]) : "r"(a[part]), "r"(part < 2 ? b0 : b1));
#endif
}

FN void load_rows(u32 *a, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

FN uint4 *row_at(u32 *scratch, u32 row, u32 half) { return (uint4 *)scratch + row * 2 + (half ^ (row >> 2 & 1)); }

FN void write_row(u32 *scratch, u32 lane, const Fe &v) {
    *row_at(scratch, lane, 0) = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
    *row_at(scratch, lane, 1) = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
}

FN Rows rows_of(u32 *scratch, u32 lane) {
    Rows r;
    const u32 from = (u32)__cvta_generic_to_shared(row_at(scratch, lane % 16, lane / 16));
    load_rows(r.a[0], from);
    load_rows(r.a[1], from + 16 * 32);
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

// The sum of two neighbouring byte columns: sum[0] + 2^8·sum[1]. The sums are below 2^24, so the
// funnel shift brings in zeros from below. It becomes one LEA.HI, where the compiler would use the
// multiplier for a plain shift.
FN u32 two_columns(const int *sum) { return (u32)sum[0] + __funnelshift_l((u32)sum[0], (u32)sum[1], 8); }

// Eight neighbouring byte columns of a row: 64 bits, and what exceeds them. The products become
// shifted additions.
FN void join_columns(const Sums &s, int m, int upper, uint2 &low, u32 &carry) {
    const int *first = s.at[m][0] + 2 * upper;
    u64 v = wide_add(two_columns(s.at[m][1] + 2 * upper), 1 << 16, (u64)two_columns(s.at[m][2] + 2 * upper) << 32 | two_columns(first));
    u64 w = wide_add(two_columns(s.at[m][3] + 2 * upper), 1 << 16, v >> 32);
    low = make_uint2((u32)v, (u32)w), carry = (u32)(w >> 32);
}

// Turns sums into one value per thread, through the scratch memory. The carries are below 2^14. Of
// random values, one in 2^42 loses a carry (`add_apart`).
FN Fe settle(u32 *scratch, u32 lane, const Sums &s) {
    const u32 row = lane / 4, quarter = lane % 4;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < 2; m++) {
        u32 carry[2];
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            uint2 low;
            join_columns(s, m, upper, low, carry[upper]);
            ((uint2 *)row_at(scratch, row + 16 * m + 8 * upper, quarter / 2))[quarter % 2] = low;
        }
        scratch[256 + (row + 8 * m) * 4 + quarter] = __byte_perm(carry[0], carry[1], 0x5410);
    }
    __syncwarp();
    const uint4 a = *row_at(scratch, lane, 0), b = *row_at(scratch, lane, 1);
    const uint4 c = *(const uint4 *)(scratch + 256 + (lane % 8 + lane / 16 * 8) * 4);
    const u32 pick = lane & 8 ? 0x4432 : 0x4410;
    Fe r = Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    add_apart(r.v, __byte_perm(c.w, 0, pick), __byte_perm(c.x, 0, pick), __byte_perm(c.y, 0, pick), __byte_perm(c.z, 0, pick));
    return r;
}

FN void top_sums(int (&s)[2][2][4], const Rows &v, uint4 matrix) {
#pragma unroll
    for (int m = 0; m < 2; m++) {
        mma(s[m][0], v.a[m], matrix.x, matrix.y);
        mma(s[m][1], v.a[m], matrix.z, matrix.w);
    }
}

// The top 32 bits of W = c·t + d·t² and of β·W, one or two too low.
FN uint2 top_words_of_sum(u32 *scratch, u32 lane, const Rows &t, const Rows &t2, const uint4 *matrix) {
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
            // Even quarters hold bytes 24…27. Only their carry into the top word counts.
            scratch[(row + 16 * m + 8 * upper) * 4 + quarter] = quarter & 1 ? low + (high << 16) : (high + (low >> 16)) >> 16;
        }
    __syncwarp();
    uint4 parts = *(const uint4 *)(scratch + lane * 4);
    return make_uint2(parts.x + parts.y, parts.z + parts.w);
}

// Rearranges the values of all lanes as rows for the tensor cores.
FN Rows gather(u32 *scratch, u32 lane, const Fe &v) {
    __syncwarp();
    write_row(scratch, lane, v);
    __syncwarp();
    return rows_of(scratch, lane);
}

// A tensor variant of a block with this many bytes of shared memory and warps. The constants of a
// centre that fit beside the filter are in shared memory, the others in device memory.
template <u32 BYTES, u32 BLOCK, class Filter>
struct Tensor {
    static constexpr u32 BLOCK_WARPS = BLOCK, THREADS = 32 * BLOCK;
    static constexpr u32 FIT = (BYTES - Filter::SHARED_BYTES - THREADS * SCRATCH_BYTES) / (THREADS * 32);
    static constexpr u32 SHARED = FIT < CENTRE_CONSTANTS ? FIT : CENTRE_CONSTANTS;
    static constexpr u32 SHARED_BYTES = THREADS * (SHARED * 32 + SCRATCH_BYTES);
    static constexpr bool GROUPS = true;

    // The constants of a centre, those that are read most often first: six prepared factors, each
    // followed by β times it; z = xA³; the inverse of a pair's product; then powers of z, as values
    // or as rows for the tensor cores.
    enum { FACTORS, Z = 12, PAIR, Z_ROWS, Z2, Z2_ROWS, Z3_ROWS, Z4, END };
    static_assert(END == CENTRE_CONSTANTS, "as in constants.h");

    uint4 *shared, *global;  // of this thread
    u32 *scratch;
    u32 x_top[2];            // top 32 bits of xA and of β·xA

    FN Tensor(const Search &s, uint4 *memory) {
        shared = memory + threadIdx.x;
        global = (uint4 *)s.constants + (blockIdx.x * CENTRE_CONSTANTS * 2) * THREADS + threadIdx.x;
        scratch = (u32 *)(memory + SHARED * 2 * THREADS) + threadIdx.x / 32 * SCRATCH_WORDS;
    }

    FN u32 lane() const { return threadIdx.x % 32; }

    FN uint4 *place(int n) const { return (n < (int)SHARED ? shared : global) + 2 * n * THREADS; }

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

    FN void keep_rows(int n, const Fe &v) {
        Rows r = gather(scratch, lane(), v);
        uint4 *at = place(n);
        at[0] = make_uint4(r.a[0][0], r.a[0][1], r.a[0][2], r.a[0][3]);
        at[THREADS] = make_uint4(r.a[1][0], r.a[1][1], r.a[1][2], r.a[1][3]);
    }

    FN Rows kept_rows(int n) const {
        const uint4 *at = place(n);
        uint4 a = at[0], b = at[THREADS];
        return Rows{{{a.x, a.y, a.z, a.w}, {b.x, b.y, b.z, b.w}}};
    }

    template <Precision precision>
    FN void keep_factor(int n, const Fe &v) {
        keep(FACTORS + 2 * n, fe_ready<precision>(v));
        keep(FACTORS + 2 * n + 1, fe_ready<precision>(fe_mul(v, fe_beta())));
    }

    // All lanes of the warp must call this together, like everything that uses the tensor cores.
    template <Precision precision>
    FN void stand_on(const Fe &x, const Fe &y) {
        Fe x2 = fe_sqr(x), z = fe_canonical(fe_mul(x2, x)), z2 = fe_sqr(z);
        x_top[0] = fe_canonical(x).v[7];
        x_top[1] = fe_canonical(fe_mul(x, fe_beta())).v[7];
        keep_factor<precision>(0, fe_sub(fe_small(0), fe_mul(x, fe_add(fe_mul(z, fe_small(7)), fe_small(28)))));
        keep_factor<precision>(1, fe_mul(x, fe_mul(z, fe_add(fe_mul(z, fe_small(6)), fe_small(42)))));
        keep_factor<precision>(2, x2);
        keep_factor<precision>(3, fe_mul(x, y));
        keep_factor<precision>(4, y);
        keep_factor<precision>(5, fe_mul(x2, y));
        keep(Z, z);
        keep_rows(Z_ROWS, z);
        keep(Z2, z2);
        keep_rows(Z2_ROWS, z2);
        keep_rows(Z3_ROWS, fe_mul(z2, z));
        keep(Z4, fe_sqr(z2));
    }

    FN Fe z() const { return kept(Z); }

    // A matrix of a group, or what follows the matrices.
    FN const uint4 *of_group(const Search &s, u32 group, u32 matrix) const {
        return (const uint4 *)s.groups + group * (GROUP_BYTES / 16) + matrix * (MATRIX_BYTES / 16);
    }

    // The value of a polynomial in z: the sums of its lower powers, its highest power (coefficient
    // 1), and its term without z.
    FN Fe product_of(const Search &s, u32 group, const Sums &sums, int power, u32 term) const {
        Fe r = settle(scratch, lane(), sums);
        u32 carry = add8(r.v, r.v, kept(power).v);
        carry += add8(r.v, r.v, fe_load_wide((const u32 *)(of_group(s, group, GROUP_MATRICES) + 2 * term)).v);
        add_small_quick(r.v, carry * FOLD, carry, 0);
        return r;
    }

    // The product of the four differences z - u of a group: a polynomial in z whose coefficients
    // are constants of the table.
    FN Fe product_of_four(const Search &s, u32 group) const {
        Sums sums = {};
        multiply_add(sums, kept_rows(Z3_ROWS), of_group(s, group, 0), lane());
        multiply_add(sums, kept_rows(Z2_ROWS), of_group(s, group, 1), lane());
        multiply_add(sums, kept_rows(Z_ROWS), of_group(s, group, 2), lane());
        return product_of(s, group, sums, Z4, 0);
    }

    // The product of the two differences of a pair.
    FN Fe product_of_two(const Search &s, u32 group, u32 pair) const {
        Sums sums = {};
        multiply_add(sums, kept_rows(Z_ROWS), of_group(s, group, 3 + pair), lane());
        return product_of(s, group, sums, Z2, 1 + pair);
    }

    // The inverse of the lower difference of a pair, from that of its product and that of its upper
    // difference.
    FN Fe lower_of_pair(const Search &s, u32 group, u32 pair, const Fe &of_pair, const Fe &upper) const {
        Sums sums = {};
        multiply_add(sums, gather(scratch, lane(), of_pair), of_group(s, group, 5 + pair), lane());
        return fe_add<Quick>(settle(scratch, lane(), sums), upper);
    }

    // The top words of factor N times its W or V, and of β and β² times that product.
    template <Precision precision, int N>
    FN void product_top_words(u32 (&three)[3], const Rows &t1, const Rows &t2, const uint4 *matrix) const {
        constexpr int FIRST = 2 * (N - 2);
        Sums sums = {};
        if (N < 5) multiply_add(sums, t1, matrix + FIRST * (MATRIX_BYTES / 16), lane());
        multiply_add(sums, t2, matrix + (FIRST + (N < 5)) * (MATRIX_BYTES / 16), lane());
        // Loaded before the scratch memory is used, because the compiler moves no load across that.
        Fe factor = kept(FACTORS + 2 * N);
        Fe w = settle(scratch, lane(), sums);
        three[0] = fe_top_word_ready<precision>(w, factor);
        three[1] = fe_top_word_ready<precision>(w, kept(FACTORS + 2 * N + 1));
        three[2] = 0 - three[0] - three[1];
    }

    template <Precision precision>
    FN TopWords top_words(const Search &s, u32 i, const Entry &e, const Fe &, const Fe &t, u32 shift) const {
        const uint4 *matrix = (const uint4 *)s.matrices + i * MATRICES * (MATRIX_BYTES / 16);
        Fe tt = fe_sqr<Quick>(t);
        Rows t1 = gather(scratch, lane(), t), t2 = gather(scratch, lane(), tt);
        uint2 w1 = top_words_of_sum(scratch, lane(), t1, t2, matrix + (MATRICES - 1) * (MATRIX_BYTES / 16));
        TopWords r;
        r.a[0][0] = fe_top_word_ready<precision>(t, kept(FACTORS), tt, kept(FACTORS + 2)) + x_top[0];
        r.a[0][1] = fe_top_word_ready<precision>(t, kept(FACTORS + 1), tt, kept(FACTORS + 3)) + x_top[1];
        r.a[1][0] = w1.x + e.x_top[0];
        r.a[1][1] = w1.y + e.x_top[1];
#pragma unroll
        for (int c = 0; c < 2; c++) r.a[c][2] = 0 - r.a[c][0] - r.a[c][1];
        product_top_words<precision, 2>(r.a[2], t1, t2, matrix);
        product_top_words<precision, 3>(r.b[0], t1, t2, matrix);
        product_top_words<precision, 4>(r.b[1], t1, t2, matrix);
        product_top_words<precision, 5>(r.b[2], t1, t2, matrix);
#pragma unroll
        for (int m = 0; m < 3; m++) r.a[0][m] -= shift;
        return r;
    }
};
