"""Eigenvalues and eigenvectors of a batch on the GPU: one-sided Jacobi (kernels/syevd_block.cu)
for small members; for larger ones a tridiagonal matrix (sytrd_rows.cu, sytrd_block.cu,
sytrd_cluster.cu), and its implicit QL (steqr_lane.cu), the rotations of which are applied to Q
(lasr_rows.cu), or for large ones divide and conquer (stedc_leaf.cu, stedc_merge.cu);
above the largest order of these the one-matrix routine in a loop."""

import cupy

from .._kernel import current_device, multiprocessors
from .._routine import Typed
from .._types import BY_DTYPE
from . import _gpu_qr
from ._block import (
    LEAF,
    forms_q,
    leaf_bytes,
    merge_bytes,
    rotation_bytes,
    sytrd_bytes,
    sytrd_cluster_bytes,
)
from ._gpu import LOWER, UPPER, blocks, infos, like, matrix, noted, past, scale
from ._gpu_blas import operand, product
from ._gpu_jacobi import in_parts, jacobi, parts
from ._gpu_ragged import Branches


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    batch, n, _ = a.shape
    kernel, steps = jacobi("syevd_block", me, n), ()
    if not kernel and not past(me, n):
        reduce = (blocks("sytrd_rows", me, n) or blocks("sytrd_block", me, n)
                  or _clusters(me, n, batch))
        steps = reduce, blocks("steqr_lane", me, n), blocks("lasr_rows", me, n)
    if not (kernel or steps and all(steps)):
        return _each(me, a, compute_v, lower, overwrite_a)
    w, info = cupy.ndarray((batch, n), me.real), infos(batch)
    v = like(a, overwrite_a) if compute_v else cupy.zeros((batch, 1, 1), me.dtype)
    if not kernel:
        leaf = blocks("stedc_leaf", me, n)
        if (leaf and blocks("stedc_merge", me, n)
                and (compute_v or noted("stedc_leaf", me, n, "values"))):
            _by_division(me, steps[0], leaf, a, v, w, info, compute_v, lower)
        else:
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


def _by_tridiagonal(me, steps, a, v, w, info, vectors, lower):
    """QL is done in passes, each followed by its rotations, for which there is room for a part of
    what QL may take; a random matrix has none left for the last."""
    batch, n, _ = a.shape
    reduce, ql, rotate = steps
    size, real, lanes = a.itemsize, me.real.itemsize, ql.values["LANES"]
    on_chip = "CLUSTER" not in reduce.values
    passes = ql.values["PARTS"] if vectors else 1
    turns, sweeps = (4 * n * n // passes + 16 * n, 4 * n) if vectors else (0, 30 * n)
    lead = n - 1 if on_chip else n   # of the reflectors, which else are where the matrix was
    room = _Room(factors=lead * lead * size * (vectors or not on_chip), tau=n * size,
                 d=n * real, e=n * real, most=real, order=4 * n, states=2 * 16,
                 turns=turns * 2 * real, sweeps=4 * sweeps * vectors)
    slabs = -(-n // rotate.values["ROWS"])
    forms = slabs == 1 and forms_q(me.letter, rotate.values)
    for part, base in in_parts(batch, room.nbytes):
        members = part.stop - part.start
        at = room.addresses(base, members)
        reflectors = at["factors"] + (not on_chip) * size
        _reduce(me, reduce, a[part], lower, vectors, reflectors, lead, at)
        states = [at["states"], at["states"] + 16 * members]
        for k in range(passes):
            before, after = states[::-1] if k % 2 == 0 else states
            first, last = k == 0, k == passes - 1
            ql(-(-members // lanes), 2 * n * lanes * real, at["d"], at["e"], at["most"],
               at["turns"], turns, at["sweeps"], sweeps, before, after, vectors, first, last,
               w[part].data.ptr, at["order"], info[part].data.ptr, n, members)
            if not vectors:
                continue
            if first and not forms:
                _gpu_qr.form_q_at(me, (reflectors, 1, lead, lead * lead), at["tau"], n,
                                  v[part, 1:, 1:])
            rotate(members * slabs, rotation_bytes(me.letter, n, rotate.values), *matrix(v[part]),
                   reflectors, lead, lead * lead, at["tau"], forms, at["turns"], turns,
                   at["sweeps"], sweeps, after, at["order"], at["most"], first, last, n)


def _by_division(me, reduce, leaf, a, v, w, info, vectors, lower):
    """The tridiagonal matrices are cut in two until parts have LEAF rows at most; the vectors of
    parts are put together by twos, by products (of the whole only if they are wanted), and
    multiplied by Q, as many columns side by side as the row says."""
    batch, n, _ = a.shape
    strip = noted("stedc_leaf", me, n, "strip") or n
    size, real = a.itemsize, Typed(me.name, BY_DTYPE[me.real].letter)
    on_chip = "CLUSTER" not in reduce.values
    lead = n - 1 if on_chip else n   # of the reflectors, which else are where the matrix was
    bytes_ = me.real.itemsize
    room = _Room(factors=lead * lead * size, tau=n * size, d=n * bytes_, e=n * bytes_, most=bytes_,
                 values=n * bytes_)
    leaves = 2
    while leaves * LEAF < n:
        leaves *= 2
    for part in parts(batch, room.nbytes + 3 * n * n * bytes_):
        members = part.stop - part.start
        memory = cupy.cuda.alloc(members * room.nbytes)
        z, put_together, u = (cupy.ndarray((members, n, n), me.real) for _ in range(3))
        at = room.addresses(memory.ptr, members)
        reflectors = at["factors"] + (not on_chip) * size
        _reduce(me, reduce, a[part], lower, vectors, reflectors, lead, at)
        info[part] = 0
        numbers = at["d"], at["e"], at["most"], at["values"]
        leaf(-(-members * leaves // leaf.values["WARPS"]), leaf_bytes(me.letter, leaf.values),
             *numbers, z.data.ptr, info[part].data.ptr, n, leaves, members)
        count = leaves
        while count > 1:
            count //= 2
            if count == 1 and vectors and not me.is_complex:
                put_together = v[part]
            _put_together(me, real, at, z, u, put_together, w[part], info[part], vectors, count)
            z, put_together = put_together, z
        if not vectors:
            continue
        if me.is_complex:
            v[part] = z
        with Branches(-(-n // strip)) as branches:
            for i, low in enumerate(range(0, n, strip)):
                with branches[i]:
                    _gpu_qr.multiply_at(me, (reflectors, 1, lead, lead * lead), at["tau"], n, n - 1,
                                        v[part, 1:, low:low + strip])


def _put_together(me, real, at, z, u, out, w, info, vectors, count):
    """Two parts each of `count` become one: their eigenvalues, and vectors Z U, to `out`; of the
    whole only if `vectors` are wanted."""
    members, n, _ = z.shape
    warps = blocks("stedc_merge", me, n).values["WARPS"]
    merge = blocks("stedc_merge", me, n, ("WARPS", max(1, warps // count)))
    merge(members * count, merge_bytes(me.letter, -(-n // count)), at["values"], at["e"],
          at["most"], z.data.ptr, u.data.ptr, 0 if count > 1 else w.data.ptr, info.data.ptr, n,
          count)
    if count == 1 and not vectors:
        return
    ends = [i * n // (2 * count) for i in range(2 * count + 1)]
    for i in range(2 * count):
        first, end = ends[i:i + 2]
        low, high = ends[i - i % 2], ends[i - i % 2 + 2]
        o = operand(out[:, first:end, low:high])
        product(real, end - first, high - low, end - first, operand(z[:, first:end, first:end]),
                operand(u[:, first:end, low:high]), o, o, 1, 0, members)


def _reduce(me, reduce, a, lower, vectors, reflectors, lead, at):
    """The tridiagonal matrices, and the reflectors, `lead` from one column to the next."""
    (batch, n, _), v = a.shape, reduce.values
    # The upper triangle is the lower one of the transpose, which is the conjugate
    numbers = (*matrix(a, not lower), not lower, reflectors, lead, lead * lead, at["tau"],
               vectors, at["d"], at["e"], at["most"])
    if "N" in v:  # sytrd_rows
        reduce(-(-batch // (32 * v["WARPS"] * v["EACH"] // v["N"])), 0, *numbers, n, batch)
    elif "CLUSTER" not in v:
        reduce(batch, sytrd_bytes(me.letter, n, v), *numbers, n)
    else:
        reduce(batch * v["CLUSTER"], sytrd_cluster_bytes(me.letter, n, v), *numbers,
               at["factors"], lead * lead, n)


def _clusters(me, n, batch):
    """Of sytrd_cluster: as many blocks to a member as find room with those of all at once, for the
    bits are the same. GPUs have them together by at least eight."""
    kernel = blocks("sytrd_cluster", me, n)
    room, most = multiprocessors(current_device()) // 8 * 8, kernel and kernel.values["CLUSTER"]
    while kernel and most > 1 and batch * most > room:
        most //= 2
    return kernel and blocks("sytrd_cluster", me, n, ("CLUSTER", most))


def both_triangles(a, lower):
    """The Hermitian matrices that a triangle gives, also of subnormal numbers, which CuPy's
    arithmetic takes for zeros."""
    x = cupy.ndarray(a.shape, a.dtype)
    scale(a, x, infos(len(a), zero=True), find=False, part=LOWER if lower else UPPER)
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
