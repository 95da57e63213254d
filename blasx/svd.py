"""Singular values and vectors, A = U diag(s) V^H.

Golub, Van Loan: Matrix Computations, 8.6; LAPACK Users' Guide, 2.4.6.
"""

import numpy as np
from scipy.linalg import lapack as scipy_lapack

from ._lapack import LARGEST
from ._routine import BY_DTYPE, cupy, public, typed


def gesvd(me, a, compute_uv=1, full_matrices=1, lwork=None, overwrite_a=0):
    """Singular value decomposition by QR iteration.

    Parameters
    ----------
    a : (m, n) array
        Destroyed if `overwrite_a`.
    compute_uv : {0, 1}
        0: the singular values alone.
    full_matrices : {0, 1}
        1: U and V are square; 0: they have min(m, n) columns.
    lwork : int, optional
        LAPACK's workspace; what it works best with if not given. The GPU takes what it needs.

    Returns
    -------
    u : (m, m) or (m, min(m, n)) array
        (1, 1) and without meaning if not asked for, as SciPy has it.
    s : (min(m, n),) real array
        Falling.
    vt : (n, n) or (min(m, n), n) array
        V^H; (1, 1) if not asked for.
    info : int (GPU: 0-d array)
        k > 0: k superdiagonals did not converge to zero; -4 (CPU): `a` has an infinity.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xgesvd, of A^H where m < n, in the current stream, no
    synchronisation.
    About 4 m n^2 operations for the values, 14 m n^2 with U and V (m >= n).
    """
    return _svd(me, a, compute_uv, full_matrices, lwork, overwrite_a)


def gesdd(me, a, compute_uv=1, full_matrices=1, lwork=None, overwrite_a=0):
    """Singular value decomposition by divide and conquer: as gesvd, and faster with U and V.

    Parameters
    ----------
    a, compute_uv, full_matrices, lwork, overwrite_a
        As of gesvd.

    Returns
    -------
    u, s, vt
        As of gesvd.
    info : int (GPU: 0-d array)
        k > 0: not converged; -4 (CPU): `a` has a nan or infinity.

    Notes
    -----
    CPU: LAPACK. GPU: U and V of large matrices of double precision by their polar factor, of
    products and Cholesky factorizations, and its Hermitian part's eigenvectors (cuSOLVER Xsyevd);
    about 90 n^3 operations after a QR. Else as gesvd. In the current stream, no synchronisation.
    Nakatsukasa, Higham, SIAM J. Sci. Comput. 35 (2013) A1325.
    """
    return _svd(me, a, compute_uv, full_matrices, lwork, overwrite_a)


def _svd(me, a, compute_uv, full_matrices, lwork, overwrite_a):
    a = me.matrix(a, "a", overwrite=overwrite_a)
    compute_uv = me.choice(compute_uv, "compute_uv", (0, 1))
    full = me.choice(full_matrices, "full_matrices", (0, 1))
    lwork = lwork if lwork is None else me.integer(lwork, "lwork", 1, LARGEST)
    (m, n), k = a.shape, min(a.shape)
    cpu = me.on_cpu(a)
    if not k:
        xp = np if cpu else cupy()
        columns = (m, n) if full else (0, 0)
        u, vt = ((xp.eye(size, c, dtype=me.dtype) for size, c in zip((m, n), columns))
                 if compute_uv else (xp.zeros((1, 1), me.dtype) for _ in "uv"))
        return u, xp.zeros(0, me.real), vt.T, 0 if cpu else xp.zeros((), np.int32)
    if not cpu:
        return _svd_gpu(me, a, "N" if not compute_uv else "SA"[full], overwrite_a)
    if lwork is None:
        best = getattr(scipy_lapack, me.name + "_lwork")
        lwork = int(best(m, n, compute_uv, full)[0].real)
    me.strided(a, overwrite_a)  # for trace(): SciPy's wrapper copies what it cannot destroy
    if np.isinf(a).any():  # LAPACK would never end
        shapes = ((m, m if full else k), (n if full else k, n)) if compute_uv else ((1, 1),) * 2
        u, vt = (np.full(shape, np.nan, me.dtype, order="F") for shape in shapes)
        return u, np.full(k, np.nan, me.real), vt, -4
    u, s, vt, info = me.scipy(a, compute_uv, full, lwork, overwrite_a)
    if info == {"gesvd": -13, "gesdd": -12}[me.name[1:]]:
        me.illegal("lwork", lwork, f"at least what {me.name}_lwork returns")
    return u, s, vt, info


def _svd_gpu(me, a, job, overwrite):
    """By Xgesvd or large/svd.py, for m >= n only: a wide A = U S V^H is the tall A^H = V S U^H."""
    from . import _cuda as gpu
    if a.shape[0] < a.shape[1]:
        v, s, ut, info = _svd_gpu(me, gpu.adjoint(a), job, 1)
        if job == "N":
            return v, s, ut, info
        return gpu.adjoint(ut), s, gpu.adjoint(v), info
    xp, (m, n) = cupy(), a.shape
    a = gpu.output(a, overwrite)
    if job != "N" and me.name.endswith("gesdd"):
        from .large import svd as large
        if large.serves(me, n):
            return large.gesdd(me, a, m if job == "A" else n)
    s = xp.empty(n, me.real)
    shapes = {"N": ((1, 1), (1, 1)), "S": ((m, n), (n, n)), "A": ((m, m), (n, n))}[job]
    u, vt = (xp.zeros(shape, me.dtype, order="F") for shape in shapes)
    t, real = me.type.cuda, BY_DTYPE[me.real].cuda
    info = gpu.solver64("Xgesvd", "iinnipnipipnipni", (
        ord(job), ord(job), m, n, t, a.data.ptr, gpu.ld(a), real, s.data.ptr,
        t, u.data.ptr, m, t, vt.data.ptr, n, t))
    return u, s, vt, info


def gesvd_lwork(me, m, n, compute_uv=1, full_matrices=1):
    """The workspace that gesvd works best with, for an (m, n) matrix: (work, info)."""
    return _svd_lwork(me, m, n, compute_uv, full_matrices)


def gesdd_lwork(me, m, n, compute_uv=1, full_matrices=1):
    """The workspace that gesdd works best with, for an (m, n) matrix: (work, info)."""
    return _svd_lwork(me, m, n, compute_uv, full_matrices)


def _svd_lwork(me, m, n, compute_uv, full_matrices):
    return me.scipy(me.extent(m, "m"), me.extent(n, "n"),
                    me.choice(compute_uv, "compute_uv", (0, 1)),
                    me.choice(full_matrices, "full_matrices", (0, 1)))


gesvd, sgesvd, dgesvd, cgesvd, zgesvd = typed(gesvd, "sdcz")
gesdd, sgesdd, dgesdd, cgesdd, zgesdd = typed(gesdd, "sdcz")
gesvd_lwork, sgesvd_lwork, dgesvd_lwork, cgesvd_lwork, zgesvd_lwork = typed(gesvd_lwork, "sdcz")
gesdd_lwork, sgesdd_lwork, dgesdd_lwork, cgesdd_lwork, zgesdd_lwork = typed(gesdd_lwork, "sdcz")

__all__ = public(globals())
