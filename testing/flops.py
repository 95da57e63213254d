"""Flop counts of LAWN 41, as MAGMA's testers report them.

Each function returns (multiplications, additions); `total` turns that into real operations: one
each in real arithmetic, 6 per multiplication and 2 per addition in complex arithmetic.
"""


def total(counts, is_complex):
    multiplications, additions = counts
    return 6 * multiplications + 2 * additions if is_complex else multiplications + additions


def plus(*counts):
    return tuple(sum(c) for c in zip(*counts))


def times(factor, counts):
    return tuple(factor * c for c in counts)


# BLAS 1 and 2


def axpy(n):
    return n, n


def scal(n):
    return n, 0


def rot(n):
    return 4 * n, 2 * n


def gemv(m, n):
    return m * n + 2 * m, m * n


def symv(n):
    return gemv(n, n)


def ger(m, n):
    return m * n + m, m * n


def syr(n):
    return n * (n + 1) / 2 + n, n * (n + 1) / 2


def syr2(n):
    return n * (n + 1) + 2 * n, n * (n + 1)


def trmv(n):
    return n * (n + 1) / 2, n * (n - 1) / 2


def gbmv(m, n, kl, ku):
    inside = sum(max(0, min(m, j + kl + 1) - max(0, j - ku)) for j in range(n))
    return inside + 2 * m, inside


# BLAS 3


def gemm(m, n, k):
    return m * n * k, m * n * k


def symm(side, m, n):
    return gemm(m, n, m if side == "L" else n)


def syrk(k, n):
    return k * n * (n + 1) / 2, k * n * (n + 1) / 2


def syr2k(k, n):
    return k * n**2, k * n**2 + n


def trmm(side, m, n):
    if side == "R":
        m, n = n, m
    return n * m * (m + 1) / 2, n * m * (m - 1) / 2


trsm = trmm

# LAPACK


def getrf(m, n):
    if m < n:
        m, n = n, m
    return (n / 2 * (n * (m - n / 3 - 1) + m) + 2 * n / 3,
            n / 2 * (n * (m - n / 3) - m) + n / 6)


def getri(n):
    return n * (5 / 6 + n * (2 * n / 3 + 1 / 2)), n * (5 / 6 + n * (2 * n / 3 - 3 / 2))


def getrs(n, nrhs):
    return nrhs * n**2, nrhs * n * (n - 1)


def gesv(n, nrhs):
    return plus(getrf(n, n), getrs(n, nrhs))


def potrf(n):
    return n * ((n / 6 + 1 / 2) * n + 1 / 3), n * (n / 6 * n - 1 / 6)


def potri(n):
    return n * (2 / 3 + n * (n / 3 + 1)), n * (1 / 6 + n * (n / 3 - 1 / 2))


def potrs(n, nrhs):
    return nrhs * n * (n + 1), nrhs * n * (n - 1)


def posv(n, nrhs):
    return plus(potrf(n), potrs(n, nrhs))


def sytrf(n):
    return potrf(n)


def sysv(n, nrhs):
    return plus(sytrf(n), potrs(n, nrhs))


def trtri(n):
    return n * (n * (n / 6 + 1 / 2) + 1 / 3), n * (n * (n / 6 - 1 / 2) + 1 / 3)


def geqrf(m, n):
    if m > n:
        return (n * (n * (1 / 2 - n / 3 + m) + m + 23 / 6),
                n * (n * (1 / 2 - n / 3 + m) + 5 / 6))
    return (m * (m * (-1 / 2 - m / 3 + n) + 2 * n + 23 / 6),
            m * (m * (-1 / 2 - m / 3 + n) + n + 5 / 6))


def gelqf(m, n):
    if m > n:
        return (n * (n * (1 / 2 - n / 3 + m) + m + 29 / 6),
                n * (n * (-1 / 2 - n / 3 + m) + m + 5 / 6))
    return (m * (m * (-1 / 2 - m / 3 + n) + 2 * n + 29 / 6),
            m * (m * (1 / 2 - m / 3 + n) + 5 / 6))


def geqrs(m, n, nrhs):
    return (nrhs * n * (2 * m - n / 2 + 5 / 2), nrhs * n * (2 * m - n / 2 + 1 / 2))


def gels(m, n, nrhs):
    m, n = max(m, n), min(m, n)
    return plus(geqrf(m, n), geqrs(m, n, nrhs))


def orgqr(m, n, k):
    return (k * (2 * m * n + 2 * n - 5 / 3 + k * (2 * k / 3 - (m + n) - 1)),
            k * (2 * m * n + n - m + 1 / 3 + k * (2 * k / 3 - (m + n))))


def ormqr(side, m, n, k):
    if side == "L":
        return (2 * n * m * k - n * k**2 + 2 * n * k, 2 * n * m * k - n * k**2 + n * k)
    return (2 * n * m * k - m * k**2 + m * k + n * k - k**2 / 2 + k / 2,
            2 * n * m * k - m * k**2 + m * k)
