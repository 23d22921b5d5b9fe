// One centre A = (xA, yA) against table entries I = i·G: six points, eighteen candidates (docs/search.md).
#pragma once

#include "field.cuh"

// What of a centre is the same for every entry.
struct Centre {
    Fe x, x2, y, z, beta_z;
    u32 x_top[2];  // top 32 bits of x and βx
};

FN Fe fe_load(const u32 *limbs) {
    Fe r;
    for (int i = 0; i < 8; i++) r.v[i] = limbs[i];
    return r;
}

// The same from an address that is a multiple of 16: two loads.
FN Fe fe_load_wide(const u32 *limbs) {
#ifdef __CUDA_ARCH__
    uint4 a = __ldg((const uint4 *)limbs), b = __ldg((const uint4 *)limbs + 1);
    return Fe{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
#else
    return fe_load(limbs);
#endif
}

FN Centre centre_of(const Fe &x, const Fe &y) {
    Centre c;
    c.x = x;
    c.y = y;
    c.x2 = fe_sqr(x);
    c.z = fe_canonical(fe_mul(c.x2, x));
    c.beta_z = fe_mul(c.z, fe_beta());
    c.x_top[0] = fe_canonical(x).v[7];
    c.x_top[1] = fe_canonical(fe_mul(x, fe_beta())).v[7];
    return c;
}

// The table entry of a point.
FN Entry entry_of(const Point &point) {
    Fe x = fe_load(point.x), y = fe_load(point.y), beta = fe_beta();
    Fe xx = fe_sqr(x), u = fe_canonical(fe_mul(xx, x));
    Fe two_u = fe_add(u, u), fourteen = fe_small(14), two_y = fe_add(y, y);
    Fe values[8] = {u, fe_add(two_u, fourteen), fe_add(two_u, u), x, fe_add(fe_add(xx, xx), xx), two_y, fe_mul(two_y, beta),
                    fe_mul(fe_add(u, fourteen), beta)};
    Entry e;
    u32 *out[8] = {e.u, e.two_u_14, e.three_u, e.x, e.three_xx, e.two_y, e.beta_two_y, e.beta_u_14};
    for (int n = 0; n < 8; n++) {
        Fe value = fe_canonical(values[n]);
        for (int i = 0; i < 8; i++) out[n][i] = value.v[i];
    }
    e.x_top[0] = e.x[7];
    e.x_top[1] = fe_canonical(fe_mul(x, beta)).v[7];
    e.unused[0] = e.unused[1] = 0;
    return e;
}

// The values whose sums are the eighteen tops: a[c][m] = [A'·Yc]_m with -[xA]_m folded into c = 0, and -[xi]_m into c = 1.
struct Tops {
    u32 a[3][3], b[3][3];
};

FN u32 tops_at(const Tops &t, int k, int minus, int j) {
    u32 even = t.a[0][j] + t.a[1][(j + k) % 3] + t.a[2][(j + 2 * k) % 3];
    u32 odd = t.b[0][j] + t.b[1][(j + k) % 3] + t.b[2][(j + 2 * k) % 3];
    return minus ? even + odd : even - odd;
}

// The truncated products of one entry. t = 1/(z - u), d = z - u; `shift` is taken from every top.
FN Tops tops_of(const Centre &c, const Entry &e, const Fe &d, const Fe &t, u32 shift) {
    Fe t2 = fe_sqr<Quick>(t);
    Fe h = fe_mul<Quick>(t2, fe_load_wide(e.three_u));
    Fe th = fe_add(t, h);
    Fe y[3];
    y[0] = fe_mul<Quick>(c.x, th);
    y[1] = fe_mul<Quick>(fe_add(t, th), fe_load_wide(e.x));
    y[2] = fe_mul<Quick>(fe_mul<Quick>(c.x2, t2), fe_load_wide(e.three_xx));
    Tops r;
    {
        Fe a = fe_add(d, fe_load_wide(e.two_u_14)), beta_a = fe_add(c.beta_z, fe_load_wide(e.beta_u_14));
#pragma unroll
        for (int i = 0; i < 3; i++) {
            r.a[i][0] = fe_top(a, y[i]);
            r.a[i][1] = fe_top(beta_a, y[i]);
            r.a[i][2] = 0 - r.a[i][0] - r.a[i][1];
        }
    }
    {
        Fe b = fe_mul<Quick>(c.y, fe_load_wide(e.two_y)), beta_b = fe_mul<Quick>(c.y, fe_load_wide(e.beta_two_y));
#pragma unroll
        for (int i = 0; i < 3; i++) {
            r.b[i][0] = fe_top(b, y[i]);
            r.b[i][1] = fe_top(beta_b, y[i]);
            r.b[i][2] = 0 - r.b[i][0] - r.b[i][1];
        }
    }
    u32 third_a = 0 - c.x_top[0] - c.x_top[1], third_i = 0 - e.x_top[0] - e.x_top[1];
    r.a[0][0] -= c.x_top[0] + shift;
    r.a[0][1] -= c.x_top[1] + shift;
    r.a[0][2] -= third_a + shift;
    r.a[1][0] -= e.x_top[0];
    r.a[1][1] -= e.x_top[1];
    r.a[1][2] -= third_i;
    return r;
}

// The form of the search that every GPU runs: all products on the integer pipe. `tensor.cuh` has the other.
struct Plain {
    Centre c;

    FN Plain(const Search &) {}
    FN Fe get_z() const { return c.z; }

    FN void stand_on(const Fe &x, const Fe &y) {
        c = centre_of(x, y);
    }

    FN Tops tops(const Search &s, u32 i, const Entry &e, const Fe &d, const Fe &t, u32 shift) const {
        return tops_of(c, e, d, t, shift);
    }
};
