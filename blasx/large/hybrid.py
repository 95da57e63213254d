"""One large matrix by CPU and GPU together, as MAGMA does it: a panel goes to the CPU, where LAPACK
factors it, while the GPU is at the products of the panel before (_blocks.py).

The host waits for every panel; the last products are in the caller's stream when a call returns.
Panels are as wide as tuned rows say ("getrf_hybrid" ...): the CPU's part grows with them, and so
does the speed of the products. (Tomov, Dongarra, Baboulin, Parallel Computing 36, 2010.)
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._kernel import current_device, gpu
from .._lapack import INT
from .._tuned import constants
from . import cholesky, lu, qr
from ._pinned import IN_DEVICE, Pinned, copy, fetch, send


def panel_width(me, routine, order):
    """Of a panel."""
    found = constants(routine + "_hybrid", me.letter, order, gpu(current_device()))
    return min(found["WIDTH"], order)


def getrf(me, a):
    """Factor a column-major matrix in place; pivots, counted from 0, and info."""
    panels = LU(me, a, panel_width(me, "getrf", min(a.shape)))
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

    def factor(self, j, width, tops):
        panel, piv = self.host.matrix(self.m - j, width), np.empty(width, INT)
        with _trace.step("receive", j):
            fetch(panel, self.at(j, j), self.ld)
        with _trace.step("panel", j, in_stream=False):
            info = self.me.fortran("getrf", *panel.shape, panel, len(panel), piv)
        self.lost = self.lost or info and j + info
        mine = self.pivots.numbers[j:j + width, None]
        mine[:, 0] = piv + (j - 1)
        with _trace.step("send", j):
            send(panel, self.at(j, j), self.ld)
            send(mine, self.piv.data.ptr + 4 * j, width)
        if width < self.n:
            tops.parts[0].make(self, j, width)


def geqrf(me, a, tau):
    """Factor a column-major matrix in place, into `tau` too."""
    panels = QR(me, a, tau, panel_width(me, "geqrf", min(a.shape)))
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
        with _trace.step("receive", j):
            fetch(panel, self.at(j, j), self.ld)
        with _trace.step("panel", j, in_stream=False):
            self.me.worked("geqrf", None, rows, width, panel, rows, scales)
            made = np.zeros((width, width), self.me.dtype, order="F")
            self.me.fortran("larft", "F", "C", rows, width, panel, rows, scales, made, width)
            t[...] = made.conj().T
            top[...] = np.tril(panel[:width], -1) + np.eye(width)
        with _trace.step("send", j):
            send(panel, self.at(j, j), self.ld)
            send(scales[:, None], self.tau.data.ptr + j * self.size, width)
            send(t, its.t(0), self.block)
            copy(its.v(0, 0), its.ld, self.at(j, j), self.ld, panel, IN_DEVICE)
            send(top, its.v(0, 0), its.ld)


def potrf(me, c, lower):
    """Factor the `lower` triangle of a column-major matrix in place; info."""
    panels = Cholesky(me, c, lower, panel_width(me, "potrf", len(c)))
    panels.factor_ahead()
    _cuda.hold(panels.host)
    return cupy.full((), panels.lost, np.int32)


class Cholesky(cholesky.Factoring):
    """Cholesky of which the CPU factors the blocks on the diagonal."""

    def __init__(self, me, c, lower, width):
        super().__init__(me, c, lower, width)
        self.host, self.lost = Pinned(width * width, me.dtype), 0

    def factor_block(self, j, width):
        from ..cholesky import _failed_at
        block = self.host.matrix(width, width)
        with _trace.step("receive", j):
            fetch(block, *self.at(j, j))
        with _trace.step("panel", j, in_stream=False):
            info = _failed_at(block, self.me.fortran("potrf", "UL"[self.lower], width, block,
                                                     width))
        self.lost = self.lost or info and j + info
        with _trace.step("send", j):
            send(block, *self.at(j, j))
