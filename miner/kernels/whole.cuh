// The search that compares whole keys, for patterns that restrict the first 32 bits little: all
// eighteen x-coordinates of an entry, their checksums, and tests of their texts. What passes a test
// is a suspect, which `confirm` checks exactly.
//
// With S_k = Y0 + β^k·Y1 + β^2k·Y2 (docs/developers/search.md):
//
//     x(A ± λ^k·I) = (A' ∓ B)·S_k - xA - β^k·xi      then β·x by a product, and β²·x = -x - β·x
#pragma once

#include "text_tests.cuh"

// The x-coordinates of the six points of an entry that only the sign and the turn distinguish.
// t = 1/(z - u), d = z - u. Calls `use(which, x)` with each of the eighteen, below p.
template <class Use>
FN void for_each_key(const Centre &c, const Entry &e, const Fe &d, const Fe &t, Use use) {
    Fe t2 = fe_sqr<Quick>(t), h = fe_mul<Quick>(t2, fe_load_wide(e.three_u)), th = fe_add(t, h);
    Fe xi = fe_load_wide(e.x), y0 = fe_mul<Quick>(c.x, th), y1 = fe_mul<Quick>(fe_add(t, th), xi);
    Fe y2 = fe_mul<Quick>(fe_mul<Quick>(c.x2, t2), fe_load_wide(e.three_xx));
    Fe turned = fe_sub(fe_mul<Quick>(y1, fe_beta()), fe_mul<Quick>(y2, fe_beta()));
    // β² is -1 - β, and β⁴ is β.
    Fe s[3] = {fe_add(fe_add(y0, y1), y2), fe_add(fe_sub(y0, y2), turned), fe_sub(fe_sub(y0, y1), turned)};
    Fe a = fe_add(d, fe_load_wide(e.two_u_14)), b = fe_mul<Quick>(c.y, fe_load_wide(e.two_y));
    Fe factors[2] = {fe_sub(a, b), fe_add(a, b)};
    Fe beta_xi = fe_mul<Quick>(xi, fe_beta());
    Fe both[3] = {fe_add(c.x, xi), fe_add(c.x, beta_xi), fe_sub(fe_sub(c.x, xi), beta_xi)};
#pragma unroll 1
    for (u32 point = 0; point < 6; point++) {
        Fe x = fe_canonical(fe_sub(fe_mul<Quick>(factors[0], s[0]), both[0]));
        Fe beta_x = fe_canonical(fe_mul<Quick>(x, fe_beta()));
        u32 which = 3 * point;
        use(which, x);
        use(which + 1, beta_x);
        use(which + 2, fe_canonical(fe_sub(fe_sub(Fe{}, x), beta_x)));
        // Registers have no index: the values take turns at index 0.
        Fe factor = factors[0];
        factors[0] = factors[1], factors[1] = factor;
        if (point % 2) {
            Fe first = s[0], sum = both[0];
            s[0] = s[1], s[1] = s[2], s[2] = first;
            both[0] = both[1], both[1] = both[2], both[2] = sum;
        }
    }
}

#ifdef __CUDACC__
// The filter of this search, in place of one for top words.
struct WholeKeys {
    static constexpr bool IS_WHOLE = true, DEFERS = false;
    static constexpr Precision PRECISION = Fine;
    const WholeSearch &w;
    u32 *checksums, *accepted;

    FN WholeKeys(const Search &, u32 *shared, const WholeSearch &whole)
        : w(whole), checksums(shared), accepted(shared + CHECKSUM_WORDS) {
        for (u32 i = threadIdx.x; i < CHECKSUM_WORDS; i += blockDim.x) checksums[i] = w.checksums[i];
        for (u32 i = threadIdx.x; i < ACCEPTED_WORDS; i += blockDim.x) accepted[i] = w.accepted[i];
        __syncthreads();
    }
    FN u32 shift() const { return 0; }

    FN u32 test(const Centre &c, const Entry &e, const Fe &d, const Fe &t) const {
        u32 found = 0;
        for_each_key(c, e, d, t, [&](u32 which, const Fe &x) {
            found |= (u32)passes(w, accepted, checksums, x) << which;
        });
        return found;
    }
};
#endif
