"""Triangular matrices: inverse, solve, and the product U U^H or L^H L.

The transpose of a triangular matrix that lies by rows lies by columns and has the other triangle:
so no row-major operand is copied, except for the conjugate transpose of a complex one.
"""

import numpy as np

from ._lapack import by_columns, by_rows, ld, output
from ._routine import public, typed


def trtri(me, c, lower=0, unitdiag=0, overwrite_c=0):
    """The inverse of a triangular matrix.

    Parameters
    ----------
    c : (n, n) array
        Its upper triangle, or its lower one if `lower`, is the matrix. Overwritten by the inverse
        if `overwrite_c`: in place where `c` is aligned and lies by columns or by rows, views
        included.
    lower, unitdiag : {0, 1}
        With `unitdiag` the diagonal is taken for ones, and neither read nor written.

    Returns
    -------
    inv_c : (n, n) array
        The other triangle is that of `c`. `c` itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: the diagonal is zero at k, and there is no inverse.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xtrtri, which takes another n^2 of memory, in the current stream, no
    synchronisation.
    n^3 / 3 operations. LAPACK Users' Guide, xTRTRI.
    """
    c = me.square(c, "c", overwrite_c)
    lower, unitdiag = me.choice(lower, "lower", (0, 1)), me.choice(unitdiag, "unitdiag", (0, 1))
    turned = overwrite_c and by_rows(c)
    if turned:
        c, lower = c.T, 1 - lower
    n = c.shape[0]
    if me.on_cpu(c):
        if n and not me.strided(c, overwrite_c):
            inverse, info = me.scipy(c, lower, unitdiag, overwrite_c)
        else:
            inverse = output(c, overwrite_c)
            info = me.fortran("trtri", "UL"[lower], "NU"[unitdiag], n, inverse, ld(inverse))
    else:
        from . import _cuda as gpu
        inverse = gpu.output(c, overwrite_c)
        info = _singular_gpu(inverse, unitdiag)
        if n:
            import cupy
            triangle = cupy.tri(n, k=-unitdiag, dtype=bool)
            triangle = triangle if lower else triangle.T
            gpu.guarded(inverse, info, lambda x: gpu.solver64(  # it writes in the other one, too
                "Xtrtri", "iinipn",
                (gpu.fill(lower), unitdiag, n, me.type.cuda, x.data.ptr, gpu.ld(x)),
                with_params=False), triangle)
    return (inverse.T if turned else inverse), info


def _singular_gpu(a, unitdiag):
    """Where, from 1, the diagonal of a triangular CuPy array is first zero; 0: nowhere."""
    import cupy

    from . import _cuda as gpu
    return cupy.zeros((), np.int32) if unitdiag else gpu.first(a.diagonal() == 0)


def trtrs(me, a, b, lower=0, trans=0, unitdiag=0, lda=None, overwrite_b=0):
    """Solve op(A) X = B, A triangular.

    Parameters
    ----------
    a : (lda, n) array, lda >= n
        The upper triangle of its first n rows, or the lower one if `lower`, is the matrix.
    b : (ldb,) or (ldb, nrhs) array, ldb >= n
        Its first n rows are the right-hand sides, the others are left alone. Overwritten by X if
        `overwrite_b`.
    lower, unitdiag : {0, 1}
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.
    lda : int, optional
        The number of rows of `a`.

    Returns
    -------
    x : array of the shape of b
        B itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: the diagonal is zero at k, and nothing was solved.

    Notes
    -----
    CPU: LAPACK. GPU: cuBLAS trsm in the current stream, no synchronisation.
    n^2 nrhs operations.
    """
    a = me.matrix(a, "a")
    n = a.shape[1]
    if a.shape[0] < n:
        me.illegal("a", a.shape, f"of at least {n} rows, as it has {n} columns")
    b, one = me.columns(b, "b", None, overwrite_b)
    if b.shape[0] < n:
        me.illegal("b", b.shape, f"of at least {n} rows, as a has {n} columns")
    lower, unitdiag = me.choice(lower, "lower", (0, 1)), me.choice(unitdiag, "unitdiag", (0, 1))
    trans = me.choice(trans, "trans", (0, 1, 2))
    if lda is not None and me.integer(lda, "lda") != a.shape[0]:
        me.illegal("lda", lda, f"the number of rows of a, {a.shape[0]}")
    if overwrite_b:
        me.distinct(b, "b", a=a)
    if me.on_cpu(a, b):
        trans = trans if me.is_complex else min(trans, 1)
        if trans < 2 and by_rows(a):
            a, lower, trans = a[:n].T, 1 - lower, 1 - trans
        if me.strided(b, overwrite_b) or not b.size or not n:
            a, x = by_columns(a), output(b, overwrite_b)
            info = me.fortran("trtrs", "UL"[lower], "NTC"[trans], "NU"[unitdiag], n, x.shape[1],
                              a, ld(a), x, ld(x))
        else:
            x, info = me.scipy(a, b, lower, trans, unitdiag, a.shape[0], overwrite_b)
    else:
        from . import _cuda as gpu
        from .blas3 import solve_triangle
        x = gpu.output(b, overwrite_b)
        info = _singular_gpu(a[:n], unitdiag)
        if n and x.size:
            gpu.guarded(x[:n], info, lambda y: solve_triangle(
                me, a[:n], y, lower, trans, unitdiag))
    return (x.reshape(-1) if one else x), info


def lauum(me, c, lower=0, overwrite_c=0):
    """U U^H, or L^H L: the product of a triangular matrix with its conjugate transpose.

    Parameters
    ----------
    c : (n, n) array
        U, or L if `lower`, of real diagonal as a Cholesky factor is. Overwritten by the product if
        `overwrite_c`.
    lower : {0, 1}

    Returns
    -------
    a : (n, n) array
        One triangle of the product; the other is that of `c`.
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER lauum in the current stream, no synchronisation.
    n^3 / 3 operations. LAPACK, xLAUUM.
    """
    c = me.square(c, "c", overwrite_c)
    lower = me.choice(lower, "lower", (0, 1))
    turned = overwrite_c and by_rows(c)
    if turned:
        c, lower = c.T, 1 - lower
    n = c.shape[0]
    if me.on_cpu(c):
        if n and not me.strided(c, overwrite_c):
            a, info = me.scipy(c, lower, overwrite_c)
        else:
            a = output(c, overwrite_c)
            info = me.fortran("lauum", "UL"[lower], n, a, ld(a))
    else:
        import cupy

        from . import _cuda as gpu
        a, info = gpu.output(c, overwrite_c), cupy.zeros((), np.int32)
        if n:
            info = gpu.solver32(me, "lauum", "iipi", (gpu.fill(lower), n, a.data.ptr, gpu.ld(a)))
    return (a.T if turned else a), info


trtri, strtri, dtrtri, ctrtri, ztrtri = typed(trtri, "sdcz")
trtrs, strtrs, dtrtrs, ctrtrs, ztrtrs = typed(trtrs, "sdcz")
lauum, slauum, dlauum, clauum, zlauum = typed(lauum, "sdcz")

__all__ = public(globals())
