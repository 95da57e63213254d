"""Linear algebra under the names of NumPy and the array API: solve, inv, eigh, svd and the others.

Every function takes one matrix or a stack of them, (..., m, n), in any memory order; the stacks of
two operands broadcast, and a `b` of one dimension, and only that, is a vector. Types are NumPy's:
integers count as float64, float32 and complex64 stay what they are, and are worked on as such
(NumPy works in double precision and rounds). NumPy arrays are worked on by the CPU, CuPy arrays by
the GPU that holds them in the current stream, and arrays that speak DLPack where they lie, answered
in kind; ndarray's subclasses, masked arrays, too, where NumPy's functions answer them so.

One matrix goes to LAPACK's routine (`blasx.lapack`), a stack to the batched one (`blasx.batched`).
Members that have no answer raise numpy.linalg.LinAlgError; the exception carries `indices`, so
that a[i] for i in indices are the culprits, and their LAPACK `infos`. On the GPU that costs the one
synchronisation of a call.
"""

from functools import lru_cache, partial
from math import prod

import numpy as np
from numpy import linalg as _numpy
from numpy.linalg import LinAlgError

from . import _routine, _trace, batched, lapack
from ._routine import PLAIN, Typed, ndarray
from ._types import BY_DTYPE, TYPES

QRResult = type(_numpy.qr(np.eye(1)))
EighResult = type(_numpy.eigh(np.eye(1)))
SVDResult = type(_numpy.svd(np.eye(1)))
SlogdetResult = type(_numpy.slogdet(np.eye(1)))

_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}  # by dtype.char; integers and bool are d
_SINGULAR, _INDEFINITE = "Singular matrix", "Matrix is not positive definite"
_NO_CONVERGENCE = "Iteration did not converge"


class _Caller:
    """The function that was called: its name, for what it refuses, and its view of operands."""

    illegal, choice = Typed.illegal, Typed.choice

    def __init__(self, name):
        self.name = name

    def refuse(self, argument, got, wanted):
        """Raise the LinAlgError (a ValueError) of an argument's shape."""
        raise LinAlgError(f"{self.name}: {argument} must be {wanted}, got {got!r}")

    def operand(self, x, argument="a"):
        """Its Type, and `x` as an array of it."""
        if x.__class__ in PLAIN:
            try:
                x = np.asarray(x)
            except ValueError:
                raise ValueError(f"{self.name}: {argument} must be an array, got a ragged "
                                 f"sequence {x!r:.60}") from None
        t = BY_DTYPE.get(x.dtype)
        return (t, x) if t else self._cast(self._type(x, argument), x)

    def operands(self, a, b, names="ab"):
        """Their common Type, and both as arrays of it: NumPy's promotion."""
        (t, a), (tb, b) = self.operand(a, names[0]), self.operand(b, names[1])
        if a.__class__ is not b.__class__:
            raise TypeError(f"{self.name}: its arrays must be all on one device, got NumPy and "
                            "CuPy together")
        if t is tb:
            return t, a, b
        both = t.letter + tb.letter
        t = TYPES["sdcz"[2 * (t.is_complex or tb.is_complex) + ("d" in both or "z" in both)]]
        return t, self._cast(t, a)[1], self._cast(t, b)[1]

    def _cast(self, t, x):
        return t, x if x.dtype == t.dtype else x.astype(t.dtype)

    def _type(self, x, argument):
        letter = "d" if x.dtype.kind in "biu" else _LETTER.get(x.dtype.char)
        if letter is None:
            raise TypeError(f"{self.name}: {argument} of dtype {x.dtype} is unsupported in linalg")
        return TYPES[letter]

    def matrices(self, a, argument="a"):
        """Refuse what is not a matrix or a stack of them."""
        if a.ndim < 2:
            self.refuse(argument, a.shape, "at least two-dimensional: its shape")
        return a

    def square(self, a, argument="a"):
        """Refuse what is not a square matrix or a stack of them."""
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            self.refuse(argument, a.shape, "square in its last two dimensions: its shape")
        return a

    def columns(self, b, n):
        """`b` with its right-hand sides as columns of n rows, and whether it is one vector."""
        if b.ndim == 0 or b.shape[-2 if b.ndim > 1 else 0] != n:
            self.refuse("b", b.shape, f"of shape ({n},) or (..., {n}, nrhs)")
        return (b[:, None], True) if b.ndim == 1 else (b, False)

    def together(self, stack, other, names="a and b"):
        """The shape of two stacks that broadcast."""
        try:
            return np.broadcast_shapes(stack, other)
        except ValueError:
            raise ValueError(f"{self.name}: the stacks of {names} must broadcast, got {stack} and "
                             f"{other}") from None

    def tolerance(self, x, argument, ndim=None):
        """`x` as an array of real numbers, of `ndim` dimensions if given."""
        try:
            y = np.asarray(x) if x.__class__ in PLAIN else x
            right = y.dtype.kind in "biuf" and ndim in (None, y.ndim)
        except ValueError:  # a ragged sequence
            right = False
        if not right:
            raise TypeError(f"{self.name}: {argument} must be a number, got {x!r:.60}")
        return y

    def truth(self, x, argument):
        """`x`, a flag: a truth value, or the integer of one."""
        if x.__class__ is bool:
            return x
        if isinstance(x, (int, np.bool_, np.integer)):
            return bool(x)
        raise TypeError(f"{self.name}: {argument} must be True or False, got {x!r:.60}")

    def succeed(self, what, info, stack=()):
        """Raise the LinAlgError of the members whose info is not 0; the wait for the GPU."""
        if info.__class__ not in PLAIN:
            info = info.get()
            _trace.note(synced=1)
        if not (info if info.__class__ is int else info.any()):
            return
        info = np.asarray(info).reshape(stack)
        failed = list(map(tuple, np.argwhere(info).tolist()))
        infos = [int(info[i]) for i in failed]
        members = ", ".join(f"{i[0] if len(i) == 1 else i}: info {k}"
                            for i, k in zip(failed[:8], infos, strict=False))
        more = f" and {len(failed) - 8} more" if len(failed) > 8 else ""
        where = f"members {members}{more} of a stack {stack}" if stack else f"info {infos[0]}"
        error = LinAlgError(f"{self.name}: {what} ({where})")
        error.indices, error.infos = failed, infos
        raise error


def _in_class(x, result):
    """`result` with its arrays of as many dimensions as `x` in the class of `x`, an operand of a
    subclass of ndarray: vectors and matrices, not eigenvalues."""
    if isinstance(result, tuple):
        results = [_in_class(x, y) for y in result]
        return tuple(results) if type(result) is tuple else type(result)(*results)
    return x.__array_wrap__(result) if result.ndim == x.ndim else result


def _solution_in_class(b, x):
    return b.__array_wrap__(x)


def _lstsq_in_class(b, result):
    return *map(b.__array_wrap__, result[:2]), *result[2:]  # x and residuals


def _public(implementation, like=None, in_class=_in_class):
    """The public function of an implementation (see `_routine._function`). Operand `like`, 0 or 1,
    has its class given to results by `in_class`."""
    name = implementation.__name__.lstrip("_")
    implementation.like, implementation.in_class = like, in_class
    function = _routine._function(implementation, partial(_called, f"linalg.{name}"), name)
    function.implementation = implementation
    return function


def _called(name, args, kw):
    return _Caller(name)


def _xp(a):
    """The module of an array: numpy or cupy."""
    return np if a.__class__ is ndarray else _routine.cupy()


def _typed_name(t, name):
    """With its letter; or..., sy... become un..., he... in complex types."""
    if t.is_complex:
        name = {"orgqr": "ungqr", "syevd": "heevd", "syevd_lwork": "heevd_lwork"}.get(name, name)
    return t.letter + name


def _lapack(t, name):
    return getattr(lapack, _typed_name(t, name))


def _batched(t, name):
    return getattr(batched, _typed_name(t, name) + "_batched")


@lru_cache(1000)
def _lwork(letter, name, *arguments):
    """The CPU routine's best workspaces, as LAPACK itself says: (lwork, ...)."""
    *sizes, _ = _lapack(TYPES[letter], name + "_lwork")(*arguments)
    return tuple(int(size.real) for size in sizes)


def _flat(a):
    """A stack with its leading dimensions made one."""
    return a if a.ndim == 3 else a.reshape(prod(a.shape[:-2]), *a.shape[-2:])


def _empty(a, function, **flags):
    """What NumPy's function returns for an array as empty as `a`, on the device of `a`."""
    result = function(np.empty(a.shape, a.dtype), **flags)
    if a.__class__ is ndarray:
        return result
    send = _xp(a).asarray
    if type(result) is tuple:
        return tuple(map(send, result))
    return type(result)(*map(send, result)) if isinstance(result, tuple) else send(result)


# -- systems of equations


def solve(me, a, b):
    """Solve A X = B.

    Parameters
    ----------
    a : (..., n, n) array
    b : (n,) or (..., n, nrhs) array

    Returns
    -------
    x : (n,), (..., n) or (..., n, nrhs) array
        Of the broadcast stack.

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the exactly singular matrices among `a`.

    Notes
    -----
    gesv, gesv_batched: 2/3 n^3 + 2 n^2 nrhs operations a matrix. A matrix that broadcasts over many
    right-hand sides is neither copied for them nor factored again. GPU: synchronises once.
    """
    t, a, b = me.operands(a, b)
    me.square(a)
    b, one = me.columns(b, a.shape[-1])
    columns, restore = _beside(me, a.shape[:-2], b)
    if not b.size:
        x = columns
        me.succeed(_SINGULAR, _batched(t, "getrf")(_flat(a))[2], a.shape[:-2])
    elif a.ndim == 2:
        x, info = _lapack(t, "gesv")(a, columns)[2:]
        me.succeed(_SINGULAR, info)
    else:
        x, info = _batched(t, "gesv")(_flat(a), columns, compute_lu=0)[2:]
        me.succeed(_SINGULAR, info, a.shape[:-2])
    x = restore(x)
    return x[..., 0] if one else x


def _beside(me, stack, b):
    """Right-hand sides (..., n, nrhs) for a stack of matrices, those that meet the same matrix side
    by side: (matrices, n, columns), or (n, columns) for one matrix; and the function that gives a
    solution the shape of the broadcast stack."""
    if not stack and b.ndim == 2:
        return b, _as_it_is
    if b.shape[:-2] == stack:
        return _flat(b), lambda x: x.reshape(b.shape)
    whole = me.together(stack, b.shape[:-2])
    if whole != b.shape[:-2]:
        b = _xp(b).broadcast_to(b, whole + b.shape[-2:])
    own = (1,) * (len(whole) - len(stack)) + stack
    shared = [i for i, size in enumerate(own) if size != whole[i]]
    kept = [i for i in range(len(whole)) if i not in shared]
    order = [*kept, len(whole), *shared, len(whole) + 1]
    apart = b.transpose(order)
    matrices = (prod(apart.shape[:len(kept)]),) if stack else ()
    columns = prod(apart.shape[len(kept) + 1:])
    back = np.argsort(order).tolist()
    return (apart.reshape(*matrices, b.shape[-2], columns),
            lambda x: x.reshape(apart.shape).transpose(back))


def _as_it_is(x):
    return x


def lu_factor(me, a, overwrite_a=False):
    """LU factorization with partial pivoting, P A = L U.

    Parameters
    ----------
    a : (..., m, n) array
        Overwritten if `overwrite_a` and its layout allows.

    Returns
    -------
    lu : (..., m, n) array
        U on and above the diagonal, L below it without its ones.
    piv : (..., min(m, n)) int32 array
        Row j was interchanged with row piv[j], counted from 0.

    Notes
    -----
    SciPy's lu_factor. getrf, getrf_batched: m n^2 - n^3/3 multiplications and additions. A singular
    matrix has its factors too, so nothing is raised and nothing synchronises; lu_solve looks.
    """
    t, a = me.operand(a)
    me.matrices(a)
    overwrite_a = me.truth(overwrite_a, "overwrite_a")
    if a.ndim == 2:
        return tuple(_lapack(t, "getrf")(a, overwrite_a=overwrite_a)[:2])
    lu, piv, _ = _batched(t, "getrf")(_flat(a), overwrite_a=overwrite_a)
    return lu.reshape(a.shape), piv.reshape(a.shape[:-2] + piv.shape[-1:])


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False):
    """Solve op(A) X = B with the factors of lu_factor.

    Parameters
    ----------
    lu_and_piv : (lu, piv)
        (..., n, n) and (..., n), as lu_factor returns them.
    b : (n,) or (..., n, nrhs) array
        May be overwritten by X if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : (n,), (..., n) or (..., n, nrhs) array

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the members with an exact zero on the diagonal of U; info is its place, from 1.

    Notes
    -----
    getrs, getrs_batched: 2 n^2 nrhs operations. GPU: synchronises once.
    """
    if lu_and_piv.__class__ not in (tuple, list) or len(lu_and_piv) != 2:
        raise TypeError("linalg.lu_solve: lu_and_piv must be the pair that lu_factor returns, got "
                        f"{lu_and_piv!r:.60}")
    return _lu_solve(*lu_and_piv, b, trans, overwrite_b)


def _lu_solve(me, lu, piv, b, trans, overwrite_b):
    t, lu, b = me.operands(lu, b, ("lu", "b"))
    me.square(lu, "lu")
    piv = np.asarray(piv) if piv.__class__ in PLAIN else piv
    if piv.shape != lu.shape[:-1] or piv.dtype.kind not in "iu":
        me.refuse("piv", (piv.shape, piv.dtype.name), f"integers of shape {lu.shape[:-1]}")
    b, one = me.columns(b, lu.shape[-1])
    trans = me.choice(trans, "trans", (0, 1, 2))
    stack = lu.shape[:-2]
    overwrite_b = me.truth(overwrite_b, "overwrite_b") and b.shape[:-2] == stack
    columns, restore = _beside(me, stack, b)
    if lu.size:
        me.succeed(_SINGULAR, _first_zero(lu), stack)
    if not b.size:
        x = columns
    elif lu.ndim == 2:
        x, _ = _lapack(t, "getrs")(lu, piv, columns, trans, overwrite_b)
    else:
        piv = piv.reshape(-1, piv.shape[-1])
        x, _ = _batched(t, "getrs")(_flat(lu), piv, columns, trans, overwrite_b)
    x = restore(x)
    return x[..., 0] if one else x


def _first_zero(lu):
    """info of factors: the place, from 1, of the first zero on their diagonal, else 0."""
    zero = lu.diagonal(axis1=-2, axis2=-1) == 0
    return zero.any(-1) * (zero.argmax(-1) + 1)


def cholesky(me, a, /, *, upper=False):
    """Cholesky factorization, A = L L^H, or U^H U if `upper`.

    Parameters
    ----------
    a : (..., n, n) array
        Hermitian, positive definite; only the triangle of the result is read.
    upper : bool

    Returns
    -------
    l : (..., n, n) array
        The factor, zero in the other triangle, in the memory order of `a`.

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the members that are not positive definite; info is the order of their first leading
        minor that is not.

    Notes
    -----
    potrf, potrf_batched: n^3/3 operations. GPU: synchronises once.
    """
    t, a = me.operand(a)
    me.square(a)
    upper = me.truth(upper, "upper")
    if not a.size:
        return _empty(a, _numpy.cholesky)
    if a.ndim == 2:
        by_rows = a.flags.c_contiguous  # then its transpose, conj(A), is factored: (L^H)^T
        lower = upper is by_rows
        c, info = _lapack(t, "potrf")(a.T if by_rows else a, int(lower), 1)
        me.succeed(_INDEFINITE, info)
        return c.T if by_rows else c
    c, info = _batched(t, "potrf")(_flat(a), int(not upper))
    me.succeed(_INDEFINITE, info, a.shape[:-2])
    xp, i = _xp(a), _xp(a).arange(a.shape[-1])
    xp.copyto(c, t.dtype.type(0), where=i[:, None] > i if upper else i[:, None] < i)
    return c.reshape(a.shape)


def inv(me, a):
    """The inverse of A.

    Parameters
    ----------
    a : (..., n, n) array

    Returns
    -------
    inverse : (..., n, n) array

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the exactly singular members.

    Notes
    -----
    One matrix: getrf and getri, 2 n^3 operations. A stack: gesv_batched with the identity, 8/3 n^3.
    GPU: synchronises once.
    """
    t, a = me.operand(a)
    me.square(a)
    if not a.size:
        return _empty(a, _numpy.inv)
    if a.ndim == 2:
        return _inverse(me, t, a)
    eye = _xp(a).eye(a.shape[-1], dtype=t.dtype)
    flat = _flat(a)
    x, info = _batched(t, "gesv")(flat, _xp(a).broadcast_to(eye, flat.shape))[2:]
    me.succeed(_SINGULAR, info, a.shape[:-2])
    return x.reshape(a.shape)


def _inverse(me, t, a):
    by_rows = a.flags.c_contiguous  # then the inverse of its transpose is found, and transposed
    lu, piv, info = _lapack(t, "getrf")(a.T if by_rows else a)
    me.succeed(_SINGULAR, info)
    best = _lwork(t.letter, "getri", len(a)) if a.__class__ is ndarray else ()
    x, _ = _lapack(t, "getri")(lu, piv, *best, overwrite_lu=1)
    return x.T if by_rows else x


def slogdet(me, a):
    """The sign (complex: phase) of det A, and log |det A|.

    Parameters
    ----------
    a : (..., n, n) array

    Returns
    -------
    sign : (...) array
        0 for a singular matrix.
    logabsdet : (...) real array
        -inf for a singular matrix; never overflows.

    Notes
    -----
    2/3 n^3 operations: getrf or getrf_batched, and the parity of the interchanges; of one NumPy
    array NumPy's function. Raises nothing and synchronises nothing.
    """
    t, a = me.operand(a)
    me.square(a)
    if not a.size:
        return _empty(a, _numpy.slogdet)
    if a.ndim > 2:
        return SlogdetResult(*(x.reshape(a.shape[:-2]) for x in _batched(t, "slogdet")(_flat(a))))
    if a.__class__ is ndarray:
        return _numpy.slogdet(a)
    return SlogdetResult(*_sign_and_log(t, a))


def det(me, a):
    """The determinant of A.

    Parameters
    ----------
    a : (..., n, n) array

    Returns
    -------
    det : (...) array
        0 for a singular matrix; over- and underflows where the number does, not before.

    Notes
    -----
    As slogdet.
    """
    t, a = me.operand(a)
    me.square(a)
    if not a.size:
        return _empty(a, _numpy.det)
    if a.ndim > 2:
        return _batched(t, "det")(_flat(a)).reshape(a.shape[:-2])
    if a.__class__ is ndarray:
        return _numpy.det(a)
    sign, log = _sign_and_log(t, a)
    return sign * _xp(a).exp(log)


def _sign_and_log(t, a):
    lu, piv, _ = _lapack(t, "getrf")(a)
    sign, log = batched.lu.sign_and_log(_xp(a), t, lu[None], piv[None])
    return sign[0], log[0]


# -- orthogonal factorizations, eigenvalues and singular values


def qr(me, a, mode="reduced"):
    """QR factorization, A = Q R.

    Parameters
    ----------
    a : (..., m, n) array
    mode : {'reduced', 'complete', 'r', 'raw'}
        With k = min(m, n): Q (m, k) and R (k, n); Q (m, m) and R (m, n); R (k, n) alone; the
        reflectors, transposed to (n, m), and tau (k,).

    Returns
    -------
    QRResult(Q, R), or R, or (h, tau), by `mode`

    Notes
    -----
    geqrf and orgqr, geqrf_batched and orgqr_batched: 2 n^2 (m - n/3) operations each. GPU: no
    synchronisation.
    """
    t, a = me.operand(a)
    me.matrices(a)
    mode = me.choice(mode, "mode", ("reduced", "complete", "r", "raw"))
    if not a.size:
        return _empty(a, _numpy.qr, mode=mode)
    one, best = a.ndim == 2, a.ndim == 2 and a.__class__ is ndarray
    m, n = a.shape[-2:]
    k = min(m, n)
    h, tau = (_lapack(t, "geqrf")(a, *(_lwork(t.letter, "geqrf", m, n) if best else ())) if one
              else _batched(t, "geqrf")(_flat(a)))[:2]
    h, tau = h.reshape(a.shape), tau.reshape(*a.shape[:-2], k)
    if mode == "raw":
        return h.swapaxes(-1, -2), tau
    columns = m if mode == "complete" and m > n else k
    r = _xp(a).triu(h[..., :columns, :])
    if mode == "r":
        return r
    q = _xp(a).empty((*a.shape[:-2], columns, m), t.dtype).swapaxes(-1, -2)
    q[..., :n] = h[..., :columns]
    if one:
        best = _lwork(t.letter, "geqrf", m, columns) if best else ()
        return QRResult(_lapack(t, "orgqr")(q, tau, *best, overwrite_a=1)[0], r)
    _batched(t, "orgqr")(_flat(q), tau.reshape(-1, k), 1)
    return QRResult(q, r)


def eigh(me, a, UPLO="L"):
    """Eigenvalues, ascending, and eigenvectors of a Hermitian A.

    Parameters
    ----------
    a : (..., n, n) array
    UPLO : {'L', 'U'}
        The triangle that is read.

    Returns
    -------
    eigenvalues : (..., n) real array
    eigenvectors : (..., n, n) array
        v[:, i] belongs to eigenvalue i.

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the members whose iteration did not converge.

    Notes
    -----
    syevd, heevd, syevd_batched, heevd_batched: about 9 n^3 operations. GPU: synchronises once.
    """
    t, a, lower = _hermitian(me, a, UPLO)
    if not a.size:
        return _empty(a, _numpy.eigh)
    if a.ndim > 2:
        return EighResult(*_syevd_stack(me, t, 1, lower, a))
    return EighResult(*_syevd(me, t, 1, lower, a))


def eigvalsh(me, a, UPLO="L"):
    """Eigenvalues of a Hermitian A, ascending.

    Parameters
    ----------
    a : (..., n, n) array
    UPLO : {'L', 'U'}
        The triangle that is read.

    Returns
    -------
    eigenvalues : (..., n) real array

    Notes
    -----
    As eigh, in 4/3 n^3 operations.
    """
    t, a, lower = _hermitian(me, a, UPLO)
    if not a.size:
        return _empty(a, _numpy.eigvalsh)
    if a.ndim > 2:
        return _syevd_stack(me, t, 0, lower, a)[0]
    return _syevd(me, t, 0, lower, a)[0]


def _hermitian(me, a, UPLO):
    t, a = me.operand(a)
    me.square(a)
    if UPLO.__class__ is not str or UPLO.upper() not in ("L", "U"):
        me.illegal("UPLO", UPLO, "'L' or 'U'")
    return t, a, int(UPLO in "Ll")


def _syevd(me, t, vectors, lower, a):
    """w and v of one matrix; of nan or infinities, with which LAPACK ends as with others, none."""
    cpu = a.__class__ is ndarray
    best = _lwork(t.letter, "syevd", len(a), vectors, lower) if cpu else ()
    w, v, info = _lapack(t, "syevd")(a, vectors, lower, *best)
    lost = (w != w).any()
    me.succeed(_NO_CONVERGENCE, max(int(info), int(lost)) if cpu else _xp(a).maximum(info, lost))
    return w, v


def _syevd_stack(me, t, vectors, lower, a):
    """w and v of every member of a stack."""
    *results, info = _batched(t, "syevd")(_flat(a), vectors, lower)
    me.succeed(_NO_CONVERGENCE, info, a.shape[:-2])
    return [x.reshape(a.shape[:-2] + x.shape[1:]) for x in results[:1 + vectors]]


def svd(me, a, full_matrices=True, compute_uv=True, hermitian=False):
    """Singular value decomposition, A = U diag(S) Vh.

    Parameters
    ----------
    a : (..., m, n) array
    full_matrices : bool
        U (m, m) and Vh (n, n); else U (m, k) and Vh (k, n) with k = min(m, n).
    compute_uv : bool
        False: S alone.
    hermitian : bool
        Take A for Hermitian (its lower triangle is read): by its eigenvalues, which is faster.

    Returns
    -------
    SVDResult(U, S, Vh), or S, descending

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the members whose iteration did not converge.

    Notes
    -----
    gesdd, gesvd_batched. GPU: synchronises once.
    """
    t, a = me.operand(a)
    me.matrices(a)
    full_matrices = me.truth(full_matrices, "full_matrices")
    compute_uv = me.truth(compute_uv, "compute_uv")
    flags = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    if me.truth(hermitian, "hermitian"):
        return _svd_hermitian(me, t, a, compute_uv)
    if not a.size:
        return _empty(a, _numpy.svd, **flags)
    vectors, full = int(compute_uv), int(full_matrices)
    if a.ndim > 2:
        *results, info = _batched(t, "gesvd")(_flat(a), vectors, full)
        me.succeed(_NO_CONVERGENCE, info, a.shape[:-2])
        u, s, vh = (x.reshape(a.shape[:-2] + x.shape[1:]) for x in results)
    else:
        u, s, vh, info = _gesdd(t, vectors, full, a)
        me.succeed(_NO_CONVERGENCE, info)
    return SVDResult(u, s, vh) if compute_uv else s


def _gesdd(t, vectors, full, a):
    cpu = a.__class__ is ndarray
    best = _lwork(t.letter, "gesdd", *a.shape, vectors, full) if cpu else ()
    return _lapack(t, "gesdd")(a, vectors, full, *best)


def _svd_hermitian(me, t, a, compute_uv):
    me.square(a)
    xp = _xp(a)
    if not compute_uv:
        return xp.sort(abs(eigvalsh.implementation(me, a)))[..., ::-1]
    w, u = eigh.implementation(me, a)
    order = xp.argsort(-abs(w))
    w = xp.take_along_axis(w, order, -1)
    u = xp.take_along_axis(u, order[..., None, :], -1)
    vh = (u * xp.copysign(t.real.type(1), w)[..., None, :]).conj().swapaxes(-1, -2)
    return SVDResult(u, abs(w), vh)


_UNSET = object()


def pinv(me, a, rcond=None, hermitian=False, *, rtol=_UNSET):
    """The pseudo-inverse of A (Moore-Penrose).

    Parameters
    ----------
    a : (..., m, n) array
    rcond, rtol : float or (...) array, optional
        Singular values up to this times the largest count as 0: 1e-15 in double precision, and
        max(m, n) eps in single, or if rtol is None.
    hermitian : bool
        As svd.

    Returns
    -------
    pinv : (..., n, m) array

    Notes
    -----
    svd, and one product.
    """
    t, a = me.operand(a)
    me.matrices(a)
    if rcond is not None and rtol is not _UNSET:
        raise ValueError(f"linalg.pinv: `rtol` and `rcond` can't be both set, got {rtol!r} and "
                         f"{rcond!r}")
    argument, limit = ("rcond", rcond) if rtol is _UNSET else ("rtol", rtol)
    if limit is None:
        limit = (1e-15 if rtol is _UNSET and t.real == np.float64
                 else max(a.shape[-2:]) * np.finfo(t.dtype).eps)
    xp = _xp(a)
    limit = xp.asarray(me.tolerance(limit, argument), t.real)
    if limit.ndim:
        me.together(a.shape[:-2], limit.shape, f"a and {argument}")
    hermitian = me.truth(hermitian, "hermitian")
    if not a.size:
        return xp.empty(a.shape[:-2] + a.shape[:-3:-1], t.dtype)
    u, s, vh = svd.implementation(me, a, full_matrices=False, hermitian=hermitian)
    cutoff = limit[..., None] * s.max(-1, keepdims=True)
    large = s > cutoff
    inverse = large / xp.where(large, s, t.real.type(1))
    return vh.conj().swapaxes(-1, -2) @ (inverse[..., None] * u.conj().swapaxes(-1, -2))


def lstsq(me, a, b, rcond=None):
    """The x of least norm that minimises |b - A x|.

    Parameters
    ----------
    a : (..., m, n) array
    b : (m,) or (..., m, nrhs) array
    rcond : float, optional
        Singular values up to this times the largest count as 0; max(m, n) eps if None, eps / 2
        if negative.

    Returns
    -------
    x : (n,), (..., n) or (..., n, nrhs) array
    residuals : (nrhs,) or (..., nrhs) array
        |b - A x|^2 by column; (0,) where A is not of rank n or m <= n. In a stack: nan for the
        members not of rank n, and (..., 0) if m <= n.
    rank : int, or (...) integer array
    s : (min(m, n),) or (..., min(m, n)) array
        The singular values, descending.

    Raises
    ------
    numpy.linalg.LinAlgError
        Names the members whose iteration did not converge.

    Notes
    -----
    One matrix: gelsd on the CPU, gesdd and products on the GPU. Stacks, which NumPy's lstsq does
    not take: gesvd_batched and products; a matrix that broadcasts over many right-hand sides is
    decomposed once. GPU: synchronises once.
    """
    t, a, b = me.operands(a, b)
    me.matrices(a)
    b, one = me.columns(b, a.shape[-2])
    eps = float(np.finfo(t.dtype).eps)
    rcond = rcond if rcond is None else float(me.tolerance(rcond, "rcond", 0))
    rcond = eps * max(a.shape[-2:]) if rcond is None else eps / 2 if rcond < 0 else rcond
    whole = me.together(a.shape[:-2], b.shape[:-2])
    if whole:
        x, residuals, rank, s = _lstsq_stack(me, t, a, b, rcond, whole)
    else:
        x, residuals, rank, s = _lstsq_one(me, t, a, b, rcond)
    return (x[..., 0] if one else x), residuals, rank, s


def _lstsq_one(me, t, a, b, rcond):
    x, residuals, rank, s, info = _minimise(t, a, b, rcond)
    if a.__class__ is not ndarray:
        info, rank = _xp(a).stack([_xp(a).asarray(info), rank]).get()
        _trace.note(synced=1)
    me.succeed(_NO_CONVERGENCE, int(info))
    m, n = a.shape
    return x, residuals if rank == n and m > n else residuals[:0], int(rank), s


def _lstsq_stack(me, t, a, b, rcond, whole):
    xp, (m, n) = _xp(a), a.shape[-2:]
    u, s, vh = svd.implementation(me, a, full_matrices=False)
    x, residuals, rank = _of_svd(a, b, u, s, vh, rcond)
    rank, s = (xp.broadcast_to(y, whole + y.shape[a.ndim - 2:]).copy() for y in (rank, s))
    residuals = xp.where(rank[..., None] == n, residuals, t.real.type(np.nan))
    return x, residuals if m > n else residuals[..., :0], rank, s


def _minimise(t, a, b, rcond):
    """x, |b - A x|^2 (if rank is n < m), rank, s and info of one least squares problem."""
    xp, (m, n) = _xp(a), a.shape
    if not a.size:
        rank = xp.zeros((), np.int32)
        return xp.zeros((n, b.shape[1]), t.dtype), _squares(b), rank, xp.zeros(0, t.real), 0
    if not b.size:  # LAPACK wants one
        x, residuals, *rest = _minimise(t, a, xp.zeros((m, 1), t.dtype), rcond)
        return x[:, :0], residuals[:0], *rest
    return (_gelsd if xp is np else _by_svd)(t, a, b, rcond)


def _gelsd(t, a, b, rcond):
    (m, n), nrhs = a.shape, b.shape[1]
    sizes = _lwork(t.letter, "gelsd", m, n, nrhs, rcond)
    x = np.zeros((max(m, n), nrhs), t.dtype, order="F")
    x[:m] = b
    x, s, rank, info = _lapack(t, "gelsd")(a, x, *sizes, rcond, 0, 1)
    return x[:n], _squares(x[n:]), rank, s, info


def _by_svd(t, a, b, rcond):
    u, s, vh, info = _gesdd(t, 1, 0, a)
    x, residuals, rank = _of_svd(a, b, u, s, vh, rcond)
    return x, residuals, rank, s, info


def _of_svd(a, b, u, s, vh, rcond):
    """x, |b - A x|^2 and rank; A = U diag(s) Vh and b broadcast."""
    large = s > rcond * s[..., :1]
    inverse = large / _xp(a).where(large, s, s.dtype.type(1))
    x = vh.conj().swapaxes(-1, -2) @ (inverse[..., None] * (u.conj().swapaxes(-1, -2) @ b))
    return x, _squares(b - a @ x), large.sum(-1).astype(np.int32)


def _squares(x):
    """The sums of |x|^2 by column."""
    return (x.real ** 2 + x.imag ** 2).sum(-2)


_lu_solve, lu_factor, det, slogdet, eigvalsh = map(
    _public, (_lu_solve, lu_factor, det, slogdet, eigvalsh))
cholesky, inv, qr, eigh, svd, pinv = (
    _public(f, 0) for f in (cholesky, inv, qr, eigh, svd, pinv))
solve, lstsq = _public(solve, 1, _solution_in_class), _public(lstsq, 1, _lstsq_in_class)

__all__ = ["solve", "cholesky", "lu_factor", "lu_solve", "qr", "lstsq", "inv", "det", "slogdet",
           "eigh", "eigvalsh", "svd", "pinv"]
