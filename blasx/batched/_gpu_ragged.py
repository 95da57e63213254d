"""Members of different sizes on the GPU.

Members up to 32 x 32 are sorted by the tuned row that serves their order, and the kernels of the
`_batched` routines, compiled RAGGED, are launched once for each row in use. What a kernel needs to
know about a member, its address, strides and sizes, stands in a table (kernels/memory.cuh) that one
copy brings to the GPU. Larger members are copied to stacks, one for each shape that occurs, which
the `_batched` routines take.
"""

import cupy
import numpy as np

from .._kernel import current_device, gpu
from .._ragged import Ragged
from .._tuned import LARGEST, capitals, row
from . import _gpu_cholesky, _gpu_lu
from ._gpu import INT, teams


def getrf(me, a, overwrite_a):
    """LU of every member: lu, piv (0-based), info."""
    shapes = extents(a)
    lu, piv = outputs(a, overwrite_a), Ragged.empty_like(cupy.empty(0, INT), shapes.min(1))
    info = cupy.zeros(len(a), INT)
    call = Call(me, shapes.max(1), shapes.all(1))
    call.launch("getrf_small", call.matrices(a), call.matrices(lu), call.vectors(piv),
                call.numbers(info), call.sizes(shapes[:, 0]), call.sizes(shapes[:, 1]))
    call.larger(lambda a: _gpu_lu.getrf(me, a, 1), (a,), (lu, piv), info)
    return like(a, lu), like(a, piv), info


def getrs(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    n, nrhs = extents(lu)[:, 0], columns(b)
    x, info = outputs(b, overwrite_b), cupy.zeros(len(b), INT)
    call = Call(me, n, n * nrhs > 0)
    call.launch("getrs_small", call.matrices(lu, trans != 0), call.vectors(contiguous(piv)),
                call.matrices(b), call.matrices(x), call.numbers(info), trans, call.sizes(n),
                call.sizes(nrhs))
    call.larger(lambda lu, piv, b: _gpu_lu.getrs(me, lu, piv, b, trans, 1), (lu, piv, b), (x,),
                info)
    return like(b, x), info


def gesv(me, a, b, overwrite_a, overwrite_b):
    """Factor and solve every member: lu, piv, x, info."""
    shapes, nrhs = extents(a), columns(b)
    n = shapes[:, 0]
    lu, x, info = outputs(a, overwrite_a), outputs(b, overwrite_b), cupy.zeros(len(a), INT)
    piv = Ragged.empty_like(cupy.empty(0, INT), n)
    call = Call(me, n, n > 0)
    call.launch("gesv_small", call.matrices(a), call.matrices(lu), call.vectors(piv),
                call.matrices(b), call.matrices(x), call.numbers(info), call.sizes(n),
                call.sizes(nrhs))
    call.larger(lambda a, b: _gpu_lu.gesv(me, a, b, 1, 1), (a, b), (lu, piv, x), info)
    return like(a, lu), like(a, piv), like(b, x), info


def potrf(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is that of `a`."""
    n, c, info = extents(a)[:, 0], outputs(a, overwrite_a), cupy.zeros(len(a), INT)
    call = Call(me, n, n > 0)
    call.launch("potrf_small", call.matrices(a, not lower), call.matrices(c, not lower),
                call.numbers(info), call.sizes(n))
    call.larger(lambda a: _gpu_cholesky.potrf(me, a, lower, 1), (a,), (c,), info)
    return like(a, c), info


def potrs(me, c, b, lower, overwrite_b):
    """Solve with the Cholesky factors of every member: x, info."""
    n, nrhs = extents(c)[:, 0], columns(b)
    x, info = outputs(b, overwrite_b), cupy.zeros(len(b), INT)
    call = Call(me, n, n * nrhs > 0)
    call.launch("potrs_small", call.matrices(c, not lower), call.matrices(b), call.matrices(x),
                call.numbers(info), not lower, call.sizes(n), call.sizes(nrhs))
    call.larger(lambda c, b: _gpu_cholesky.potrs(me, c, b, lower, 1), (c, b), (x,), info)
    return like(b, x), info


def posv(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    n, nrhs = extents(a)[:, 0], columns(b)
    c, x, info = outputs(a, overwrite_a), outputs(b, overwrite_b), cupy.zeros(len(a), INT)
    call = Call(me, n, n > 0)
    call.launch("posv_small", call.matrices(a, not lower), call.matrices(c, not lower),
                call.matrices(b), call.matrices(x), call.numbers(info), not lower, call.sizes(n),
                call.sizes(nrhs))
    call.larger(lambda a, b: _gpu_cholesky.posv(me, a, b, lower, 1, 1), (a, b), (c, x), info)
    return like(a, c), like(b, x), info


# -- operands


def extents(x):
    """The shapes of the members of a stack of matrices, (batch, 2)."""
    return (x.shapes if x.__class__ is Ragged
            else np.array([y.shape for y in x], np.int64).reshape(-1, 2))


def columns(b):
    """How many right-hand sides every member has."""
    if b.__class__ is Ragged:
        return b.shapes[:, 1] if b.shapes.shape[1] == 2 else np.ones(len(b), np.int64)
    return np.array([y.shape[1] if y.ndim == 2 else 1 for y in b], np.int64)


def outputs(x, overwrite):
    """Where results go: the operand, or one new buffer."""
    if overwrite:
        return x
    if x.__class__ is Ragged:
        return Ragged.empty_like(x.data, x.shapes)
    if not x or len({y.ndim for y in x}) == 1:
        return Ragged.empty_like(x[0] if x else cupy.empty(0), [y.shape for y in x] or
                                 np.empty((0, 2)))
    return [cupy.empty(y.shape, y.dtype) for y in x]


def like(x, result):
    """A result in the kind of its operand."""
    return result if x.__class__ is Ragged or result.__class__ is list else list(result)


def contiguous(piv):
    """Pivots of which each member's follow each other."""
    return piv if piv.__class__ is Ragged else [cupy.ascontiguousarray(x) for x in piv]


# -- the table


class Call:
    """One call: of the members that are `wanted`, not empty, those of the lanes' kernels in the
    order of their classes, and the rest."""

    def __init__(self, me, orders, wanted):
        self.me, self.orders = me, orders
        small = np.flatnonzero(wanted & (orders <= LARGEST))
        self.order = small[np.argsort(orders[small], kind="stable")]
        self.rest = np.flatnonzero(wanted & (orders > LARGEST)).tolist()

    def matrices(self, x, transposed=False):
        """The lines (address, row stride, column stride) of the members of x."""
        lines = np.empty((len(x), 3), np.int64)
        if x.__class__ is Ragged:
            lines[:, 0] = x.data.data.ptr + x.offsets * (x.data.strides[0])
            lines[:, 1] = (x.shapes[:, 1] if x.shapes.shape[1] == 2 else 1) * (
                x.data.strides[0] // x.data.itemsize)
            lines[:, 2] = x.data.strides[0] // x.data.itemsize
        else:
            for i, y in enumerate(x):
                size, strides = y.itemsize, y.strides
                lines[i] = (y.data.ptr, strides[0] // size,
                            strides[1] // size if len(strides) == 2 else 0)
        return self._add(lines[:, [0, 2, 1]] if transposed else lines)

    def vectors(self, x):
        """The addresses of the members of x, vectors whose elements follow each other."""
        if x.__class__ is Ragged:
            return self._add(x.data.data.ptr + x.offsets * x.data.itemsize)
        return self._add(np.array([y.data.ptr for y in x], np.int64))

    def numbers(self, x):
        """The addresses of the elements of x."""
        return self._add(x.data.ptr + x.itemsize * np.arange(len(x)))

    def sizes(self, x):
        """A size of every member."""
        return self._add(x)

    def _add(self, column):
        return np.ascontiguousarray(column[self.order], np.int64)

    def launch(self, name, *parameters):
        """Launch kernel `name` for the small members, class by class. A parameter is a column of
        the table, or a number that is the same for all."""
        if not len(self.order):
            return
        table = cupy.asarray(np.concatenate([p.ravel() for p in parameters
                                             if p.__class__ is np.ndarray]))
        for kernel, lo, hi in classes(name, self.me.letter, self.orders[self.order]):
            numbers, start = [], table.data.ptr
            for p in parameters:
                if p.__class__ is np.ndarray:
                    numbers.append(start + lo * p.strides[0])
                    numbers += (0, 0, 0) if p.ndim == 2 else ()
                    start += p.nbytes
                else:
                    numbers.append(p)
            kernel(hi - lo, *numbers)


    def larger(self, routine, operands, results, info):
        """The larger members, of one shape at a time, through a `_batched` routine."""
        groups = {}
        for i in self.rest:
            groups.setdefault(tuple(x[i].shape for x in operands), []).append(i)
        for group in groups.values():
            *found, infos = routine(*(cupy.stack([x[i] for i in group]) for x in operands))
            for result, stack in zip(results, found):
                for i, x in zip(group, stack):
                    result[i][...] = x
            info[group] = infos


def classes(name, letter, orders):
    """(kernel, first, last) for each tuned row in use, of members sorted by order."""
    lo = 0
    while lo < len(orders):
        found = row(name, letter, int(orders[lo]), gpu(current_device()))
        hi = int(np.searchsorted(orders, found["to"], "right"))
        yield teams(name, letter, **capitals(found), RAGGED=1), lo, hi
        lo = hi

