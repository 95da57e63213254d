/* Members on their way into vectors and out: a number of an element is W reals from its imaginary
   part (see E), in memory they are neighbours. Strides are in bytes. */

INLINE REAL OWN(load)(const char *from)
{
    REAL x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void OWN(store)(char *to, REAL x) { memcpy(to, &x, sizeof x); }

/* Members lie any power of two apart, where a cache keeps few lines: so many go together. */
#define TOGETHER (W < 4 ? W : 4)

/* W members beside each other: number w of element (i, j) is entry (i, j) of member w. Members past
   the last repeat it. `triangle`: see part_of. */
INLINE void OWN(pack_apart)(E *to, ptrdiff_t ld, const view *x, ptrdiff_t first, ptrdiff_t count,
                            ptrdiff_t m, ptrdiff_t n, int triangle, int conjugate)
{
    const int by_columns = lies_by_columns(x);
    const ptrdiff_t next = by_columns ? x->row : x->column, line = by_columns ? x->column : x->row;
    const ptrdiff_t lines = by_columns ? n : m, ahead = by_columns ? ld : 1;
    const char *members[W];
    for (ptrdiff_t w = 0; w < W; ++w)
        members[w] = x->data + (first + (w < count ? w : count - 1)) * x->step;
    for (ptrdiff_t l = 0; l < lines; ++l) {
        const part its = part_of(l, by_columns, m, n, triangle);
        for (ptrdiff_t w0 = 0; w0 < W; w0 += TOGETHER) {
            E *out = to + (by_columns ? l : l * ld) + its.first * ahead;
            ptrdiff_t at = l * line + its.first * next;
            for (ptrdiff_t k = its.first; k < its.end; ++k, at += next, out += ahead)
                for (ptrdiff_t w = w0; w < w0 + TOGETHER; ++w) {
                    ((REAL *)out)[w] = OWN(load)(members[w] + at);
#if COMPLEX
                    const REAL im = OWN(load)(members[w] + at + sizeof(REAL));
                    ((REAL *)out)[w + W] = conjugate ? -im : im;
#endif
                }
        }
    }
    (void)conjugate;
}

/* Members `first` + w of the group, w from `lane` to `end` - 1, to where `x` says; rows below `rows`
   only. */
INLINE void OWN(unpack_apart)(const E *from, ptrdiff_t ld, const view *x, ptrdiff_t first,
                              ptrdiff_t lane, ptrdiff_t end, ptrdiff_t rows, ptrdiff_t n,
                              int triangle, int conjugate)
{
    const int by_columns = lies_by_columns(x);
    const ptrdiff_t next = by_columns ? x->row : x->column, line = by_columns ? x->column : x->row;
    const ptrdiff_t lines = by_columns ? n : rows, ahead = by_columns ? ld : 1;
    for (ptrdiff_t l = 0; l < lines; ++l) {
        const part its = part_of(l, by_columns, rows, n, triangle);
        for (ptrdiff_t w0 = lane; w0 < end; w0 += TOGETHER) {
            const ptrdiff_t w1 = w0 + TOGETHER < end ? w0 + TOGETHER : end;
            const E *in = from + (by_columns ? l : l * ld) + its.first * ahead;
            char *to = x->data + first * x->step + l * line + its.first * next;
            for (ptrdiff_t k = its.first; k < its.end; ++k, to += next, in += ahead)
                for (ptrdiff_t w = w0; w < w1; ++w) {
                    const REAL *number = (const REAL *)in + w;
                    OWN(store)(to + w * x->step, number[0]);
#if COMPLEX
                    OWN(store)(to + w * x->step + sizeof(REAL), conjugate ? -number[W] : number[W]);
#endif
                }
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
