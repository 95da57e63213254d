"""Eigenvalues and eigenvectors of a batch on the GPU: one-sided Jacobi (kernels/syevd_block.cu)
for small members; for larger ones a tridiagonal matrix (sytrd_rows.cu, sytrd_block.cu), its
implicit QL (steqr_lane.cu), and the rotations of that applied to Q (lasr_rows.cu); above the
largest order of these the one-matrix routine in a loop."""

import cupy

from .._kernel import current_device, gpu
from .._tuned import looked_up, row
from . import _gpu_qr
from ._block import forms_q, rotation_bytes, sytrd_bytes
from ._gpu import LOST, LOWER, UPPER, blocks, infos, like, matrix, past, scale
from ._gpu_jacobi import in_parts, jacobi
from ._gpu_ragged import Branches


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    batch, n, _ = a.shape
    kernel, steps = jacobi("syevd_block", me, n), ()
    if not kernel and not past(me, n):
        steps = (blocks("sytrd_rows", me, n) or blocks("sytrd_block", me, n),
                 blocks("steqr_lane", me, n), blocks("lasr_rows", me, n))
    if not (kernel or steps and all(steps)):
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


@looked_up
def _passes(letter, n, device):
    """Of QL: so many, of up to so many blocks (None: of any), and of more."""
    found = row("steqr_lane", letter, n, gpu(device))
    return found["PARTS"], found.get("upto"), found.get("many")


def _by_tridiagonal(me, steps, a, v, w, info, vectors, lower):
    """QL is done in passes, each followed by its rotations. With more than two, of which a random
    matrix needs a third, Q is formed while QL is at the first, the rotations of one pass are
    applied while QL is at the next one's, and the rooms of a pass are there twice. That is ahead
    where QL's chains leave multiprocessors to the rotations."""
    batch, n, _ = a.shape
    reduce, ql, rotate = steps
    size, real, lanes = a.itemsize, me.real.itemsize, ql.values["LANES"]
    on_chip = reduce.values.get("SHARED", 1)
    passes, upto, many = _passes(me.letter, n, current_device())
    if upto and -(-batch // lanes) > upto:
        passes = many
    passes = passes if vectors else 1
    turns, sweeps = (4 * n * n // passes + 16 * n, 4 * n) if vectors else (0, 30 * n)
    rooms = 1 + (passes > 2)
    lead = n - 1 if on_chip else n   # of the reflectors, which else are where the matrix was
    room = _Room(factors=lead * lead * size * (vectors or not on_chip), tau=n * size,
                 d=n * real, e=n * real, most=real, order=4 * n, states=2 * 16,
                 turns=rooms * turns * 2 * real, sweeps=rooms * 4 * sweeps * vectors)
    slabs = -(-n // rotate.values["ROWS"])
    forms = slabs == 1 and forms_q(me.letter, rotate.values)
    for part, base in in_parts(batch, room.nbytes):
        members = part.stop - part.start
        at = room.addresses(base, members)
        reflectors = at["factors"] + (not on_chip) * size
        _reduce(me, reduce, a[part], lower, vectors, reflectors, lead, at)

        def places(k):
            """Of pass k: its rotations, sweeps and states."""
            return [at[name] + k % count * members * each for name, count, each in (
                ("turns", rooms, turns * 2 * real), ("sweeps", rooms, sweeps * 4),
                ("states", 2, 16))]

        def find(k):
            of_turns, of_sweeps, states = places(k)
            ql(-(-members // lanes), 2 * n * lanes * real, at["d"], at["e"], at["most"],
               of_turns, turns, of_sweeps, sweeps, places(k - 1)[2], states, vectors, k == 0,
               k == passes - 1, w[part].data.ptr, at["order"], info[part].data.ptr, n, members)

        def apply(k):
            of_turns, of_sweeps, states = places(k)
            rotate(members * slabs, rotation_bytes(me.letter, n, rotate.values),
                   *matrix(v[part]), reflectors, lead, lead * lead, at["tau"], forms, of_turns,
                   turns, of_sweeps, sweeps, states, at["order"], at["most"], k == 0,
                   k == passes - 1, n)

        with Branches(rooms) as branches:
            finding, applying, applied = branches[1], branches[0], []
            for k in range(passes):
                if len(applied) > 1:  # the room of the pass before the last is free again
                    finding.wait_event(applied[-2])
                with finding:
                    find(k)
                if not vectors:
                    continue
                with applying:
                    if k == 0 and not forms:
                        _gpu_qr.form_q_at(me, (reflectors, 1, lead, lead * lead), at["tau"], n,
                                          v[part, 1:, 1:])
                    if rooms > 1:
                        applying.wait_event(
                            finding.record(cupy.cuda.Event(disable_timing=True)))
                    apply(k)
                    if rooms > 1:
                        applied.append(applying.record(cupy.cuda.Event(disable_timing=True)))


def _reduce(me, reduce, a, lower, vectors, reflectors, lead, at):
    """The tridiagonal matrices, and the reflectors, `lead` from one column to the next."""
    (batch, n, _), v = a.shape, reduce.values
    # The upper triangle is the lower one of the transpose, which is the conjugate
    numbers = (*matrix(a, not lower), not lower, reflectors, lead, lead * lead, at["tau"],
               vectors, at["d"], at["e"], at["most"])
    if "N" in v:  # sytrd_rows
        reduce(-(-batch // (32 * v["WARPS"] * v["EACH"] // v["N"])), 0, *numbers, n, batch)
    else:
        reduce(batch, sytrd_bytes(me.letter, n, v), *numbers, at["factors"], lead * lead, n)


def both_triangles(a, lower):
    """The Hermitian matrices that a triangle gives, also of subnormal numbers, which CuPy's
    arithmetic takes for zeros."""
    x = cupy.ndarray(a.shape, a.dtype)
    scale(a, x, infos(len(a)), target=LOST, always=False, part=LOWER if lower else UPPER)
    return x


def _each(me, a, compute_v, lower, overwrite_a):
    from ..eig import syevd as one
    results = [one(x, compute_v, lower) for x in a]
    w, v, info = (cupy.stack(x) for x in zip(*results))
    if not compute_v:
        return w, cupy.zeros((len(a), 1, 1), me.dtype), info
    if overwrite_a:
        a[...] = v
    return w, a if overwrite_a else v, info
