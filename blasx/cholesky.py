"""Cholesky, A = U^H U or L L^H, and what is built on it: solve, inverse, condition.

One triangle of a Hermitian matrix is read, and the other left alone. A matrix that lies by rows
is the transpose of one that lies by columns, and its factor the transpose of that one's: it is
factored in place with the triangles' names swapped.
"""

import numpy as np

from ._lapack import by_columns, by_rows, ld, output
from ._routine import cupy, public, typed
from .lu import given_norm
from .norms import part


def potrf(me, a, lower=0, clean=1, overwrite_a=0, *, mode="auto", device=None, memory=None):
    """Cholesky factorization of a Hermitian positive definite matrix.

    Parameters
    ----------
    a : (n, n) array
        Its upper triangle, or its lower one if `lower`. Overwritten by the factor if
        `overwrite_a`: in place where `a` is aligned and lies by columns or by rows, views
        included.
    lower : {0, 1}
        A = U^H U, or A = L L^H.
    clean : {0, 1}
        1: the other triangle of `c` is zero; 0: it is that of `a`.
    mode : {'auto', 'native', 'hybrid', 'vendor'}
    device, memory
        As of getrf.

    Returns
    -------
    c : (n, n) array
    info : int (GPU: 0-d array)
        k > 0: the leading minor of order k is not positive definite (or nan), and the factorization
        stopped there.

    Notes
    -----
    CPU: LAPACK. GPU: kernels of ours (large/cholesky.py), which take another n^2 / 2 of memory or
    less, and 15 bytes for each entry in double precision where products are by remainders, on
    Hopper from n = 6145 on; or cuSOLVER Xpotrf, also where there is no such memory; in the current
    stream, no synchronisation. A NumPy array on the GPU: its blocks on the diagonal as there,
    products by cuBLAS; returns when all is done. MemoryError, before `a` is touched, says how many
    bytes are missing.
    n^3 / 3 operations. LAPACK Users' Guide, xPOTRF.
    """
    a = me.square(a, "a", overwrite_a)
    lower, clean = me.choice(lower, "lower", (0, 1)), me.choice(clean, "clean", (0, 1))
    cpu = me.on_cpu(a)
    if by_gpu := me.by_gpu(device, memory, cpu):
        mode = me.mode(mode, False, "native", "vendor")
    else:
        mode = me.mode(mode, cpu, "native", "hybrid", "vendor")
    turned = overwrite_a and by_rows(a)
    if turned:
        a, lower = a.T, 1 - lower
    if by_gpu and a.size:
        from .large import host
        c = output(a, overwrite_a)
        info = host.potrf(me, c, lower, clean, mode, memory)
    elif cpu:
        if a.size and not me.strided(a, overwrite_a):
            c, info = me.scipy(a, lower, clean, overwrite_a)
            return (c.T if turned else c), _failed_at(c, info)
        c = output(a, overwrite_a)
        info = _potrf_cpu(me, c, lower)
        if clean:
            np.copyto(c, 0, where=part(np, "LU"[lower], c.shape, 1))
    else:
        from . import _cuda as gpu
        c = gpu.output(a, overwrite_a)
        info = _potrf_gpu(me, c, lower, mode, clean)
    return (c.T if turned else c), info


def _potrf_cpu(me, c, lower):
    """Factor a column-major array in place; info."""
    return _failed_at(c, me.fortran("potrf", "UL"[lower], c.shape[0], c, ld(c)))


def _failed_at(c, info):
    """info of a factorization that may have gone past a pivot of nan, as OpenBLAS's does: all
    later pivots are nan then, the last one too."""
    if info == 0 and c.size and c[-1, -1] != c[-1, -1]:
        return int(np.isnan(c.diagonal()).argmax()) + 1
    return info


def _potrf_gpu(me, c, lower, mode="auto", clean=0):
    """Factor a column-major CuPy array in place, and clear the other triangle if `clean`; info."""
    from . import _cuda as gpu
    if not c.size:
        return cupy().zeros((), np.int32)
    if mode == "hybrid":
        from .large import hybrid
        info = hybrid.potrf(me, c, lower)
    else:
        from .large import cholesky as large
        if mode != "vendor" and large.serves(me, c, mode == "native"):
            info = large.potrf(me, c, lower, clean)
            if info is not None:
                return info
        t = me.type.cuda
        info = gpu.solver64("Xpotrf", "inipni",
                            (gpu.fill(lower), c.shape[0], t, c.data.ptr, gpu.ld(c), t))
        # cuSOLVER, too, goes past a pivot of nan, where LAPACK stops.
        info = cupy().where(info == 0, gpu.first(cupy().isnan(c.diagonal())), info)
    if clean:  # by lines of memory, as CuPy's kernels go fast
        cupy().copyto(c.T, 0, where=part(cupy(), "UL"[lower], c.shape, 1))
    return info


def potrs(me, c, b, lower=0, overwrite_b=0):
    """Solve A X = B with the factor of potrf.

    Parameters
    ----------
    c : (n, n) array
        U, or L if `lower`; the other triangle is not read.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    lower : {0, 1}

    Returns
    -------
    x : array of the shape of b
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: a kernel of ours for a few right-hand sides (large/triangular.py), else
    cuSOLVER Xpotrs; in the current stream, no synchronisation.
    2 n^2 nrhs operations. A real `c` may lie by rows at no cost; a complex one is copied.
    """
    c = me.square(c, "c")
    n = c.shape[0]
    b, one = me.columns(b, "b", n, overwrite_b)
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_b:
        me.distinct(b, "b", c=c)
    if not me.is_complex and by_rows(c):  # A = L L^T = (L^T)^T L^T: the other factor
        c, lower = c.T, 1 - lower
    if me.on_cpu(c, b):
        if me.strided(b, overwrite_b) or not b.size:
            c, x = by_columns(c), output(b, overwrite_b)
            info = me.fortran("potrs", "UL"[lower], n, x.shape[1], c, ld(c), x, ld(x))
        else:
            x, info = me.scipy(c, b, lower, overwrite_b)
    else:
        from . import _cuda as gpu
        x = gpu.output(b, overwrite_b)
        info = _potrs_gpu(me, gpu.by_columns(c), x, lower)
    return (x.reshape(n) if one else x), info


def _potrs_gpu(me, c, x, lower):
    """Solve in place of column-major `x`; info."""
    from . import _cuda as gpu
    from .large import triangular
    info = cupy().zeros((), np.int32)
    if x.size and triangular.by_ours(me, *x.shape):
        for trans in (0, 2) if lower else (2, 0):
            triangular.solve(me, c, x, lower, trans, 0)
    elif x.size:
        t = me.type.cuda
        gpu.solver("Xpotrs", "hinnipnipnp", gpu.params(), gpu.fill(lower), *x.shape, t,
                   c.data.ptr, gpu.ld(c), t, x.data.ptr, gpu.ld(x), info.data.ptr)
    return info


def posv(me, a, b, lower=0, overwrite_a=0, overwrite_b=0, *, device=None, memory=None):
    """Solve A X = B by Cholesky, A Hermitian positive definite.

    Parameters
    ----------
    a : (n, n) array
        One triangle, as of potrf. Overwritten by its factor if `overwrite_a`.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    lower : {0, 1}
    device, memory
        As of getrf; all of B is on the GPU.

    Returns
    -------
    c : (n, n) array
        The factor; the other triangle is that of `a`.
    x : array of the shape of b
        B itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: the leading minor of order k is not positive definite, and nothing was solved.

    Notes
    -----
    CPU: LAPACK. GPU: as potrf and potrs, in the current stream, no synchronisation.
    n^3 / 3 + 2 n^2 nrhs operations. LAPACK Users' Guide, xPOSV.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    b, one = me.columns(b, "b", n, overwrite_b)
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    turned = overwrite_a and not me.is_complex and by_rows(a)
    if turned:
        a, lower = a.T, 1 - lower
    cpu = me.on_cpu(a, b)
    if me.by_gpu(device, memory, cpu) and a.size:
        from .large import host
        c, x = output(a, overwrite_a), output(b, overwrite_b)
        info = host.posv(me, c, x, lower, memory)
    elif cpu:
        if me.strided(a, overwrite_a) or me.strided(b, overwrite_b) or overwrite_b or not b.size:
            c, x = output(a, overwrite_a), output(b, overwrite_b)
            info = _potrf_cpu(me, c, lower)
            if not info:
                me.fortran("potrs", "UL"[lower], n, x.shape[1], c, ld(c), x, ld(x))
        else:
            c, x, info = me.scipy(a, b, lower, overwrite_a)
            info = _failed_at(c, info)
            x = b.copy(order="F") if info else x
    else:
        from . import _cuda as gpu
        c, x = gpu.output(a, overwrite_a), gpu.output(b, overwrite_b)
        info = _potrf_gpu(me, c, lower)
        gpu.guarded(x, info, lambda y: _potrs_gpu(me, c, y, lower))
    return (c.T if turned else c), (x.reshape(n) if one else x), info


def potri(me, c, lower=0, overwrite_c=0):
    """The inverse of a Hermitian positive definite matrix from its factor by potrf.

    Parameters
    ----------
    c : (n, n) array
        U, or L if `lower`. Overwritten by the inverse if `overwrite_c`.
    lower : {0, 1}

    Returns
    -------
    inv_a : (n, n) array
        One triangle of the inverse; the other is that of `c`. `c` itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: the factor's diagonal is zero at k, and there is no inverse.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER potri, which takes another n^2 of memory, in the current stream, no
    synchronisation.
    2/3 n^3 operations. LAPACK Users' Guide, xPOTRI.
    """
    c = me.square(c, "c", overwrite_c)
    lower = me.choice(lower, "lower", (0, 1))
    turned = overwrite_c and by_rows(c)
    if turned:
        c, lower = c.T, 1 - lower
    n = c.shape[0]
    if me.on_cpu(c):
        if c.size and not me.strided(c, overwrite_c):
            inverse, info = me.scipy(c, lower, overwrite_c)
        else:
            inverse = output(c, overwrite_c)
            info = me.fortran("potri", "UL"[lower], n, inverse, ld(inverse))
    else:
        from . import _cuda as gpu
        inverse = gpu.output(c, overwrite_c)
        info = gpu.first(inverse.diagonal() == 0)
        if n:
            gpu.guarded(inverse, info, lambda x: gpu.solver32(
                me, "potri", "iipi", (gpu.fill(lower), n, x.data.ptr, gpu.ld(x))))
    return (inverse.T if turned else inverse), info


def pocon(me, a, anorm, uplo="U"):
    """Estimate the reciprocal condition 1 / (|A| |A^-1|), in the 1-norm, from the factor of potrf.

    Parameters
    ----------
    a : (n, n) array
        The factor `c`.
    anorm : number
        The 1-norm of A.
    uplo : {'U', 'L'}

    Returns
    -------
    rcond : float (GPU: 0-d array)
    info : int (GPU: 0-d array), 0

    Notes
    -----
    Runs on the CPU; of CuPy arrays `a` is copied there (TransferWarning) and synchronised.
    A few solves, 2 n^2 operations each. Higham, ACM TOMS 14 (1988) 381.
    """
    a = me.square(a, "a")
    anorm, uplo = given_norm(me, anorm), me.flag(uplo, "uplo", "UL")
    if not me.on_cpu(a):
        return me.through_cpu(a, anorm, uplo)
    return me.scipy(a, anorm, uplo) if a.size else (1.0, 0)


potrf, spotrf, dpotrf, cpotrf, zpotrf = typed(potrf, "sdcz")
potrs, spotrs, dpotrs, cpotrs, zpotrs = typed(potrs, "sdcz")
posv, sposv, dposv, cposv, zposv = typed(posv, "sdcz")
potri, spotri, dpotri, cpotri, zpotri = typed(potri, "sdcz")
pocon, spocon, dpocon, cpocon, zpocon = typed(pocon, "sdcz")

__all__ = public(globals())
