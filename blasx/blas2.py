"""BLAS level 2: a matrix and vectors.

Vectors are taken as in level 1: elements `inc` apart from the element `off` on. Of a symmetric,
Hermitian or triangular matrix only the triangle that `lower` names is read. A band matrix has its
diagonals in the rows of an array, element (i, j) in row ku + i - j of column j; a packed one has
the columns of its triangle one after the other in a vector.

CPU: SciPy's wrappers, and BLAS itself in place of views. GPU: cuBLAS in the current stream,
without a synchronisation; vectors may have any stride. Full matrices that lie by rows are passed
transposed, and copied where that would need a conjugate (trans = 2, Hermitian ones).

Dongarra, Du Croz, Hammarling, Hanson: An Extended Set of Fortran Basic Linear Algebra
Subprograms, 1988.
"""

import numpy as np

from ._lapack import by_columns, column_major, gathered, ld, turned
from ._routine import public, typed
from .blas1 import (
    LONGEST,
    as_given,
    begin,
    contiguous,
    in_memory,
    increment,
    on_gpu,
    part,
    scattered,
    stored,
    target,
)

FLAG = (0, 1)
TRANS = (0, 1, 2)


# -- y := alpha op(A) x + beta y


def gemv(me, alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, trans=0,
         overwrite_y=0):
    """y := alpha op(A) x + beta y.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and x unread, beta = 0 leaves y unread, whatever they hold.
    a : (m, n) array
    x : (*,) array
        n elements are taken, m if `trans`.
    y : (*,) array, optional
        m elements, n if `trans`; zeros without it. Overwritten if `overwrite_y`: in place, views
        of any stride included.
    offx, incx, offy, incy : int
        Where the vectors begin, and how far apart their elements are.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    y : array of the shape of y

    Notes
    -----
    2 m n operations.
    """
    a, x = me.matrix(a, "a"), me.vector(x, "x")
    trans = me.choice(trans, "trans", TRANS)
    m, n = a.shape
    rows, cols = (n, m) if trans else (m, n)
    p = _Product(me, alpha, a, x, cols, offx, incx, beta, y, rows, offy, incy, overwrite_y)
    if p.on_cpu:
        if p.scipy_can:
            a, op = turned(a, trans)
            return p.shaped(me.scipy(p.alpha, a, x, p.beta, p.y, p.offx, p.incx, p.offy, p.incy,
                                     op, overwrite_y))
        return p.run_cpu(("NTC"[trans], m, n), a)
    if p.trivial:
        return p.scaled()
    from . import _cuda as gpu
    at, lda, op, a = gpu.operand(a, trans)
    return p.run_gpu((op, *(a.shape if column_major(a) else a.shape[::-1])), at, lda)


def gbmv(me, m, n, kl, ku, alpha, a, x, incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0, trans=0,
         overwrite_y=0):
    """y := alpha op(A) x + beta y, A an (m, n) band matrix.

    As `gemv`; `a` is (kl + ku + 1 or more, n) and holds kl diagonals below and ku above the main
    one. 2 n (kl + ku + 1) operations.
    """
    a, x = me.matrix(a, "a"), me.vector(x, "x")
    trans = me.choice(trans, "trans", TRANS)
    m, n = me.integer(m, "m", 0), me.integer(n, "n", 0)
    kl, ku = me.integer(kl, "kl", 0), me.integer(ku, "ku", 0)
    if a.shape[1] != n or a.shape[0] <= kl + ku:
        me.illegal("a", a.shape, f"of {n} columns and at least {kl + ku + 1} rows")
    rows, cols = (n, m) if trans else (m, n)
    p = _Product(me, alpha, a, x, cols, offx, incx, beta, y, rows, offy, incy, overwrite_y)
    if p.on_cpu:
        if p.scipy_can and m > kl + ku:
            return p.shaped(me.scipy(m, n, kl, ku, p.alpha, a, x, p.incx, p.offx, p.beta, p.y,
                                     p.incy, p.offy, trans, overwrite_y))
        return p.run_cpu(("NTC"[trans], m, n, kl, ku), a)
    if p.trivial:
        return p.scaled()
    a = by_columns(a)
    return p.run_gpu((trans, m, n, kl, ku), a.data.ptr, ld(a))


def symv(me, alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, lower=0,
         overwrite_y=0):
    """y := alpha A x + beta y, A symmetric.

    As `gemv`, `a` being (n, n). The complex names are LAPACK's. 2 n^2 operations.
    """
    return _symmetric(me, alpha, a, x, beta, y, offx, incx, offy, incy, lower, overwrite_y)


def hemv(me, alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, lower=0,
         overwrite_y=0):
    """y := alpha A x + beta y, A Hermitian; as `symv`.

    The imaginary parts of A's diagonal are taken as zero.
    """
    return _symmetric(me, alpha, a, x, beta, y, offx, incx, offy, incy, lower, overwrite_y)


def _symmetric(me, alpha, a, x, beta, y, offx, incx, offy, incy, lower, overwrite_y):
    a, x = me.square(a, "a"), me.vector(x, "x")
    lower = me.choice(lower, "lower", FLAG)
    n = a.shape[0]
    p = _Product(me, alpha, a, x, n, offx, incx, beta, y, n, offy, incy, overwrite_y)
    if p.on_cpu:
        if p.scipy_can and me.scipy:
            if me.name[1:] == "symv":
                a, transposed = turned(a)
                lower ^= transposed
            return p.shaped(me.scipy(p.alpha, a, x, p.beta, p.y, p.offx, p.incx, p.offy, p.incy,
                                     lower, overwrite_y))
        return p.run_cpu(("UL"[lower], n), a)
    if p.trivial:
        return p.scaled()
    from . import _cuda as gpu
    a = by_columns(a) if me.name[1:] == "hemv" else a
    at, lda, uplo, _, a = gpu.half(a, lower)
    return p.run_gpu((uplo, n), at, lda)


def sbmv(me, k, alpha, a, x, incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0, lower=0,
         overwrite_y=0):
    """y := alpha A x + beta y, A an (n, n) symmetric band matrix.

    As `gemv`; `a` is (k + 1 or more, n) and holds the main diagonal and k others, above it or,
    if `lower`, below. 2 n (2 k + 1) operations.
    """
    return _symmetric_band(me, k, alpha, a, x, incx, offx, beta, y, incy, offy, lower, overwrite_y)


def hbmv(me, k, alpha, a, x, incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0, lower=0,
         overwrite_y=0):
    """y := alpha A x + beta y, A an (n, n) Hermitian band matrix; as `sbmv`."""
    return _symmetric_band(me, k, alpha, a, x, incx, offx, beta, y, incy, offy, lower, overwrite_y)


def _symmetric_band(me, k, alpha, a, x, incx, offx, beta, y, incy, offy, lower, overwrite_y):
    a, x = me.matrix(a, "a"), me.vector(x, "x")
    lower = me.choice(lower, "lower", FLAG)
    k, n = me.integer(k, "k", 0, max(a.shape[0] - 1, 0)), a.shape[1]
    p = _Product(me, alpha, a, x, n, offx, incx, beta, y, n, offy, incy, overwrite_y)
    if p.on_cpu:
        if p.scipy_can:
            return p.shaped(me.scipy(k, p.alpha, a, x, p.incx, p.offx, p.beta, p.y, p.incy,
                                     p.offy, lower, overwrite_y))
        return p.run_cpu(("UL"[lower], n, k), a)
    if p.trivial:
        return p.scaled()
    from . import _cuda as gpu
    a = by_columns(a)
    return p.run_gpu((gpu.fill(lower), n, k), a.data.ptr, ld(a))


def spmv(me, n, alpha, ap, x, incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0, lower=0,
         overwrite_y=0):
    """y := alpha A x + beta y, A an (n, n) symmetric matrix, packed in `ap`.

    As `gemv`; `ap` has n (n + 1) / 2 elements or more. 2 n^2 operations. The complex names are
    LAPACK's; on the GPU they run on the CPU, with a TransferWarning.
    """
    return _packed(me, n, alpha, ap, x, incx, offx, beta, y, incy, offy, lower, overwrite_y)


def hpmv(me, n, alpha, ap, x, incx=1, offx=0, beta=0.0, y=None, incy=1, offy=0, lower=0,
         overwrite_y=0):
    """y := alpha A x + beta y, A an (n, n) Hermitian matrix, packed in `ap`; as `spmv`."""
    return _packed(me, n, alpha, ap, x, incx, offx, beta, y, incy, offy, lower, overwrite_y)


def _packed(me, n, alpha, ap, x, incx, offx, beta, y, incy, offy, lower, overwrite_y):
    (ap, n), x = _triangle(me, ap, n), me.vector(x, "x")
    lower = me.choice(lower, "lower", FLAG)
    p = _Product(me, alpha, ap, x, n, offx, incx, beta, y, n, offy, incy, overwrite_y)
    if p.on_cpu:
        if p.scipy_can:
            return p.shaped(me.scipy(n, p.alpha, ap, x, p.incx, p.offx, p.beta, p.y, p.incy,
                                     p.offy, lower, overwrite_y))
        return p.run_cpu(("UL"[lower], n), ap)
    if p.trivial:
        return p.scaled()
    if me.is_complex and me.name[1:] == "spmv":
        return p.result(me.through_cpu(n, p.alpha, ap, x, p.incx, p.offx, p.beta, p.y, p.incy,
                                       p.offy, lower))
    from . import _cuda as gpu
    ap = contiguous(ap)
    return p.run_gpu((gpu.fill(lower), n), ap.data.ptr)


class _Product:
    """The vectors and scalars of y := alpha op(A) x + beta y, checked; all that differs between
    the matrices' storage stays with the routines."""

    def __init__(self, me, alpha, a, x, cols, offx, incx, beta, y, rows, offy, incy, overwrite_y):
        self.me, self.alpha, self.beta = me, me.number(alpha, "alpha"), me.number(beta, "beta")
        self.x, self.y, self.given, self.overwrite = x, y, y, overwrite_y
        self.offx, self.incx = _inside(me, x, "x", cols, offx, incx)
        if y is None:
            me.allows(overwrite_y, "y")
            offy = me.integer(offy, "offy", 0, LONGEST)
            incy = increment(me, incy, "incy")
        else:
            y = self.y = me.vector(y, "y", overwrite=overwrite_y)
            offy, incy = _inside(me, y, "y", rows, offy, incy)
            if overwrite_y:
                used = part(x, cols, self.offx, self.incx)
                me.distinct(part(y, rows, offy, incy), "y", a=a, x=used)
        self.offy, self.incy, self.rows, self.cols = offy, incy, rows, cols
        self.on_cpu = me.on_cpu(a, x, y)
        self.trivial = self.alpha == 0 or not (rows and cols)
        self.scipy_can = self.on_cpu and rows and cols and not (
            y is not None and scattered(y, overwrite_y))

    def target(self, module):
        """The y to be written: itself where it can be overwritten, else a copy, or zeros."""
        if self.y is None:
            length = (self.rows - 1) * abs(self.incy) + 1 + self.offy if self.rows else 0
            return module.zeros(length, self.me.dtype)
        return target(self.y, self.incy, self.overwrite)

    def shaped(self, y):
        """A result in the shape of the y that was given."""
        return y if self.y is self.given else as_given(y, self.given)

    def result(self, y):
        """A y that was written, in the place and the shape of the y that was given."""
        return self.shaped(stored(y, self.y, self.overwrite))

    def scaled(self):
        """beta y: all that is left where alpha or the matrix is zero."""
        y = self.target(_arrays_of(self.x))
        v = part(y, self.rows, self.offy, self.incy)
        if self.beta == 0:
            v[...] = 0
        elif self.beta != 1:
            v *= self.beta
        return self.result(y)

    def run_cpu(self, head, a):
        """BLAS itself: flag and sizes, alpha, A, x, beta, y."""
        if self.trivial:
            return self.scaled()
        me, y = self.me, self.target(np)
        me.fortran(me.name[1:], *head, me.scalar(self.alpha), *_matrix(a),
                   *in_memory(self.x, self.cols, self.offx, self.incx), me.scalar(self.beta),
                   *in_memory(y, self.rows, self.offy, self.incy))
        return self.result(y)

    def run_gpu(self, head, *matrix):
        """The same order of arguments, for cuBLAS."""
        from . import _cuda as gpu
        me, y = self.me, self.target(gpu.cupy)
        px, sx, x = on_gpu(self.x, self.cols, self.offx, self.incx)
        py, sy, y_ = on_gpu(y, self.rows, self.offy, self.incy)
        gpu.blas(me.cublas, *head, gpu.scalar(me, self.alpha), *matrix, px, sx,
                 gpu.scalar(me, self.beta), py, sy)
        return self.result(y)


# -- rank-one and rank-two updates


def ger(me, alpha, x, y, incx=1, incy=1, a=None, overwrite_x=1, overwrite_y=1, overwrite_a=0):
    """A := alpha x y^T + A.

    Parameters
    ----------
    alpha : number
        alpha = 0 leaves x and y unread, whatever they hold.
    x, y : (m,), (n,) arrays
        Never overwritten, whatever `overwrite_x` and `overwrite_y`.
    incx, incy : {1, -1}
        -1: the elements count from the end.
    a : (m, n) array, optional
        Zeros without it. Overwritten if `overwrite_a`: in place where column-major and
        aligned, views included.

    Returns
    -------
    a : (m, n) array, column-major unless a GPU array was overwritten by rows

    Notes
    -----
    2 m n operations.
    """
    return _rank_one(me, alpha, x, y, incx, incy, a, overwrite_x, overwrite_y, overwrite_a)


def geru(me, alpha, x, y, incx=1, incy=1, a=None, overwrite_x=1, overwrite_y=1, overwrite_a=0):
    """A := alpha x y^T + A, complex; as `ger`."""
    return _rank_one(me, alpha, x, y, incx, incy, a, overwrite_x, overwrite_y, overwrite_a)


def gerc(me, alpha, x, y, incx=1, incy=1, a=None, overwrite_x=1, overwrite_y=1, overwrite_a=0):
    """A := alpha x y^H + A, complex; as `ger`."""
    return _rank_one(me, alpha, x, y, incx, incy, a, overwrite_x, overwrite_y, overwrite_a)


def _rank_one(me, alpha, x, y, incx, incy, a, overwrite_x, overwrite_y, overwrite_a):
    me.allows(overwrite_x, "x")
    me.allows(overwrite_y, "y")
    alpha, x, y = me.number(alpha, "alpha"), me.vector(x, "x"), me.vector(y, "y")
    incx, incy = me.choice(incx, "incx", (1, -1)), me.choice(incy, "incy", (1, -1))
    m, n = x.shape[0], y.shape[0]
    a, one = _updated(me, a, (m, n), overwrite_a, x=x, y=y)
    if me.on_cpu(x, y, a):
        if m and n and not (a is not None and me.strided(a, overwrite_a)):
            may = 1  # x and y "may be overwritten": they are not, and so not copied either
            a = me.scipy(alpha, x, y, incx, incy, a, may, may, overwrite_a)
        else:
            a = _update_cpu(me, (m, n), alpha, a, (m, n), overwrite_a,
                            (x, m, 0, incx), (y, n, 0, incy))
    else:
        a = _update_gpu(me, (m, n), None, alpha, a, (m, n), overwrite_a,
                        (x, m, 0, incx), (y, n, 0, incy))
    return a.reshape(-1) if one else a


def syr(me, alpha, x, lower=0, incx=1, offx=0, n=None, a=None, overwrite_a=0):
    """A := alpha x x^T + A, one triangle of A.

    Parameters
    ----------
    alpha : number
        alpha = 0 leaves x unread, whatever it holds.
    x : (*,) array
    lower : {0, 1}
        The triangle of A that is updated; the other stays as it was, zero without `a`.
    incx, offx : int
        How far apart the elements of x are, and where they begin.
    n : int, optional
        The order of A, without it the number of elements that x has.
    a : (n, n) array, optional
        Overwritten if `overwrite_a`: in place where column-major and aligned, views included.

    Returns
    -------
    a : (n, n) array, column-major unless a GPU array was overwritten by rows

    Notes
    -----
    n^2 operations. The complex names are LAPACK's.
    """
    return _rank_n(me, me.number(alpha, "alpha"), x, None, lower, incx, offx, 1, 0, n, a,
                   overwrite_a)


def her(me, alpha, x, lower=0, incx=1, offx=0, n=None, a=None, overwrite_a=0):
    """A := alpha x x^H + A, one triangle of A, alpha real; as `syr`.

    On the GPU an A by rows is copied.
    """
    return _rank_n(me, me.real_number(alpha, "alpha"), x, None, lower, incx, offx, 1, 0, n, a,
                   overwrite_a)


def syr2(me, alpha, x, y, lower=0, incx=1, offx=0, incy=1, offy=0, n=None, a=None, overwrite_a=0):
    """A := alpha (x y^T + y x^T) + A, one triangle of A; as `syr`, with 2 n^2 operations."""
    return _rank_n(me, me.number(alpha, "alpha"), x, me.vector(y, "y"), lower, incx, offx, incy,
                   offy, n, a, overwrite_a)


def her2(me, alpha, x, y, lower=0, incx=1, offx=0, incy=1, offy=0, n=None, a=None, overwrite_a=0):
    """A := alpha x y^H + conj(alpha) y x^H + A, one triangle of A; as `syr2`.

    On the GPU an A by rows is copied.
    """
    return _rank_n(me, me.number(alpha, "alpha"), x, me.vector(y, "y"), lower, incx, offx, incy,
                   offy, n, a, overwrite_a)


def _rank_n(me, alpha, x, y, lower, incx, offx, incy, offy, n, a, overwrite_a):
    lower, x = me.choice(lower, "lower", FLAG), me.vector(x, "x")
    offx, incx = begin(me, x, "x", offx, incx)
    fits = (x.shape[0] - offx - 1) // abs(incx) + 1
    if y is not None:
        offy, incy = begin(me, y, "y", offy, incy)
        fits = min(fits, (y.shape[0] - offy - 1) // abs(incy) + 1)
    n = fits if n is None else me.integer(n, "n", 0, fits)
    a, one = _updated(me, a, (n, n), overwrite_a, x=x, y=y)
    vectors = [(x, n, offx, incx)] + ([(y, n, offy, incy)] if y is not None else [])
    if me.on_cpu(x, y, a):
        if n and not (a is not None and me.strided(a, overwrite_a)):
            two = (y, lower, incx, offx, incy, offy) if y is not None else (lower, incx, offx)
            a = me.scipy(alpha, x, *two, n, a, overwrite_a)
        else:
            a = _update_cpu(me, ("UL"[lower], n), alpha, a, (n, n), overwrite_a, *vectors)
    else:
        a = _update_gpu(me, (n,), lower, alpha, a, (n, n), overwrite_a, *vectors)
    return a.reshape(-1) if one else a


def _updated(me, a, shape, overwrite_a, **operands):
    """A checked, None for zeros; True if the caller gave it as a vector."""
    if a is None:
        me.allows(overwrite_a, "a")
        return None, False
    a, one = me.columns(a, "a", shape[0], overwrite_a)
    me.shaped(a, "a", shape)
    if overwrite_a:
        me.distinct(a, "a", **operands)
    return a, one


def _update_cpu(me, head, alpha, a, shape, overwrite_a, *vectors):
    """In place of a column-major view, and what SciPy's wrapper refuses: nothing to update."""
    if a is None:
        a = np.zeros(shape, me.dtype, order="F")
    elif not overwrite_a:
        a = a.copy(order="F")
    if a.size:
        at = [z for v in vectors for z in in_memory(*v)]
        me.fortran(me.name[1:], *head, _update_scalar(me, alpha), *at, a, ld(a))
    return a


def _update_gpu(me, sizes, lower, alpha, a, shape, overwrite_a, *vectors):
    """`lower` is None for the rectangular A of ger."""
    from . import _cuda as gpu
    if a is None:
        a = gpu.cupy.zeros(shape, me.dtype, order="F")
    elif me.name[1:] in ("gerc", "her", "her2"):
        a = gpu.output(a, overwrite_a)
    else:
        a = gpu.accumulator(me, a, shape, 1, overwrite_a)
    if a.size and alpha != 0:
        at = [on_gpu(*v) for v in vectors]
        to = a
        if not column_major(a):  # A^T := alpha y x^T + A^T; a symmetric A swaps its triangles
            to, sizes = a.T, sizes[::-1]
            at, lower = (at[::-1], None) if lower is None else (at, 1 - lower)
        head = sizes if lower is None else (gpu.fill(lower), *sizes)
        addresses = [z for p, step, _ in at for z in (p, step)]
        new = gpu.real_scalar if me.name[1:] == "her" else gpu.scalar
        gpu.blas(me.cublas, *head, new(me, alpha), *addresses, to.data.ptr, ld(to))
    return a


def _update_scalar(me, alpha):
    return me.real_scalar(alpha) if me.name[1:] in ("her", "hpr") else me.scalar(alpha)


def spr(me, n, alpha, x, ap, incx=1, offx=0, lower=0, overwrite_ap=0):
    """A := alpha x x^T + A, A symmetric, packed in `ap`.

    Parameters
    ----------
    n : int
        The order of A.
    alpha : number
        alpha = 0 leaves x unread, whatever it holds.
    x : (*,) array
    ap : (n (n + 1) / 2 or more,) array
        Overwritten if `overwrite_ap`, where its elements lie together, and are aligned.
    incx, offx : int
        How far apart the elements of x are, and where they begin.
    lower : {0, 1}
        The triangle that is packed.

    Returns
    -------
    apu : array of the shape of ap

    Notes
    -----
    n^2 operations. The complex names are LAPACK's; on the GPU they run on the CPU, with a
    TransferWarning.
    """
    return _rank_packed(me, n, me.number(alpha, "alpha"), x, None, ap, incx, offx, 1, 0, lower,
                        overwrite_ap)


def hpr(me, n, alpha, x, ap, incx=1, offx=0, lower=0, overwrite_ap=0):
    """A := alpha x x^H + A, A Hermitian, packed in `ap`, alpha real; as `spr`."""
    return _rank_packed(me, n, me.real_number(alpha, "alpha"), x, None, ap, incx, offx, 1, 0,
                        lower, overwrite_ap)


def spr2(me, n, alpha, x, y, ap, incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0):
    """A := alpha (x y^T + y x^T) + A, A symmetric, packed in `ap`; as `spr`."""
    return _rank_packed(me, n, me.number(alpha, "alpha"), x, me.vector(y, "y"), ap, incx, offx,
                        incy, offy, lower, overwrite_ap)


def hpr2(me, n, alpha, x, y, ap, incx=1, offx=0, incy=1, offy=0, lower=0, overwrite_ap=0):
    """A := alpha x y^H + conj(alpha) y x^H + A, A Hermitian, packed in `ap`; as `spr`."""
    return _rank_packed(me, n, me.number(alpha, "alpha"), x, me.vector(y, "y"), ap, incx, offx,
                        incy, offy, lower, overwrite_ap)


def _rank_packed(me, n, alpha, x, y, ap, incx, offx, incy, offy, lower, overwrite_ap):
    lower, x, given = me.choice(lower, "lower", FLAG), me.vector(x, "x"), ap
    ap, n = _triangle(me, ap, n, overwrite_ap)
    offx, incx = _inside(me, x, "x", n, offx, incx)
    vectors, two = [(x, n, offx, incx)], ()
    if y is not None:
        offy, incy = _inside(me, y, "y", n, offy, incy)
        vectors, two = [*vectors, (y, n, offy, incy)], (incy, offy)
    if overwrite_ap:
        me.distinct(ap, "ap", x=x, y=y)
    on_cpu = me.on_cpu(x, ap, y)
    if me.is_complex and me.name[1:] == "spr" and incx < 0:  # OpenBLAS reads before such an x
        x, offx, incx = part(x, n, offx, incx)[::-1].copy(), 0, 1
    operands = (x, ap) if y is None else (x, y, ap)
    if n and on_cpu:
        return as_given(me.scipy(n, alpha, *operands, incx, offx, *two, lower, overwrite_ap), given)
    if n and me.is_complex and me.name[1:] == "spr":
        ap = stored(me.through_cpu(n, alpha, *operands, incx, offx, lower), ap, overwrite_ap)
        return as_given(ap, given)
    ap = contiguous(ap) if overwrite_ap else ap.copy()
    if n and alpha != 0:
        from . import _cuda as gpu
        at = [on_gpu(*v) for v in vectors]
        new = gpu.real_scalar if me.name[1:] == "hpr" else gpu.scalar
        gpu.blas(me.cublas, gpu.fill(lower), n, new(me, alpha),
                 *[z for p, step, _ in at for z in (p, step)], ap.data.ptr)
    return as_given(ap, given)


# -- triangular matrices


def trmv(me, a, x, offx=0, incx=1, lower=0, trans=0, diag=0, overwrite_x=0):
    """x := op(A) x, A triangular.

    Parameters
    ----------
    a : (n, n) array
    x : (*,) array
        Overwritten if `overwrite_x`: in place, views of any stride included.
    offx, incx : int
        Where the elements of x begin, and how far apart they are.
    lower : {0, 1}
        The triangle of A that is read.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.
    diag : {0, 1}
        1: the diagonal of A is taken as ones, and not read.

    Returns
    -------
    x : array of the shape of x

    Notes
    -----
    n^2 operations.
    """
    return _full_triangle(me, a, x, (0, 1), offx, incx, lower, trans, diag, overwrite_x)


def trsv(me, a, x, incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0):
    """Solve op(A) x = b, A triangular; as `trmv`, x holding b.

    A zero on the diagonal of A gives inf or nan: nothing is tested.
    """
    return _full_triangle(me, a, x, (1, 0), offx, incx, lower, trans, diag, overwrite_x)


def _full_triangle(me, a, x, order, offx, incx, lower, trans, diag, overwrite_x):
    """`order` is where SciPy takes (offx, incx): trmv and trsv differ."""
    a = me.square(a, "a")
    n = a.shape[0]
    t = _Triangle(me, a, x, n, offx, incx, lower, trans, diag, overwrite_x)
    if t.on_cpu:
        at = (t.offx, t.incx)
        t.a, op = turned(a, t.trans)
        if op != t.trans:
            t.lower, t.trans = 1 - t.lower, op
        return t.run_cpu((), (t.a, t.x, at[order[0]], at[order[1]]))
    from . import _cuda as gpu
    p, lda, uplo, op, a = gpu.half(a, t.lower, t.trans)
    return t.run_gpu(uplo, op, (), p, lda)


def tbmv(me, k, a, x, incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0):
    """x := op(A) x, A a triangular band matrix.

    As `trmv`; `a` is (k + 1 or more, n) and holds the main diagonal and k others, above it or, if
    `lower`, below. 2 n (k + 1) operations.
    """
    return _band_triangle(me, k, a, x, incx, offx, lower, trans, diag, overwrite_x)


def tbsv(me, k, a, x, incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0):
    """Solve op(A) x = b, A a triangular band matrix; as `tbmv`, x holding b."""
    return _band_triangle(me, k, a, x, incx, offx, lower, trans, diag, overwrite_x)


def _band_triangle(me, k, a, x, incx, offx, lower, trans, diag, overwrite_x):
    a = me.matrix(a, "a")
    k, n = me.integer(k, "k", 0, max(a.shape[0] - 1, 0)), a.shape[1]
    t = _Triangle(me, a, x, n, offx, incx, lower, trans, diag, overwrite_x)
    if t.on_cpu:
        return t.run_cpu((k,), (k, a, t.x, t.incx, t.offx))
    from . import _cuda as gpu
    a = by_columns(a)
    return t.run_gpu(gpu.fill(t.lower), t.trans, (k,), a.data.ptr, ld(a))


def tpmv(me, n, ap, x, incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0):
    """x := op(A) x, A an (n, n) triangular matrix, packed in `ap`; as `trmv`."""
    return _packed_triangle(me, n, ap, x, incx, offx, lower, trans, diag, overwrite_x)


def tpsv(me, n, ap, x, incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0):
    """Solve op(A) x = b, A an (n, n) triangular matrix, packed in `ap`; as `trmv`, x holding b."""
    return _packed_triangle(me, n, ap, x, incx, offx, lower, trans, diag, overwrite_x)


def _packed_triangle(me, n, ap, x, incx, offx, lower, trans, diag, overwrite_x):
    ap, n = _triangle(me, ap, n)
    t = _Triangle(me, ap, x, n, offx, incx, lower, trans, diag, overwrite_x)
    if t.on_cpu:
        return t.run_cpu((), (n, ap, t.x, t.incx, t.offx))
    from . import _cuda as gpu
    ap = contiguous(ap)
    return t.run_gpu(gpu.fill(t.lower), t.trans, (), ap.data.ptr)


class _Triangle:
    """The vector and the flags of x := op(A) x or op(A)^-1 x, checked."""

    def __init__(self, me, a, x, n, offx, incx, lower, trans, diag, overwrite_x):
        self.me, self.a, self.n, self.overwrite = me, a, n, overwrite_x
        self.given, self.x = x, me.vector(x, "x", overwrite=overwrite_x)
        x = self.x
        self.offx, self.incx = _inside(me, x, "x", n, offx, incx)
        self.lower, self.trans = me.choice(lower, "lower", FLAG), me.choice(trans, "trans", TRANS)
        self.diag = me.choice(diag, "diag", FLAG)
        if overwrite_x:
            me.distinct(part(x, n, self.offx, self.incx), "x", a=a)
        self.on_cpu = me.on_cpu(a, x)

    def run_cpu(self, sizes, arguments):
        """SciPy's wrapper of these leading `arguments`, or BLAS itself."""
        me, flags = self.me, (self.lower, self.trans, self.diag)
        if self.n and not scattered(self.x, self.overwrite):
            x = me.scipy(*arguments, *flags, self.overwrite)
            return x if self.x is self.given else as_given(x, self.given)
        x = target(self.x, self.incx, self.overwrite)
        if self.n:
            me.fortran(me.name[1:], "UL"[self.lower], "NTC"[self.trans], "NU"[self.diag], self.n,
                       *sizes, *_matrix(self.a), *in_memory(x, self.n, self.offx, self.incx))
        return as_given(stored(x, self.x, self.overwrite), self.given)

    def run_gpu(self, uplo, op, sizes, *matrix):
        from . import _cuda as gpu
        x = target(self.x, self.incx, self.overwrite)
        if self.n:
            p, step, _ = on_gpu(x, self.n, self.offx, self.incx)
            gpu.blas(self.me.cublas, uplo, op, self.diag, self.n, *sizes, *matrix, p, step)
        return as_given(stored(x, self.x, self.overwrite), self.given)


# -- storage


def _inside(me, x, letter, n, off, inc):
    """Offset and increment of `n` elements that must lie in x."""
    off, inc = begin(me, x, letter, off, inc)
    if n and off + (n - 1) * abs(inc) >= x.shape[0]:
        me.illegal(letter, x.shape, f"long enough for {n} elements from {off} on, {inc} apart")
    return off, inc


def _triangle(me, ap, n, overwrite=0):
    """The packed triangle of an (n, n) matrix, and n, checked."""
    ap = me.vector(ap, "ap", overwrite=overwrite)
    n = me.integer(n, "n", 0)
    if ap.shape[0] < n * (n + 1) // 2:
        me.illegal("ap", ap.shape, f"of at least {n * (n + 1) // 2} elements, n = {n}")
    return ap, n


def _matrix(a):
    """A with its leading dimension, or a packed A, as BLAS takes it."""
    if a.ndim == 1:
        return (gathered(a),)
    a = by_columns(a)
    return a, ld(a)


def _arrays_of(x):
    """The module that makes arrays like x."""
    if x.__class__ is np.ndarray:
        return np
    from . import _cuda
    return _cuda.cupy


gemv, sgemv, dgemv, cgemv, zgemv = typed(gemv, "sdcz")
gbmv, sgbmv, dgbmv, cgbmv, zgbmv = typed(gbmv, "sdcz")
symv, ssymv, dsymv, csymv, zsymv = typed(symv, "sdcz")
hemv, chemv, zhemv = typed(hemv, "cz")
sbmv, ssbmv, dsbmv = typed(sbmv, "sd")
hbmv, chbmv, zhbmv = typed(hbmv, "cz")
spmv, sspmv, dspmv, cspmv, zspmv = typed(spmv, "sdcz")
hpmv, chpmv, zhpmv = typed(hpmv, "cz")
ger, sger, dger = typed(ger, "sd")
geru, cgeru, zgeru = typed(geru, "cz")
gerc, cgerc, zgerc = typed(gerc, "cz")
syr, ssyr, dsyr, csyr, zsyr = typed(syr, "sdcz")
her, cher, zher = typed(her, "cz")
syr2, ssyr2, dsyr2 = typed(syr2, "sd")
her2, cher2, zher2 = typed(her2, "cz")
spr, sspr, dspr, cspr, zspr = typed(spr, "sdcz")
hpr, chpr, zhpr = typed(hpr, "cz")
spr2, sspr2, dspr2 = typed(spr2, "sd")
hpr2, chpr2, zhpr2 = typed(hpr2, "cz")
trmv, strmv, dtrmv, ctrmv, ztrmv = typed(trmv, "sdcz")
trsv, strsv, dtrsv, ctrsv, ztrsv = typed(trsv, "sdcz")
tbmv, stbmv, dtbmv, ctbmv, ztbmv = typed(tbmv, "sdcz")
tbsv, stbsv, dtbsv, ctbsv, ztbsv = typed(tbsv, "sdcz")
tpmv, stpmv, dtpmv, ctpmv, ztpmv = typed(tpmv, "sdcz")
tpsv, stpsv, dtpsv, ctpsv, ztpsv = typed(tpsv, "sdcz")

__all__ = public(globals())
