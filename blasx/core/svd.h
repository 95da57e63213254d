/* A = U diag(s) V^H of a member with m >= n, s descending, in the layout `alone` of lu.h: reduced to
   a real bidiagonal B = P^H A Q by reflectors from both sides (qr.h), whose singular values come
   from golub_kahan.h. A power of two brings the largest entry near 1 first. */

/* B = P^H A Q, its diagonals d and e; row k of `left` is the vector of reflector k of P (m numbers),
   row k of `right` that of Q (n numbers). */
INLINE void OWN(bidiagonal)(E *a, ptrdiff_t m, ptrdiff_t n, ptrdiff_t ld, ptrdiff_t ldm, double *d,
                            double *e, E *left, E *tau, E *right, E *tau_right, E *w)
{
    E none = {{0}};
    for (ptrdiff_t k = 0; k < n; ++k) {
        E *v = left + k * ldm, *row = a + k * ld, *x = right + k * ld;
        REAL beta;
        memset(v, 0, ldm * sizeof(E));
        for (ptrdiff_t i = k; i < m; ++i) {
            const REAL *from = OWN(number)(a + i * ld, k);
            REAL *to = OWN(number)(v, i);
            to[0] = from[0];
#if COMPLEX
            to[W] = from[W];
#endif
        }
        tau[k] = OWN(row_reflector)(v, k, ldm, &beta);
        d[k] = beta;
        e[k] = 0;
        if (k + 1 == n)
            break;
        ptrdiff_t u0 = (k + 1) / W;
        OWN(reflect_rows)(a, m, ld, u0, k, v, OWN(conjugate)(tau[k]), w);
        for (ptrdiff_t u = u0; u < ld; ++u)
            x[u] = OWN(conjugate)(row[u]);
        tau_right[k] = OWN(row_reflector)(x, k + 1, ld, &beta);
        e[k] = beta;
        for (ptrdiff_t u = u0; u < ld; ++u)
            w[u] = OWN(conjugate)(x[u]);
        for (ptrdiff_t i = k + 1; i < m; ++i) { /* a[i] -= tau (a[i] x) x^H */
            E sum = none, *out = a + i * ld, all = none;
            for (ptrdiff_t u = u0; u < ld; ++u)
                sum = OWN(plus_product)(sum, w[u], out[u]);
            all.re = OWN(all)(OWN(sum_of)(sum.re));
#if COMPLEX
            all.im = OWN(all)(OWN(sum_of)(sum.im));
#endif
            all = OWN(times)(all, tau_right[k]);
            for (ptrdiff_t u = u0; u < ld; ++u)
                out[u] = OWN(less)(out[u], all, w[u]);
        }
    }
}

static void OWN(rotate_rows)(void *rows, ptrdiff_t ld, ptrdiff_t from, ptrdiff_t to,
                             ptrdiff_t count, const double *c, const double *s)
{
    E *z = rows;
    for (ptrdiff_t u = 0; u < ld; ++u) {
        E *at = z + from * ld + u, *next = z + to * ld + u, x = *at;
        for (ptrdiff_t i = 0; i < count; ++i) {
            V cosine = OWN(all)((REAL)c[i]), sine = OWN(all)((REAL)s[i]);
            E y = *next;
            at->re = cosine * x.re + sine * y.re;
            x.re = cosine * y.re - sine * x.re;
#if COMPLEX
            at->im = cosine * x.im + sine * y.im;
            x.im = cosine * y.im - sine * x.im;
#endif
            at = next;
            next += ld;
        }
        *at = x;
    }
}

/* p: f is U, m x nrhs with nrhs = m or n, b is V^H, x is s; nrhs = 0: values only. `conjugate`: A is
   the conjugate of what is stored, and so are U and V^H. */
static void OWN(gesvd_alone)(const problem *p, ptrdiff_t member, E *a)
{
    ptrdiff_t m = p->m, n = p->n, columns = p->nrhs;
    ptrdiff_t ld = (n + W - 1) / W, ldm = (m + W - 1) / W;
    E *left = a + m * ldm, *right = left + m * ldm, *vt = right + n * ld;
    E *tau = vt + n * ld, *tau_right = tau + n, *w = tau_right + n;
    double *d = (double *)(w + ldm + ld), *e = d + n;
    REAL top = 0;
    OWN(pack_alone)(a, ld, &p->a, member, m, n, 0, (int)p->conjugate);
    for (ptrdiff_t i = 0; i < m * ld; ++i)
        for (ptrdiff_t w = 0; w < PARTS * W; ++w) {
            REAL x = ABS(((REAL *)(a + i))[w]);
            top = x > top ? x : top;
        }
    int power = 0;
    if (top > 0 && top < INFINITY)
        frexp(top, &power);
    power = power < LEAST_POWER ? LEAST_POWER : power;
    for (ptrdiff_t i = 0; i < m * ld; ++i)
        a[i] = OWN(scaled)(a[i], OWN(all)((REAL)ldexp(1, -power)));
    OWN(bidiagonal)(a, m, n, ld, ldm, d, e, left, tau, right, tau_right, w);
    if (columns) {
        OWN(form)(a, n, n, n - 1, 1, right, ld, tau_right, w);
        OWN(transpose)(a, n, n, vt, ld, 0);
        OWN(form)(a, m, columns, n, 0, left, ldm, tau, w);
        OWN(transpose)(a, m, columns, left, ldm, 0);
    }
    p->info[member] = golub_kahan(d, e, n, EPSILON, e + n, columns ? OWN(rotate_rows) : NULL, left,
                                  ldm, vt, ld);
    for (ptrdiff_t j = n; j < columns; ++j) /* columns of U that no singular value belongs to */
        OWN(unpack_turned)(left + j * ldm, &p->f, member, j, m, 0, (int)p->conjugate);
    for (ptrdiff_t j = 0; j < n; ++j) {
        e[j] = d[j];
        d[j] = fabs(d[j]);
    }
    for (ptrdiff_t j = 0; j < n; ++j) {
        ptrdiff_t most = 0;
        for (ptrdiff_t i = 1; i < n; ++i)
            if (!(d[i] <= d[most])) /* or nan */
                most = i;
        OWN(store)(p->x.data + member * p->x.step + j * p->x.row, (REAL)ldexp(d[most], power));
        d[most] = -1; /* taken */
        if (!columns)
            continue;
        for (ptrdiff_t u = 0; e[most] < 0 && u < ld; ++u)
            vt[most * ld + u] = OWN(minus)((E){{0}}, vt[most * ld + u]);
        OWN(unpack_turned)(left + most * ldm, &p->f, member, j, m, 0, (int)p->conjugate);
        OWN(unpack_turned)(vt + most * ld, &p->b, member, j, n, 1, !p->conjugate);
    }
}

static void OWN(gesvd)(const problem *p, ptrdiff_t lo, ptrdiff_t hi, void *scratch)
{
    for (; lo < hi; ++lo)
        OWN(gesvd_alone)(p, lo, scratch);
}
