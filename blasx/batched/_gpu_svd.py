"""Singular value decompositions of a batch on the GPU: one-sided Jacobi by own kernels
(kernels/svd.cuh), the one-matrix routine in a loop above their largest order."""

from functools import cache

import cupy

from .._kernel import Kernel, current_device, gpu, pack
from .._tuned import capitals, looked_up, row
from ._block import svd_room
from ._gpu import infos, matrix

TALL = 32      # a member with more rows than this, and twice its columns, has a QR first
MEMORY = 2**32  # bytes of columns that are in global memory at a time


class Teams:
    """A kernel of svd.cuh with one set of constants."""

    def __init__(self, kernel, letter, values):
        self.kernel, self.values = Kernel(kernel, letter, **values), values
        self.threads = 32 * values["WARPS"]
        self.members = self.threads // (values["LANES"] * values["GROUPS"])  # to a block
        self.vectors = kernel == "gesvd_vectors"

    def __call__(self, batch, shared, *numbers):
        self.kernel.launch(-(-batch // self.members), 1, self.threads, 1, pack(*numbers, batch),
                           shared)


@cache
def teams(kernel, letter, values):
    """One object for all orders that are served by the same constants."""
    return Teams(kernel, letter, dict(values))


@looked_up
def kernel_on(kernel, letter, n, device):
    """The kernel for members of at most n rows and columns, or None past its last row."""
    found = row(kernel, letter, n, gpu(device))
    return found and teams(kernel, letter, tuple(capitals(found).items()))


def gesvd(me, a, compute_uv, full):
    """u, s, vt, info of every (m, n) member: of A^H = V S U^H where m < n."""
    batch, m, n = a.shape
    k = min(m, n)
    name = "gesvd_vectors" if compute_uv else "gesvd_values"
    tall = max(m, n) > TALL and max(m, n) >= 2 * k
    if kernel_on(name, me.letter, k if tall else max(m, n), current_device()) is None:
        return _each(me, a, compute_uv, full)
    s, info = cupy.ndarray((batch, k), me.real), infos(batch)
    u, vt = (cupy.zeros((batch, 1, 1), me.dtype) for _ in "uv")
    if compute_uv:
        u = cupy.ndarray((batch, m, m if full else k), me.dtype)
        vt = cupy.ndarray((batch, n if full else k, n), me.dtype)
    work = _by_qr if tall else _jacobi
    # The tall factor T and the square one W: U and (V^H)^H, or V and U of the adjoint
    if m >= n:
        work(me, name, a, 0, u, 0, vt.transpose(0, 2, 1), 1, s, info)
    else:
        work(me, name, a.transpose(0, 2, 1), 1, vt.transpose(0, 2, 1), 1, u, 0, s, info)
    return u, s, vt, info


def _jacobi(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """T S W^H of every (m, n) member of A or its conjugate, m >= n, by the kernel."""
    batch, m, n = a.shape
    kernel = kernel_on(name, me.letter, m, current_device())
    numbers, shared = svd_room(me.letter, n, kernel.vectors, kernel.values)
    some, memory = batch, None
    if not kernel.values["SHARED"]:
        some = max(1, min(batch, MEMORY // (numbers * a.itemsize)))
        memory = cupy.cuda.alloc(some * numbers * a.itemsize)
    for lo in range(0, batch, some):
        part = slice(lo, lo + some)
        vectors = (*matrix(t[part]), conj_t, *matrix(w[part]), conj_w) if kernel.vectors else ()
        kernel(len(s[part]), shared, *matrix(a[part]), conj_a, *vectors, s[part].data.ptr,
               info[part].data.ptr, memory.ptr if memory else 0, m, n,
               *((t.shape[2],) if kernel.vectors else ()))


def _by_qr(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """As `_jacobi`: A = Q R, R = T' S W^H, T = Q T'."""
    from . import _gpu_qr
    batch, m, n = a.shape
    qr, tau, _ = _gpu_qr.geqrf(me, a.conj() if conj_a else a, 0)
    r = cupy.triu(qr[:, :n])
    if name == "gesvd_values":
        return _jacobi(me, name, r, 0, t, 0, w, 0, s, info)
    c = cupy.zeros(t.shape, me.dtype)
    j = cupy.arange(n, t.shape[2])
    c[:, j, j] = 1
    _jacobi(me, name, r, 0, c[:, :n, :n], 0, w, conj_w, s, info)
    q, _ = _gpu_qr.ormqr(me, "L", "N", qr, tau, c, 1)
    t[...] = q.conj() if conj_t else q


def _each(me, a, compute_uv, full):
    from ..svd import gesvd as one
    results = [one(x, compute_uv, full) for x in a]
    u, s, vt, info = (cupy.stack(x) for x in zip(*results))
    return u, s, vt, info
