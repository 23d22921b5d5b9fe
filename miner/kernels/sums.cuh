// The eighteen keys of a table entry from three sums, with the fewest products known.
//
// With q = 2·xA·t, t = 1/(z - u) and s = √-3 (docs/developers/search.md, "On the CPU"):
//
//     e0 = (s·xA/2)·q         e1 = (s·xi/2)·q          g = 1/(s·xA)
//     y0 = e0² + q            y1 = e1·(e0 + g)         y2 = e1²          (-Y0, -Y1, -Y2)
//     S_k = y0 + β^k·y1 + β^2k·y2                      F± = -(u + z + 14) ± 2yi·yA
//     x(A ± λ^k·I) = F±·S_k - xA - β^k·xi
#pragma once

#include "points.cuh"

// Field elements of a centre; the sums S_k and the factors F± of an entry.
enum { SUM_Z, SUM_HALF_S_X, SUM_INVERSE_S_X, SUM_MINUS_X, SUM_S, SUM_F = SUM_S + 3, SUM_END = SUM_F + 2 };
static_assert(SUM_END == WHOLE_FIELDS, "as in constants.h");

// s/2 and 1/s.
FN Fe fe_half_s() {
    return Fe{{0xf1950006u, 0xc1396c27u, 0x12f58995u, 0x9cf04975u, 0xac3434e9u, 0x6e64479eu, 0x657c0710u, 0xfae96a2bu}};
}
FN Fe fe_inverse_s() {
    return Fe{{0x5ef1fc2bu, 0x29d9b7e4u, 0x9e06f99cu, 0xecb5245cu, 0x37dd320eu, 0x0bbd2596u, 0x6702a5f5u, 0x58b9b938u}};
}

// Computes the entry of a point.
FN WholeEntry whole_entry_of(const Point &point) {
    Fe x = fe_load(point.x), y = fe_load(point.y), beta_x = fe_mul(x, fe_beta());
    Fe u = fe_mul(fe_sqr(x), x);
    Fe values[7] = {u, fe_mul(x, fe_half_s()), fe_add(y, y), fe_sub(Fe{}, fe_add(u, fe_small(14))), fe_sub(Fe{}, x),
                    fe_sub(Fe{}, beta_x), fe_add(x, beta_x)};
    WholeEntry e;
    u32 *out[7] = {e.u, e.half_s_x, e.two_y, e.minus_u_14, e.minus_x[0], e.minus_x[1], e.minus_x[2]};
    for (int n = 0; n < 7; n++) {
        Fe value = fe_canonical(values[n]);
        for (int i = 0; i < 8; i++) out[n][i] = value.v[i];
    }
    return e;
}

// Keeps the values that are the same for all entries of a centre, except 1/(s·xA), which comes with the
// inversion. `kept` has `get(n)` and `set(n, value)`.
template <class Kept>
FN void keep_centre(Kept &kept, const Fe &x) {
    kept.set(SUM_Z, fe_canonical(fe_mul(fe_sqr(x), x)));
    kept.set(SUM_HALF_S_X, fe_mul(x, fe_half_s()));
    kept.set(SUM_MINUS_X, fe_negative(x));
}

// Keeps the sums and factors of an entry. `y` is that of the centre.
template <class Kept>
FN void keep_sums(Kept &kept, const WholeEntry &e, const Fe &y, const Fe &q) {
    Fe e0 = fe_mul<Quick>(kept.get(SUM_HALF_S_X), q), e1 = fe_mul<Quick>(fe_load_wide(e.half_s_x), q);
    Fe y0 = fe_add<Quick>(fe_sqr<Quick>(e0), q), y2 = fe_sqr<Quick>(e1);
    Fe y1 = fe_mul<Quick>(e1, fe_add<Quick>(e0, kept.get(SUM_INVERSE_S_X)));
    // β² is -1 - β, and β⁴ is β.
    Fe turned = fe_mul<Quick>(fe_sub<Quick>(y1, y2), fe_beta());
    kept.set(SUM_S, fe_add<Quick>(fe_add<Quick>(y0, y1), y2));
    kept.set(SUM_S + 1, fe_add<Quick>(fe_sub<Quick>(y0, y2), turned));
    kept.set(SUM_S + 2, fe_sub<Quick>(fe_sub<Quick>(y0, y1), turned));
    Fe b = fe_mul<Quick>(y, fe_load_wide(e.two_y));
    Fe a = fe_sub<Quick>(fe_load_wide(e.minus_u_14), kept.get(SUM_Z));
    kept.set(SUM_F, fe_add<Quick>(a, b));
    kept.set(SUM_F + 1, fe_sub<Quick>(a, b));
}

// x(A ± λ^k·I), with sign 1 for minus.
template <class Kept>
FN Fe point_of_sums(const Kept &kept, const WholeEntry &e, u32 k, u32 sign) {
    return fe_mul_add<Quick>(kept.get(SUM_F + sign), kept.get(SUM_S + k), kept.get(SUM_MINUS_X), fe_load_wide(e.minus_x[k]));
}
