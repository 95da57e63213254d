"""One large matrix by CPU and GPU together, as MAGMA does it: a panel goes to the CPU, where LAPACK
factors it, while the GPU is at the products of the panel before (_blocks.py).

The host waits for every panel; the last products are in the caller's stream when a call returns.
The CPU's part grows with the width of the panels, and so does the speed of the products. (Tomov,
Dongarra, Baboulin, Parallel Computing 36, 2010.)
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._kernel import current_device
from .._lapack import INT
from . import _blocks, lu, qr

WIDTH = {"getrf": 64, "potrf": 256, "geqrf": 32}  # of a panel: MAGMA's, not measured here
TO_DEVICE, TO_HOST, IN_DEVICE = 1, 2, 3  # cudaMemcpyKind


def getrf(me, a):
    """Factor a column-major matrix in place; pivots, counted from 0, and info."""
    panels = LU(me, a, min(WIDTH["getrf"], *a.shape))
    panels.factor_ahead()
    _cuda.hold((panels.host, panels.pivots))
    panels.info.fill(panels.lost)
    return panels.piv, panels.info


class LU(lu.Factoring):
    """LU of which the CPU factors the blocks."""

    def __init__(self, me, a, width):
        super().__init__(me, a, width, width)
        self.host = Pinned(self.m * width, me.dtype)
        self.pivots = Pinned(self.order, np.dtype(np.int32))
        self.lost = 0

    def factor(self, j, width, top):
        panel, piv = self.host.matrix(self.m - j, width), np.empty(width, INT)
        fetch(panel, self.at(j, j), self.ld)
        info = self.me.fortran("getrf", *panel.shape, panel, len(panel), piv)
        self.lost = self.lost or info and j + info
        send(panel, self.at(j, j), self.ld)
        mine = self.pivots.numbers[j:j + width, None]
        mine[:, 0] = piv + (j - 1)
        send(mine, self.piv.data.ptr + 4 * j, width)
        if width < self.n:
            top.make(self, j, width)


def geqrf(me, a, tau):
    """Factor a column-major matrix in place, into `tau` too."""
    panels = QR(me, a, tau, min(WIDTH["geqrf"], *a.shape))
    panels.factor_ahead()
    _cuda.hold((panels.host, panels.small))


class QR(qr.Factoring):
    """QR of which the CPU factors the blocks."""

    def __init__(self, me, a, tau, width):
        super().__init__(me, a, tau, width, width)
        self.host = Pinned(self.m * width, me.dtype)
        self.small = Pinned(2 * width**2 + width, me.dtype)  # T^H, the top of V, tau

    def factor(self, j, width, its):
        rows, small, square = self.m - j, self.small.numbers, width**2
        panel, scales = self.host.matrix(rows, width), small[2 * square:][:width]
        t, top = small[:2 * square].reshape(2, width, width).transpose(0, 2, 1)
        fetch(panel, self.at(j, j), self.ld)
        self.me.worked("geqrf", None, rows, width, panel, rows, scales)
        made = np.zeros((width, width), self.me.dtype, order="F")
        self.me.fortran("larft", "F", "C", rows, width, panel, rows, scales, made, width)
        t[...] = made.conj().T
        top[...] = np.tril(panel[:width], -1) + np.eye(width)
        send(panel, self.at(j, j), self.ld)
        send(scales[:, None], self.tau.data.ptr + j * self.size, width)
        send(t, its.t(0), self.block)
        _copy(its.v(0, 0), its.ld, self.at(j, j), self.ld, panel, IN_DEVICE)
        send(top, its.v(0, 0), its.ld)


def potrf(me, c, lower):
    """Factor the `lower` triangle of a column-major matrix in place; info.

    Left-looking: a column of blocks has all that is left of it taken off at once. Its diagonal
    block goes first, and to the CPU while the GPU is at the others."""
    from ..cholesky import _failed_at
    n, ld, size = c.shape[0], _cuda.ld(c), c.itemsize
    width = min(WIDTH["potrf"], n)
    host, ahead = Pinned(width * width, me.dtype), _blocks.stream(current_device())
    main = cupy.cuda.get_current_stream()
    minus, one = _cuda.scalar(me, -1), _cuda.scalar(me, 1)
    real_minus, real_one = _cuda.real_scalar(me, -1), _cuda.real_scalar(me, 1)
    rank_k = me.L + ("herk" if me.is_complex else "syrk")
    fill, turn = _cuda.fill(lower), 2 if me.is_complex else 1

    def at(i, j):  # element (i, j) of L, or of U^H
        return c.data.ptr + size * (i + j * ld if lower else j + i * ld)

    for j in range(0, n, width):
        own, below = min(width, n - j), max(n - j - width, 0)
        if j:
            _cuda.blas(rank_k, fill, 0 if lower else turn, own, j, real_minus, at(j, 0), ld,
                       real_one, at(j, j), ld)
        ahead.wait_event(_blocks.mark(main))
        if j and below:
            rows, its = (below, at(j + own, 0)), (own, at(j, 0))
            (p, a), (q, b) = (rows, its) if lower else (its, rows)
            _cuda.blas(me.L + "gemm", *((0, turn) if lower else (turn, 0)), p, q, j, minus, a, ld,
                       b, ld, one, at(j + own, j), ld)
        block = host.matrix(own, own)
        with ahead:
            fetch(block, at(j, j), ld)
            info = _failed_at(block, me.fortran("potrf", "UL"[lower], own, block, own))
            send(block, at(j, j), ld)
        main.wait_event(_blocks.mark(ahead))
        _cuda.hold(host)
        if info:
            return cupy.full((), j + info, np.int32)
        if below:
            side, p, q = (_cuda.RIGHT, below, own) if lower else (_cuda.LEFT, own, below)
            _cuda.blas(me.L + "trsm", side, fill, turn, _cuda.NON_UNIT, p, q, one, at(j, j), ld,
                       at(j + own, j), ld)
    return cupy.zeros((), np.int32)


class Pinned:
    """Memory of the host that the GPU reaches by itself, of so many numbers."""

    def __init__(self, numbers, dtype):
        self.memory = cupy.cuda.alloc_pinned_memory(max(numbers, 1) * dtype.itemsize)
        self.numbers = np.frombuffer(self.memory, dtype, numbers)

    def matrix(self, m, n):
        """An m x n matrix by columns at its beginning."""
        return self.numbers[:m * n].reshape(n, m).T


def fetch(x, address, ld):
    """x := the matrix at that address, columns `ld` numbers apart; waits for it."""
    _copy(x.ctypes.data, len(x), address, ld, x, TO_HOST)
    cupy.cuda.get_current_stream().synchronize()
    _trace.note("lapack", transferred=x.nbytes, synced=1)


def send(x, address, ld):
    """The matrix at that address := x, which must stay what it is until the stream is there."""
    _copy(address, ld, x.ctypes.data, x.strides[1] // x.itemsize, x, TO_DEVICE)
    _trace.note(transferred=x.nbytes)


def _copy(to, to_ld, from_, from_ld, x, kind):
    """What is like `x`, columns so many numbers apart on either side, in the current stream."""
    size, (m, n) = x.itemsize, x.shape
    cupy.cuda.runtime.memcpy2DAsync(to, to_ld * size, from_, from_ld * size, m * size, n, kind,
                                    cupy.cuda.get_current_stream().ptr)
