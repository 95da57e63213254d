/* A = Q R by Householder's reflectors as LAPACK stores them: H = I - tau v v^H with v[0] = 1, R on
   and above the diagonal, v below. The two layouts are those of lu.h. A column is measured after
   scaling by a power of two that keeps its squares from over- and underflow. */

/* The power of two by which a column with this largest entry is measured, and its reciprocal. */
INLINE V OWN(scale_of)(V largest, V *back)
{
    VI huge = (VI)(largest > SQUARES_OVER), tiny = (VI)(largest < 1 / SQUARES_OVER);
    *back = OWN(select)(huge, OWN(all)(SQUARES_SCALE),
                        OWN(select)(tiny, OWN(all)(1 / SQUARES_SCALE), OWN(all)(1)));
    return 1 / *back;
}

INLINE V OWN(larger)(V largest, E x)
{
    V size = OWN(magnitude)(x.re);
    largest = OWN(select)((VI)(size > largest), size, largest);
#if COMPLEX
    size = OWN(magnitude)(x.im);
    largest = OWN(select)((VI)(size > largest), size, largest);
#endif
    return largest;
}

INLINE V OWN(plus_square)(V sum, E x)
{
    sum += x.re * x.re;
#if COMPLEX
    sum += x.im * x.im;
#endif
    return sum;
}

/* w + conj(v) a */
INLINE E OWN(plus_product)(E w, E v, E a)
{
#if COMPLEX
    w.re = w.re + v.re * a.re + v.im * a.im;
    w.im = w.im + v.re * a.im - v.im * a.re;
#else
    w.re = w.re + v.re * a.re;
#endif
    return w;
}

/* conj(tau) w */
INLINE E OWN(conjugate_times)(E tau, E w)
{
    E none = {{0}};
    return OWN(plus_product)(none, tau, w);
}

/* The reflector that maps (alpha, x) to (beta, 0): returns tau, puts beta in the place of alpha;
   v = (x scale) inverse. `sum`: of the squares of x scale. */
INLINE E OWN(reflector)(E *alpha, V sum, V scale, V back, E *inverse)
{
    E a = OWN(scaled)(*alpha, scale), tau = {{0}}, none = {{0}}, beta = {{0}};
    V length = OWN(root)(OWN(plus_square)(sum, a));
    VI sign = (VI)OWN(all)(-(REAL)0), still = (VI)(sum == 0);
    beta.re = (V)((VI)length | (~(VI)a.re & sign)); /* away from alpha */
    tau.re = (beta.re - a.re) / beta.re;
    a.re -= beta.re;
#if COMPLEX
    tau.im = -a.im / beta.re;
    still &= (VI)(a.im == 0);
#endif
    *inverse = OWN(choose)(still, none, OWN(quotient)(OWN(one)(), a));
    *alpha = OWN(choose)(still, *alpha, OWN(scaled)(beta, back));
    return OWN(choose)(still, none, tau);
}

/* -- apart; w: a row of elements */

INLINE void OWN(qr_apart)(E *a, ptrdiff_t m, ptrdiff_t n, ptrdiff_t ld, E *tau, E *w)
{
    ptrdiff_t steps = m < n ? m : n;
    for (ptrdiff_t k = 0; k < steps; ++k) {
        E *top = a + k * ld;
        V largest = {0}, sum = {0}, back;
        for (ptrdiff_t i = k; i < m; ++i)
            largest = OWN(larger)(largest, a[i * ld + k]);
        V scale = OWN(scale_of)(largest, &back);
        for (ptrdiff_t i = k + 1; i < m; ++i)
            sum = OWN(plus_square)(sum, OWN(scaled)(a[i * ld + k], scale));
        E inverse;
        tau[k] = OWN(reflector)(top + k, sum, scale, back, &inverse);
        for (ptrdiff_t j = k + 1; j < n; ++j)
            w[j] = top[j];
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            E *row = a + i * ld, v = OWN(times)(OWN(scaled)(row[k], scale), inverse);
            row[k] = v;
            for (ptrdiff_t j = k + 1; j < n; ++j)
                w[j] = OWN(plus_product)(w[j], v, row[j]);
        }
        for (ptrdiff_t j = k + 1; j < n; ++j) {
            w[j] = OWN(conjugate_times)(tau[k], w[j]);
            top[j] = OWN(minus)(top[j], w[j]);
        }
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            E *row = a + i * ld, v = row[k];
            for (ptrdiff_t j = k + 1; j < n; ++j)
                row[j] = OWN(less)(row[j], v, w[j]);
        }
    }
}

/* -- alone */

INLINE void OWN(qr_alone)(E *a, ptrdiff_t m, ptrdiff_t n, ptrdiff_t ld, E *tau, E *w)
{
    ptrdiff_t steps = m < n ? m : n;
    VI lanes = OWN(lanes)();
    for (ptrdiff_t k = 0; k < steps; ++k) {
        ptrdiff_t u0 = k / W;
        VI right = (VI)(lanes > (INTEGER)(k % W)), here = (VI)(lanes == (INTEGER)(k % W));
        E *top = a + k * ld;
        V largest = {0}, sum = {0}, back;
        for (ptrdiff_t i = k; i < m; ++i)
            largest = OWN(larger)(largest, a[i * ld + u0]);
        largest = OWN(all)(largest[k % W]);
        V scale = OWN(scale_of)(largest, &back);
        for (ptrdiff_t i = k + 1; i < m; ++i)
            sum = OWN(plus_square)(sum, OWN(scaled)(a[i * ld + u0], scale));
        sum = OWN(all)(sum[k % W]);
        E alpha = OWN(spread)(OWN(number)(top, k)), inverse;
        tau[k] = OWN(reflector)(&alpha, sum, scale, back, &inverse);
        for (ptrdiff_t u = u0; u < ld; ++u)
            w[u] = top[u];
        ptrdiff_t i = k + 1;
#define REFLECT(R)                                                                               \
    do {                                                                                         \
        E v[R];                                                                                  \
        for (int r = 0; r < R; ++r) {                                                            \
            E *row = a + (i + r) * ld;                                                           \
            v[r] = OWN(times)(OWN(scaled)(OWN(spread)(OWN(number)(row, k)), scale), inverse);    \
            row[u0] = OWN(choose)(here, v[r], row[u0]);                                          \
        }                                                                                        \
        for (ptrdiff_t u = u0; u < ld; ++u) {                                                    \
            E x = w[u];                                                                          \
            for (int r = 0; r < R; ++r)                                                          \
                x = OWN(plus_product)(x, v[r], a[(i + r) * ld + u]);                             \
            w[u] = x;                                                                            \
        }                                                                                        \
    } while (0)
        for (; i + 4 <= m; i += 4)
            REFLECT(4);
        for (; i < m; ++i)
            REFLECT(1);
        for (ptrdiff_t u = u0; u < ld; ++u)
            w[u] = OWN(conjugate_times)(tau[k], w[u]);
        E first = OWN(choose)(right, OWN(minus)(top[u0], w[u0]), top[u0]);
        top[u0] = OWN(choose)(here, alpha, first);
        for (ptrdiff_t u = u0 + 1; u < ld; ++u)
            top[u] = OWN(minus)(top[u], w[u]);
        for (i = k + 1; i < m; ++i) {
            E *row = a + i * ld, v = OWN(spread)(OWN(number)(row, k));
            row[u0] = OWN(choose)(right, OWN(less)(row[u0], v, w[u0]), row[u0]);
            for (ptrdiff_t u = u0 + 1; u < ld; ++u)
                row[u] = OWN(less)(row[u], v, w[u]);
        }
    }
}

/* -- members; tau goes where `x` says */

static void OWN(geqrf_apart)(const problem *p, ptrdiff_t first, ptrdiff_t count, E *a)
{
    ptrdiff_t m = p->m, n = p->n, steps = m < n ? m : n, ld = n | 1; /* no power of two */
    E *tau = a + m * ld, *w = tau + steps;
    OWN(pack_apart)(a, ld, &p->a, first, count, m, n, 0, 0);
    OWN(qr_apart)(a, m, n, ld, tau, w);
    OWN(unpack_apart)(a, ld, &p->f, first, 0, count, m, n, 0, 0);
    OWN(unpack_apart)(tau, 1, &p->x, first, 0, count, steps, 1, 0, 0);
    for (ptrdiff_t w = 0; w < count; ++w)
        p->info[first + w] = 0;
}

static void OWN(geqrf_alone)(const problem *p, ptrdiff_t member, E *a)
{
    ptrdiff_t m = p->m, n = p->n, steps = m < n ? m : n, ld = (n + W - 1) / W;
    E *tau = a + m * ld;
    OWN(pack_alone)(a, ld, &p->a, member, m, n, 0, 0);
    OWN(qr_alone)(a, m, n, ld, tau, tau + steps);
    OWN(unpack_alone)(a, ld, &p->f, member, m, n, 0, 0);
    OWN(unpack_apart)(tau, 1, &p->x, member, 0, 1, steps, 1, 0, 0);
    p->info[member] = 0;
}

WORKER(geqrf)
