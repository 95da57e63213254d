/* X of op(A) X = B with the factors of A given: triangles are read where they are, B becomes X in
   vectors, W right-hand sides to an element.

   There is one substitution, forwards through a lower triangle; an upper one is a lower one seen
   from its end, all strides turned round. What is finished is taken off in its order, whatever
   rows go together, so that a number's bits know nothing of them. */

/* All numbers of an element equal to the entry of a matrix. */
INLINE E OWN(entry)(const char *from)
{
#if COMPLEX
    E x = {OWN(all)(OWN(load)(from)), OWN(all)(OWN(load)(from + sizeof(REAL)))};
#else
    E x = {OWN(all)(OWN(load)(from))};
#endif
    return x;
}

/* Rows i to i + R - 1 of X, element u, by all rows above and each other. */
#define SUBSTITUTE(R)                                                                            \
    do {                                                                                         \
        const char *column = a->data + i * a->row;                                               \
        E c[R];                                                                                  \
        for (int r = 0; r < R; ++r)                                                              \
            c[r] = x[(i + r) * ld + u];                                                          \
        for (ptrdiff_t s = 0; s < i; ++s, column += a->column)                                   \
            for (int r = 0; r < R; ++r)                                                          \
                c[r] = OWN(less)(c[r], OWN(entry)(column + r * a->row), x[s * ld + u]);          \
        for (int s = 0; s < R; ++s, column += a->column) {                                       \
            if (diagonal != ONES) {                                                              \
                E d = OWN(entry)(column + s * a->row);                                           \
                c[s] = diagonal == REAL_ONLY ? OWN(over)(c[s], d.re) : OWN(quotient)(c[s], d);   \
            }                                                                                    \
            for (int r = s + 1; r < R; ++r)                                                      \
                c[r] = OWN(less)(c[r], OWN(entry)(column + r * a->row), c[s]);                   \
        }                                                                                        \
        for (int r = 0; r < R; ++r)                                                              \
            x[(i + r) * ld + u] = c[r];                                                          \
    } while (0)

/* L X = B, rows of X `ld` elements apart; four at a time hide most of the additions' latency. */
static void OWN(forwards)(const view *a, int diagonal, E *x, ptrdiff_t n,
                          ptrdiff_t units, ptrdiff_t ld)
{
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (ptrdiff_t u = 0; u < units; ++u)
            SUBSTITUTE(4);
    for (; i < n; ++i)
        for (ptrdiff_t u = 0; u < units; ++u)
            SUBSTITUTE(1);
}

/* U X = B. */
static void OWN(backwards)(const view *a, int diagonal, E *x, ptrdiff_t n,
                           ptrdiff_t units, ptrdiff_t ld)
{
    view turned = {a->data + (n - 1) * (a->row + a->column), 0, -a->row, -a->column};
    OWN(forwards)(&turned, diagonal, x + (n - 1) * ld, n, units, -ld);
}

INLINE void OWN(interchange)(E *x, E *y, ptrdiff_t units)
{
    for (ptrdiff_t u = 0; u < units; ++u) {
        E t = x[u];
        x[u] = y[u];
        y[u] = t;
    }
}

/* P A = L U. With `conjugate` 1 and 2, A^T and A^H, the triangles of what is there change places;
   A^H X = B is A^T conj(X) = conj(B). */
static void OWN(getrs)(const problem *p, ptrdiff_t lo, ptrdiff_t hi, void *scratch)
{
    ptrdiff_t n = p->n, nrhs = p->nrhs, ld = (nrhs + W - 1) / W;
    int turned = p->conjugate != 0, conjugate = p->conjugate == 2;
    E *x = scratch;
    for (ptrdiff_t member = lo; member < hi; ++member) {
        const int32_t *piv = p->piv + member * n;
        view a = {p->a.data + member * p->a.step, 0, p->a.row, p->a.column};
        OWN(pack_alone)(x, ld, &p->b, member, n, nrhs, 0, conjugate);
        if (!turned)
            for (ptrdiff_t i = 0; i < n; ++i)
                OWN(interchange)(x + i * ld, x + piv[i] * ld, ld);
        OWN(forwards)(&a, turned ? GENERAL : ONES, x, n, ld, ld);
        OWN(backwards)(&a, turned ? ONES : GENERAL, x, n, ld, ld);
        if (turned)
            for (ptrdiff_t i = n - 1; i >= 0; --i)
                OWN(interchange)(x + i * ld, x + piv[i] * ld, ld);
        OWN(unpack_alone)(x, ld, &p->x, member, n, nrhs, 0, conjugate);
        p->info[member] = 0;
    }
}

/* A = U^H U, the diagonal of U real: U^T conj(Y) = conj(B), U X = Y. `conjugate`: what is there is
   conj(U), hence X and B change places with their conjugates. */
static void OWN(potrs)(const problem *p, ptrdiff_t lo, ptrdiff_t hi, void *scratch)
{
    ptrdiff_t n = p->n, nrhs = p->nrhs, ld = (nrhs + W - 1) / W;
    int conjugate = p->conjugate != 0;
    E *x = scratch;
    for (ptrdiff_t member = lo; member < hi; ++member) {
        view u = {p->a.data + member * p->a.step, 0, p->a.row, p->a.column};
        view transpose = {u.data, 0, u.column, u.row};
        OWN(pack_alone)(x, ld, &p->b, member, n, nrhs, 0, !conjugate);
        OWN(forwards)(&transpose, REAL_ONLY, x, n, ld, ld);
        for (ptrdiff_t i = 0; i < n * ld; ++i)
            x[i] = OWN(conjugate)(x[i]);
        OWN(backwards)(&u, REAL_ONLY, x, n, ld, ld);
        OWN(unpack_alone)(x, ld, &p->x, member, n, nrhs, 0, conjugate);
        p->info[member] = 0;
    }
}
