"""Symmetric indefinite factorization, A = U D U^T or L D L^T, and the solves built on it.

D has blocks of order 1 and 2 on its diagonal (Bunch and Kaufman's pivoting). sy is symmetric, for
complex types too: nothing is conjugated; he is Hermitian, A = U D U^H or L D L^H. One triangle
is read and overwritten by the factors, and the other left alone.

The pivots are LAPACK's own, counted from 1: ipiv[k] = p > 0 says that row and column k+1 were
interchanged with p; two neighbours of the same ipiv = -p < 0 are a block of order 2, whose outer
row was (for U the upper one, for L the lower one) interchanged with p.

Bunch, Kaufman: Math. Comp. 31 (1977) 163; LAPACK Users' Guide, xSYTRF.
"""

import numpy as np

from ._lapack import INT, by_columns, ld, taken
from ._routine import cupy, public, typed


def sytrf(me, a, lower=0, lwork=None, overwrite_a=0):
    """Bunch-Kaufman factorization of a symmetric matrix, complex ones not conjugated.

    Parameters
    ----------
    a : (n, n) array
        Its upper triangle, or its lower one if `lower`. Overwritten by the factors if
        `overwrite_a`: in place where `a` is column-major and aligned, views included.
    lower : {0, 1}
    lwork : int, optional
        LAPACK's workspace, at least n; what it works best with if not given; -1 asks only. The
        GPU takes what it needs.

    Returns
    -------
    ldu : (n, n) array
        D and the multipliers of U or L.
    ipiv : (n,) int32 array
        From 1, as LAPACK has it.
    info : int (GPU: 0-d array)
        k > 0: the block D[k-1, k-1] is exactly zero; the factorization is complete, solving
        would divide by zero.

    Notes
    -----
    CPU: LAPACK. GPU: own kernels for panels and cuBLAS for the products between them, or cuSOLVER
    sytrf where that was measured to be faster, in the current stream, no synchronisation; pivots by
    LAPACK's rules.
    n^3 / 3 operations.
    """
    a, lower = me.square(a, "a", overwrite_a), me.choice(lower, "lower", (0, 1))
    n = a.shape[0]
    lwork = me.workspace(lwork, n)
    if me.on_cpu(a):
        ldu, ipiv = taken(a, overwrite_a), np.zeros(n, INT)
        _, info = me.worked(me.name[1:], lwork, "UL"[lower], n, ldu, ld(ldu), ipiv)
        return ldu, ipiv.astype(np.intc, copy=False), info
    if lwork == -1:
        return a, cupy().zeros(n, np.int32), cupy().zeros((), np.int32)
    from . import _cuda as gpu
    ldu = gpu.output(a, overwrite_a)
    return ldu, *_sytrf_gpu(me, ldu, lower)


def _is_hermitian(me):
    return me.name[1:3] == "he"


def _by_cusolver(me, n):
    """True if cuSOLVER, which has no Hermitian one, is faster for a matrix of order n."""
    from ._kernel import current_device
    from .large.indefinite import plan
    return not _is_hermitian(me) and plan(me.letter, n, current_device())[1]


def _sytrf_gpu(me, ldu, lower):
    """Factor a column-major CuPy array in place; pivots and info."""
    from . import _cuda as gpu
    n = ldu.shape[0]
    ipiv = cupy().empty(n, np.int32)
    if not n:
        return ipiv, cupy().zeros((), np.int32)
    if _by_cusolver(me, n):
        at = (n, ldu.data.ptr, gpu.ld(ldu))
        return ipiv, gpu.solver32(me, "sytrf", "iipip", (gpu.fill(lower), *at, ipiv.data.ptr),
                                  ("ipi", at))
    from .large import indefinite
    return ipiv, indefinite.factor(me, ldu, ipiv, lower, _is_hermitian(me))


def hetrf(me, a, lower=0, lwork=None, overwrite_a=0):
    """Bunch-Kaufman factorization of a Hermitian matrix.

    As sytrf, on the GPU always by own kernels.
    """
    return _sytrf(me, a, lower, lwork, overwrite_a)


def sytrs(me, a, ipiv, b, lower=0, overwrite_b=0):
    """Solve A X = B with the factors of sytrf.

    Parameters
    ----------
    a : (n, n) array
        The factors `ldu`.
    ipiv : (n,) integer array
        As sytrf left them.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    lower : {0, 1}
        As sytrf was told.

    Returns
    -------
    x : array of the shape of b
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: by own kernels and trsm with a copy of the factors, or cuSOLVER Xsytrs, as
    sytrf, in the current stream, no synchronisation.
    2 n^2 nrhs operations. A zero block of D gives inf or nan: sytrf's info says so.
    """
    a, ipiv, b, one = _factors(me, a, ipiv, b, overwrite_b)
    lower = me.choice(lower, "lower", (0, 1))
    if me.on_cpu(a, ipiv, b):
        a, x, n = by_columns(a), taken(b, overwrite_b), a.shape[0]
        info = me.fortran(me.name[1:], "UL"[lower], n, x.shape[1], a, ld(a), ipiv.astype(INT), x,
                          ld(x))
    else:
        from . import _cuda as gpu
        x = gpu.output(b, overwrite_b)
        info = _sytrs_gpu(me, gpu.by_columns(a), ipiv, x, lower)
    return (x.reshape(-1) if one else x), info


def _factors(me, a, ipiv, b, overwrite_b):
    """The checked operands of sytrs; pivots that LAPACK would follow out of the matrix refused."""
    a = me.square(a, "a")
    n = a.shape[0]
    ipiv = me.integers(ipiv, "ipiv", n)
    b, one = me.columns(b, "b", n, overwrite_b)
    if overwrite_b:
        me.distinct(b, "b", a=a, ipiv=ipiv)
    if ipiv.__class__ is np.ndarray:
        edges = np.flatnonzero(np.diff(ipiv < 0, prepend=False, append=False))
        if ((ipiv == 0) | (ipiv < -n) | (ipiv > n)).any() or ((edges[1::2] - edges[::2]) % 2).any():
            me.illegal("ipiv", ipiv, f"the pivots of {me.name[:-1]}f: rows from 1 to {n}, those of "
                       "blocks of order 2 negative")
    return a, ipiv, b, one


def _sytrs_gpu(me, ldu, ipiv, x, lower):
    """Solve in place of column-major `x`; info."""
    from . import _cuda as gpu
    if not x.size:
        return cupy().zeros((), np.int32)
    if _by_cusolver(me, ldu.shape[0]):
        ipiv, t = ipiv.astype(np.int64), me.type.cuda
        return gpu.solver64("Xsytrs", "innipnpipn", (
            gpu.fill(lower), *x.shape, t, ldu.data.ptr, gpu.ld(ldu), ipiv.data.ptr, t, x.data.ptr,
            gpu.ld(x)), with_params=False)
    from .large import indefinite
    return indefinite.solve(me, ldu, ipiv.astype(np.int32, order="C", copy=False), x, lower,
                            _is_hermitian(me))


def hetrs(me, a, ipiv, b, lower=0, overwrite_b=0):
    """Solve A X = B with the factors of hetrf.

    As sytrs, on the GPU always by own kernels.
    """
    return _sytrs(me, a, ipiv, b, lower, overwrite_b)


def sysv(me, a, b, lwork=None, lower=0, overwrite_a=0, overwrite_b=0):
    """Solve A X = B by Bunch-Kaufman, A symmetric, complex ones not conjugated.

    Parameters
    ----------
    a : (n, n) array
        One triangle, as of sytrf. Overwritten by its factors if `overwrite_a`.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    lwork : int, optional
        As of sytrf, at least 1.
    lower : {0, 1}

    Returns
    -------
    udut, ipiv
        As of sytrf.
    x : array of the shape of b
        B itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: the block D[k-1, k-1] is exactly zero, and nothing was solved.

    Notes
    -----
    CPU: LAPACK. GPU: sytrf and sytrs, in the current stream, no synchronisation.
    n^3 / 3 + 2 n^2 nrhs operations. LAPACK Users' Guide, xSYSV.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    b, one = me.columns(b, "b", n, overwrite_b)
    lower, lwork = me.choice(lower, "lower", (0, 1)), me.workspace(lwork, 1)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    if me.on_cpu(a, b):
        ldu, x, ipiv = taken(a, overwrite_a), taken(b, overwrite_b), np.zeros(n, INT)
        _, info = me.worked(me.name[1:], lwork, "UL"[lower], n, x.shape[1], ldu, ld(ldu), ipiv, x,
                            ld(x))
        ipiv = ipiv.astype(np.intc, copy=False)
    elif lwork == -1:
        ldu, x, ipiv, info = a, b, cupy().zeros(n, np.int32), cupy().zeros((), np.int32)
    else:
        from . import _cuda as gpu
        ldu, x = gpu.output(a, overwrite_a), gpu.output(b, overwrite_b)
        ipiv, info = _sytrf_gpu(me, ldu, lower)
        if x.size:
            gpu.guarded(x, info, lambda y: _sytrs_gpu(me, ldu, ipiv, y, lower))
    return ldu, ipiv, (x.reshape(-1) if one else x), info


def hesv(me, a, b, lwork=None, lower=0, overwrite_a=0, overwrite_b=0):
    """Solve A X = B by Bunch-Kaufman, A Hermitian.

    As sysv, on the GPU always by own kernels.
    """
    return _sysv(me, a, b, lwork, lower, overwrite_a, overwrite_b)


def sytrf_lwork(me, n, lower=0):
    """The workspace that sytrf works best with, for a matrix of order `n`: (work, info)."""
    return me.scipy(me.extent(n, "n"), me.choice(lower, "lower", (0, 1)))


def hetrf_lwork(me, n, lower=0):
    """The workspace that hetrf works best with, for a matrix of order `n`: (work, info)."""
    return _sytrf_lwork(me, n, lower)


def sysv_lwork(me, n, lower=0):
    """The workspace that sysv works best with, for a matrix of order `n`: (work, info)."""
    return _sytrf_lwork(me, n, lower)


def hesv_lwork(me, n, lower=0):
    """The workspace that hesv works best with, for a matrix of order `n`: (work, info)."""
    return _sytrf_lwork(me, n, lower)


# What the Hermitian routines share with the symmetric ones, under the names that typed() replaces.
_sytrf, _sytrs, _sysv, _sytrf_lwork = sytrf, sytrs, sysv, sytrf_lwork

sytrf, ssytrf, dsytrf, csytrf, zsytrf = typed(sytrf, "sdcz")
sytrs, ssytrs, dsytrs, csytrs, zsytrs = typed(sytrs, "sdcz")
sysv, ssysv, dsysv, csysv, zsysv = typed(sysv, "sdcz")
hetrf, chetrf, zhetrf = typed(hetrf, "cz")
hetrs, chetrs, zhetrs = typed(hetrs, "cz")
hesv, chesv, zhesv = typed(hesv, "cz")
sytrf_lwork, ssytrf_lwork, dsytrf_lwork, csytrf_lwork, zsytrf_lwork = typed(sytrf_lwork, "sdcz")
sysv_lwork, ssysv_lwork, dsysv_lwork, csysv_lwork, zsysv_lwork = typed(sysv_lwork, "sdcz")
hetrf_lwork, chetrf_lwork, zhetrf_lwork = typed(hetrf_lwork, "cz")
hesv_lwork, chesv_lwork, zhesv_lwork = typed(hesv_lwork, "cz")

__all__ = public(globals())
