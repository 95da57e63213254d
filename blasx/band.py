"""LU of band matrices. LAPACK's storage: element (i, j) of A is ab[kl + ku + i - j, j], and the
first kl rows are room for what pivoting fills in.

There is no GPU implementation: CuPy arrays are copied to the CPU and the results back, with a
TransferWarning and a synchronisation.
"""

import numpy as np

from ._lapack import INT, LARGEST, by_columns, ld, output
from ._routine import public, typed
from .lu import from_zero


def gbtrf(me, ab, kl, ku, m=None, n=None, ldab=None, overwrite_ab=0):
    """LU factorization of a band matrix with partial pivoting.

    Parameters
    ----------
    ab : (ldab, n) array, ldab >= 2 kl + ku + 1
        Overwritten by the factors if `overwrite_ab`: in place where column-major and aligned.
    kl, ku : int
        Diagonals below and above the main one.
    m, n : int, optional
        Rows and columns of A: both the columns of `ab` if not given.
    ldab : int, optional
        The number of rows of `ab`.

    Returns
    -------
    lu : array of the shape of ab
        U as a band matrix with kl + ku diagonals above, and below it the multipliers.
    ipiv : (min(m, n),) int32 array
        Row j was interchanged with row ipiv[j], counted from 0.
    info : int
        k > 0: U[k-1, k-1] is exactly zero; the factorization is complete.

    Notes
    -----
    Runs on the CPU. About 2 n kl (kl + ku + 1) operations. LAPACK Users' Guide, xGBTRF.
    """
    ab = me.matrix(ab, "ab", overwrite=overwrite_ab)
    kl, ku = _diagonals(me, ab, kl, ku, ldab)
    m = ab.shape[1] if m is None else me.integer(m, "m", 0, LARGEST)
    n = ab.shape[1] if n is None else me.integer(n, "n", 0, ab.shape[1])
    if not me.on_cpu(ab):
        return me.through_cpu(ab, kl, ku, m, n)
    if n and m and not me.strided(ab, overwrite_ab):
        return me.scipy(ab, kl, ku, m, n, ab.shape[0], overwrite_ab)
    lu, piv = output(ab, overwrite_ab), np.empty(min(m, n), INT)
    info = me.fortran("gbtrf", m, n, kl, ku, lu, ld(lu), piv)
    return lu, from_zero(piv), info


def gbtrs(me, ab, kl, ku, b, ipiv, trans=0, n=None, ldab=None, ldb=None, overwrite_b=0):
    """Solve op(A) X = B with the factors of gbtrf.

    Parameters
    ----------
    ab : (ldab, n) array
    kl, ku : int
    b : (ldb,) or (ldb, nrhs) array, ldb >= n
        Its first n rows are the right-hand sides. Overwritten by X if `overwrite_b`.
    ipiv : (n,) integer array
        As gbtrf left them.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.
    n, ldab, ldb : int, optional
        The order of A; the numbers of rows of `ab` and `b`.

    Returns
    -------
    x : array of the shape of b
    info : int, 0

    Notes
    -----
    Runs on the CPU. About 2 n (2 kl + ku) nrhs operations. LAPACK Users' Guide, xGBTRS.
    """
    ab = me.matrix(ab, "ab")
    kl, ku = _diagonals(me, ab, kl, ku, ldab)
    n = ab.shape[1] if n is None else me.integer(n, "n", 0, ab.shape[1])
    b, one = me.columns(b, "b", None, overwrite_b)
    if b.shape[0] < n:
        me.illegal("b", b.shape, f"of at least {n} rows, as a has {n} columns")
    if ldb is not None and me.integer(ldb, "ldb") != b.shape[0]:
        me.illegal("ldb", ldb, f"the number of rows of b, {b.shape[0]}")
    ipiv = me.integers(ipiv, "ipiv", n, below=n)
    trans = me.choice(trans, "trans", (0, 1, 2))
    if overwrite_b:
        me.distinct(b, "b", ab=ab, ipiv=ipiv)
    if not me.on_cpu(ab, b, ipiv):
        x, info = me.through_cpu(ab, kl, ku, b, ipiv, trans, n)
    elif n and b.size and not me.strided(b, overwrite_b):
        x, info = me.scipy(ab, kl, ku, b, ipiv, trans, n, ab.shape[0], b.shape[0], overwrite_b)
    else:
        lu, x = by_columns(ab), output(b, overwrite_b)
        info = me.fortran("gbtrs", "NTC"[trans], n, kl, ku, x.shape[1], lu, ld(lu),
                          (ipiv + 1).astype(INT), x, ld(x))
    return (x.reshape(-1) if one else x), info


def gbsv(me, kl, ku, ab, b, overwrite_ab=0, overwrite_b=0):
    """Solve A X = B, A a band matrix, by LU with partial pivoting.

    Parameters
    ----------
    kl, ku : int
        Diagonals below and above the main one.
    ab : (2 kl + ku + 1, n) array
        Overwritten by the factors if `overwrite_ab`.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.

    Returns
    -------
    lub, piv
        As of gbtrf.
    x : array of the shape of b
        B itself where info > 0.
    info : int
        k > 0: U[k-1, k-1] is exactly zero, and nothing was solved.

    Notes
    -----
    Runs on the CPU. LAPACK Users' Guide, xGBSV.
    """
    ab = me.matrix(ab, "ab", overwrite=overwrite_ab)
    kl, ku = _diagonals(me, ab, kl, ku, None)
    n = ab.shape[1]
    if ab.shape[0] != 2 * kl + ku + 1:
        me.illegal("ab", ab.shape, f"of shape ({2 * kl + ku + 1}, any): 2 kl + ku + 1 rows")
    b, one = me.columns(b, "b", n, overwrite_b)
    if overwrite_ab:
        me.distinct(ab, "ab", b=b)
    if overwrite_b:
        me.distinct(b, "b", ab=ab)
    if not me.on_cpu(ab, b):
        lub, piv, x, info = me.through_cpu(kl, ku, ab, b)
    elif b.size and not (me.strided(ab, overwrite_ab) or me.strided(b, overwrite_b)):
        lub, piv, x, info = me.scipy(kl, ku, ab, b, overwrite_ab, overwrite_b)
    else:
        lub, x, piv = output(ab, overwrite_ab), output(b, overwrite_b), np.empty(n, INT)
        info = me.fortran("gbsv", n, kl, ku, x.shape[1], lub, ld(lub), piv, x, ld(x))
        piv = from_zero(piv)
    return lub, piv, (x.reshape(n) if one else x), info


def _diagonals(me, ab, kl, ku, ldab):
    """kl and ku, for which `ab` must have room."""
    kl, ku = me.integer(kl, "kl", 0), me.integer(ku, "ku", 0)
    if ab.shape[0] < 2 * kl + ku + 1:
        me.illegal("ab", ab.shape, f"of at least {2 * kl + ku + 1} rows: 2 kl + ku + 1")
    if ldab is not None and me.integer(ldab, "ldab") != ab.shape[0]:
        me.illegal("ldab", ldab, f"the number of rows of ab, {ab.shape[0]}")
    return kl, ku


gbtrf, sgbtrf, dgbtrf, cgbtrf, zgbtrf = typed(gbtrf, "sdcz")
gbtrs, sgbtrs, dgbtrs, cgbtrs, zgbtrs = typed(gbtrs, "sdcz")
gbsv, sgbsv, dgbsv, cgbsv, zgbsv = typed(gbsv, "sdcz")

__all__ = public(globals())
