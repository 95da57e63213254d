/* Reflectors H = I - tau v v^H whose vectors are rows of numbers (the layout `alone` of lu.h), for
   reductions from both sides. */

INLINE REAL OWN(sum_of)(V x)
{
    REAL sum = 0;
    for (ptrdiff_t w = 0; w < W; ++w)
        sum += x[w];
    return sum;
}

/* The reflector of row v from number `from` on, v[from] becomes 1, numbers before it 0; returns tau
   and in `beta` what the row is mapped to. */
INLINE E OWN(row_reflector)(E *v, ptrdiff_t from, ptrdiff_t ld, REAL *beta)
{
    VI lanes = OWN(lanes)();
    ptrdiff_t u0 = from / W;
    VI inside = (VI)(lanes >= (INTEGER)(from % W)), first = (VI)(lanes == (INTEGER)(from % W));
    E none = {{0}}, alpha = OWN(spread)(OWN(number)(v, from)), inverse, tau;
    V largest = {0}, sum = {0}, back;
    REAL top = 0;
    v[u0] = OWN(choose)(inside, v[u0], none);
    for (ptrdiff_t u = u0; u < ld; ++u)
        largest = OWN(larger)(largest, v[u]);
    for (ptrdiff_t w = 0; w < W; ++w)
        top = largest[w] > top ? largest[w] : top;
    V scale = OWN(scale_of)(OWN(all)(top), &back);
    sum = OWN(plus_square)(sum, OWN(scaled)(OWN(choose)(first, none, v[u0]), scale));
    for (ptrdiff_t u = u0 + 1; u < ld; ++u)
        sum = OWN(plus_square)(sum, OWN(scaled)(v[u], scale));
    tau = OWN(reflector)(&alpha, OWN(all)(OWN(sum_of)(sum)), scale, back, &inverse);
    *beta = alpha.re[0];
    for (ptrdiff_t u = u0; u < ld; ++u)
        v[u] = OWN(times)(OWN(scaled)(v[u], scale), inverse);
    v[u0] = OWN(choose)(first, OWN(one)(), v[u0]);
    return tau;
}

/* X -= v factor (v^H X) for rows `from` to m - 1 and elements from u0 on; v by numbers. */
INLINE void OWN(reflect_rows)(E *x, ptrdiff_t m, ptrdiff_t ld, ptrdiff_t u0, ptrdiff_t from, E *v,
                              E factor, E *w)
{
    ptrdiff_t i = from;
    for (ptrdiff_t u = u0; u < ld; ++u)
        w[u] = (E){{0}};
#define INTO(R)                                                                                  \
    do {                                                                                         \
        E y[R];                                                                                  \
        for (int r = 0; r < R; ++r)                                                              \
            y[r] = OWN(spread)(OWN(number)(v, i + r));                                           \
        for (ptrdiff_t u = u0; u < ld; ++u) {                                                    \
            E sum = w[u];                                                                        \
            for (int r = 0; r < R; ++r)                                                          \
                sum = OWN(plus_product)(sum, y[r], x[(i + r) * ld + u]);                         \
            w[u] = sum;                                                                          \
        }                                                                                        \
    } while (0)
    for (; i + 4 <= m; i += 4)
        INTO(4);
    for (; i < m; ++i)
        INTO(1);
    for (ptrdiff_t u = u0; u < ld; ++u)
        w[u] = OWN(times)(factor, w[u]);
    for (i = from; i < m; ++i) {
        E y = OWN(spread)(OWN(number)(v, i));
        for (ptrdiff_t u = u0; u < ld; ++u)
            x[i * ld + u] = OWN(less)(x[i * ld + u], y, w[u]);
    }
}

/* The first `columns` columns of the product of `count` reflectors of order m; the first that does
   something to row `shift`. */
INLINE void OWN(form)(E *q, ptrdiff_t m, ptrdiff_t columns, ptrdiff_t count, ptrdiff_t shift,
                      E *v, ptrdiff_t ldv, const E *tau, E *w)
{
    ptrdiff_t ld = (columns + W - 1) / W;
    memset(q, 0, (size_t)(m * ld) * sizeof(E));
    for (ptrdiff_t i = 0; i < columns; ++i)
        OWN(number)(q + i * ld, i)[0] = 1;
    for (ptrdiff_t k = count - 1; k >= 0; --k)
        OWN(reflect_rows)(q, m, ld, (k + shift) / W, k + shift, v + k * ldv, tau[k], w);
}

/* Row j of `to`, of m numbers, is column j of `from`; `flip`: the last first. */
INLINE void OWN(transpose)(E *from, ptrdiff_t m, ptrdiff_t columns, E *to, ptrdiff_t ldt,
                           int flip)
{
    ptrdiff_t ld = (columns + W - 1) / W;
    memset(to, 0, (size_t)(columns * ldt) * sizeof(E));
    for (ptrdiff_t i = 0; i < m; ++i)
        for (ptrdiff_t j = 0; j < columns; ++j) {
            const REAL *in = OWN(number)(from + i * ld, j);
            REAL *out = OWN(number)(to + (flip ? columns - 1 - j : j) * ldt, i);
            out[0] = in[0];
#if COMPLEX
            out[W] = in[W];
#endif
        }
}

/* A row of numbers to column j of member `member`, or to row j. */
INLINE void OWN(unpack_turned)(E *from, const view *x, ptrdiff_t member, ptrdiff_t j,
                               ptrdiff_t count, int by_row, int conjugate)
{
    char *to = x->data + member * x->step + j * (by_row ? x->row : x->column);
    ptrdiff_t step = by_row ? x->column : x->row;
    for (ptrdiff_t i = 0; i < count; ++i, to += step) {
        const REAL *in = OWN(number)(from, i);
        OWN(store)(to, in[0]);
#if COMPLEX
        OWN(store)(to + sizeof(REAL), conjugate ? -in[W] : in[W]);
#endif
    }
    (void)conjugate;
}

