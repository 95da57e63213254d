"""LU and Cholesky of many matrices at once: the `_batched` names.

Arrays carry one leading batch dimension and any strides. A member's result does not depend, to
the bit, on the batch it is in. Nothing is raised for a singular or indefinite member: `info` says
which. CPU: LAPACK, the batch split over the cores. GPU: one launch of an own kernel for members
up to 32 x 32, in the current stream, no synchronisation.
"""

from functools import cache

from . import _cpu_batch
from ._routine import public, typed


def getrf_batched(me, a, overwrite_a=0):
    """LU factorization with partial pivoting of every member, P A = L U.

    Parameters
    ----------
    a : (batch, m, n) array, any strides
        Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    lu : (batch, m, n) array
        U on and above the diagonals, L below without its ones; in the memory order of `a`.
    piv : (batch, min(m, n)) int32 array
        Row j was interchanged with row piv[:, j], counted from 0, in this order.
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero, the first such.

    Notes
    -----
    m n^2 - n^3/3 operations each. LAPACK's pivots: the first largest |Re| + |Im|.
    """
    a = me.stack(a, "a", 3, overwrite_a)
    if me.on_cpu(a):
        return _cpu_batch.getrf(me, a, overwrite_a)
    return _gpu().getrf(me, a, overwrite_a)


def getrs_batched(me, lu, piv, b, trans=0, overwrite_b=0):
    """Solve op(A) X = B for every member with the factors of getrf_batched.

    Parameters
    ----------
    lu : (batch, n, n) array
    piv : (batch, n) integer array
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by the solutions if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : array of the shape of b
    info : (batch,) int32 array of zeros
    """
    lu = _square_stack(me, lu, "lu")
    piv = _pivots(me, piv, lu)
    b = _right_hand_sides(me, b, overwrite_b, lu=lu)
    if overwrite_b:
        me.distinct(b, "b", piv=piv)
    trans = me.choice(trans, "trans", (0, 1, 2))
    if me.on_cpu(lu, piv, b):
        return _cpu_batch.getrs(me, lu, piv, b, trans, overwrite_b)
    return _gpu().getrs(me, lu, piv, b, trans, overwrite_b)


def gesv_batched(me, a, b, overwrite_a=0, overwrite_b=0):
    """Solve A X = B for every member by LU with partial pivoting.

    Parameters
    ----------
    a : (batch, n, n) array
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by factors and solutions if `overwrite_a`, `overwrite_b`.

    Returns
    -------
    lu, piv : as getrf_batched leaves them
    x : array of the shape of b
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero; this member's x is its b, unsolved.
    """
    a = _square_stack(me, a, "a", overwrite_a)
    b = _right_hand_sides(me, b, overwrite_b, a=a)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if me.on_cpu(a, b):
        return _cpu_batch.gesv(me, a, b, overwrite_a, overwrite_b)
    return _gpu().gesv(me, a, b, overwrite_a, overwrite_b)


def potrf_batched(me, a, lower=0, overwrite_a=0):
    """Cholesky factorization of every member, A = U^H U, or A = L L^H if `lower`.

    Parameters
    ----------
    a : (batch, n, n) array
        Only the triangle that `lower` names is read. Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    c : (batch, n, n) array
        The factors; the other triangle is that of `a`.
    info : (batch,) int32 array
        k > 0: the leading minor of order k is not positive (or nan); columns before it are done.

    Notes
    -----
    n^3/3 operations each.
    """
    a = _square_stack(me, a, "a", overwrite_a)
    lower = me.choice(lower, "lower", (0, 1))
    if me.on_cpu(a):
        return _cpu_batch.potrf(me, a, lower, overwrite_a)
    return _gpu().potrf(me, a, lower, overwrite_a)


def potrs_batched(me, c, b, lower=0, overwrite_b=0):
    """Solve A X = B for every member with the factors of potrf_batched.

    Parameters
    ----------
    c : (batch, n, n) array
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by the solutions if `overwrite_b`.

    Returns
    -------
    x : array of the shape of b
    info : (batch,) int32 array of zeros
    """
    c = _square_stack(me, c, "c")
    b = _right_hand_sides(me, b, overwrite_b, c=c)
    lower = me.choice(lower, "lower", (0, 1))
    if me.on_cpu(c, b):
        return _cpu_batch.potrs(me, c, b, lower, overwrite_b)
    return _gpu().potrs(me, c, b, lower, overwrite_b)


def posv_batched(me, a, b, lower=0, overwrite_a=0, overwrite_b=0):
    """Solve A X = B for every Hermitian positive definite member.

    Parameters
    ----------
    a : (batch, n, n) array
        Only the triangle that `lower` names is read.
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by factors and solutions if `overwrite_a`, `overwrite_b`.

    Returns
    -------
    c : as potrf_batched leaves it
    x : array of the shape of b
    info : (batch,) int32 array
        k > 0: the leading minor of order k is not positive; this member's x is its b, unsolved.
    """
    a = _square_stack(me, a, "a", overwrite_a)
    b = _right_hand_sides(me, b, overwrite_b, a=a)
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if me.on_cpu(a, b):
        return _cpu_batch.posv(me, a, b, lower, overwrite_a, overwrite_b)
    return _gpu().posv(me, a, b, lower, overwrite_a, overwrite_b)


@cache
def _gpu():
    """The GPU's part; imported when the first CuPy array is there, for it imports CuPy."""
    from . import _gpu_batch
    return _gpu_batch


def _square_stack(me, a, argument, overwrite=0):
    a = me.stack(a, argument, 3, overwrite)
    if a.shape[1] != a.shape[2]:
        me.illegal(argument, a.shape, "a stack of square matrices (batch, n, n)")
    return a


def _right_hand_sides(me, b, overwrite, **matrices):
    """`b` checked against the stack of matrices, which has a name."""
    (a,) = matrices.values()
    b = me.stack(b, "b", 2 if getattr(b, "ndim", 3) == 2 else 3, overwrite)
    if b.shape[:2] != a.shape[:2]:
        batch, n = a.shape[:2]
        me.illegal("b", b.shape, f"of shape ({batch}, {n}) or ({batch}, {n}, nrhs)")
    if overwrite:
        me.distinct(b, "b", **matrices)
    return b


def _pivots(me, piv, lu):
    piv = me.integer_array(piv, "piv")
    if piv.shape != lu.shape[:2]:
        me.illegal("piv", piv.shape, f"of shape {lu.shape[:2]}")
    return me.integers(piv.reshape(-1), "piv", below=lu.shape[1]).reshape(lu.shape[:2])


getrf_batched, sgetrf_batched, dgetrf_batched, cgetrf_batched, zgetrf_batched = typed(
    getrf_batched, "sdcz")
getrs_batched, sgetrs_batched, dgetrs_batched, cgetrs_batched, zgetrs_batched = typed(
    getrs_batched, "sdcz")
gesv_batched, sgesv_batched, dgesv_batched, cgesv_batched, zgesv_batched = typed(
    gesv_batched, "sdcz")
potrf_batched, spotrf_batched, dpotrf_batched, cpotrf_batched, zpotrf_batched = typed(
    potrf_batched, "sdcz")
potrs_batched, spotrs_batched, dpotrs_batched, cpotrs_batched, zpotrs_batched = typed(
    potrs_batched, "sdcz")
posv_batched, sposv_batched, dposv_batched, cposv_batched, zposv_batched = typed(
    posv_batched, "sdcz")

__all__ = public(globals())
