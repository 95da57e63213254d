"""Products of many matrices at once: gemm gemv symm hemm syrk herk `_batched`.

An operand that is only read may be one matrix for all members, 2-dimensional or a stack of one: it
is not copied.
"""

import numpy as np

from .._routine import Typed, public, typed
from . import _cpu
from ._checks import dimensions, on_gpu

_gpu = on_gpu("_gpu_blas")
FLAG = (0, 1)
TRANS = (0, 1, 2)


def gemm_batched(me, alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0):
    """C := alpha op(A) op(B) + beta C for every member.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and B unread, beta = 0 leaves C unread, whatever they hold.
    a, b : (batch, ...) arrays, or one matrix for all members
        op(A) is (m, k), op(B) is (k, n); any strides.
    c : (batch, m, n) array, optional
        Overwritten if `overwrite_c`.
    trans_a, trans_b : {0, 1, 2}
        op(X) = X, X^T, X^H.

    Returns
    -------
    c : (batch, m, n) array

    Notes
    -----
    2 m n k operations each. CPU: BLAS, the batch split over the cores; GPU: own kernels, cuBLAS
    where a tuned row says so.

    Half precision (`hgemm_batched`, float16) and bfloat16 (`bgemm_batched`; the dtype of the
    package ml_dtypes) are multiplied and summed in single precision, alpha and beta included, and
    rounded once. The generic name takes them if all arrays are of one of these types.
    """
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    a, b = _matrices(me, a, "a"), _matrices(me, b, "b")
    trans_a = me.choice(trans_a, "trans_a", TRANS)
    trans_b = me.choice(trans_b, "trans_b", TRANS)
    a, b = _op(a, trans_a), _op(b, trans_b)
    m, k = a.shape[-2:]
    if b.shape[-2] != k:
        me.illegal("b", b.shape, f"matrices with {k} rows in op(b), as op(a) has columns")
    shape = m, b.shape[-1]
    c, batch = _result(me, c, "c", shape, overwrite_c, a=a, b=b)
    if me.on_cpu(a, b, c):
        return _product_cpu(me, alpha, _conj(a, trans_a), _conj(b, trans_b), beta, c, batch,
                            overwrite_c)
    return _gpu().gemm(me, alpha, a, b, beta, c, batch, trans_a == 2, trans_b == 2, overwrite_c)


def gemv_batched(me, alpha, a, x, beta=0.0, y=None, trans=0, overwrite_y=0):
    """y := alpha op(A) x + beta y for every member.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and x unread, beta = 0 leaves y unread, whatever they hold.
    a : (batch, m, n) array, or one matrix for all members
    x : (batch, n) array, or one vector for all; (m) if `trans`
    y : (batch, m) array, optional; (n) if `trans`
        Overwritten if `overwrite_y`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    y : (batch, m) array; (n) if `trans`

    Notes
    -----
    2 m n operations each. CPU: BLAS gemm; GPU: an own kernel, bound by reading A.
    """
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    a = _matrices(me, a, "a")
    x = me.stack(x, "x", 1 if dimensions(x) == 1 else 2)
    trans = me.choice(trans, "trans", TRANS)
    a = _op(a, trans)
    m, n = a.shape[-2:]
    if x.shape[-1] != n:
        me.illegal("x", x.shape, f"vectors of {n}, as op(a) has columns")
    columns = x[..., None]
    if y is not None:
        y = me.stack(y, "y", 2, overwrite_y)[:, :, None]
    y, batch = _result(me, y, "y", (m, 1), overwrite_y, a=a, x=columns)
    if me.on_cpu(a, columns, y):
        y = _product_cpu(me, alpha, _conj(a, trans), columns, beta, y, batch, overwrite_y)
    else:
        y = _gpu().gemv(me, alpha, a, columns, beta, y, batch, trans == 2, overwrite_y)
    return y[:, :, 0]


def symm_batched(me, alpha, a, b, beta=0.0, c=None, side=0, lower=0, overwrite_c=0):
    """C := alpha A B + beta C or alpha B A + beta C for every member, A symmetric.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and B unread, beta = 0 leaves C unread, whatever they hold.
    a : (batch, m, m) array; (n, n) if `side`; or one matrix for all members
        Symmetric; only the triangle that `lower` names counts.
    b : (batch, m, n) array, or one matrix for all members
    c : (batch, m, n) array, optional
        Overwritten if `overwrite_c`.
    side : {0, 1}
        A to the left, to the right of B.

    Returns
    -------
    c : (batch, m, n) array

    Notes
    -----
    2 m^2 n operations each (2 m n^2 if `side`). CPU: BLAS gemm; GPU: an own kernel, or, as tuned
    rows have it, gemm_batched's of all of A, made in as much memory more.
    """
    return _symmetric_product(me, alpha, a, b, beta, c, side, lower, overwrite_c, False)


def hemm_batched(me, alpha, a, b, beta=0.0, c=None, side=0, lower=0, overwrite_c=0):
    """C := alpha A B + beta C or alpha B A + beta C for every member, A Hermitian.

    Parameters
    ----------
    alpha, beta : numbers
    a : (batch, n, n) array, or one matrix for all members
        Only the triangle that `lower` names counts, of the diagonal the real parts.
    b : (batch, m, k) array, or one matrix for all members
    c : (batch, m, k) array, optional
        Not read where beta = 0. Overwritten if `overwrite_c`.
    side : {0, 1}
        A on the left (n = m), on the right (n = k).
    lower : {0, 1}

    Returns
    -------
    c : (batch, m, k) array

    Notes
    -----
    As symm_batched.
    """
    return _symmetric_product(me, alpha, a, b, beta, c, side, lower, overwrite_c, True)


def _symmetric_product(me, alpha, a, b, beta, c, side, lower, overwrite_c, hermitian):
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    a, b = _matrices(me, a, "a"), _matrices(me, b, "b")
    side, lower = me.choice(side, "side", FLAG), me.choice(lower, "lower", FLAG)
    order = b.shape[-1] if side else b.shape[-2]
    if a.shape[-2:] != (order, order):
        me.illegal("a", a.shape, f"square of order {order}, to multiply b")
    c, batch = _result(me, c, "c", b.shape[-2:], overwrite_c, a=a, b=b)
    if me.on_cpu(a, b, c):
        a = _whole(a, lower, hermitian)
        left, right = (b, a) if side else (a, b)
        return _product_cpu(me, alpha, left, right, beta, c, batch, overwrite_c)
    return _gpu().symm(me, alpha, a, b, beta, c, batch, side, lower, hermitian, overwrite_c)


def syrk_batched(me, alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """C := alpha A A^T + beta C, or alpha A^T A + beta C if `trans`, for every member; one
    triangle of C.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A unread, beta = 0 leaves the triangle of C unread, whatever they hold.
    a : (batch, n, k) array; (k, n) if `trans`; or one matrix for all members
    c : (batch, n, n) array, optional
        Overwritten if `overwrite_c`.
    trans : {0, 1}; real types take 2 for 1
    lower : {0, 1}
        The triangle of C that is read and written; the other stays as it was, zero without `c`.

    Returns
    -------
    c : (batch, n, n) array

    Notes
    -----
    n (n + 1) k operations each. CPU: BLAS gemm; GPU: an own kernel.
    """
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    return _rank_k(me, alpha, a, beta, c, trans, lower, overwrite_c, False)


def herk_batched(me, alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """C := alpha A A^H + beta C, or alpha A^H A + beta C if `trans` = 2, for every member; one
    triangle of C.

    Parameters
    ----------
    alpha, beta : real numbers
    a : (batch, n, k) array, or one matrix for all members; (batch, k, n) if `trans`
    c : (batch, n, n) array, optional
        Not read where beta = 0. Overwritten if `overwrite_c`.
    trans : {0, 2}
    lower : {0, 1}

    Returns
    -------
    c : (batch, n, n) array
        The other triangle is that of the C that was given, or zero; the diagonal is real.

    Notes
    -----
    As syrk_batched.
    """
    alpha, beta = me.real_number(alpha, "alpha"), me.real_number(beta, "beta")
    return _rank_k(me, alpha, a, beta, c, trans, lower, overwrite_c, True)


def _rank_k(me, alpha, a, beta, c, trans, lower, overwrite_c, hermitian):
    a = _matrices(me, a, "a")
    trans = me.choice(trans, "trans", TRANS if not me.is_complex else (0, 2) if hermitian else FLAG)
    lower = me.choice(lower, "lower", FLAG)
    a = _op(a, trans)
    n, k = a.shape[-2:]
    c, batch = _result(me, c, "c", (n, n), overwrite_c, a=a)
    if not me.on_cpu(a, c):
        return _gpu().syrk(me, alpha, a, beta, c, batch, trans, lower, hermitian, overwrite_c)
    out = np.zeros((batch, n, n), me.dtype) if c is None else c if overwrite_c else c.copy()
    left = _conj(a, trans)
    right = left.swapaxes(-1, -2)
    if hermitian and c is not None:  # whose diagonal's imaginary part is not read
        c = c.copy()
        c.imag[:, range(n), range(n)] = 0
    product = _product_cpu(me, alpha, left, right.conj() if hermitian else right, beta, c, batch, 0)
    if hermitian:
        product[:, range(n), range(n)] = product[:, range(n), range(n)].real
    np.copyto(out, product, where=_triangle(n, lower))
    return out


# -- operands


def _matrices(me, x, argument):
    """A stack of matrices, or one matrix for all members."""
    return me.stack(x, argument, 2 if dimensions(x) == 2 else 3)


def _op(x, trans):
    """The transpose where there is one; without its conjugate."""
    return x.swapaxes(-1, -2) if trans else x


def _result(me, c, argument, shape, overwrite, **operands):
    """C checked, and the batch: what all stacks of more than one agree on."""
    stacks = {name: x for name, x in operands.items() if x.ndim == 3}
    me.allows(overwrite, argument)
    if c is not None:
        c = me.stack(c, argument, 3, overwrite)
        stacks[argument] = c
    batch = next((len(x) for x in stacks.values() if len(x) != 1), 1)
    for name, x in stacks.items():
        if len(x) != batch and (len(x) != 1 or name == argument):
            me.illegal(name, x.shape, f"a stack of {batch}")
    if c is not None:
        me.shaped(c, argument, (batch, *shape))
        if overwrite:
            me.distinct(c, argument, **operands)
    return c, batch


# -- CPU


def _conj(x, trans):
    return x.conj() if trans == 2 else x


def _triangle(n, lower):
    return np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T


def _whole(a, lower, hermitian):
    """Symmetric or Hermitian matrices of their triangles."""
    n = a.shape[-1]
    other = a.swapaxes(-1, -2)
    whole = np.where(_triangle(n, lower), a, other.conj() if hermitian else other)
    if hermitian:
        whole[..., range(n), range(n)] = whole[..., range(n), range(n)].real
    return whole


def _product_cpu(me, alpha, a, b, beta, c, batch, overwrite):
    """alpha A B + beta C by BLAS, member by member."""
    shape = batch, a.shape[-2], b.shape[-1]
    out = c if overwrite and c is not None else np.empty(shape, me.dtype)
    if c is None:
        beta = 0
    if me.type.sums != me.letter:
        return _rounded_product(Typed(me.name, me.type.sums), alpha, a, b, beta, c, out)
    if out is not c and beta != 0:
        out[...] = c
    if out.size:
        _gemm_cpu(me, alpha, a, b, beta, out)
    return out


def _rounded_product(me, alpha, a, b, beta, c, out):
    """The product in the type of `me`, in which sums are kept, rounded once."""
    a, b = a.astype(me.dtype), b.astype(me.dtype)
    c = None if beta == 0 else c.astype(me.dtype)
    total = _product_cpu(me, alpha, a, b, beta, c, len(out), 1)
    with np.errstate(over="ignore"):
        out[...] = total
    return out


def _gemm_cpu(me, alpha, a, b, beta, c):
    """C := alpha A B + beta C: what lies by rows is the transpose of what lies by columns."""
    batch, m, n = c.shape
    place = _by_blas(c)
    if place == (None, "T"):
        return _gemm_cpu(me, alpha, b.swapaxes(-1, -2), a.swapaxes(-1, -2), beta,
                         c.swapaxes(1, 2))
    k = a.shape[-1] if alpha else 0  # OpenBLAS's small products read A and B whatever alpha is
    (x, lda, trans_a), (y, ldb, trans_b) = _argument(a, batch), _argument(b, batch)
    z, ldc = (_cpu.Columns(c, c), m) if place is None else (c, place[0])
    alpha, beta = (np.broadcast_to(me.scalar(t), (batch,)) for t in (alpha, beta))
    _cpu.each(me.letter + "gemm", batch, max(m, n, k), trans_a, trans_b, m, n, k, alpha, x, lda, y,
              ldb, beta, z, ldc)


def _by_blas(x):
    """(leading dimension, "N") of a stack by columns, (None, "T") if its transposes lie so, None
    if neither, or if it is not aligned."""
    if not x.flags.aligned:
        return None
    (m, n), (down, across), size = x.shape[-2:], x.strides[-2:], x.itemsize
    for rows, columns, step, ld, trans in ((m, n, down, across, "N"), (n, m, across, down, "T")):
        if (rows <= 1 or step == size) and (columns <= 1 or ld % size == 0
                                            and ld // size >= max(rows, 1)):
            return (max(rows, 1) if columns <= 1 else ld // size, "N") if trans == "N" else (
                None, "T")
    return None


def _argument(x, batch):
    """A stack that is read, as BLAS takes it: (array, leading dimension, op)."""
    x = np.broadcast_to(x, (batch, *x.shape[-2:]))
    place = _by_blas(x)
    if place is None:
        return _cpu.Columns(x), max(x.shape[1], 1), "N"
    if place[1] == "N":
        return x, place[0], "N"
    return x, _by_blas(x.swapaxes(1, 2))[0], "T"


(gemm_batched, sgemm_batched, dgemm_batched, cgemm_batched, zgemm_batched, hgemm_batched,
 bgemm_batched) = typed(gemm_batched, "sdczhb")
gemv_batched, sgemv_batched, dgemv_batched, cgemv_batched, zgemv_batched = typed(
    gemv_batched, "sdcz")
symm_batched, ssymm_batched, dsymm_batched, csymm_batched, zsymm_batched = typed(
    symm_batched, "sdcz")
hemm_batched, chemm_batched, zhemm_batched = typed(hemm_batched, "cz")
syrk_batched, ssyrk_batched, dsyrk_batched, csyrk_batched, zsyrk_batched = typed(
    syrk_batched, "sdcz")
herk_batched, cherk_batched, zherk_batched = typed(herk_batched, "cz")

__all__ = public(globals())
