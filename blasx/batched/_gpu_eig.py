"""Eigenvalues and eigenvectors of a batch on the GPU: one-sided Jacobi (kernels/syevd_block.cu)
for small members; for larger ones a tridiagonal matrix (sytrd_rows.cu, sytrd_block.cu), its
implicit QL (steqr_lane.cu), and the rotations of that applied to Q (lasr_rows.cu); above the
largest order of these the one-matrix routine in a loop."""

from functools import cache

import cupy

from .._kernel import Kernel, current_device, gpu, pack
from .._tuned import capitals, looked_up, row
from . import _gpu_qr
from ._block import rotation_bytes, sytrd_bytes
from ._gpu import infos, like, matrix
from ._gpu_jacobi import in_parts, jacobi

PASSES = 3  # of QL and of its rotations; a random matrix needs one


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    batch, n, _ = a.shape
    kernel, steps = jacobi("syevd_block", me, n), _steps(me.letter, n, current_device())
    if not (kernel or steps):
        return _each(me, a, compute_v, lower, overwrite_a)
    w, info = cupy.ndarray((batch, n), me.real), infos(batch)
    v = like(a, overwrite_a) if compute_v else cupy.zeros((batch, 1, 1), me.dtype)
    if not kernel:
        _by_tridiagonal(me, steps, a, v, w, info, compute_v, lower)
    else:
        # The upper triangle is the lower one of the transpose, which is the conjugate
        kernel(batch, n, a.itemsize, lambda part, work: (
            *matrix(a[part], not lower), not lower, *matrix(v[part]), compute_v,
            w[part].data.ptr, info[part].data.ptr, work, n))
    return w, v, info


@looked_up
def _steps(letter, n, device):
    """The three kernels with their constants, or None past the last row of one."""
    found = [(name, row(name, letter, n, gpu(device)))
             for name in ("sytrd_rows", "sytrd_block", "steqr_lane", "lasr_rows")]
    del found[1 if found[0][1] else 0]
    return all(values for _, values in found) and [
        _step(name, letter, tuple(capitals(values).items())) for name, values in found]


@cache
def _step(name, letter, values):
    return Kernel(name, letter, **dict(values)), dict(values)


class _Room:
    """A workspace of the size that its parts come to, each of which is given an address in it."""

    def __init__(self, **sizes):
        self.at, self.nbytes = {}, 0
        for name, nbytes in sizes.items():
            self.at[name] = self.nbytes
            self.nbytes += -(-nbytes // 128) * 128

    def addresses(self, base, members):
        """Where each part begins, for all members one after the other."""
        return {name: base + members * at for name, at in self.at.items()}


def _by_tridiagonal(me, steps, a, v, w, info, vectors, lower):
    batch, n, _ = a.shape
    reduce, (ql, lanes), (rotate, rows) = steps
    size, real = a.itemsize, me.real.itemsize
    on_chip = reduce[1].get("SHARED", 1)
    turns, sweeps = (3 * n * n // 2 + 16 * n, 4 * n) if vectors else (0, 30 * n)
    lead = n - 1 if on_chip else n   # of the reflectors, which else are where the matrix was
    room = _Room(factors=lead * lead * size * (vectors or not on_chip), tau=n * size,
                 d=n * real, e=n * real, most=real, turns=turns * 2 * real,
                 sweeps=4 * sweeps * vectors, states=16, order=4 * n)
    slabs = -(-n // rows["ROWS"])
    for part, base in in_parts(batch, room.nbytes):
        members = part.stop - part.start
        at = room.addresses(base, members)
        reflectors = at["factors"] + (not on_chip) * size
        _reduce(me, reduce, a[part], lower, vectors, reflectors, lead, at)
        if vectors:
            _gpu_qr.form_q_at(me, (reflectors, 1, lead, lead * lead), at["tau"], n,
                              v[part, 1:, 1:])
        for k in range(PASSES if vectors else 1):
            last = k == PASSES - 1 or not vectors
            ql.launch(-(-members // lanes["LANES"]), 1, 32, 1, pack(
                at["d"], at["e"], at["most"], at["turns"], turns, at["sweeps"], sweeps,
                at["states"], vectors, k == 0, last, w[part].data.ptr, at["order"],
                info[part].data.ptr, n, members), 2 * n * lanes["LANES"] * real)
            if vectors:
                rotate.launch(members * slabs, 1, 32 * rows["WARPS"], 1, pack(
                    *matrix(v[part]), at["turns"], turns, at["sweeps"], sweeps, at["states"],
                    at["order"], at["most"], k == 0, last, n), rotation_bytes(me.letter, n, rows))


def _reduce(me, reduce, a, lower, vectors, reflectors, lead, at):
    """The tridiagonal matrices, and the reflectors, `lead` from one column to the next."""
    (kernel, how), (batch, n, _) = reduce, a.shape
    # The upper triangle is the lower one of the transpose, which is the conjugate
    parameters = (*matrix(a, not lower), not lower, reflectors, lead, lead * lead, at["tau"],
                  vectors, at["d"], at["e"], at["most"])
    if kernel.name == "sytrd_rows":
        members = 32 * how["WARPS"] * how["EACH"] // how["N"]
        kernel.launch(-(-batch // members), 1, 32 * how["WARPS"], 1, pack(*parameters, n, batch))
    else:
        kernel.launch(batch, 1, 32 * how["WARPS"], 1,
                      pack(*parameters, at["factors"], lead * lead, n),
                      sytrd_bytes(me.letter, n, how))


def _each(me, a, compute_v, lower, overwrite_a):
    from ..eig import syevd as one
    results = [one(x, compute_v, lower) for x in a]
    w, v, info = (cupy.stack(x) for x in zip(*results))
    if not compute_v:
        return w, cupy.zeros((len(a), 1, 1), me.dtype), info
    if overwrite_a:
        a[...] = v
    return w, a if overwrite_a else v, info
