"""Norms of matrices, and the copying and setting of their triangles."""

import numpy as np

from ._lapack import by_rows
from ._routine import cupy, public, typed


def part(xp, uplo, shape, offset=0):
    """The mask, of `xp` (NumPy or CuPy), of a matrix's upper ('U') or lower ('L') triangle without
    its first `offset` diagonals, counted from the main one."""
    rows, columns = xp.arange(shape[0])[:, None], xp.arange(shape[1])
    return rows >= columns + offset if uplo == "L" else rows + offset <= columns


def lange(me, norm, a):
    """A norm of a general matrix.

    Parameters
    ----------
    norm : {'M', '1', 'O', 'I', 'F', 'E'}
        max |a_ij| (which is no consistent norm), the 1-norm ('1', 'O': the largest sum of a
        column), the infinity norm (of a row), the Frobenius norm ('F', 'E').
    a : (m, n) array

    Returns
    -------
    n2 : float (GPU: 0-d array of the real type)
        0 for an empty matrix, nan if any element is nan.

    Notes
    -----
    CPU: LAPACK. GPU: CuPy reductions in the current stream, no synchronisation; the Frobenius norm
    is scaled by the largest element, so it overflows only if it must. m n additions.
    """
    norm = me.flag(norm, "norm", "M1OIFE")
    a = me.matrix(a, "a")
    if me.on_cpu(a):
        if by_rows(a):  # the 1-norm of A is the infinity norm of A^T
            a, norm = a.T, {"1": "I", "O": "I", "I": "1"}.get(norm, norm)
        return me.scipy(norm, a) if a.size else 0.0
    xp = cupy()
    if not a.size:
        return xp.zeros((), me.real)
    size = abs(a)
    if norm in "1O":
        return size.sum(axis=0).max()
    if norm == "I":
        return size.sum(axis=1).max()
    largest = size.max()
    if norm == "M":
        return largest
    scaled = largest * xp.sqrt(xp.square(size / largest).sum())
    return xp.where((largest > 0) & (largest < np.inf), scaled, largest)


def lacpy(me, a, uplo="A", b=None):
    """Copy a matrix, or a triangle of it.

    Parameters
    ----------
    a : (m, n) array
    uplo : {'A', 'U', 'L'}
        All, the upper triangle, the lower triangle.
    b : (m, n) array, optional
        Written in place, whatever its strides; the rest of it is left alone.

    Returns
    -------
    b : (m, n) array
        If none was given, a new one, column-major and zero outside the triangle.
    """
    a, uplo = me.matrix(a, "a"), me.flag(uplo, "uplo", "AUL")
    if b is not None:
        b = _target(me, b, "b", a.shape)
        me.distinct(b, "b", a=a)
    xp = np if me.on_cpu(a, b) else cupy()
    if b is None:
        b = xp.zeros(a.shape, me.dtype, order="F")
    if uplo == "A":
        b[...] = a
    else:
        xp.copyto(b, a, where=part(xp, uplo, a.shape))
    return b


def laset(me, m, n, alpha, beta, uplo="A", a=None):
    """Set a matrix, or a triangle of it, to one number off the diagonal and another on it.

    Parameters
    ----------
    m, n : int
    alpha, beta : numbers
        Off the diagonal, on the diagonal.
    uplo : {'A', 'U', 'L'}
        All, the upper triangle, the lower triangle: the diagonal is always set.
    a : (m, n) array, optional
        Written in place, whatever its strides; the rest of it is left alone.

    Returns
    -------
    a : (m, n) array
        If none was given, a new one, a NumPy array, column-major and zero outside the triangle.
    """
    m, n = me.integer(m, "m", 0), me.integer(n, "n", 0)
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    uplo = me.flag(uplo, "uplo", "AUL")
    a = np.zeros((m, n), me.dtype, order="F") if a is None else _target(me, a, "a", (m, n))
    xp = np if me.on_cpu(a) else cupy()
    if uplo == "A":
        a[...] = alpha
    else:
        xp.copyto(a, alpha, where=part(xp, uplo, a.shape, 1))
    diagonal = xp.lib.stride_tricks.as_strided(a, (min(m, n),), (sum(a.strides),))
    diagonal[...] = beta
    return a


def _target(me, x, argument, shape):
    """An array to be written in place: of the routine's own type, for a cast would be a copy."""
    if getattr(x, "dtype", None) != me.dtype or getattr(x, "ndim", 0) != 2:
        me.mistyped(argument, f"{type(x).__name__} of dtype {getattr(x, 'dtype', None)}",
                    f"a matrix of dtype {me.dtype}, as it is written in place")
    return me.matrix(x, argument, shape, overwrite=1)


lange, slange, dlange, clange, zlange = typed(lange, "sdcz")
lacpy, slacpy, dlacpy, clacpy, zlacpy = typed(lacpy, "sdcz")
laset, slaset, dlaset, claset, zlaset = typed(laset, "sdcz")

__all__ = public(globals())
