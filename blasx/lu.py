"""LU with partial pivoting, and what is built on it: solve, inverse, condition."""

import numpy as np

from ._lapack import ld
from ._routine import public, typed


def getrf(me, a, overwrite_a=0):
    """LU factorization with partial pivoting, P A = L U.

    Parameters
    ----------
    a : (m, n) array
        Overwritten by the factors if `overwrite_a`: in place where `a` is column-major, views
        with a leading dimension included.

    Returns
    -------
    lu : (m, n) array
        U on and above the diagonal, L below it without its ones; column-major.
    piv : (min(m, n),) int32 array
        Row j was interchanged with row piv[j], counted from 0, in this order.
    info : int (GPU: 0-d array)
        k > 0: U[k-1, k-1] is exactly zero; the factorization is complete, solving would divide
        by zero.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xgetrf in the current stream, no synchronisation.
    m n^2 - n^3/3 multiplications and additions. LAPACK Users' Guide, xGETRF.
    """
    a = me.matrix(a, "a", overwrite=overwrite_a)
    if me.on_cpu(a):
        if me.strided(a, overwrite_a):
            piv = np.empty(min(a.shape), np.intc)
            info = me.fortran("getrf", *a.shape, a, ld(a), piv)
            piv -= 1
            return a, piv, info
        return me.scipy(a, overwrite_a)
    from . import _cuda as gpu
    lu = gpu.output(a, overwrite_a)
    piv, info = _getrf_gpu(me, lu)
    return lu, piv, info


def _getrf_gpu(me, lu):
    """Factor a column-major CuPy array in place; 0-based int32 pivots and info."""
    import cupy

    from . import _cuda as gpu
    m, n = lu.shape
    piv = cupy.empty(min(m, n), np.int64)
    if not lu.size:
        return piv.astype(np.int32), cupy.zeros((), np.int32)
    t, at = me.type.cuda, (lu.data.ptr, gpu.ld(lu))
    info = gpu.solver64("Xgetrf", "nnipnpi", (m, n, t, *at, piv.data.ptr, t),
                        ("nnipni", (m, n, t, *at, t)))
    return (piv - 1).astype(np.int32), info


def getrs(me, lu, piv, b, trans=0, overwrite_b=0):
    """Solve op(A) X = B with the factors of getrf.

    Parameters
    ----------
    lu : (n, n) array
    piv : (n,) integer array
        As getrf left them.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : array of the shape of b
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xgetrs in the current stream, no synchronisation.
    2 n^2 nrhs operations. A zero on the diagonal of U gives inf or nan: getrf's info says so.
    """
    lu = me.square(lu, "lu")
    n = lu.shape[0]
    piv = me.integers(piv, "piv", n, below=n)
    b, one = me.columns(b, "b", n, overwrite_b)
    me.choice(trans, "trans", (0, 1, 2))
    if me.on_cpu(lu, piv, b):
        if me.strided(b, overwrite_b):
            from ._lapack import by_columns
            f = by_columns(lu)
            me.fortran("getrs", "NTC"[trans], n, b.shape[1], f, ld(f),
                       (piv + 1).astype(np.intc), b, ld(b))
            return b, 0
        x, info = me.scipy(lu, piv, b, trans, overwrite_b)
        return (x.reshape(n) if one else x), info
    from . import _cuda as gpu
    x = gpu.output(b, overwrite_b)
    info = _getrs_gpu(me, gpu.by_columns(lu), piv.astype(np.int64) + 1, x, trans)
    return (x.reshape(n) if one else x), info


def _getrs_gpu(me, lu, piv, x, trans):
    """Solve in place of column-major `x`, with 1-based int64 pivots."""
    import cupy

    from . import _cuda as gpu
    info = cupy.zeros((), np.int32)
    if x.size:
        t = me.type.cuda
        gpu.solver("Xgetrs", "hinnipnpipnp", gpu.params(), trans, *x.shape, t, lu.data.ptr,
                   gpu.ld(lu), piv.data.ptr, t, x.data.ptr, gpu.ld(x), info.data.ptr)
    return info


getrf, sgetrf, dgetrf, cgetrf, zgetrf = typed(getrf, "sdcz")
getrs, sgetrs, dgetrs, cgetrs, zgetrs = typed(getrs, "sdcz")

__all__ = public(globals())
