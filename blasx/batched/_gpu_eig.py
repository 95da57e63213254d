"""Eigenvalues and eigenvectors of a batch on the GPU: kernels/syevd_block.cu, the one-matrix
routine in a loop above its largest order."""

import cupy

from .._kernel import current_device
from ._block import svd_room
from ._gpu import infos, like, matrix
from ._gpu_svd import MEMORY, kernel_on


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    batch, n, _ = a.shape
    kernel = kernel_on("syevd_block", me.letter, n, current_device())
    if kernel is None:
        return _each(me, a, compute_v, lower, overwrite_a)
    w, info = cupy.ndarray((batch, n), me.real), infos(batch)
    v = like(a, overwrite_a) if compute_v else cupy.zeros((batch, 1, 1), me.dtype)
    numbers, shared = svd_room(me.letter, n, False, kernel.values)
    some, memory = batch, None
    if not kernel.values["SHARED"]:
        some = max(1, min(batch, MEMORY // (numbers * a.itemsize)))
        memory = cupy.cuda.alloc(some * numbers * a.itemsize)
    for lo in range(0, batch, some):
        part = slice(lo, lo + some)
        # The upper triangle is the lower one of the transpose, which is the conjugate
        kernel(len(w[part]), shared, *matrix(a[part], not lower), not lower, *matrix(v[part]),
               compute_v, w[part].data.ptr, info[part].data.ptr, memory.ptr if memory else 0, n)
    return w, v, info


def _each(me, a, compute_v, lower, overwrite_a):
    from ..eig import syevd as one
    results = [one(x, compute_v, lower) for x in a]
    w, v, info = (cupy.stack(x) for x in zip(*results))
    if not compute_v:
        return w, cupy.zeros((len(a), 1, 1), me.dtype), info
    if overwrite_a:
        a[...] = v
    return w, a if overwrite_a else v, info
