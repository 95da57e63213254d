"""Mixed precision: factor in single, refine to double, and factor in double where that fails.

The O(n^3) work runs in the lower precision; x is accepted when every column of the residual has
|b - A x| <= |x| |A| eps sqrt(n), as the double factorization would give it (LAPACK's test).

On the GPU what is decided of a step stays there, in a number RUNNING until x is good, at which the
host looks from a stream of its own. Where solves are kernels of ours, which that number stops, it
has the next step's queued by then, so that the GPU does not wait. Else it looks first, as a solve
that nobody needs would cost more.
"""

import numpy as np

from . import _trace
from ._lapack import INT, by_columns, by_rows, ld, output
from ._routine import Typed, cupy, public, typed
from .blas3 import gemm
from .cholesky import _potrf_cpu, _potrf_gpu, _potrs_gpu
from .lu import _getrf_gpu, _getrs_gpu, from_zero
from .norms import part
from .qr import _adjoint_flags, gels, geqrf, ormqr, unmqr
from .triangular import trtrs

STEPS = 30  # of refinement, as LAPACK
RUNNING = -(STEPS + 1)  # the steps that a solution took, while it is not there
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
    waits for what every step decides.
    2/3 n^3 operations in single, 4 n^2 nrhs a step. Langou et al., SC 2006.
    """
    return _gesv(me, a, b, overwrite_a)


def mixed_gesv_rbt(me, a, b, overwrite_a=0):
    """Solve A X = B in double precision as dsgesv, by LU in single precision of A between random
    butterflies, which has no need of pivots from far below the diagonal.

    Parameters
    ----------
    a : (n, n) array
        Overwritten, if `overwrite_a`, by its double factors where `iter` < 0; else left alone.
    b : (n,) or (n, nrhs) array

    Returns
    -------
    x : array of the shape of b
        Of the accuracy of gesv; meaningless where info > 0.
    iter : int (GPU: 0-d array)
        As of dsgesv. The double factorization is by partial pivoting.
    info : int (GPU: 0-d array)
        k > 0: U[k-1, k-1] is exactly zero in double precision too; nothing was solved.

    Notes
    -----
    CPU: LAPACK's dsgesv, where pivots cost next to nothing. GPU: as dsgesv, but where that is
    faster U^T A V is factored, U and V butterflies that do not differ from call to call, with
    pivots sought in a window of rows below the diagonal. As many steps of refinement as dsgesv
    takes, or one or two more. MAGMA's magma_dgesv_rbt has no pivots at all, and refines in double.
    2/3 n^3 operations in single, 4 n^2 nrhs a step. Parker, UCLA CSD-950023 (1995); Baboulin,
    Dongarra, Herrmann, Tomov, ACM TOMS 39 (2013) 8.
    """
    x, _, steps, info = _gesv(me, a, b, overwrite_a, True)
    return x, steps, info


def _gesv(me, a, b, overwrite_a, windows=False):
    """X, pivots, steps, info"""
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    b, one = me.columns(b, "b", n)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if me.on_cpu(a, b):
        a, b = _columns(me, a, overwrite_a), by_columns(b)
        piv, steps, (x, work) = np.empty(n, INT), np.zeros(1, INT), _workspaces(me, b)
        info = me.fortran(LOWER[me.letter].name, n, b.shape[1], a, ld(a), piv, b, ld(b), x, ld(x),
                          *work, steps)
        if _overflowed(x, steps):
            x[...] = b
            info = me.fortran("gesv", n, b.shape[1], a, ld(a), piv, x, ld(x))
        return (x.reshape(n) if one else x), from_zero(piv), int(steps[0]), info
    from . import _cuda as gpu
    from .large import butterflies, triangular
    a, low, nrhs = gpu.by_columns(a), LOWER[me.letter], b.shape[1]
    windows = windows and butterflies.serves(low, n)
    if windows:
        lu, piv, info, size = butterflies.factored(me, low, a)
    else:
        lu, size = triangular.lag2s(me, low, a)
        piv, info = _getrf_gpu(low, lu)
    solve, stops = _by_lu(low, lu, piv, nrhs)
    if windows:
        solve = butterflies.solver(low, n, nrhs, solve)
    x, steps = _refined(me, a, b, size, info, solve, stops, _subtract_product)
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
    waits for what every step decides.
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
        if _overflowed(x, steps):
            x[...] = b
            info = _potrf_cpu(me, a, lower)
            if not info:
                me.fortran("potrs", "UL"[lower], n, b.shape[1], a, ld(a), x, ld(x))
        return (x.reshape(n) if one else x), int(steps[0]), info
    from . import _cuda as gpu
    a, low, xp = gpu.by_columns(a), LOWER[me.letter], cupy()
    half = xp.where(part(xp, "UL"[lower], a.shape), a, 0)
    c, sizes = gpu.copied(half, low.dtype), abs(half)
    sums = sizes.sum(axis=0) + sizes.sum(axis=1) - sizes.diagonal()
    size = sums.max() if n else xp.zeros(())
    size = xp.where(xp.isfinite(c).all(), size, np.inf)
    info = _potrf_gpu(low, c, lower)
    x, steps = _refined(me, a, b, size, info, *_by_cholesky(low, c, lower, b.shape[1]),
                        lambda me, a, x, r: _subtract_product(me, a, x, r, gpu.fill(lower)))
    if steps < 0:
        a, x = gpu.output(a, overwrite_a), b.copy(order="F")
        info = _potrf_gpu(me, a, lower)
        gpu.guarded(x, info, lambda y: _potrs_gpu(me, a, y, lower))
    return (x.reshape(n) if one else x), xp.full((), steps, np.int32), info


def _columns(me, a, overwrite_a):
    me.strided(a, overwrite_a)  # a copy that the caller did not ask for is counted
    return output(a, overwrite_a)


def _overflowed(x, steps):
    """True if x did not fit single precision, whose infinities and nan pass LAPACK's test; `steps`
    says so then."""
    if steps[0] < 0 or np.isfinite(x).all():
        return False
    steps[0] = -2
    return True


def _workspaces(me, b):
    """X, and LAPACK's WORK, SWORK and (complex) RWORK. It finds |A| in the first column of WORK,
    also where there is no right-hand side to have one."""
    n, nrhs = b.shape
    work = [np.empty(n * max(nrhs, 1), me.dtype), np.empty(n * (n + nrhs), LOWER[me.letter].dtype)]
    if me.is_complex:
        work.append(np.empty(n))
    return np.empty((n, nrhs), me.dtype, order="F"), work


def _refined(me, a, b, size, info, solve, stops, subtract_product):
    """X by the factors in low precision, which solve in place, and refinement on the GPU; and the
    steps it took, as LAPACK counts them. `size` of A, infinite where a number of it does not fit,
    and `info` say what became of the factors; a step `stops` where it is not needed any more."""
    from .large._blocks import mark, stream
    xp, n, beside = cupy(), b.shape[0], stream(cupy().cuda.Device().id)
    x = b.astype(LOWER[me.letter].dtype, order="F")
    if not x.size:
        return b.copy(order="F"), 0
    fits = xp.isfinite(size) & xp.isfinite(x).all()
    taken = xp.where(info == 0, xp.full((), RUNNING, np.int32), np.int32(-3))
    taken = xp.where(fits, taken, np.int32(-2))
    solve(x, taken)
    x = x.astype(me.dtype)
    taken = xp.where((taken == RUNNING) & ~xp.isfinite(x).all(), np.int32(-2), taken)
    limit = size * (np.finfo(me.dtype).eps / 2 * n**0.5)
    of_columns = 0 if b.shape[1] > 1 else None
    for step in range(STEPS + 1):
        r = b.copy(order="F")
        subtract_product(me, a, x, r)
        largest = abs(x).max(axis=of_columns)
        good = ((abs(r).max(axis=of_columns) <= largest * limit) & xp.isfinite(largest)).all()
        taken = xp.where((taken == RUNNING) & good, np.int32(step), taken)
        if stops and step < STEPS:
            beside.wait_event(mark(xp.cuda.get_current_stream()))
            now = taken
            _correct(me, x, r, solve, taken)
            with beside:
                found = int(now)
        else:
            found = int(taken)
        _trace.note(synced=1)
        if found != RUNNING:
            break
        if not stops and step < STEPS:
            _correct(me, x, r, solve, taken)
    return x, found


def _correct(me, x, r, solve, taken):
    """X := X and what the factors make of R, where it is RUNNING."""
    correction = r.astype(LOWER[me.letter].dtype)
    solve(correction, taken)
    cupy().copyto(x, x + correction, where=taken == RUNNING)


def _by_lu(me, lu, piv, nrhs):
    """What solves with these factors in place on the GPU, and whether it does nothing unless a
    state is RUNNING."""
    from .large import triangular
    if not triangular.serves(me, len(lu), nrhs):
        return (lambda y, state: _getrs_gpu(me, lu, piv, y)), False
    source = triangular.permutation(piv, len(lu))
    return (lambda y, state: triangular.getrs(me, lu, source, y, 0, state, RUNNING)), True


def _by_cholesky(me, c, lower, nrhs):
    """As `_by_lu`."""
    from .large import triangular
    if not triangular.serves(me, len(c), nrhs):
        return (lambda y, state: _potrs_gpu(me, c, y, lower)), False

    def solve(y, state):
        for trans in (0, 2) if lower else (2, 0):
            triangular.solve(me, c, y, lower, trans, 0, state, RUNNING)

    return solve, True


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


def mixed_gels(me, a, b, trans="N"):
    """Least squares or minimum norm solution of op(A) X = B, A of full rank, in double precision by
    QR in single precision and iterative refinement.

    Parameters
    ----------
    a : (m, n) array
    b : (max(m, n),) or (max(m, n), nrhs) array
        The right-hand sides in its first rows, m of them, n if op(A) is not A, as of gels.
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(A) = A or A^H.

    Returns
    -------
    x : (n,) or (n, nrhs) array, of m rows if op(A) is not A
        Of the accuracy of gels; meaningless where info > 0.
    iter : int (GPU: 0-d array)
        Steps of refinement. Negative where gels in double precision was needed: -2 a number too
        large for single precision, or a right-hand side of too small ones, -3 not of full rank
        there, -31 no convergence in 30 steps.
    info : int (GPU: 0-d array)
        As of gels.

    Notes
    -----
    With F = A or A^H, whichever has more rows than columns, both problems are
        r + F y = f,    F^H r = g:
    g = 0 and X = y for least squares, f = 0 and X = r for the minimum norm. Both residuals are
    taken in double precision, and corrections come by F = Q R in single:
        h = R^-H g,  d = Q^H f,  y = R^-1 (d1 - h),  r = Q (h, d2).
    Wanted are |f - r - F y| <= eps sqrt(m) s and |g - F^H r| <= eps sqrt(m) |F| s', columns in
    2-norms, s = |r| + |F| |y|, and s' = s or, for the minimum norm, |r|.

    CPU: LAPACK and BLAS. GPU: geqrf, ormqr, trtrs of single precision and gemm of double, in the
    current stream; the host waits once for each step. 2 m n^2 - 2/3 n^3 operations in single
    precision, 8 m n nrhs in double and 10 m n nrhs in single a step (m >= n).
    Bjorck, BIT 7 (1967) 257; Demmel, Hida, Riedy, Li, ACM TOMS 35 (2009) 28.
    """
    a = me.matrix(a, "a")
    m, n = a.shape
    b, one = me.columns(b, "b", max(m, n))
    trans = me.flag(trans, "trans", _adjoint_flags(me))
    xp = np if me.on_cpu(a, b) else cupy()
    rows, unknowns = (m, n) if trans == "N" else (n, m)
    with np.errstate(all="ignore"):  # what overflows or is nan does not converge
        x, steps = _augmented(me, xp, a, b[:rows], (m >= n) == (trans == "N"))
    info = 0 if xp is np else xp.zeros((), np.int32)
    if steps < 0:
        _, x, info = gels(a, b, trans)
        x = x[:unknowns]
    if xp is not np:
        steps = xp.full((), steps, np.int32)
    return (x.reshape(unknowns) if one else x), steps, info


def _augmented(me, xp, a, b, tall):
    """X of F X = B if F is `tall`, or else of F^H X = B, and the steps of refinement that it
    took."""
    low, high = LOWER[me.letter].dtype, a.shape[0] >= a.shape[1]
    m, n, nrhs = max(a.shape), min(a.shape), b.shape[1]
    of = "C" if me.is_complex else "T"
    if not (n and nrhs):
        return xp.zeros((n if tall else m, nrhs), me.dtype, order="F"), 0

    def by(x, adjoint):  # F X, or F^H X
        return gemm(1.0, a, x, trans_a=0 if high != adjoint else 2)

    f = b if tall else xp.zeros((m, nrhs), me.dtype)
    g = xp.zeros((n, nrhs), me.dtype) if tall else b
    qr = (a if high else a.conj().T).astype(low, order="F")
    single, largest = np.finfo(low), abs(b).max(axis=0)
    within = (largest >= single.tiny) & (largest <= single.max) | (largest == 0)
    fits = xp.isfinite(qr).all() & within.all()  # and no norm below underflows
    qr, tau = geqrf(qr, overwrite_a=1)[:2]
    multiply, R = unmqr if me.is_complex else ormqr, qr[:n]
    fits, regular = xp.stack((fits, (R.diagonal() != 0).all())).tolist()
    _trace.note(synced=int(xp is not np))
    if not (fits and regular):
        return None, -3 if fits else -2
    norm, r, y = xp.linalg.norm, xp.zeros((m, nrhs), me.dtype), xp.zeros((n, nrhs), me.dtype)
    size, limit = norm(a), np.finfo(me.dtype).eps * m**0.5
    for steps in range(-1, STEPS + 1):
        p, q = f - r - by(y, False), g - by(r, True)
        if steps >= 0:
            whole = norm(r, axis=0) + size * norm(y, axis=0)
            s = whole if tall else norm(r, axis=0)
            good = (norm(p, axis=0) <= limit * whole) & (norm(q, axis=0) <= limit * size * s)
            good &= xp.isfinite(whole)  # where y or r is not, p is not either
            _trace.note(synced=int(xp is not np))
            if good.all():
                return (y if tall else r), steps
        h = trtrs(R, q.astype(low), 0, 2)[0]
        d = multiply("L", of, qr, tau, p.astype(low))[0]
        y = y + trtrs(R, d[:n] - h)[0]
        d[:n] = h
        r = r + multiply("L", "N", qr, tau, d)[0]
    return None, RUNNING


_, dsgesv, zcgesv = typed(mixed_gesv, "dz", "dsgesv zcgesv")
_, dsgesv_rbt = typed(mixed_gesv_rbt, "d", "dsgesv_rbt")
_, dsposv, zcposv = typed(mixed_posv, "dz", "dsposv zcposv")
_, dsgels, zcgels = typed(mixed_gels, "dz", "dsgels zcgels")

__all__ = public(globals())
