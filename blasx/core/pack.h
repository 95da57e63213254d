/* Members on their way into vectors and out: a number of an element is W reals from its imaginary
   part (see E), in memory they are neighbours. Strides are in bytes. */

INLINE REAL OWN(load)(const char *from)
{
    REAL x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void OWN(store)(char *to, REAL x) { memcpy(to, &x, sizeof x); }

/* W members beside each other: number w of element (i, j) is entry (i, j) of member w. Members past
   the last repeat it. `triangle`: only j >= i. */
INLINE void OWN(pack_apart)(E *to, ptrdiff_t ld, const view *x, ptrdiff_t first, ptrdiff_t count,
                            ptrdiff_t m, ptrdiff_t n, int triangle, int conjugate)
{
    for (ptrdiff_t w = 0; w < W; ++w) {
        const char *member = x->data + (first + (w < count ? w : count - 1)) * x->step;
        for (ptrdiff_t i = 0; i < m; ++i) {
            ptrdiff_t j = triangle ? i : 0;
            const char *from = member + i * x->row + j * x->column;
            REAL *out = (REAL *)(to + i * ld + j) + w;
            for (; j < n; ++j, from += x->column, out += PARTS * W) {
                out[0] = OWN(load)(from);
#if COMPLEX
                REAL im = OWN(load)(from + sizeof(REAL));
                out[W] = conjugate ? -im : im;
#endif
            }
        }
    }
    (void)conjugate;
}

/* Member w of the group to where `x` says, rows below `rows` only. */
INLINE void OWN(unpack_apart)(const E *from, ptrdiff_t ld, const view *x, ptrdiff_t member,
                              ptrdiff_t w, ptrdiff_t rows, ptrdiff_t n, int triangle,
                              int conjugate)
{
    for (ptrdiff_t i = 0; i < rows; ++i) {
        ptrdiff_t j = triangle ? i : 0;
        char *to = x->data + member * x->step + i * x->row + j * x->column;
        const REAL *in = (const REAL *)(from + i * ld + j) + w;
        for (; j < n; ++j, to += x->column, in += PARTS * W) {
            OWN(store)(to, in[0]);
#if COMPLEX
            OWN(store)(to + sizeof(REAL), conjugate ? -in[W] : in[W]);
#endif
        }
    }
    (void)conjugate;
}

/* One member with W columns to an element; the columns past the last are zero. */
INLINE void OWN(pack_alone)(E *to, ptrdiff_t ld, const view *x, ptrdiff_t member, ptrdiff_t m,
                            ptrdiff_t n, int triangle, int conjugate)
{
    for (ptrdiff_t i = 0; i < m; ++i) {
        const char *row = x->data + member * x->step + i * x->row;
        E *out = to + i * ld;
        for (ptrdiff_t j0 = triangle ? i - i % (W > ROWS ? W : ROWS) : 0; j0 < n; j0 += W) {
            REAL *block = (REAL *)(out + j0 / W);
            ptrdiff_t width = n - j0 < W ? n - j0 : W;
            if (width < W)
                memset(block, 0, sizeof(E));
            for (ptrdiff_t c = 0; c < width; ++c) {
                const char *from = row + (j0 + c) * x->column;
                block[c] = OWN(load)(from);
#if COMPLEX
                REAL im = OWN(load)(from + sizeof(REAL));
                block[c + W] = conjugate ? -im : im;
#endif
            }
        }
    }
    (void)conjugate;
}

INLINE void OWN(unpack_alone)(const E *from, ptrdiff_t ld, const view *x, ptrdiff_t member,
                              ptrdiff_t rows, ptrdiff_t n, int triangle, int conjugate)
{
    for (ptrdiff_t i = 0; i < rows; ++i) {
        char *row = x->data + member * x->step + i * x->row;
        for (ptrdiff_t j = triangle ? i : 0; j < n; ++j) {
            const REAL *in = OWN(number)((E *)from + i * ld, j);
            char *to = row + j * x->column;
            OWN(store)(to, in[0]);
#if COMPLEX
            OWN(store)(to + sizeof(REAL), conjugate ? -in[W] : in[W]);
#endif
        }
    }
    (void)conjugate;
}

/* Entries of one member copied: all, those with j < i (`part` < 0), or rows from `row` on with
   j >= i (`part` > 0). */
INLINE void OWN(copy)(const view *from, const view *to, ptrdiff_t member, ptrdiff_t row,
                      ptrdiff_t m, ptrdiff_t n, int part)
{
    if (from->data == to->data)
        return;
    for (ptrdiff_t i = row; i < m; ++i) {
        const char *in = from->data + member * from->step + i * from->row;
        char *out = to->data + member * to->step + i * to->row;
        ptrdiff_t j = part > 0 ? i : 0, end = part < 0 && i < n ? i : n;
        for (; j < end; ++j)
            memcpy(out + j * to->column, in + j * from->column, PARTS * sizeof(REAL));
    }
}
