"""QR and eigenproblems of members of different sizes: geqrf ormqr gels syevd `_vbatched`.

Operands are lists of arrays or `blasx.Ragged`, as in ragged.py; reflectors as in qr.py.
"""

from .._routine import also, public, typed
from . import eig, qr
from ._checks import on_gpu
from .ragged import (
    apart,
    belonging,
    extents,
    matrices,
    on_cpu,
    one_by_one,
    right_hand_sides,
    vectors,
)

_gpu, _gpu_eig = on_gpu("_gpu_ragged_qr"), on_gpu("_gpu_ragged_eig")


def geqrf_vbatched(me, a, overwrite_a=0):
    """QR factorization of members of different sizes, A = Q R.

    Parameters
    ----------
    a : list of (m, n) arrays, or Ragged
        Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    qr : list or Ragged, as `a`
        R on and above the diagonals, the reflectors below.
    tau : list or Ragged of (min(m, n),) arrays
    info : (batch,) int32 array of zeros

    Notes
    -----
    2 m n^2 - 2/3 n^3 operations each.
    """
    a = matrices(me, a, "a", overwrite_a)
    if overwrite_a:
        apart(me, "a", a)
    if on_cpu(me, a=a):
        one = getattr(qr, me.letter + "geqrf_batched")
        return one_by_one(a, lambda i: one(a[i][None], overwrite_a),
                          (a if overwrite_a else None, None), (a, a), extents(a).prod(1))
    return _gpu().geqrf(me, a, overwrite_a)


def ormqr_vbatched(me, side, trans, a, tau, c, overwrite_c=0):
    """op(Q) C or C op(Q) for members of different sizes (ormqr, complex unmqr).

    Parameters
    ----------
    side : {'L', 'R'}
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(Q) = Q or Q^H.
    a : list of (m, k) arrays, (n, k) if side = 'R', or Ragged
        The first columns of the `qr` of geqrf_vbatched.
    tau : list of (k,) arrays, or Ragged
    c : list of (m, n) arrays, or Ragged
        Overwritten if `overwrite_c`.

    Returns
    -------
    cq : list or Ragged, as `c`
    info : (batch,) int32 array of zeros

    Notes
    -----
    4 m n k - 2 n k^2 operations each from the left.
    """
    side = me.flag(side, "side", "LR")
    trans = me.flag(trans, "trans", "NC" if me.is_complex else "NT")
    a, tau = matrices(me, a, "a"), vectors(me, tau, "tau")
    c = matrices(me, c, "c", overwrite_c)
    shapes, right = extents(c), int(side == "R")
    belonging(me, "a", extents(a)[:, :1], shapes[:, right:right + 1], "rows")
    belonging(me, "tau", extents(tau), extents(a)[:, 1:], "numbers")
    if overwrite_c:
        apart(me, "c", c, a=a, tau=tau)
    if on_cpu(me, a=a, tau=tau, c=c):
        one = getattr(qr, me.letter + ("unmqr" if me.is_complex else "ormqr") + "_batched")
        return one_by_one(c, lambda i: one(side, trans, a[i][None], tau[i][None], c[i][None],
                                           overwrite_c),
                          (c if overwrite_c else None,), (c,), shapes.prod(1))
    return _gpu().ormqr(me, side, trans, a, tau, c, overwrite_c)


def gels_vbatched(me, a, b, trans="N", overwrite_a=0, overwrite_b=0):
    """Least squares or minimum norm solutions of op(A) X = B, members of different sizes.

    Parameters
    ----------
    a : list of (m, n) arrays of full rank, or Ragged
        Overwritten by QR (m >= n) or LQ factors if `overwrite_a`.
    b : list of (max(m, n),) or (max(m, n), nrhs) arrays, or Ragged
        The right-hand sides in the first rows. Overwritten by `x` if `overwrite_b`.
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(A) = A or A^H.

    Returns
    -------
    lqr : list or Ragged, as `a`
    x : list or Ragged, as `b`
        As gels_batched leaves them.
    info : (batch,) int32 array
        k > 0: this member has no full rank, and its x is no solution.

    Notes
    -----
    2 m n^2 - 2/3 n^3 + 4 m n nrhs operations each (m >= n).
    """
    a = matrices(me, a, "a", overwrite_a)
    trans = me.flag(trans, "trans", "NC" if me.is_complex else "NT")
    b = right_hand_sides(me, b, a, overwrite_b, extents(a).max(1))
    if overwrite_a:
        apart(me, "a", a, b=b)
    if overwrite_b:
        apart(me, "b", b, a=a)
    if on_cpu(me, a=a, b=b):
        one = getattr(qr, me.letter + "gels_batched")
        return one_by_one(a, lambda i: one(a[i][None], b[i][None], trans, overwrite_a,
                                           overwrite_b),
                          (a if overwrite_a else None, b if overwrite_b else None), (a, b),
                          extents(a).prod(1))
    return _gpu().gels(me, a, b, trans, overwrite_a, overwrite_b)


def syevd_vbatched(me, a, compute_v=1, lower=0, overwrite_a=0):
    """Eigenvalues and eigenvectors of Hermitian members of different sizes (complex heevd).

    Parameters
    ----------
    a : list of (n, n) arrays, or Ragged
        Only the triangle that `lower` names is read. Overwritten by the eigenvectors if
        `overwrite_a`; destroyed if they are not asked for.
    compute_v : {0, 1}
        0: the eigenvalues alone.
    lower : {0, 1}

    Returns
    -------
    w : list of (n,) real arrays, or Ragged
        Ascending.
    v : list or Ragged, as `a`
        The eigenvectors, by columns; (1, 1) each and without meaning if not asked for.
    info : (batch,) int32 array
        k > 0: this member did not converge, or has a nan or infinity.

    Notes
    -----
    About 9 n^3 operations each with vectors; the same bits as by syevd_batched. GPU: members to
    order 1024 in launches of all that the same kernels serve; up to 4 GB of workspace.
    """
    a = matrices(me, a, "a", overwrite_a, square=True)
    compute_v = me.choice(compute_v, "compute_v", (0, 1))
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_a:
        apart(me, "a", a)
    if on_cpu(me, a=a):
        one = getattr(eig, me.letter + ("heevd" if me.is_complex else "syevd") + "_batched")
        return one_by_one(a, lambda i: one(a[i][None], compute_v, lower, overwrite_a),
                          (None, a if overwrite_a and compute_v else None), (a, a),
                          extents(a).prod(1))
    return _gpu_eig().syevd(me, a, compute_v, lower, overwrite_a)


geqrf_vbatched, sgeqrf_vbatched, dgeqrf_vbatched, cgeqrf_vbatched, zgeqrf_vbatched = typed(
    geqrf_vbatched, "sdcz")
ormqr_vbatched, sormqr_vbatched, dormqr_vbatched, cunmqr_vbatched, zunmqr_vbatched = typed(
    ormqr_vbatched, "sdcz", "sormqr_vbatched dormqr_vbatched cunmqr_vbatched zunmqr_vbatched")
unmqr_vbatched = also(ormqr_vbatched, "unmqr_vbatched", zunmqr_vbatched)
gels_vbatched, sgels_vbatched, dgels_vbatched, cgels_vbatched, zgels_vbatched = typed(
    gels_vbatched, "sdcz")
syevd_vbatched, ssyevd_vbatched, dsyevd_vbatched, cheevd_vbatched, zheevd_vbatched = typed(
    syevd_vbatched, "sdcz", "ssyevd_vbatched dsyevd_vbatched cheevd_vbatched zheevd_vbatched")
heevd_vbatched = also(syevd_vbatched, "heevd_vbatched", zheevd_vbatched)

__all__ = public(globals())
