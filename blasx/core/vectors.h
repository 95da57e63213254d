/* Numbers in vectors of WIDTH bytes, for one type (LETTER) and one width: one element E holds W
   numbers, real or complex, that undergo the same operations.

   Products and sums are rounded one by one (no contraction), so that a number comes out the same,
   to the bit, in every position of a vector and at every width. */

#define PASTE3(a, b, c) a##_##b##c
#define PASTE2(a, b, c) PASTE3(a, b, c)
#define OWN(name) PASTE2(name, LETTER, WIDTH)
#define INLINE static inline __attribute__((always_inline, unused))

#define V OWN(V)
#define VI OWN(VI)
#define E OWN(E)
#define W ((ptrdiff_t)(WIDTH / sizeof(REAL)))
#define PARTS (1 + COMPLEX) /* real numbers in a number */

typedef REAL V __attribute__((vector_size(WIDTH)));
typedef INTEGER VI __attribute__((vector_size(WIDTH)));
typedef struct {
    V re;
#if COMPLEX
    V im;
#endif
} E;

INLINE V OWN(all)(REAL x) { return x - (V){0}; }
INLINE VI OWN(integers)(ptrdiff_t x) { return (INTEGER)x - (VI){0}; }
INLINE V OWN(select)(VI mask, V yes, V no)
{
    return (V)(((VI)yes & mask) | ((VI)no & ~mask));
}
INLINE VI OWN(select_integers)(VI mask, VI yes, VI no) { return (yes & mask) | (no & ~mask); }
INLINE V OWN(magnitude)(V x) { return (V)((VI)x & (VI)~(VI)OWN(all)(-(REAL)0)); }

INLINE VI OWN(lanes)(void)
{
    VI x;
    for (ptrdiff_t w = 0; w < W; ++w)
        x[w] = (INTEGER)w;
    return x;
}

INLINE int OWN(any)(VI mask)
{
    INTEGER found = 0;
    for (ptrdiff_t w = 0; w < W; ++w)
        found |= mask[w];
    return found != 0;
}

INLINE V OWN(root)(V x)
{
    V y;
    for (ptrdiff_t w = 0; w < W; ++w)
        y[w] = SQRT(x[w]);
    return y;
}

/* |Re| + |Im|, by which LAPACK compares pivots. */
INLINE V OWN(size)(E x)
{
#if COMPLEX
    return OWN(magnitude)(x.re) + OWN(magnitude)(x.im);
#else
    return OWN(magnitude)(x.re);
#endif
}

INLINE E OWN(choose)(VI mask, E yes, E no)
{
    no.re = OWN(select)(mask, yes.re, no.re);
#if COMPLEX
    no.im = OWN(select)(mask, yes.im, no.im);
#endif
    return no;
}

/* c - a b */
INLINE E OWN(less)(E c, E a, E b)
{
#if COMPLEX
    c.re = c.re - a.re * b.re + a.im * b.im;
    c.im = c.im - a.re * b.im - a.im * b.re;
#else
    c.re = c.re - a.re * b.re;
#endif
    return c;
}

/* c - conj(a) b */
INLINE E OWN(less_conjugate)(E c, E a, E b)
{
#if COMPLEX
    c.re = c.re - a.re * b.re - a.im * b.im;
    c.im = c.im - a.re * b.im + a.im * b.re;
#else
    c.re = c.re - a.re * b.re;
#endif
    return c;
}

INLINE E OWN(times)(E a, E b)
{
#if COMPLEX
    E c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
#else
    E c = {a.re * b.re};
#endif
    return c;
}

INLINE E OWN(minus)(E a, E b)
{
    a.re -= b.re;
#if COMPLEX
    a.im -= b.im;
#endif
    return a;
}

INLINE E OWN(conjugate)(E x)
{
#if COMPLEX
    x.im = -x.im;
#endif
    return x;
}

INLINE E OWN(scaled)(E a, V real)
{
    a.re *= real;
#if COMPLEX
    a.im *= real;
#endif
    return a;
}

INLINE E OWN(over)(E a, V real)
{
    a.re /= real;
#if COMPLEX
    a.im /= real;
#endif
    return a;
}

/* a / b; the complex one by Smith's formula, which squares nothing. */
INLINE E OWN(quotient)(E a, E b)
{
#if COMPLEX
    VI flat = (VI)(OWN(magnitude)(b.re) >= OWN(magnitude)(b.im));
    V large = OWN(select)(flat, b.re, b.im), small = OWN(select)(flat, b.im, b.re);
    V t = small / large, d = large + small * t;
    V first = OWN(select)(flat, a.re, a.im), second = OWN(select)(flat, a.im, a.re);
    V im = (second - first * t) / d;
    E c = {(first + second * t) / d, OWN(select)(flat, im, -im)};
#else
    E c = {a.re / b.re};
#endif
    return c;
}

INLINE E OWN(one)(void)
{
    E x = {OWN(all)(1)};
    return x;
}

/* Number `at` of an array of elements. */
INLINE REAL *OWN(number)(E *x, ptrdiff_t at)
{
    return (REAL *)(x + at / W) + at % W;
}

/* All numbers of an element equal to that at x. */
INLINE E OWN(spread)(const REAL *x)
{
#if COMPLEX
    E y = {OWN(all)(x[0]), OWN(all)(x[W])};
#else
    E y = {OWN(all)(x[0])};
#endif
    return y;
}

/* f for members lo to hi - 1: W at a time beside each other, or, where fewer than `least` are left,
   each alone. */
#define WORKER(f)                                                                                \
    static void OWN(f)(const problem *p, ptrdiff_t lo, ptrdiff_t hi, void *scratch)              \
    {                                                                                            \
        while (lo < hi) {                                                                        \
            ptrdiff_t count = hi - lo < W ? hi - lo : W;                                         \
            if (count >= p->least)                                                               \
                OWN(f##_apart)(p, lo, count, scratch);                                           \
            else                                                                                 \
                for (ptrdiff_t w = 0; w < count; ++w)                                            \
                    OWN(f##_alone)(p, lo + w, scratch);                                          \
            lo += count;                                                                         \
        }                                                                                        \
    }
