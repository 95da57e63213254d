/* Implicit QR for the singular values of a real upper bidiagonal matrix, for members of every type,
   in double, after LINPACK's svdc. */

/* Rows of z in the directions of the plane rotations: from to from + count, pair by pair from the
   first; with count 1 and `to`, rows from and to. */
typedef void rotate_rows(void *z, ptrdiff_t ld, ptrdiff_t from, ptrdiff_t to, ptrdiff_t count,
                         const double *c, const double *s);

/* The rotation that maps (f, g) to (r, 0); returns r. */
static inline double rotation(double f, double g, double *c, double *s)
{
    double r = sqrt(f * f + g * g);
    if (r < 1 / SQUARES_SAFE)
        r = hypot(f, g);
    if (r == 0) {
        *c = 1;
        *s = 0;
        return 0;
    }
    *c = f / r;
    *s = g / r;
    return r;
}

#define PATIENCE 15 /* sweeps, before what is small beside the whole matrix counts as zero */

/* Diagonal d, superdiagonal e, entries near 1 or less; d becomes the singular values with signs.
   `rotate`, if given, turns the rows of u and v, the transposed left and right factors. `c`: room
   for 4 n numbers. Returns how many superdiagonal entries did not converge. */
static int golub_kahan(double *d, double *e, ptrdiff_t n, double eps, double *c,
                       rotate_rows *rotate, void *u, ptrdiff_t ldu, void *v, ptrdiff_t ldv)
{
    double *s = c + n, *cu = s + n, *su = cu + n;
    double norm = 0;
    int sweep = 0;
    e[n - 1] = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        norm = fmax(norm, fmax(fabs(d[i]), fabs(e[i])));
    for (ptrdiff_t p = n; p > 1;) {
        ptrdiff_t k = p - 2, z;
        double small = sweep > PATIENCE ? eps * norm : DBL_MIN;
        while (k >= 0 && !(fabs(e[k]) <= eps * (fabs(d[k]) + fabs(d[k + 1])) + small))
            --k;
        if (k >= 0)
            e[k] = 0;
        if (++k == p - 1) {
            --p;
            sweep = 0;
            continue;
        }
        if (++sweep > 60) {
            int left = 0;
            for (ptrdiff_t i = 0; i < n - 1; ++i)
                left += e[i] != 0;
            return left;
        }
        /* a zero on the diagonal splits the block: its row, or at the end its column, is cleared */
        for (z = p - 1; z >= k; --z)
            if (fabs(d[z]) <= eps * (fabs(e[z]) * (z < p - 1) + (z > k ? fabs(e[z - 1]) : 0))
                                  + DBL_MIN)
                break;
        if (z >= k) {
            d[z] = 0;
            if (z == p - 1) {
                double f = e[p - 2];
                e[p - 2] = 0;
                for (ptrdiff_t j = p - 2; j >= k; --j) {
                    d[j] = rotation(d[j], f, c, s);
                    if (j > k) {
                        f = -*s * e[j - 1];
                        e[j - 1] *= *c;
                    }
                    if (rotate)
                        rotate(v, ldv, j, p - 1, 1, c, s);
                }
            } else {
                double f = e[z];
                e[z] = 0;
                for (ptrdiff_t j = z + 1; j < p; ++j) {
                    d[j] = rotation(d[j], f, c, s);
                    f = -*s * e[j];
                    e[j] *= *c;
                    if (rotate)
                        rotate(u, ldu, j, z, 1, c, s);
                }
            }
            continue;
        }
        double scale = fmax(fmax(fmax(fabs(d[p - 1]), fabs(d[p - 2])), fabs(e[p - 2])),
                            fmax(fabs(d[k]), fabs(e[k])));
        double last = d[p - 1] / scale, before = d[p - 2] / scale, beside = e[p - 2] / scale;
        double start = d[k] / scale, shift = 0;
        double b = ((before + last) * (before - last) + beside * beside) / 2;
        double square = last * beside * (last * beside);
        if (b != 0 || square != 0)
            shift = square / (b + copysign(sqrt(b * b + square), b));
        double f = (start + last) * (start - last) + shift, g = start * (e[k] / scale);
        for (ptrdiff_t j = k; j < p - 1; ++j) {
            ptrdiff_t i = j - k;
            double r = rotation(f, g, c + i, s + i);
            if (j > k)
                e[j - 1] = r;
            f = c[i] * d[j] + s[i] * e[j];
            e[j] = c[i] * e[j] - s[i] * d[j];
            g = s[i] * d[j + 1];
            d[j + 1] *= c[i];
            d[j] = rotation(f, g, cu + i, su + i);
            f = cu[i] * e[j] + su[i] * d[j + 1];
            d[j + 1] = cu[i] * d[j + 1] - su[i] * e[j];
            g = su[i] * e[j + 1];
            e[j + 1] *= cu[i];
        }
        e[p - 2] = f;
        if (rotate) {
            rotate(v, ldv, k, k + 1, p - 1 - k, c, s);
            rotate(u, ldu, k, k + 1, p - 1 - k, cu, su);
        }
    }
    return 0;
}
