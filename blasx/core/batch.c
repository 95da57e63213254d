/* The CPU's batches: LAPACK called member by member, and the small members' own LU,
   Cholesky, QR, eigenvalues and singular values.

   Every function works on shares of a batch until none is left: threads that are handed the same
   counter `next` take from it `share` members at a time. Without a counter the batch is one share.
   A member's arithmetic knows nothing of its share. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int take(ptrdiff_t *next, ptrdiff_t share, ptrdiff_t batch, ptrdiff_t *lo, ptrdiff_t *hi)
{
    if (next) {
        *lo = __atomic_fetch_add(next, share, __ATOMIC_RELAXED);
        *hi = *lo + share < batch ? *lo + share : batch;
        return *lo < batch;
    }
    int more = *hi < batch;
    *lo = *hi;
    *hi = batch;
    return more;
}

/* -- LAPACK */

typedef void *P;

#define A1 p[0]
#define A2 A1, p[1]
#define A3 A2, p[2]
#define A4 A3, p[3]
#define A5 A4, p[4]
#define A6 A5, p[5]
#define A7 A6, p[6]
#define A8 A7, p[7]
#define A9 A8, p[8]
#define A10 A9, p[9]
#define A11 A10, p[10]
#define A12 A11, p[11]
#define A13 A12, p[12]
#define A14 A13, p[13]
#define A15 A14, p[14]
#define A16 A15, p[15]
#define A17 A16, p[16]
#define A18 A17, p[17]
#define A19 A18, p[18]
#define A20 A19, p[19]
#define P1 P
#define P2 P1, P
#define P3 P2, P
#define P4 P3, P
#define P5 P4, P
#define P6 P5, P
#define P7 P6, P
#define P8 P7, P
#define P9 P8, P
#define P10 P9, P
#define P11 P10, P
#define P12 P11, P
#define P13 P12, P
#define P14 P13, P
#define P15 P14, P
#define P16 P15, P
#define P17 P16, P
#define P18 P17, P
#define P19 P18, P
#define P20 P19, P
#define CALL(n)                                                                                  \
    case n:                                                                                      \
        ((void (*)(P##n))routine)(A##n);                                                         \
        break

static void call(uintptr_t routine, int arguments, P *p)
{
    switch (arguments) {
        CALL(1); CALL(2); CALL(3); CALL(4); CALL(5); CALL(6); CALL(7); CALL(8); CALL(9); CALL(10);
        CALL(11); CALL(12); CALL(13); CALL(14); CALL(15); CALL(16); CALL(17); CALL(18); CALL(19);
        CALL(20);
    }
}

/* A matrix of `rows` x `columns` numbers of `size` bytes in a member of any strides (in bytes)
   and LAPACK's copy of it by columns, argument number `argument`; `data` is null where it is not
   read or not written. */
static void turn(char *data, ptrdiff_t row, ptrdiff_t column, char *work, ptrdiff_t rows,
                 ptrdiff_t columns, ptrdiff_t size, int in)
{
#define COPY(bytes)                                                                              \
    for (ptrdiff_t j = 0; j < columns; ++j, data += column) {                                    \
        char *x = data;                                                                          \
        if (in)                                                                                  \
            for (ptrdiff_t i = 0; i < rows; ++i, x += row, work += bytes)                        \
                memcpy(work, x, bytes);                                                          \
        else                                                                                     \
            for (ptrdiff_t i = 0; i < rows; ++i, x += row, work += bytes)                        \
                memcpy(x, work, bytes);                                                          \
    }
    if (size == 4) {
        COPY(4)
    } else if (size == 8) {
        COPY(8)
    } else {
        COPY(16)
    }
#undef COPY
}

/* routine(p0, p1, ...) for every member k, pointer i moved by k steps[i] bytes. `turned` holds ten
   words for each argument that LAPACK sees by columns: its number, rows, columns, size of a number,
   then where it is read and where it is written, each as address, row and column stride; their
   strides from member to member are in `turned_steps`. */
void lapack(uintptr_t routine, int arguments, void **pointers, const ptrdiff_t *steps,
            int count, const ptrdiff_t *turned, const ptrdiff_t *turned_steps, ptrdiff_t batch,
            ptrdiff_t share, ptrdiff_t *next)
{
    P p[20];
    ptrdiff_t lo = 0, hi = 0;
    while (take(next, share, batch, &lo, &hi))
        for (ptrdiff_t k = lo; k < hi; ++k) {
            for (int i = 0; i < arguments; ++i)
                p[i] = (char *)pointers[i] + k * steps[i];
            for (int i = 0; i < count; ++i) {
                const ptrdiff_t *t = turned + 10 * i;
                if (t[4])
                    turn((char *)t[4] + k * turned_steps[2 * i], t[5], t[6], p[t[0]], t[1], t[2],
                         t[3], 1);
            }
            call(routine, arguments, p);
            for (int i = 0; i < count; ++i) {
                const ptrdiff_t *t = turned + 10 * i;
                if (t[7])
                    turn((char *)t[7] + k * turned_steps[2 * i + 1], t[8], t[9], p[t[0]], t[1],
                         t[2], t[3], 0);
            }
        }
}

/* Whether all row numbers (int32) are from 0 to n - 1. */
int within(const void *rows, ptrdiff_t count, ptrdiff_t n)
{
    int good = 1;
    for (ptrdiff_t i = 0; i < count; ++i)
        good &= ((const int32_t *)rows)[i] >= 0 && ((const int32_t *)rows)[i] < n;
    return good;
}

/* -- own LU, Cholesky, QR and eigenvalues */

/* Where entry (i, j) of member k is: data + k step + i row + j column, in bytes. */
typedef struct {
    char *data;
    ptrdiff_t step, row, column;
} view;

/* Whether neighbours in a column are nearer to each other than those in a row. */
static inline int lies_by_columns(const view *x)
{
    return (x->row < 0 ? -x->row : x->row) < (x->column < 0 ? -x->column : x->column);
}

/* Of row or column `line` of an m x n matrix the entries (i, j) with j >= i - i % triangle; all if
   that is 0. */
typedef struct {
    ptrdiff_t first, end;
} part;

static inline part part_of(ptrdiff_t line, int is_column, ptrdiff_t m, ptrdiff_t n, int triangle)
{
    part p = {0, is_column ? m : n};
    if (triangle) {
        const ptrdiff_t begin = line - line % triangle;
        if (!is_column)
            p.first = begin;
        else if (begin + triangle < m)
            p.end = begin + triangle;
    }
    return p;
}

/* Factor every m x n member of a into f and, with nrhs > 0, solve b into x; from `least` members on
   they share vectors. `conjugate`: Cholesky of conj(a); of LU's factors see getrs. */
typedef struct {
    ptrdiff_t m, n, nrhs, least, conjugate;
    view a, f, b, x;
    int32_t *piv, *info;
} problem;

#define SQUARES_SAFE 0x1p+460 /* from 1 / this on, squares keep their digits */
#include "ql.h"
#include "golub_kahan.h"

enum { GENERAL, ONES, REAL_ONLY }; /* what the diagonal of a triangle is */

typedef void worker(const problem *, ptrdiff_t lo, ptrdiff_t hi, void *scratch);

#define WORKERS(f, width)                                                                        \
    {                                                                                            \
        f##_s##width, f##_d##width, f##_c##width, f##_z##width                                   \
    }
#define TABLE(width)                                                                             \
    static worker *const own_##width[7][4] = {                                                   \
        WORKERS(gesv, width), WORKERS(posv, width), WORKERS(geqrf, width),                       \
        WORKERS(syevd, width), WORKERS(gesvd, width), WORKERS(getrs, width),                     \
        WORKERS(potrs, width)};

#define WIDTH 16
#include "width.h"
#undef WIDTH
TABLE(16)

#if defined(__x86_64__) && !defined(__clang__) /* which has no such pragma */
#define WIDER
#endif
#ifdef WIDER
#ifndef ANY_MACHINE /* the wider ones too are compiled for what every machine has */
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define WIDTH 32
#include "width.h"
#undef WIDTH
TABLE(32)
#ifndef ANY_MACHINE
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,prefer-vector-width=512")
#endif
#define WIDTH 64
#include "width.h"
#undef WIDTH
TABLE(64)
#ifndef ANY_MACHINE
#pragma GCC pop_options
#endif
#endif

/* The width of this machine's vectors, in bytes. */
int widest(void)
{
#ifdef WIDER
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return 64;
    if (__builtin_cpu_supports("avx2"))
        return 32;
#endif
    return 16;
}

static worker *const (*at_width(int width))[4]
{
#ifdef WIDER
    if (width == 64)
        return own_64;
    if (width == 32)
        return own_32;
#endif
    return own_16;
}

/* The memory that a thread works in. */
static size_t scratch_bytes(const problem *p, int width, int routine, int type, ptrdiff_t batch)
{
    size_t m = (size_t)p->m, n = (size_t)p->n, vectors = 2 * m + n + 4; /* of elements */
    size_t element = (size_t)width * (type >= 2 ? 2 : 1);
    size_t lanes = (size_t)width / (type & 1 ? 8 : 4);
    if (routine >= 5) /* the right-hand sides */
        return n * ((size_t)p->nrhs / lanes + 1) * element;
    if (routine >= 3) /* two matrices of m rows, two of n rows, six rows of n doubles */
        return (2 * m * (m / lanes + 1) + 2 * n * (n / lanes + 1) + vectors + n) * element
               + 6 * n * sizeof(double);
    size_t numbers = n + (size_t)p->nrhs;
    return (m * (p->least > batch ? numbers / lanes + 2 : numbers) + vectors) * element;
}

/* `routine`: 0 LU, 1 Cholesky, 2 QR (x is tau), 3 eigenvalues (x) and with
   nrhs 1 eigenvectors (f), 4 singular values (x) and with nrhs > 0 as many columns
   of U (f) and V^H (b), m >= n, 5 and 6 the solutions for given factors (a, piv) of LU and
   Cholesky; `type`: 0 to 3 for s d c z; `sizes`: m, n, nrhs, least, conjugate, then the three
   strides of a, f, b, x. Returns 0, or 1 where memory is short. */
int own(int width, int routine, int type, const ptrdiff_t *sizes, void *a, void *f, void *b,
        void *x, void *piv, void *info, ptrdiff_t batch, ptrdiff_t share, ptrdiff_t *next)
{
    const ptrdiff_t *s = sizes + 5;
    problem p = {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4],
                 {a, s[0], s[1], s[2]}, {f, s[3], s[4], s[5]}, {b, s[6], s[7], s[8]},
                 {x, s[9], s[10], s[11]}, piv, info};
    void *scratch = NULL;
    if (posix_memalign(&scratch, 64, scratch_bytes(&p, width, routine, type, batch)))
        return 1;
    worker *work = at_width(width)[routine][type];
    ptrdiff_t lo = 0, hi = 0;
    while (take(next, share, batch, &lo, &hi))
        work(&p, lo, hi, scratch);
    free(scratch);
    return 0;
}
