/* A = Z diag(w) Z^H of a Hermitian member, w ascending, in the layout `alone` of lu.h: reduced to a
   real tridiagonal T = Q^H A Q by reflectors (qr.h), T diagonalised by implicit QL (ql.h),
   whose rotations turn the rows of Q^T. A power of two brings the largest entry near 1 first. */

/* The Hermitian matrix of the triangle j >= i, times `scale`. */
INLINE void OWN(mirror)(E *a, ptrdiff_t n, ptrdiff_t ld, REAL scale)
{
    for (ptrdiff_t i = 0; i < n; ++i)
        for (ptrdiff_t u = i / W; u < ld; ++u)
            a[i * ld + u] = OWN(scaled)(a[i * ld + u], OWN(all)(scale));
    for (ptrdiff_t i = 0; i < n; ++i) {
#if COMPLEX
        OWN(number)(a + i * ld, i)[W] = 0;
#endif
        for (ptrdiff_t j = i + 1; j < n; ++j) {
            const REAL *from = OWN(number)(a + i * ld, j);
            REAL *to = OWN(number)(a + j * ld, i);
            to[0] = from[0];
#if COMPLEX
            to[W] = -from[W];
#endif
        }
    }
}

/* T = Q^H A Q, Q = H[0] H[1] ... H[n - 2]: T's diagonals d and e, row k of `v` the vector of H[k],
   zero up to k; w: a row of elements. */
INLINE void OWN(tridiagonal)(E *a, ptrdiff_t n, ptrdiff_t ld, double *d, double *e, E *v, E *tau,
                             E *w)
{
    VI lanes = OWN(lanes)();
    E none = {{0}};
    for (ptrdiff_t k = 0; k + 1 < n; ++k, v += ld) {
        ptrdiff_t u0 = (k + 1) / W, i = k + 1;
        E *row = a + k * ld;
        REAL beta;
        d[k] = OWN(number)(row, k)[0];
        for (ptrdiff_t u = u0; u < ld; ++u)
            v[u] = OWN(conjugate)(row[u]);
        tau[k] = OWN(row_reflector)(v, k + 1, ld, &beta);
        e[k] = beta;

        /* p = A v by rows, for A is Hermitian; w = tau p - |tau|^2 (v^H p) v / 2 */
        for (ptrdiff_t u = u0; u < ld; ++u)
            w[u] = none;
#define MULTIPLY(R)                                                                              \
    do {                                                                                         \
        E x[R];                                                                                  \
        for (int r = 0; r < R; ++r)                                                              \
            x[r] = OWN(spread)(OWN(number)(v, i + r));                                           \
        for (ptrdiff_t u = u0; u < ld; ++u) {                                                    \
            E y = w[u];                                                                          \
            for (int r = 0; r < R; ++r)                                                          \
                y = OWN(plus_product)(y, x[r], a[(i + r) * ld + u]);                             \
            w[u] = y;                                                                            \
        }                                                                                        \
    } while (0)
        for (; i + 4 <= n; i += 4)
            MULTIPLY(4);
        for (; i < n; ++i)
            MULTIPLY(1);
        w[u0] = OWN(choose)((VI)(lanes > (INTEGER)(k - u0 * W)), w[u0], none);
        V inner = {0};
        for (ptrdiff_t u = u0; u < ld; ++u) {
            w[u] = OWN(conjugate)(w[u]);
            inner += OWN(plus_product)(none, v[u], w[u]).re;
        }
        V half = OWN(plus_square)((V){0}, tau[k]) * (REAL)0.5 * OWN(sum_of)(inner);
        for (ptrdiff_t u = u0; u < ld; ++u)
            w[u] = OWN(minus)(OWN(times)(tau[k], w[u]), OWN(scaled)(v[u], half));

        /* A -= v w^H + w v^H */
        for (ptrdiff_t u = 0; u < ld - u0; ++u)
            w[ld + u] = OWN(conjugate)(v[u0 + u]);
        for (i = k + 1; i < n; ++i) {
            E x = OWN(spread)(OWN(number)(v, i)), y = OWN(spread)(OWN(number)(w, i));
            E *out = a + i * ld;
            for (ptrdiff_t u = u0; u < ld; ++u)
                out[u] = OWN(less)(OWN(less)(out[u], x, OWN(conjugate)(w[u])), y, w[ld + u - u0]);
        }
    }
    d[n - 1] = OWN(number)(a + (n - 1) * ld, n - 1)[0];
}

/* Rows `from` + `count` down to `from` of z: each pair turned by its rotation, from the last. */
INLINE void OWN(turn_rows)(E *z, ptrdiff_t ld, ptrdiff_t from, ptrdiff_t count, const double *c,
                           const double *s)
{
    for (ptrdiff_t u = 0; u < ld; u += 2) {
        E *at = z + (from + count) * ld + u, x = at[0], y = u + 1 < ld ? at[1] : at[0];
        for (ptrdiff_t i = count - 1; i >= 0; --i) {
            V cosine = OWN(all)((REAL)c[i]), sine = OWN(all)((REAL)s[i]);
            E *below = at - ld, p = below[0], q = u + 1 < ld ? below[1] : below[0];
            at[0].re = sine * p.re + cosine * x.re;
            x.re = cosine * p.re - sine * x.re;
#if COMPLEX
            at[0].im = sine * p.im + cosine * x.im;
            x.im = cosine * p.im - sine * x.im;
#endif
            if (u + 1 < ld) {
                at[1].re = sine * q.re + cosine * y.re;
                y.re = cosine * q.re - sine * y.re;
#if COMPLEX
                at[1].im = sine * q.im + cosine * y.im;
                y.im = cosine * q.im - sine * y.im;
#endif
            }
            at = below;
        }
        at[0] = x;
        if (u + 1 < ld)
            at[1] = y;
    }
}

static void OWN(turn_rows_of)(void *z, ptrdiff_t ld, ptrdiff_t from, ptrdiff_t count,
                              const double *c, const double *s)
{
    OWN(turn_rows)(z, ld, from, count, c, s);
}

static void OWN(syevd_alone)(const problem *p, ptrdiff_t member, E *a)
{
    ptrdiff_t n = p->n, ld = (n + W - 1) / W;
    E *z = a + n * ld, *tau = z + n * ld, *w = tau + n;
    double *d = (double *)(w + 2 * ld), *e = d + n, *cs = e + n;
    REAL top = 0;
    OWN(pack_alone)(a, ld, &p->a, member, n, n, 1, (int)p->conjugate);
    for (ptrdiff_t i = 0; i < n; ++i)
        for (ptrdiff_t j = i; j < n; ++j) {
            const REAL *x = OWN(number)(a + i * ld, j);
            for (int part = 0; part < PARTS; ++part)
                top = ABS(x[part * W]) > top ? ABS(x[part * W]) : top;
        }
    int power = 0;
    if (top > 0 && top < INFINITY)
        frexp(top, &power);
    power = power < LEAST_POWER ? LEAST_POWER : power;
    OWN(mirror)(a, n, ld, (REAL)ldexp(1, -power));
    OWN(tridiagonal)(a, n, ld, d, e, z, tau, w);
    int flip = fabs(d[n - 1]) < fabs(d[0]); /* QL wants the large end last */
    if (p->nrhs) {
        OWN(form)(a, n, n, n - 1, 1, z, ld, tau, w);
        OWN(transpose)(a, n, n, z, ld, flip);
    }
    if (flip) {
        turn_round(d, n);
        turn_round(e, n - 1);
    }
    p->info[member] = ql(d, e, n, EPSILON, cs, p->nrhs ? OWN(turn_rows_of) : NULL, z, ld);
    for (ptrdiff_t j = 0; j < n; ++j) {
        ptrdiff_t least = 0;
        for (ptrdiff_t i = 1; i < n; ++i)
            if (!(d[i] >= d[least]))
                least = i;
        REAL value = (REAL)ldexp(d[least], power);
        d[least] = INFINITY;
        OWN(store)(p->x.data + member * p->x.step + j * p->x.row, value);
        if (p->nrhs)
            OWN(unpack_turned)(z + least * ld, &p->f, member, j, n, 0, 0);
    }
}

static void OWN(syevd)(const problem *p, ptrdiff_t lo, ptrdiff_t hi, void *scratch)
{
    for (; lo < hi; ++lo)
        OWN(syevd_alone)(p, lo, scratch);
}
