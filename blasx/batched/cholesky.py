"""Cholesky of many matrices at once: potrf potrs posv potri `_batched`."""

import numpy as np

from .._routine import public, typed
from . import _cpu
from ._checks import on_gpu, right_hand_sides, square_stack

_gpu = on_gpu("_gpu_cholesky")


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
    n^3/3 operations each. CPU: a compiled core for small members, LAPACK for others. GPU: own
    kernels as far as the tuned rows go (on Hopper to 2048, from 225 on, c 217 and z 161, by
    panels), above that the one-matrix routine in a loop.
    Golub, Van Loan: Matrix Computations, 4.2.
    """
    a = square_stack(me, a, "a", overwrite_a)
    lower = me.choice(lower, "lower", (0, 1))
    if me.on_cpu(a):
        return _potrf_cpu(me, a, lower, overwrite_a)
    return _gpu().potrf(me, a, lower, overwrite_a)


def potrs_batched(me, c, b, lower=0, overwrite_b=0):
    """Solve A X = B for every member with the factors of potrf_batched.

    Parameters
    ----------
    c : (batch, n, n) array
        Only the triangle that `lower` names is read.
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by the solutions if `overwrite_b`.

    Returns
    -------
    x : array of the shape of b
    info : (batch,) int32 array of zeros

    Notes
    -----
    2 n^2 nrhs operations each. CPU: as potrf_batched. GPU: own kernels up to order 1024, above it
    the one-matrix routine in a loop.
    """
    c = square_stack(me, c, "c")
    b = right_hand_sides(me, b, overwrite_b, c, "c")
    lower = me.choice(lower, "lower", (0, 1))
    if me.on_cpu(c, b):
        return _potrs_cpu(me, c, b, lower, overwrite_b)
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
        k > 0: the leading minor of order k is not positive (or nan); this member's x is its b,
        unsolved.

    Notes
    -----
    n^3/3 + 2 n^2 nrhs operations each. GPU: in one launch as far as the tuned rows go (on Hopper to
    32, with one right-hand side to 224 in single, 208 in double precision, complex 56 and 48 and
    at some orders above); else, and on the CPU, as potrf_batched and potrs_batched.
    """
    a = square_stack(me, a, "a", overwrite_a)
    b = right_hand_sides(me, b, overwrite_b, a, "a")
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if me.on_cpu(a, b):
        return _posv_cpu(me, a, b, lower, overwrite_a, overwrite_b)
    return _gpu().posv(me, a, b, lower, overwrite_a, overwrite_b)


def potri_batched(me, c, lower=0, overwrite_c=0):
    """The inverse of every member from the factors of potrf_batched, one triangle.

    Parameters
    ----------
    c : (batch, n, n) array
        Only the triangle that `lower` names is read. Overwritten by that of the inverse if
        `overwrite_c`.

    Returns
    -------
    inv_a : (batch, n, n) array
        The other triangle is that of `c`; members with an info other than zero are `c`.
    info : (batch,) int32 array
        k > 0: the diagonal of the factor is zero at k, and there is no inverse.

    Notes
    -----
    2 n^3 / 3 operations each. CPU: LAPACK. GPU: in one launch as far as the tuned rows go (on
    Hopper to 232 in single, 160 in double precision, complex 128 and 112), above that the diagonal
    blocks likewise, and the inverse from these by products, as a recursive LAUUM and TRTRI would;
    from 1025 on the one-matrix routine in a loop.
    """
    c = square_stack(me, c, "c", overwrite_c)
    lower = me.choice(lower, "lower", (0, 1))
    if me.on_cpu(c):
        return _in_triangle(me, "potri", c, lower, overwrite_c)
    return _gpu().potri(me, c, lower, overwrite_c)


# -- CPU


def _potrf_cpu(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is left as it is."""
    if done := _cpu.own(me, "potrf", a, overwrite_a, lower=lower):
        return done[0], done[3]
    c, info = _in_triangle(me, "potrf", a, lower, overwrite_a)
    nan = np.isnan(c.diagonal(axis1=1, axis2=2))
    if nan.any():  # OpenBLAS goes past a pivot of nan
        info = np.where((info == 0) & nan.any(1), nan.argmax(1) + 1, info).astype(np.int32)
    return c, info


def _in_triangle(me, name, a, lower, overwrite_a):
    """potrf and potri: the triangle, info; by rows it is conj(A) that LAPACK sees."""
    batch, n, _ = a.shape
    work, uplo, _ = _cpu.triangle(a, lower, overwrite_a)
    info = np.zeros(batch, np.int32)
    if a.size:
        info = _cpu.each(me.letter + name, batch, n, uplo, n, work, n)
    if overwrite_a and not np.may_share_memory(a, work):
        a[...] = work
    return (a if overwrite_a else work), info


def _potrs_cpu(me, c, b, lower, overwrite_b):
    """Solve with the Cholesky factors of every member: x, info. By rows it is conj(A) that LAPACK
    sees, so the right-hand sides are conjugated before and after."""
    if done := _cpu.own(me, "potrs", c, 1, b, overwrite_b, lower):
        return done[2:]
    batch, n, _ = c.shape
    factor, uplo, transposed = _cpu.triangle(c, lower, True)
    x = _cpu.right_hand_sides(b, overwrite_b)
    info = np.zeros(batch, np.int32)
    if x.size:
        conjugate = me.is_complex and transposed
        if conjugate:
            np.conjugate(x, out=x)
        info = _cpu.each(me.letter + "potrs", batch, n, uplo, n, x.shape[1], factor, n, x, n)
        if conjugate:
            np.conjugate(x, out=x)
    return _cpu.solution(b, x, overwrite_b), info


def _posv_cpu(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    if done := _cpu.own(me, "potrf", a, overwrite_a, b, overwrite_b, lower):
        c, _, x, info = done
        return c, x, info
    c, info = _potrf_cpu(me, a, lower, overwrite_a)
    failed = np.flatnonzero(info)
    unsolved = b[failed]
    x, _ = _potrs_cpu(me, c, b, lower, overwrite_b)
    x[failed] = unsolved
    return c, x, info


potrf_batched, spotrf_batched, dpotrf_batched, cpotrf_batched, zpotrf_batched = typed(
    potrf_batched, "sdcz")
potrs_batched, spotrs_batched, dpotrs_batched, cpotrs_batched, zpotrs_batched = typed(
    potrs_batched, "sdcz")
posv_batched, sposv_batched, dposv_batched, cposv_batched, zposv_batched = typed(
    posv_batched, "sdcz")
potri_batched, spotri_batched, dpotri_batched, cpotri_batched, zpotri_batched = typed(
    potri_batched, "sdcz")

__all__ = public(globals())
