"""Members of different sizes: the `_vbatched` names.

An operand is a list of arrays or a `blasx.Ragged`, members in one buffer; results come in the kind
of the operand that they are like. Members that are overwritten share memory with no others. Sizes
are known to the host. On the GPU members are sorted into classes by the tuned constants that serve
them, each class a launch of each of its kernels, three to a panel of Cholesky by panels, whatever
the number of members, with a table of addresses and sizes that is uploaded once (_gpu_ragged.py);
those above order 1024 go one size at a time. On the CPU the cores share the members. A member's
result is, to the bit, that of `_batched`, but for products, some of which are cuBLAS's there
(gemm_vbatched).
"""

import numpy as np

from .._ragged import Ragged
from .._routine import NATIVE, ndarray, public, share, span, typed
from . import _cpu, cholesky
from . import lu as lu_batched
from ._checks import on_gpu

_gpu = on_gpu("_gpu_ragged")
ALONE = 200  # the order from which LAPACK starts threads of its own
FLOPS = 5e3  # operations to a microsecond, about, with which members are weighed


def getrf_vbatched(me, a, overwrite_a=0):
    """LU factorization with partial pivoting of members of different sizes, P A = L U.

    Parameters
    ----------
    a : list of (m, n) arrays, or Ragged
        Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    lu : list or Ragged, as `a`
        U on and above the diagonals, L below without its ones.
    piv : list or Ragged of (min(m, n),) int32 arrays
        Row j was interchanged with row piv[i][j], counted from 0, in this order.
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero, the first such.

    Notes
    -----
    m n^2 - n^3/3 operations each; LAPACK's pivots, as getrf_batched.
    """
    a = matrices(me, a, "a", overwrite_a)
    if overwrite_a:
        apart(me, "a", a)
    if on_cpu(me, a=a):
        one = getattr(lu_batched, me.letter + "getrf_batched")
        return one_by_one(a, lambda i: one(a[i][None], overwrite_a),
                          (a if overwrite_a else None, None), (a, a), extents(a).prod(1))
    return _gpu().getrf(me, a, overwrite_a)


def getrs_vbatched(me, lu, piv, b, trans=0, overwrite_b=0):
    """Solve op(A) X = B with the factors of getrf_vbatched, members of different sizes.

    Parameters
    ----------
    lu : list of (n, n) arrays, or Ragged
    piv : list of (n,) integer arrays, or Ragged
    b : list of (n,) or (n, nrhs) arrays, or Ragged
        Overwritten by the solutions if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : list or Ragged, as `b`
    info : (batch,) int32 array of zeros

    Notes
    -----
    2 n^2 nrhs operations each; the bits of getrs_batched. GPU: a launch to a class.
    """
    lu = matrices(me, lu, "lu", square=True)
    piv = pivots(me, piv, lu)
    b = right_hand_sides(me, b, lu, overwrite_b)
    if overwrite_b:
        apart(me, "b", b, lu=lu, piv=piv)
    trans = me.choice(trans, "trans", (0, 1, 2))
    if on_cpu(me, lu=lu, piv=piv, b=b):
        one = getattr(lu_batched, me.letter + "getrs_batched")
        return one_by_one(
            b, lambda i: one(lu[i][None], piv[i][None], b[i][None], trans, overwrite_b),
            (b if overwrite_b else None,), (b,), extents(lu).prod(1))
    return _gpu().getrs(me, lu, piv, b, trans, overwrite_b)


def gesv_vbatched(me, a, b, overwrite_a=0, overwrite_b=0):
    """Solve A X = B by LU with partial pivoting, members of different sizes.

    Parameters
    ----------
    a : list of (n, n) arrays, or Ragged
    b : list of (n,) or (n, nrhs) arrays, or Ragged
        Overwritten by factors and solutions if `overwrite_a`, `overwrite_b`.

    Returns
    -------
    lu, piv : as getrf_vbatched leaves them
    x : list or Ragged, as `b`
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero; this member's x is its b, unsolved.

    Notes
    -----
    2/3 n^3 + 2 n^2 nrhs operations each; the bits of gesv_batched, by whose kernels a class goes.
    """
    a = matrices(me, a, "a", overwrite_a, square=True)
    b = right_hand_sides(me, b, a, overwrite_b)
    if overwrite_a:
        apart(me, "a", a, b=b)
    if overwrite_b:
        apart(me, "b", b, a=a)
    if on_cpu(me, a=a, b=b):
        one = getattr(lu_batched, me.letter + "gesv_batched")
        return one_by_one(
            a, lambda i: one(a[i][None], b[i][None], overwrite_a, overwrite_b),
            (a if overwrite_a else None, None, b if overwrite_b else None), (a, a, b),
            extents(a).prod(1))
    return _gpu().gesv(me, a, b, overwrite_a, overwrite_b)


def potrf_vbatched(me, a, lower=0, overwrite_a=0):
    """Cholesky factorization of members of different sizes, A = U^H U, or A = L L^H if `lower`.

    Parameters
    ----------
    a : list of (n, n) arrays, or Ragged
        Only the triangle that `lower` names is read. Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    c : list or Ragged, as `a`
        The factors; the other triangle is that of `a`.
    info : (batch,) int32 array
        k > 0: the leading minor of order k is not positive (or nan); columns before it are done.

    Notes
    -----
    n^3/3 operations each. GPU: one launch to a class where potrf_batched has one, to order 1024
    three to a panel of a class.
    """
    a = matrices(me, a, "a", overwrite_a, square=True)
    lower = me.choice(lower, "lower", (0, 1))
    if overwrite_a:
        apart(me, "a", a)
    if on_cpu(me, a=a):
        one = getattr(cholesky, me.letter + "potrf_batched")
        return one_by_one(a, lambda i: one(a[i][None], lower, overwrite_a),
                          (a if overwrite_a else None,), (a,), extents(a).prod(1))
    return _gpu().potrf(me, a, lower, overwrite_a)


def potrs_vbatched(me, c, b, lower=0, overwrite_b=0):
    """Solve A X = B with the factors of potrf_vbatched, members of different sizes.

    Parameters
    ----------
    c : list of (n, n) arrays, or Ragged
    b : list of (n,) or (n, nrhs) arrays, or Ragged
        Overwritten by the solutions if `overwrite_b`.

    Returns
    -------
    x : list or Ragged, as `b`
    info : (batch,) int32 array of zeros

    Notes
    -----
    2 n^2 nrhs operations each; the bits of potrs_batched. Only the triangle that `lower` names is
    read.
    """
    c = matrices(me, c, "c", square=True)
    b = right_hand_sides(me, b, c, overwrite_b)
    if overwrite_b:
        apart(me, "b", b, c=c)
    lower = me.choice(lower, "lower", (0, 1))
    if on_cpu(me, c=c, b=b):
        one = getattr(cholesky, me.letter + "potrs_batched")
        return one_by_one(b, lambda i: one(c[i][None], b[i][None], lower, overwrite_b),
                          (b if overwrite_b else None,), (b,), extents(c).prod(1))
    return _gpu().potrs(me, c, b, lower, overwrite_b)


def posv_vbatched(me, a, b, lower=0, overwrite_a=0, overwrite_b=0):
    """Solve A X = B for Hermitian positive definite members of different sizes.

    Parameters
    ----------
    a : list of (n, n) arrays, or Ragged
        Only the triangle that `lower` names is read.
    b : list of (n,) or (n, nrhs) arrays, or Ragged
        Overwritten by factors and solutions if `overwrite_a`, `overwrite_b`.

    Returns
    -------
    c : as potrf_vbatched leaves it
    x : list or Ragged, as `b`
    info : (batch,) int32 array
        k > 0: the leading minor of order k is not positive; this member's x is its b, unsolved.

    Notes
    -----
    n^3/3 + 2 n^2 nrhs operations each; the bits of posv_batched.
    """
    a = matrices(me, a, "a", overwrite_a, square=True)
    b = right_hand_sides(me, b, a, overwrite_b)
    if overwrite_a:
        apart(me, "a", a, b=b)
    if overwrite_b:
        apart(me, "b", b, a=a)
    lower = me.choice(lower, "lower", (0, 1))
    if on_cpu(me, a=a, b=b):
        one = getattr(cholesky, me.letter + "posv_batched")
        return one_by_one(
            a, lambda i: one(a[i][None], b[i][None], lower, overwrite_a, overwrite_b),
            (a if overwrite_a else None, b if overwrite_b else None), (a, b),
            extents(a).prod(1))
    return _gpu().posv(me, a, b, lower, overwrite_a, overwrite_b)


# -- arguments


def matrices(me, x, argument, overwrite=0, square=False):
    """`x` with members that are matrices of the routine's type, square ones if so wanted."""
    x = _members(me, x, argument, overwrite, (2,))
    shapes = extents(x)
    if square and (shapes[:, 0] != shapes[:, 1]).any():
        first = np.flatnonzero(shapes[:, 0] != shapes[:, 1])[0]
        me.illegal(argument, tuple(shapes[first].tolist()), "of square matrices (n, n)")
    return x


def right_hand_sides(me, b, a, overwrite=0, rows=None):
    """`b` with members that belong to the matrices `a`, of as many rows as these or of `rows`."""
    b = _members(me, b, "b", overwrite, (1, 2))
    if len(b) != len(a):
        me.illegal("b", f"{len(b)} members", f"{len(a)} members, as the matrices")
    wanted, found = _extents(a) if rows is None else rows, _extents(b)
    for i in np.flatnonzero(wanted != found)[:1]:
        me.illegal(f"b[{i}]", f"{found[i]} rows", f"of {wanted[i]} rows, as its matrix wants")
    return b


def vectors(me, x, argument):
    """`x` with members that are vectors of the routine's type."""
    if x.__class__ is Ragged and len(x) and x.shapes.shape[1] != 1:
        me.illegal(argument, "members that are matrices", "vectors, (n,) each")
    return _members(me, x, argument, 0, (1,))


def belonging(me, argument, found, wanted, what):
    """Refuse members whose extents, a line to each, are not those that others ask for."""
    if len(found) != len(wanted):
        me.illegal(argument, f"{len(found)} members", f"{len(wanted)} members, as the others")
    for i in np.flatnonzero((found != wanted).any(1))[:1]:
        x, y = (tuple(z[i].tolist()) for z in (found, wanted))
        me.illegal(f"{argument}[{i}]", f"{what} {x if len(x) > 1 else x[0]}",
                   f"{what} {y if len(y) > 1 else y[0]}")


def extents(x):
    """The shapes of the members, a line to each."""
    if x.__class__ is Ragged:
        return x.shapes
    shapes = [y.shape for y in x]
    return np.array(shapes, np.int64).reshape(len(shapes), -1 if shapes else 2)


def pivots(me, piv, lu):
    """`piv` with int32 members that belong to the factors `lu`."""
    if piv.__class__ not in (list, tuple, Ragged):
        me.mistyped("piv", type(piv).__name__, "a list of arrays or a Ragged")
    if len(piv) != len(lu):
        me.illegal("piv", f"{len(piv)} members", f"{len(lu)} members, as the matrices")
    ragged = piv.__class__ is Ragged
    if ragged:
        me.integer_array(piv.data, "piv")
    found = []
    if not ragged or len(piv) and piv.data.__class__ is ndarray:
        found = [me.integers(x, f"piv[{i}]", n, n)
                 for i, (x, n) in enumerate(zip(piv, _extents(lu).tolist()))]
    else:
        belonging(me, "piv", piv.shapes, _extents(lu)[:, None], "numbers")
    if not ragged:
        return _of_one_device(me, found, "piv")
    return piv if piv.data.dtype == np.int32 else Ragged(piv.data.astype(np.int32), piv.shapes,
                                                         piv.offsets)


def apart(me, argument, out, **read):
    """Refuse members to be overwritten that share memory with each other, or with those of other
    operands."""
    of = {argument: out, **read}
    spans = np.concatenate([_spans(x) for x in of.values()])
    at = np.argsort(spans[:, 0], kind="stable")
    at = at[spans[at, 0] < spans[at, 1]]
    (low, high), written = spans[at].T, at < len(out)
    ends, ends_written = (np.maximum.accumulate(x) for x in (high, np.where(written, high, 0)))
    met = (ends[:-1] > low[1:]) & written[1:] | (ends_written[:-1] > low[1:])
    if not met.any():
        return
    members = [(f"{name}[{i}]", x) for name, xs in of.items() for i, x in enumerate(xs)]
    for k in 1 + np.flatnonzero(met):
        for j in np.flatnonzero((high[:k] > low[k]) & (written[:k] | written[k])):
            (name, x), (other, y) = (members[i] for i in sorted((at[j], at[k])))
            if share(x, y):
                me.illegal(name, f"memory shared with {other}", "an array of its own")


def _spans(x):
    """Where members begin and end in memory, a line to each."""
    if x.__class__ is not Ragged:
        return np.array([span(y) for y in x], np.int64).reshape(-1, 2)
    (low, _), step = span(x.data), x.data.strides[0]
    first = low + max(0, -step) * (x.data.size - 1) + step * x.offsets
    sizes = x.shapes.prod(1)
    last = first + step * (sizes - 1)
    return np.stack((np.minimum(first, last),
                     np.maximum(first, last) + x.data.itemsize), 1) * (sizes > 0)[:, None]


def on_cpu(me, **operands):
    """True if all operands are NumPy's, False if all are CuPy's; mixed is refused."""
    firsts = [x for x in map(_first, operands.values()) if x is not None]
    return me.on_cpu(*firsts) if firsts else True


def _members(me, x, argument, overwrite, dimensions):
    me.allows(overwrite, argument)
    if x.__class__ is Ragged:
        if x.shapes.shape[1] not in dimensions:
            me.illegal(argument, f"shapes of {x.shapes.shape[1]}", "matrices, (m, n) each")
        data = me.vector(x.data, argument, overwrite=overwrite)
        return x if data is x.data else Ragged(data, x.shapes, x.offsets)
    if x.__class__ is not list and x.__class__ is not tuple:
        me.mistyped(argument, type(x).__name__, "a list of arrays or a Ragged")
    found = []
    for i, y in enumerate(x):
        name = f"{argument}[{i}]"
        ndim = getattr(y, "ndim", None)
        if ndim not in dimensions:
            me.mistyped(name, type(y).__name__ if ndim is None else f"{ndim} dimensions",
                        "a matrix" if dimensions == (2,) else "a vector or a matrix")
        found.append(me.matrix(y, name, overwrite=overwrite) if ndim == 2
                     else me.vector(y, name, overwrite=overwrite))
    return _of_one_device(me, found, argument)


def _of_one_device(me, found, argument):
    classes = {y.__class__ for y in found}
    if len(classes) > 1 or not classes <= NATIVE:
        me.mistyped(argument, "NumPy and CuPy together", "all on one device")
    return found


def _extents(x):
    """The number of rows of every member."""
    return x.shapes[:, 0] if x.__class__ is Ragged else np.array([y.shape[0] for y in x], np.int64)


def _first(x):
    return x.data if x.__class__ is Ragged else x[0] if x else None


# -- CPU


def one_by_one(a, one, overwritten, kinds, work, infos=True):
    """The results of `one(i)`, a batch of one member, for all members of `a`, and the infos. A
    result is `overwritten`, its operand, or if this is None it comes in the kind of another
    operand (`kinds`). The cores share the members, those with the most `work`, elements each,
    first; LAPACK's own threads are at work in the larger ones, which go one after the other."""
    results, work = [None] * len(a), np.asarray(work)
    order = np.argsort(-work, kind="stable")
    alone = int((work > ALONE**2).sum())
    turns = iter(order[alone:].tolist())

    def some():
        for i in turns:
            results[i] = one(i)

    for i in order[:alone].tolist():
        results[i] = one(i)
    small = work[order[alone:]]
    _cpu._together(_cpu._threads(1, (small**1.5).sum() / FLOPS), some)
    answer = []
    for k, (result, kind) in enumerate(zip(overwritten, kinds, strict=True)):
        members = [r[k][0] for r in results]
        answer.append(result if result is not None else
                      members if kind.__class__ is not Ragged else Ragged.pack(members) if members
                      else Ragged(kind.data[:0], kind.shapes))
    if infos:
        answer.append(np.array([r[-1][0] for r in results], np.int32))
    return tuple(answer)


getrf_vbatched, sgetrf_vbatched, dgetrf_vbatched, cgetrf_vbatched, zgetrf_vbatched = typed(
    getrf_vbatched, "sdcz")
getrs_vbatched, sgetrs_vbatched, dgetrs_vbatched, cgetrs_vbatched, zgetrs_vbatched = typed(
    getrs_vbatched, "sdcz")
gesv_vbatched, sgesv_vbatched, dgesv_vbatched, cgesv_vbatched, zgesv_vbatched = typed(
    gesv_vbatched, "sdcz")
potrf_vbatched, spotrf_vbatched, dpotrf_vbatched, cpotrf_vbatched, zpotrf_vbatched = typed(
    potrf_vbatched, "sdcz")
potrs_vbatched, spotrs_vbatched, dpotrs_vbatched, cpotrs_vbatched, zpotrs_vbatched = typed(
    potrs_vbatched, "sdcz")
posv_vbatched, sposv_vbatched, dposv_vbatched, cposv_vbatched, zposv_vbatched = typed(
    posv_vbatched, "sdcz")

__all__ = public(globals())
