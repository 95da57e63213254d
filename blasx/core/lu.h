/* P A = L U with LAPACK's pivots, the first largest |Re| + |Im| of a column, and X of A X = B.

   The right-hand sides stand beside A and are eliminated with it; what remains is U X = Y. Two
   layouts, one sequence of operations for every number, hence the same bits: `apart`, W small
   members a vector, each in its own lane; `alone`, one member, W columns a vector. */

/* 1 / pivot, 1 where it is zero; `tiny`: where the reciprocal may overflow and one divides. */
INLINE E OWN(reciprocal)(E pivot, VI *zero, VI *tiny)
{
    V large = OWN(size)(pivot);
    *zero = (VI)(large == 0);
    *tiny = (VI)(large < SAFE) & ~*zero;
    return OWN(choose)(*zero, OWN(one)(), OWN(quotient)(OWN(one)(), pivot));
}

INLINE E OWN(multiplier)(E x, E pivot, E inverse, VI tiny, int any_tiny)
{
    E l = OWN(times)(x, inverse);
    return any_tiny ? OWN(choose)(tiny, OWN(quotient)(x, pivot), l) : l;
}

/* -- apart: element (i, j) = a[i ld + j] */

/* Columns j to j + N - 1 right of D columns from k on that are done: their rows of U, and what these
   take off the rows below. */
#define RIGHT(D, N)                                                                              \
    do {                                                                                         \
        E top[ROWS][N];                                                                          \
        for (ptrdiff_t r = 0; r < D; ++r)                                                        \
            for (int v = 0; v < N; ++v) {                                                        \
                E c = a[(k + r) * ld + j + v];                                                   \
                for (ptrdiff_t s = 0; s < r; ++s)                                                \
                    c = OWN(less)(c, a[(k + r) * ld + k + s], top[s][v]);                        \
                a[(k + r) * ld + j + v] = top[r][v] = c;                                         \
            }                                                                                    \
        for (E *row = a + (k + D) * ld; row < a + m * ld; row += ld)                             \
            for (int v = 0; v < N; ++v) {                                                        \
                E c = row[j + v];                                                                \
                for (ptrdiff_t s = 0; s < D; ++s)                                                \
                    c = OWN(less)(c, row[k + s], top[s][v]);                                     \
                row[j + v] = c;                                                                  \
            }                                                                                    \
    } while (0)

/* The columns from n to `end` - 1 are eliminated with A. */
INLINE void OWN(lu_apart)(E *a, ptrdiff_t m, ptrdiff_t n, ptrdiff_t end, ptrdiff_t ld, VI *piv,
                          VI *info)
{
    const ptrdiff_t steps = m < n ? m : n;
    *info = (VI){0};
    for (ptrdiff_t k = 0; k < steps; k += ROWS) {
        const ptrdiff_t depth = steps - k < ROWS ? steps - k : ROWS;
        for (ptrdiff_t c = k; c < k + depth; ++c) {
            E *top = a + c * ld;
            V best = OWN(size)(top[c]);
            VI at = OWN(integers)(c);
            for (ptrdiff_t i = c + 1; i < m; ++i) {
                V next = OWN(size)(a[i * ld + c]);
                VI more = (VI)(next > best);
                best = OWN(select)(more, next, best);
                at = OWN(select_integers)(more, OWN(integers)(i), at);
            }
            piv[c] = at;
            for (ptrdiff_t w = 0; w < W; ++w)
                if (at[w] != c) {
                    REAL *p = (REAL *)top + w, *q = (REAL *)(a + at[w] * ld) + w;
                    for (ptrdiff_t j = 0; j < PARTS * end; ++j) {
                        REAL t = p[j * W];
                        p[j * W] = q[j * W];
                        q[j * W] = t;
                    }
                }
            VI zero, tiny;
            E pivot = top[c], inverse = OWN(reciprocal)(pivot, &zero, &tiny);
            *info |= zero & (VI)(*info == 0) & OWN(integers)(c + 1);
            int any_tiny = OWN(any)(tiny);
            for (ptrdiff_t i = c + 1; i < m; ++i) {
                E *row = a + i * ld;
                E l = OWN(multiplier)(row[c], pivot, inverse, tiny, any_tiny);
                row[c] = l;
                for (ptrdiff_t j = c + 1; j < k + depth; ++j)
                    row[j] = OWN(less)(row[j], l, top[j]);
            }
        }
        ptrdiff_t j = k + depth;
        if (depth == ROWS) {
            for (; j + 1 < end; j += 2)
                RIGHT(ROWS, 2);
        }
        for (; j < end; ++j)
            RIGHT(depth, 1);
    }
}

/* U X = Y, Y in columns n to `end` - 1, X in its place. */
INLINE void OWN(back_apart)(E *a, ptrdiff_t n, ptrdiff_t end, ptrdiff_t ld)
{
    for (ptrdiff_t k = n - 1; k >= 0; --k) {
        E *x = a + k * ld;
        for (ptrdiff_t j = n; j < end; ++j)
            x[j] = OWN(quotient)(x[j], x[k]);
        for (ptrdiff_t i = 0; i < k; ++i)
            for (ptrdiff_t j = n; j < end; ++j)
                a[i * ld + j] = OWN(less)(a[i * ld + j], a[i * ld + k], x[j]);
    }
}

/* -- alone: column j of row i is number j of the elements from a + i ld; Y starts at an element */

/* The row from k on that holds the first largest of column k; a nan there stays, as in LAPACK. */
INLINE ptrdiff_t OWN(pivot_row)(E *a, ptrdiff_t m, ptrdiff_t ld, ptrdiff_t k, REAL *sizes)
{
    const REAL *x = OWN(number)(a + k * ld, k);
    ptrdiff_t rows = m - k;
    for (ptrdiff_t i = 0; i < rows; ++i, x += ld * PARTS * W)
#if COMPLEX
        sizes[i] = ABS(x[0]) + ABS(x[W]);
#else
        sizes[i] = ABS(x[0]);
#endif
    if (sizes[0] != sizes[0])
        return k;
    for (ptrdiff_t i = rows; i % W; ++i)
        sizes[i] = -1;
    V best = OWN(all)(-1);
    VI at = OWN(integers)(0);
    for (ptrdiff_t i = 0; i < rows; i += W) {
        V next = *(V *)(sizes + i);
        VI more = (VI)(next > best);
        best = OWN(select)(more, next, best);
        at = OWN(select_integers)(more, OWN(integers)(i), at);
    }
    ptrdiff_t first = 0;
    REAL largest = -1;
    for (ptrdiff_t w = 0; w < W; ++w) {
        ptrdiff_t i = at[w] + w;
        if (best[w] > largest || (best[w] == largest && i < first)) {
            largest = best[w];
            first = i;
        }
    }
    return k + first;
}

/* Rows i to i + R - 1, elements u to u + U - 1: C -= L Y, L in the columns from k on, Y in the rows
   from k on, `depth` of them. */
#define TILE(R, U)                                                                               \
    do {                                                                                         \
        E c[R][U];                                                                               \
        for (int r = 0; r < R; ++r)                                                              \
            for (int v = 0; v < U; ++v)                                                          \
                c[r][v] = a[(i + r) * ld + u + v];                                               \
        for (ptrdiff_t s = 0; s < depth; ++s) {                                                  \
            E y[U];                                                                              \
            for (int v = 0; v < U; ++v)                                                          \
                y[v] = a[(k + s) * ld + u + v];                                                  \
            for (int r = 0; r < R; ++r) {                                                        \
                E l = OWN(spread)(OWN(number)(a + (i + r) * ld, k + s));                         \
                for (int v = 0; v < U; ++v)                                                      \
                    c[r][v] = OWN(less)(c[r][v], l, y[v]);                                       \
            }                                                                                    \
        }                                                                                        \
        for (int r = 0; r < R; ++r)                                                              \
            for (int v = 0; v < U; ++v)                                                          \
                a[(i + r) * ld + u + v] = c[r][v];                                               \
    } while (0)

INLINE void OWN(lu_alone)(E *a, ptrdiff_t m, ptrdiff_t n, ptrdiff_t ld, int32_t *piv, int *info,
                          REAL *sizes)
{
    ptrdiff_t steps = m < n ? m : n;
    VI lanes = OWN(lanes)();
    *info = 0;
    for (ptrdiff_t k = 0; k < steps; k += W) {
        ptrdiff_t depth = steps - k < W ? steps - k : W;
        E *panel = a + k / W;
        for (ptrdiff_t c = 0; c < depth; ++c) {
            ptrdiff_t at = OWN(pivot_row)(a, m, ld, k + c, sizes);
            piv[k + c] = (int32_t)at;
            if (at != k + c)
                for (ptrdiff_t u = 0; u < ld; ++u) {
                    E t = a[at * ld + u];
                    a[at * ld + u] = a[(k + c) * ld + u];
                    a[(k + c) * ld + u] = t;
                }
            E top = panel[(k + c) * ld];
            VI zero, tiny, here = (VI)(lanes == (INTEGER)c), right = (VI)(lanes > (INTEGER)c);
            E pivot = OWN(spread)((REAL *)&panel[(k + c) * ld] + c);
            E inverse = OWN(reciprocal)(pivot, &zero, &tiny);
            if (zero[0] && !*info)
                *info = (int)(k + c + 1);
            for (ptrdiff_t i = k + c + 1; i < m; ++i) {
                E *row = panel + i * ld;
                E l = OWN(multiplier)(OWN(spread)((REAL *)row + c), pivot, inverse, tiny,
                                      tiny[0] != 0);
                *row = OWN(choose)(here, l, OWN(choose)(right, OWN(less)(*row, l, top), *row));
            }
        }
        for (ptrdiff_t i = k + 1; i < k + depth; ++i)
            for (ptrdiff_t u = k / W + 1; u < ld; ++u) {
                E y = a[i * ld + u];
                for (ptrdiff_t s = k; s < i; ++s)
                    y = OWN(less)(y, OWN(spread)(OWN(number)(a + i * ld, s)), a[s * ld + u]);
                a[i * ld + u] = y;
            }
        for (ptrdiff_t u = k / W + 1; u < ld; u += 2) {
            ptrdiff_t i = k + depth;
            if (u + 1 < ld)
                for (; i + ROWS <= m; i += ROWS)
                    TILE(ROWS, 2);
            for (; i < m; ++i) {
                if (u + 1 < ld)
                    TILE(1, 2);
                else
                    TILE(1, 1);
            }
        }
    }
}

/* U X = Y, Y in elements `units` to ld - 1 of the rows, X in its place. */
INLINE void OWN(back_alone)(E *a, ptrdiff_t n, ptrdiff_t units, ptrdiff_t ld)
{
    for (ptrdiff_t k = n - 1; k >= 0; --k) {
        E *x = a + k * ld, pivot = OWN(spread)(OWN(number)(x, k));
        for (ptrdiff_t u = units; u < ld; ++u)
            x[u] = OWN(quotient)(x[u], pivot);
        const REAL *column = OWN(number)(a, k);
        for (ptrdiff_t i = 0; i < k; ++i, column += ld * PARTS * W)
            for (ptrdiff_t u = units; u < ld; ++u)
                a[i * ld + u] = OWN(less)(a[i * ld + u], OWN(spread)(column), x[u]);
    }
}

static void OWN(gesv_apart)(const problem *p, ptrdiff_t first, ptrdiff_t count, E *a)
{
    ptrdiff_t m = p->m, n = p->n, nrhs = p->nrhs, steps = m < n ? m : n;
    ptrdiff_t end = n + nrhs, ld = end | 1; /* no power of two */
    VI *piv = (VI *)(a + m * ld), info;
    OWN(pack_apart)(a, ld, &p->a, first, count, m, n, 0, 0);
    if (nrhs)
        OWN(pack_apart)(a + n, ld, &p->b, first, count, n, nrhs, 0, 0);
    OWN(lu_apart)(a, m, n, end, ld, piv, &info);
    if (nrhs)
        OWN(back_apart)(a, n, end, ld);
    for (ptrdiff_t w = 0; w < count; ++w) {
        ptrdiff_t member = first + w;
        p->info[member] = (int32_t)info[w];
        for (ptrdiff_t k = 0; k < steps; ++k)
            p->piv[member * steps + k] = (int32_t)piv[k][w];
        if (nrhs && info[w])
            OWN(copy)(&p->b, &p->x, member, 0, n, nrhs, 0);
    }
    OWN(unpack_apart)(a, ld, &p->f, first, 0, count, m, n, 0, 0);
    const ptrdiff_t together = OWN(any)(info) ? 1 : count;
    for (ptrdiff_t w = 0; nrhs && w < count; w += together)
        if (!info[w])
            OWN(unpack_apart)(a + n, ld, &p->x, first, w, w + together, n, nrhs, 0, 0);
}

static void OWN(gesv_alone)(const problem *p, ptrdiff_t member, E *a)
{
    ptrdiff_t m = p->m, n = p->n, nrhs = p->nrhs, steps = m < n ? m : n;
    ptrdiff_t units = (n + W - 1) / W, ld = units + (nrhs + W - 1) / W;
    OWN(pack_alone)(a, ld, &p->a, member, m, n, 0, 0);
    if (nrhs)
        OWN(pack_alone)(a + units, ld, &p->b, member, n, nrhs, 0, 0);
    int info;
    OWN(lu_alone)(a, m, n, ld, p->piv + member * steps, &info, (REAL *)(a + m * ld));
    p->info[member] = info;
    OWN(unpack_alone)(a, ld, &p->f, member, m, n, 0, 0);
    if (nrhs && info)
        OWN(copy)(&p->b, &p->x, member, 0, n, nrhs, 0);
    else if (nrhs) {
        OWN(back_alone)(a, n, units, ld);
        OWN(unpack_alone)(a + units, ld, &p->x, member, n, nrhs, 0, 0);
    }
}

WORKER(gesv)
