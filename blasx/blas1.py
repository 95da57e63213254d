"""BLAS level 1: vectors.

A vector is `n` elements of an array, `inc` apart, from the element `off` on; with inc < 0 they
count from the far end backwards. Without `n` it is SciPy's default, as many as there are.

CPU: SciPy's wrappers. GPU: cuBLAS in the current stream, on views of any stride without a copy;
scalar results stay on the device.

Lawson, Hanson, Kincaid, Krogh: Basic Linear Algebra Subprograms for Fortran Usage, 1979.
"""

import numpy as np

from . import _trace
from ._lapack import INT, gathered
from ._routine import NATIVE, ndarray, public, share, typed

LONGEST = int(np.iinfo(INT).max)  # what the CPU's BLAS can count to


def dot(me, x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """x^T y of real vectors.

    Parameters
    ----------
    x, y : (*,) arrays
    n : int, optional
        The number of elements, as many as x has; 0 if negative.
    offx, incx, offy, incy : int
        Where they begin, and how far apart they are.

    Returns
    -------
    xy : float (GPU: 0-d array, no synchronisation)
    """
    return _dot(me, x, y, n, offx, incx, offy, incy)


def dotu(me, x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """x^T y of complex vectors; as `dot`."""
    return _dot(me, x, y, n, offx, incx, offy, incy)


def dotc(me, x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """x^H y of complex vectors; as `dot`."""
    return _dot(me, x, y, n, offx, incx, offy, incy)


def _dot(me, x, y, n, offx, incx, offy, incy):
    x, y = me.vector(x, "x"), me.vector(y, "y")
    n, offx, incx, offy, incy = _two(me, x, y, n, offx, incx, offy, incy)
    if me.on_cpu(x, y):
        return me.scipy(x, y, n, offx, incx, offy, incy) if n > 0 else me.dtype.type(0).item()
    from . import _cuda as gpu
    xy = gpu.cupy.zeros((), me.dtype)
    if n > 0:
        (px, sx, x), (py, sy, y) = on_gpu(x, n, offx, incx), on_gpu(y, n, offy, incy)
        gpu.blas_on_device(me.cublas, n, px, sx, py, sy, xy.data.ptr)
    return xy


def nrm2(me, x, n=None, offx=0, incx=1):
    """The Euclidean norm of x.

    Parameters
    ----------
    x : (*,) array
    n : int, optional
        The number of elements, as many as there are; 0 if negative.
    offx, incx : int
        Where they begin, and how far apart they are; incx > 0.

    Returns
    -------
    n2 : float (GPU: 0-d array, no synchronisation)
    """
    x = me.vector(x, "x")
    n, offx, incx = _one(me, x, n, offx, incx)
    if incx < 0:
        me.illegal("incx", incx, "positive")
    return _reduced(me, x, n, offx, incx)


def asum(me, x, n=None, offx=0, incx=1):
    """The sum of |re| + |im| over x; as `nrm2`, and 0 if incx < 0."""
    x = me.vector(x, "x")
    n, offx, incx = _one(me, x, n, offx, incx)
    return _reduced(me, x, n if incx > 0 else 0, offx, incx)


def _reduced(me, x, n, offx, incx):
    if me.on_cpu(x):
        return me.scipy(x, n, offx, incx) if n > 0 else 0.0
    from . import _cuda as gpu
    result = gpu.cupy.zeros((), me.real)
    if n > 0:
        px, sx, x = on_gpu(x, n, offx, incx, order_matters=False)
        gpu.blas_on_device(me.cublas, n, px, sx, result.data.ptr)
    return result


def iamax(me, x, n=None, offx=0, incx=1):
    """The index, from 0, of the first element with the largest |re| + |im|.

    Parameters as `nrm2`. The index counts elements, not places of the array.

    Returns
    -------
    k : int (GPU: 0-d int64 array, no synchronisation); -1 if n <= 0 or incx < 0
    """
    x = me.vector(x, "x")
    n, offx, incx = _one(me, x, n, offx, incx)
    n = n if incx > 0 else 0
    if me.on_cpu(x):
        return me.scipy(x, n, offx, incx) if n > 0 else -1
    from . import _cuda as gpu
    k = gpu.cupy.zeros((), np.int64)
    if n > 0:
        if x.strides[0] < 0:  # cuBLAS takes no increment below 1, and the first of equals counts
            x, offx, incx = packed(part(x, n, offx, incx)), 0, 1
        px, sx, x = on_gpu(x, n, offx, incx)
        gpu.blas_on_device(me.cublas, n, px, sx, k.data.ptr)
    k -= 1  # cuBLAS counts from 1
    return k


def axpy(me, x, y, n=None, a=1.0, offx=0, incx=1, offy=0, incy=1):
    """y := a x + y.

    Parameters
    ----------
    x, y : (*,) arrays
        y is overwritten where it is of the routine's type, contiguous and aligned.
    n : int, optional
        The number of elements, as many as x has; 0 if negative.
    a : number
    offx, incx, offy, incy : int
        Where the vectors begin, and how far apart their elements are.

    Returns
    -------
    z : array of the shape of y, y itself where it was overwritten
    """
    a, given = me.number(a, "a"), y
    x, y = me.vector(x, "x"), me.vector(y, "y")
    n, offx, incx, offy, incy = _two(me, x, y, n, offx, incx, offy, incy)
    _apart(me, "y", y, (n, offy, incy), "x", x, (n, offx, incx))
    if me.on_cpu(x, y):
        z = me.scipy(x, y, n, a, offx, incx, offy, incy) if n > 0 else contiguous(y)
    else:
        from . import _cuda as gpu
        z = contiguous(y)
        if n > 0:
            (px, sx, x), (pz, sz, z) = on_gpu(x, n, offx, incx), on_gpu(z, n, offy, incy)
            gpu.blas(me.cublas, n, gpu.scalar(me, a), px, sx, pz, sz)
    return z if y is given else as_given(z, given)


def copy(me, x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """y := x; as `axpy`."""
    given = y
    x, y = me.vector(x, "x"), me.vector(y, "y")
    n, offx, incx, offy, incy = _two(me, x, y, n, offx, incx, offy, incy)
    _apart(me, "y", y, (n, offy, incy), "x", x, (n, offx, incx))
    if me.on_cpu(x, y):
        z = me.scipy(x, y, n, offx, incx, offy, incy) if n > 0 else contiguous(y)
    else:
        from . import _cuda as gpu
        z = contiguous(y)
        if n > 0:
            (px, sx, x), (pz, sz, z) = on_gpu(x, n, offx, incx), on_gpu(z, n, offy, incy)
            gpu.blas(me.cublas, n, px, sx, pz, sz)
    return z if y is given else as_given(z, given)


def swap(me, x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """Exchange x and y; as `axpy`, with both overwritten, and (x, y) returned."""
    given_x, given_y = x, y
    x, y = me.vector(x, "x"), me.vector(y, "y")
    n, offx, incx, offy, incy = _two(me, x, y, n, offx, incx, offy, incy)
    _apart(me, "y", y, (n, offy, incy), "x", x, (n, offx, incx))
    _apart(me, "x", x, (n, offx, incx), "y", y, (n, offy, incy))
    if me.on_cpu(x, y) and n > 0:
        u, v = me.scipy(x, y, n, offx, incx, offy, incy)
    else:
        u, v = contiguous(x), contiguous(y)
        if n > 0:
            from . import _cuda as gpu
            (pu, su, _), (pv, sv, _) = on_gpu(u, n, offx, incx), on_gpu(v, n, offy, incy)
            gpu.blas(me.cublas, n, pu, su, pv, sv)
    return (u if x is given_x else as_given(u, given_x),
            v if y is given_y else as_given(v, given_y))


def scal(me, a, x, n=None, offx=0, incx=1):
    """x := a x.

    Parameters
    ----------
    a : number
        a = 0 does read x: 0 times nan is nan.
    x : (*,) array
        Overwritten where it is of the routine's type, contiguous and aligned.
    n : int, optional
        The number of elements, as many as there are; 0 if negative.
    offx, incx : int
        Where they begin, and how far apart they are; with incx < 0 nothing is done.

    Returns
    -------
    x : array of the shape of x, x itself where it was overwritten
    """
    given, a, x = x, me.number(a, "a"), me.vector(x, "x")
    n, offx, incx = _one(me, x, n, offx, incx)
    if x.flags.c_contiguous:
        me.writeable(x, "x")
    if me.on_cpu(x) and n > 0 and incx > 0:
        z = me.scipy(a, x, n, offx, incx)
        return z if x is given else as_given(z, given)
    z = contiguous(x)
    if n > 0 and incx > 0:
        from . import _cuda as gpu
        pz, sz, _ = on_gpu(z, n, offx, incx)
        gpu.blas(me.cublas, n, gpu.scalar(me, a), pz, sz)
    return as_given(z, given)


def rscal(me, a, x, n=None, offx=0, incx=1, overwrite_x=0):
    """x := a x with a real and x complex (csscal, zdscal).

    As `scal`, but x is overwritten only if `overwrite_x`: in place, views of any stride included.
    """
    given, a, x = x, me.real_number(a, "a"), me.vector(x, "x", overwrite=overwrite_x)
    n, offx, incx = _one(me, x, n, offx, incx)
    on_cpu = me.on_cpu(x)
    if on_cpu and n > 0 and incx > 0 and not scattered(x, overwrite_x):
        return as_given(me.scipy(a, x, n, offx, incx, overwrite_x), given)
    v = target(x, incx, overwrite_x)
    if n > 0 and incx > 0:
        if on_cpu:
            from_first, step = in_memory(v, n, offx, incx)
            me.fortran(me.name[1:], n, me.real_scalar(a), from_first, abs(step))
        else:
            from . import _cuda as gpu
            px, sx, _ = on_gpu(v, n, offx, incx, order_matters=False)
            gpu.blas(me.cublas, n, gpu.real_scalar(me, a), px, sx)
    return as_given(stored(v, x, overwrite_x), given)


# -- rotations


def rot(me, x, y, c, s, n=None, offx=0, incx=1, offy=0, incy=1, overwrite_x=0, overwrite_y=0):
    """x := c x + s y, y := c y - s x, with c and s real (srot drot csrot zdrot).

    Parameters
    ----------
    x, y : (*,) arrays
        Overwritten if `overwrite_x`, `overwrite_y`: in place, views of any stride included.
    c, s : real numbers
    n : int, optional
        The number of elements, as many as x has; 0 if negative.
    offx, incx, offy, incy : int
        Where the vectors begin, and how far apart their elements are.

    Returns
    -------
    x, y : arrays of the shapes of x and y
    """
    c, s = me.real_number(c, "c"), me.real_number(s, "s")
    return _rotated(me, x, y, (c, s), n, offx, incx, offy, incy, overwrite_x, overwrite_y)


def rotm(me, x, y, param, n=None, offx=0, incx=1, offy=0, incy=1, overwrite_x=0, overwrite_y=0):
    """[x y] := [x y] H^T with the H of `rotmg`.

    As `rot`; `param` is rotmg's, five numbers on the host.
    """
    if param.__class__ in NATIVE and param.__class__ is not ndarray:
        me.mistyped("param", "an array on the GPU", "five numbers on the host")
    param = gathered(me.vector(param, "param", 5))
    return _rotated(me, x, y, (param,), n, offx, incx, offy, incy, overwrite_x, overwrite_y)


def _rotated(me, x, y, by, n, offx, incx, offy, incy, overwrite_x, overwrite_y):
    given_x, given_y = x, y
    x, y = me.vector(x, "x", overwrite=overwrite_x), me.vector(y, "y", overwrite=overwrite_y)
    whole = me.name[1:] == "rotm"  # SciPy's rot counts a last element that n * inc would not
    n, offx, incx, offy, incy = _two(me, x, y, n, offx, incx, offy, incy, whole)
    if overwrite_x or overwrite_y:
        me.distinct(part(x, n, offx, incx), "x", y=part(y, n, offy, incy))
    on_cpu = me.on_cpu(x, y)
    if on_cpu and n > 0 and not (scattered(x, overwrite_x) or scattered(y, overwrite_y)):
        u, v = me.scipy(x, y, *by, n, offx, incx, offy, incy, overwrite_x, overwrite_y)
    else:
        u, v = target(x, incx, overwrite_x), target(y, incy, overwrite_y)
        if n > 0:
            _rotate(me, on_cpu, u, v, by, n, offx, incx, offy, incy)
        u, v = stored(u, x, overwrite_x), stored(v, y, overwrite_y)
    return (u if x is given_x else as_given(u, given_x),
            v if y is given_y else as_given(v, given_y))


def _rotate(me, on_cpu, x, y, by, n, offx, incx, offy, incy):
    """In place of what `target` gives."""
    if on_cpu:
        by = by if me.name[1:] == "rotm" else map(me.real_scalar, by)
        me.fortran(me.name[1:], n, *in_memory(x, n, offx, incx), *in_memory(y, n, offy, incy), *by)
        return
    from . import _cuda as gpu
    (px, sx, _), (py, sy, _) = on_gpu(x, n, offx, incx), on_gpu(y, n, offy, incy)
    by = [gpu.ffi.cast("void *", by[0].ctypes.data)] if me.name[1:] == "rotm" \
        else [gpu.real_scalar(me, v) for v in by]
    gpu.blas(me.cublas, n, px, sx, py, sy, *by)


def rotg(me, a, b):
    """The rotation that makes b zero: c a + s b = r, c b - conj(s) a = 0.

    Parameters
    ----------
    a, b : numbers, on the host whatever the device

    Returns
    -------
    c, s : numbers (c is real, and complex by type only)
    """
    c, s = me.scipy(me.number(a, "a"), me.number(b, "b"))
    # BLAS writes a real c, and SciPy's wrapper returns what lies behind it as imaginary part.
    return (complex(c.real), s) if me.is_complex else (c, s)


def rotmg(me, d1, d2, x1, y1):
    """The modified rotation H that makes the second component of H [sqrt(d1) x1, sqrt(d2) y1]^T
    zero.

    Parameters
    ----------
    d1, d2, x1, y1 : real numbers, on the host whatever the device

    Returns
    -------
    param : (5,) array
        The flag that tells which elements of H are meant, then h11, h21, h12, h22.
    """
    return me.scipy(me.number(d1, "d1"), me.number(d2, "d2"), me.number(x1, "x1"),
                    me.number(y1, "y1"))


# -- the elements that a call means


def _one(me, x, n, offx, incx, whole=True):
    offx, incx = begin(me, x, "x", offx, incx)
    long = x.shape[0] - offx
    fit = (long - 1) // abs(incx) + 1
    if n is None:
        return long // abs(incx) if whole else fit, offx, incx
    return me.integer(n, "n", None, fit), offx, incx


def _two(me, x, y, n, offx, incx, offy, incy, whole=True):
    n, offx, incx = _one(me, x, n, offx, incx, whole)
    offy, incy = begin(me, y, "y", offy, incy)
    if n > (y.shape[0] - offy - 1) // abs(incy) + 1:
        me.illegal("y", y.shape, f"long enough for n = {n} elements")
    return n, offx, incx, offy, incy


def begin(me, x, letter, off, inc):
    """The offset and the increment of a vector, checked."""
    if off.__class__ is int and off == 0 and inc.__class__ is int and inc == 1:
        return 0, 1
    off = me.integer(off, "off" + letter, 0, max(x.shape[0] - 1, 0))
    return off, increment(me, inc, "inc" + letter)


def increment(me, inc, argument):
    """A distance between elements, checked: not 0."""
    inc = me.integer(inc, argument, -LONGEST, LONGEST)
    return inc if inc else me.illegal(argument, 0, "an increment other than 0")


def part(x, n, off, inc):
    """The view of the n elements."""
    return x[off:off + max(n - 1, 0) * abs(inc) + (n > 0):abs(inc)]


def countable(x, inc):
    """True if an increment says where the elements are: aligned, a number of them apart that BLAS
    can count to, and not 0, as those of a broadcast array are."""
    stride, rest = _stride(x)
    return not rest and 0 < abs(stride * inc) <= LONGEST and (
        x.__class__ is not ndarray or x.flags.aligned)


def _stride(x):
    """How far apart the elements are: (elements, bytes beyond them)."""
    return divmod(x.strides[0] if x.shape[0] > 1 else x.itemsize, x.itemsize)


def _along(x, n, off, inc):
    """(x or a copy, index of the element that lies first in memory, increment) by which BLAS sees
    n elements that are read."""
    if not countable(x, inc):
        x, off, inc = packed(part(x, n, off, inc)), 0, 1 if inc > 0 else -1
    stride, _ = _stride(x)
    return x, off if stride > 0 else off + (n - 1) * abs(inc), stride * inc


def in_memory(x, n, off, inc):
    """(x from the element on that lies first, increment) by which BLAS sees n elements."""
    x, first, step = _along(x, n, off, inc)
    return x[first:], step


def on_gpu(x, n, off, inc, order_matters=True):
    """(address, increment, the array to keep) by which cuBLAS sees n elements."""
    x, first, step = _along(x, n, off, inc)
    return x.data.ptr + first * x.strides[0], step if order_matters else abs(step), x


def scattered(x, overwrite):
    """True if a NumPy vector is to be overwritten, and SciPy's wrapper would overwrite a copy."""
    return bool(overwrite) and not x.flags.carray


def target(x, inc, overwrite):
    """The vector that BLAS writes: `x` itself where it is to be overwritten and can be, else a
    copy, of which `stored` makes the result."""
    return x if overwrite and countable(x, inc) else x.copy()


def stored(result, out, overwrite):
    """A result, in `out` if that is to be overwritten."""
    if out is None or not overwrite:
        return result
    if result is not out:
        out[...] = result
    return out


def packed(x):
    """A contiguous copy, that trace() counts."""
    _trace.note(copied=x.nbytes)
    return x.copy()


def contiguous(x):
    """`x` if its elements lie together, else a copy: what SciPy overwrites."""
    return x if x.flags.c_contiguous else packed(x)


def as_given(result, x):
    """A vector in the shape of the argument `x` that it replaces, as SciPy has it."""
    if x is None or x.__class__ in NATIVE and x.ndim == 1:
        return result
    return result.reshape(x.shape if x.__class__ in NATIVE else np.shape(x))


def _apart(me, argument, out, out_at, name, x, x_at):
    """Refuse to write where `out` is read-only or holds elements of x; the same elements in the
    same order may be both."""
    if not out.flags.c_contiguous or out.__class__ is not x.__class__:
        return
    me.writeable(out, argument)
    if out.__class__ is ndarray and not np.may_share_memory(out, x) \
            or out is x and out_at == x_at:
        return
    u, v = part(out, *out_at), part(x, *x_at)
    if share(u, v):
        me.illegal(argument, f"memory shared with {name}", "an array of its own")


dot, sdot, ddot = typed(dot, "sd")
dotu, cdotu, zdotu = typed(dotu, "cz")
dotc, cdotc, zdotc = typed(dotc, "cz")
nrm2, snrm2, dnrm2, scnrm2, dznrm2 = typed(nrm2, "sdcz", "snrm2 dnrm2 scnrm2 dznrm2")
asum, sasum, dasum, scasum, dzasum = typed(asum, "sdcz", "sasum dasum scasum dzasum")
iamax, isamax, idamax, icamax, izamax = typed(iamax, "sdcz", "isamax idamax icamax izamax")
axpy, saxpy, daxpy, caxpy, zaxpy = typed(axpy, "sdcz")
copy, scopy, dcopy, ccopy, zcopy = typed(copy, "sdcz")
swap, sswap, dswap, cswap, zswap = typed(swap, "sdcz")
scal, sscal, dscal, cscal, zscal = typed(scal, "sdcz")
rscal, csscal, zdscal = typed(rscal, "cz", "csscal zdscal")
rot, srot, drot, csrot, zdrot = typed(rot, "sdcz", "srot drot csrot zdrot")
rotm, srotm, drotm = typed(rotm, "sd")
rotg, srotg, drotg, crotg, zrotg = typed(rotg, "sdcz")
rotmg, srotmg, drotmg = typed(rotmg, "sd")

__all__ = public(globals())
