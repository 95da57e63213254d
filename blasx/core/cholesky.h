/* A = U^H U, U by rows, and X of A X = B; a lower triangle by columns is an upper one by rows.

   The right-hand sides stand beside A: row i of Y = U^-H B comes out as row i of U does. The two
   layouts are those of lu.h. A row is finished by the rows above it, in their order. */

/* sqrt of a pivot's real part; `bad` where it is not positive, nan included. */
INLINE V OWN(diagonal)(E *pivot, VI *bad)
{
    *bad = ~(VI)(pivot->re > 0);
    V root = OWN(root)(OWN(select)(*bad, OWN(all)(1), pivot->re));
    *pivot = (E){root};
    return 1 / root;
}

/* C -= conj(U)^T U for rows i to i + R - 1 of elements u to u + N - 1, by the rows above i;
   LEFT(s, j): all numbers of an element, or those of the members, at column j of row s. */
#define ABOVE(R, N, LEFT)                                                                        \
    do {                                                                                         \
        E c[R][N];                                                                               \
        for (int r = 0; r < R; ++r)                                                              \
            for (int v = 0; v < N; ++v)                                                          \
                c[r][v] = a[(i + r) * ld + u + v];                                               \
        for (ptrdiff_t s = 0; s < i; ++s) {                                                      \
            E y[N];                                                                              \
            for (int v = 0; v < N; ++v)                                                          \
                y[v] = a[s * ld + u + v];                                                        \
            for (int r = 0; r < R; ++r) {                                                        \
                E l = LEFT(s, i + r);                                                            \
                for (int v = 0; v < N; ++v)                                                      \
                    c[r][v] = OWN(less_conjugate)(c[r][v], l, y[v]);                             \
            }                                                                                    \
        }                                                                                        \
        for (int r = 0; r < R; ++r)                                                              \
            for (int v = 0; v < N; ++v)                                                          \
                a[(i + r) * ld + u + v] = c[r][v];                                               \
    } while (0)
#define SPAN (WIDTH == 64 ? 4 : 2) /* AVX-512 has 32 registers */
#define OF_MEMBERS(s, j) a[(s) * ld + (j)]
#define OF_ONE(s, j) OWN(spread)(OWN(number)(a + (s) * ld, j))

INLINE void OWN(cholesky_apart)(E *a, ptrdiff_t n, ptrdiff_t end, ptrdiff_t ld, VI *info)
{
    *info = (VI){0};
    for (ptrdiff_t i = 0; i < n; i += ROWS) {
        ptrdiff_t rows = n - i < ROWS ? n - i : ROWS, u = i;
        if (rows == ROWS) {
            for (; u + SPAN - 1 < end; u += SPAN)
                ABOVE(ROWS, SPAN, OF_MEMBERS);
            for (; u < end; ++u)
                ABOVE(ROWS, 1, OF_MEMBERS);
        }
        for (ptrdiff_t k = i; k < i + rows; ++k) {
            E *row = a + k * ld;
            for (ptrdiff_t s = rows == ROWS ? i : 0; s < k; ++s) {
                const E *above = a + s * ld;
                E l = above[k];
                for (u = k; u < end; ++u)
                    row[u] = OWN(less_conjugate)(row[u], l, above[u]);
            }
            VI bad;
            V inverse = OWN(diagonal)(row + k, &bad);
            *info |= bad & (VI)(*info == 0) & OWN(integers)(k + 1);
            for (u = k + 1; u < end; ++u)
                row[u] = OWN(scaled)(row[u], inverse);
        }
    }
}

INLINE void OWN(cholesky_alone)(E *a, ptrdiff_t n, ptrdiff_t ld, int *info)
{
    *info = 0;
    for (ptrdiff_t i = 0; i < n; i += ROWS) {
        ptrdiff_t rows = n - i < ROWS ? n - i : ROWS, u = i / W;
        if (rows == ROWS) {
            for (; u + SPAN - 1 < ld; u += SPAN)
                ABOVE(ROWS, SPAN, OF_ONE);
            for (; u < ld; ++u)
                ABOVE(ROWS, 1, OF_ONE);
        }
        for (ptrdiff_t k = i; k < i + rows; ++k) {
            E *row = a + k * ld;
            for (u = k / W; u < ld; ++u) {
                E c = row[u];
                for (ptrdiff_t s = rows == ROWS ? i : 0; s < k; ++s)
                    c = OWN(less_conjugate)(c, OWN(spread)(OWN(number)(a + s * ld, k)),
                                            a[s * ld + u]);
                row[u] = c;
            }
            VI bad;
            E pivot = OWN(spread)(OWN(number)(row, k));
            V inverse = OWN(diagonal)(&pivot, &bad);
            if (bad[0]) {
                *info = (int)(k + 1);
                return;
            }
            for (u = k / W; u < ld; ++u)
                row[u] = OWN(scaled)(row[u], inverse);
            REAL *at = OWN(number)(row, k);
            at[0] = pivot.re[0];
#if COMPLEX
            at[W] = 0;
#endif
        }
    }
}

/* What is factored and solved goes out; rows from the one that failed on stay as they are. */
INLINE ptrdiff_t OWN(rest_of_cholesky)(const problem *p, ptrdiff_t member, ptrdiff_t info)
{
    ptrdiff_t n = p->n, done = info ? info - 1 : n;
    p->info[member] = (int32_t)info;
    OWN(copy)(&p->a, &p->f, member, done, n, n, 1);
    OWN(copy)(&p->a, &p->f, member, 0, n, n, -1);
    if (info)
        OWN(copy)(&p->b, &p->x, member, 0, n, p->nrhs, 0);
    return done;
}

static void OWN(posv_apart)(const problem *p, ptrdiff_t first, ptrdiff_t count, E *a)
{
    ptrdiff_t n = p->n, nrhs = p->nrhs, end = n + nrhs, ld = end | 1; /* no power of two */
    VI info;
    OWN(pack_apart)(a, ld, &p->a, first, count, n, n, ROWS, (int)p->conjugate);
    if (nrhs)
        OWN(pack_apart)(a + n, ld, &p->b, first, count, n, nrhs, 0, 0);
    OWN(cholesky_apart)(a, n, end, ld, &info);
    if (nrhs)
        OWN(back_apart)(a, n, end, ld);
    const ptrdiff_t together = OWN(any)(info) ? 1 : count; /* as far as all are done alike */
    for (ptrdiff_t w = 0; w < count; w += together) {
        ptrdiff_t done = n;
        for (ptrdiff_t v = w; v < w + together; ++v)
            done = OWN(rest_of_cholesky)(p, first + v, info[v]);
        OWN(unpack_apart)(a, ld, &p->f, first, w, w + together, done, n, 1, (int)p->conjugate);
        if (nrhs && !info[w])
            OWN(unpack_apart)(a + n, ld, &p->x, first, w, w + together, n, nrhs, 0, 0);
    }
}

static void OWN(posv_alone)(const problem *p, ptrdiff_t member, E *a)
{
    ptrdiff_t n = p->n, nrhs = p->nrhs;
    ptrdiff_t units = (n + W - 1) / W, ld = units + (nrhs + W - 1) / W;
    OWN(pack_alone)(a, ld, &p->a, member, n, n, 1, (int)p->conjugate);
    if (nrhs)
        OWN(pack_alone)(a + units, ld, &p->b, member, n, nrhs, 0, 0);
    int info;
    OWN(cholesky_alone)(a, n, ld, &info);
    ptrdiff_t done = OWN(rest_of_cholesky)(p, member, info);
    OWN(unpack_alone)(a, ld, &p->f, member, done, n, 1, (int)p->conjugate);
    if (nrhs && !info) {
        OWN(back_alone)(a, n, units, ld);
        OWN(unpack_alone)(a + units, ld, &p->x, member, n, nrhs, 0, 0);
    }
}

WORKER(posv)
