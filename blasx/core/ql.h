/* Implicit QL for a real symmetric tridiagonal matrix, for members of every type: in double, so
   that no rotation is lost to underflow. */

/* How z's rows from + count down to `from` are turned, pair by pair from the last. */
typedef void turn_rows(void *z, ptrdiff_t ld, ptrdiff_t from, ptrdiff_t count, const double *c,
                       const double *s);

static void turn_round(double *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0, j = n - 1; i < j; ++i, --j) {
        double t = x[i];
        x[i] = x[j];
        x[j] = t;
    }
}

/* Diagonal d, off-diagonal e, entries near 1 or less; d becomes the eigenvalues, and `turn`, if
   given, is called for every sweep. Returns how many off-diagonal entries did not converge. */
static int ql(double *d, double *e, ptrdiff_t n, double eps, double *c, turn_rows *turn, void *z,
              ptrdiff_t ld)
{
    double *s = c + n;
    e[n - 1] = 0;
    for (ptrdiff_t l = 0; l < n; ++l)
        for (int sweep = 0;; ++sweep) {
            ptrdiff_t m = l;
            while (m < n - 1 &&
                   !(e[m] * e[m] <= eps * eps * fabs(d[m]) * fabs(d[m + 1]) + DBL_MIN))
                ++m;
            if (m == l)
                break;
            if (sweep == 50) {
                int left = 0;
                for (ptrdiff_t i = 0; i < n - 1; ++i)
                    left += e[i] != 0;
                return left;
            }
            double g = (d[l + 1] - d[l]) / (2 * e[l]), r = sqrt(g * g + 1);
            if (!(r < INFINITY))
                r = fabs(g);
            g = d[m] - d[l] + e[l] / (g + copysign(r, g));
            double sine = 1, cosine = 1, p = 0;
            ptrdiff_t i = m - 1;
            for (; i >= l; --i) {
                double f = sine * e[i], b = cosine * e[i];
                r = sqrt(f * f + g * g);
                if (r < 1 / SQUARES_SAFE)
                    r = hypot(f, g);
                e[i + 1] = r;
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                sine = f / r;
                cosine = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * sine + 2 * cosine * b;
                p = sine * r;
                d[i + 1] = g + p;
                g = cosine * r - b;
                c[i - l] = cosine;
                s[i - l] = sine;
            }
            ptrdiff_t done = i + 1; /* rotations from here on were made */
            if (turn && done < m)
                turn(z, ld, done, m - done, c + done - l, s + done - l);
            if (i >= l)
                continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    return 0;
}
