"""Mixed precision: factor in single, refine to double, and factor in double where that fails.

The O(n^3) work runs in the lower precision; x is accepted when every column of the residual has
|b - A x| <= |x| |A| eps sqrt(n), as the double factorization would give it (LAPACK's test).
"""

import numpy as np

from . import _trace
from ._lapack import INT, by_columns, by_rows, ld, output
from ._routine import Typed, cupy, public, typed
from .cholesky import _potrf_gpu, _potrs_gpu
from .lu import _getrf_gpu, _getrs_gpu, from_zero
from .norms import part

STEPS = 30  # of refinement, as LAPACK
LOWER = {"d": Typed("sgesv", "s"), "z": Typed("cgesv", "c")}


def mixed_gesv(me, a, b, overwrite_a=0):
    """Solve A X = B in double precision by LU in single precision and iterative refinement.

    Parameters
    ----------
    a : (n, n) array
        Overwritten, if `overwrite_a`, by its double factors where `iter` < 0; else left alone.
    b : (n,) or (n, nrhs) array

    Returns
    -------
    x : array of the shape of b
        Of the accuracy of gesv; meaningless where info > 0.
    piv : (n,) int32 array
        Row j was interchanged with row piv[j], counted from 0, in the factorization that served.
    iter : int (GPU: 0-d array)
        Steps of refinement. Negative where the double factorization was needed: -2 a number too
        large for single precision, -3 singular there, -31 no convergence in 30 steps.
    info : int (GPU: 0-d array)
        k > 0: U[k-1, k-1] is exactly zero in double precision too; nothing was solved.

    Notes
    -----
    CPU: LAPACK. GPU: getrf of single precision, solves by kernels of ours for a few right-hand
    sides, else by cuSOLVER Xgetrs, and cuBLAS for the residual, in the current stream; the host
    waits once for the factorization and once for each step, as it decides.
    2/3 n^3 operations in single, 4 n^2 nrhs a step. Langou et al., SC 2006.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    b, one = me.columns(b, "b", n)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if me.on_cpu(a, b):
        a, b = _columns(me, a, overwrite_a), by_columns(b)
        piv, steps, (x, work) = np.empty(n, INT), np.zeros(1, INT), _workspaces(me, b)
        info = me.fortran(me.name[1:], n, b.shape[1], a, ld(a), piv, b, ld(b), x, ld(x), *work,
                          steps)
        return (x.reshape(n) if one else x), from_zero(piv), int(steps[0]), info
    from . import _cuda as gpu
    a, low = gpu.by_columns(a), LOWER[me.letter]
    lu = a.astype(low.dtype, order="F")
    fits = cupy().isfinite(lu).all()
    piv, info = _getrf_gpu(low, lu)
    x, steps = _refined(me, a, b, abs(a).sum(axis=1), fits, info,
                        _by_lu(low, lu, piv, b.shape[1]), _subtract_product)
    if steps < 0:
        a, x = gpu.output(a, overwrite_a), b.copy(order="F")
        piv, info = _getrf_gpu(me, a)
        gpu.guarded(x, info, lambda y: _getrs_gpu(me, a, piv, y))
    return (x.reshape(n) if one else x), piv, cupy().full((), steps, np.int32), info


def mixed_posv(me, a, b, lower=0, overwrite_a=0):
    """Solve A X = B, A Hermitian positive definite, in double precision by Cholesky in single
    precision and iterative refinement.

    Parameters
    ----------
    a : (n, n) array
        One triangle, as of potrf. Overwritten, if `overwrite_a`, by its double factor where `iter`
        < 0; else left alone.
    b : (n,) or (n, nrhs) array
    lower : {0, 1}

    Returns
    -------
    x : array of the shape of b
        Of the accuracy of posv; meaningless where info > 0.
    iter : int (GPU: 0-d array)
        As of gesv; -3: not positive definite in single precision.
    info : int (GPU: 0-d array)
        k > 0: the leading minor of order k is not positive definite in double precision; nothing
        was solved.

    Notes
    -----
    CPU: LAPACK. GPU: potrf of single precision, solves by kernels of ours for a few right-hand
    sides, else by cuSOLVER Xpotrs, and cuBLAS for the residual, in the current stream; the host
    waits once for the factorization and once for each step.
    n^3 / 3 operations in single, 4 n^2 nrhs a step. Langou et al., SC 2006.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    b, one = me.columns(b, "b", n)
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if not me.is_complex and by_rows(a):
        a, lower = a.T, 1 - lower
    if me.on_cpu(a, b):
        a, b = _columns(me, a, overwrite_a), by_columns(b)
        steps, (x, work) = np.zeros(1, INT), _workspaces(me, b)
        info = me.fortran(me.name[1:], "UL"[lower], n, b.shape[1], a, ld(a), b, ld(b), x, ld(x),
                          *work, steps)
        return (x.reshape(n) if one else x), int(steps[0]), info
    from . import _cuda as gpu
    a, low, xp = gpu.by_columns(a), LOWER[me.letter], cupy()
    half = xp.where(part(xp, "UL"[lower], a.shape), a, 0)
    c, size = half.astype(low.dtype, order="F"), abs(half)
    fits = xp.isfinite(c).all()
    info = _potrf_gpu(low, c, lower)
    x, steps = _refined(me, a, b, size.sum(axis=0) + size.sum(axis=1) - size.diagonal(), fits,
                        info, lambda y: _potrs_gpu(low, c, y, lower),
                        lambda me, a, x, r: _subtract_product(me, a, x, r, gpu.fill(lower)))
    if steps < 0:
        a, x = gpu.output(a, overwrite_a), b.copy(order="F")
        info = _potrf_gpu(me, a, lower)
        gpu.guarded(x, info, lambda y: _potrs_gpu(me, a, y, lower))
    return (x.reshape(n) if one else x), xp.full((), steps, np.int32), info


def _columns(me, a, overwrite_a):
    me.strided(a, overwrite_a)  # a copy that the caller did not ask for is counted
    return output(a, overwrite_a)


def _workspaces(me, b):
    """X, and LAPACK's WORK, SWORK and (complex) RWORK. It finds |A| in the first column of WORK,
    also where there is no right-hand side to have one."""
    n, nrhs = b.shape
    work = [np.empty(n * max(nrhs, 1), me.dtype), np.empty(n * (n + nrhs), LOWER[me.letter].dtype)]
    if me.is_complex:
        work.append(np.empty(n))
    return np.empty((n, nrhs), me.dtype, order="F"), work


def _refined(me, a, b, row_sums, fits, info, solve, subtract_product):
    """X by the factors in low precision, which solve in place, and refinement on the GPU; and the
    steps it took, as LAPACK counts them. `fits` and `info` say what became of the factors."""
    xp, n = cupy(), b.shape[0]
    x = b.astype(LOWER[me.letter].dtype, order="F")
    if not x.size:
        return b.copy(order="F"), 0
    fits, regular = xp.stack((fits & xp.isfinite(x).all(), info == 0)).tolist()
    _trace.note(synced=1)
    if not (fits and regular):
        return None, -3 if fits else -2
    solve(x)
    x = x.astype(me.dtype)
    limit = row_sums.max() * (np.finfo(me.dtype).eps / 2 * n**0.5)
    for steps in range(STEPS + 1):
        r = b.copy(order="F")
        subtract_product(me, a, x, r)
        _trace.note(synced=1)
        if bool((abs(r).max(axis=0) <= abs(x).max(axis=0) * limit).all()):
            return x, steps
        correction = r.astype(LOWER[me.letter].dtype)
        solve(correction)
        x += correction
    return None, -(STEPS + 1)


def _by_lu(me, lu, piv, nrhs):
    """What solves with these factors in place, on the GPU."""
    from .large import triangular
    if not triangular.serves(me, len(lu), nrhs):
        return lambda y: _getrs_gpu(me, lu, piv, y)
    source = triangular.permutation(piv, len(lu))

    def solve(y):
        y[...] = y[source]
        triangular.solve(me, lu, y, 1, 0, 1)
        triangular.solve(me, lu, y, 0, 0, 0)

    return solve


def _subtract_product(me, a, x, r, triangle=None):
    """R := R - A X on the GPU, A general, or Hermitian by one triangle."""
    from . import _cuda as gpu
    n, nrhs = x.shape
    if nrhs == 1:
        name, flags = ("gemv", (0, n)) if triangle is None else (
            "hemv" if me.is_complex else "symv", (triangle,))
        gpu.blas(me.L + name, *flags, n, gpu.scalar(me, -1.0), a.data.ptr, gpu.ld(a), x.data.ptr, 1,
                 gpu.scalar(me, 1.0), r.data.ptr, 1)
        return
    operands = (gpu.scalar(me, -1.0), a.data.ptr, gpu.ld(a), x.data.ptr, gpu.ld(x),
                gpu.scalar(me, 1.0), r.data.ptr, gpu.ld(r))
    if triangle is None:
        gpu.blas(me.L + "gemm", 0, 0, n, nrhs, n, *operands)
    else:
        gpu.blas(me.L + ("hemm" if me.is_complex else "symm"), gpu.LEFT, triangle, n, nrhs,
                 *operands)


_, dsgesv, zcgesv = typed(mixed_gesv, "dz", "dsgesv zcgesv")
_, dsposv, zcposv = typed(mixed_posv, "dz", "dsposv zcposv")

__all__ = public(globals())
