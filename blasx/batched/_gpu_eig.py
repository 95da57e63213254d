"""Eigenvalues and eigenvectors of a batch on the GPU: one-sided Jacobi (kernels/syevd_block.cu)
for small members; for larger ones a tridiagonal matrix (sytrd_rows.cu, sytrd_block.cu,
sytrd_cluster.cu), and its implicit QL (steqr_lane.cu), the rotations of which are applied to Q
(lasr_rows.cu), or for large ones divide and conquer (stedc_leaf.cu, stedc_merge.cu);
above the largest order of these the one-matrix routine in a loop."""

import cupy

from .._kernel import current_device, multiprocessors
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
from ._gpu_blas import ALL, operand, tiled
from ._gpu_jacobi import in_parts, jacobi, parts


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    batch, n, _ = a.shape
    kernel = by_jacobi(me, n, compute_v)
    steps = (kernel,) if kernel else tridiagonal(me, n)
    if not all(steps):
        return _each(me, a, compute_v, lower, overwrite_a)
    w, info = cupy.ndarray((batch, n), me.real), infos(batch)
    v = like(a, overwrite_a) if compute_v else cupy.zeros((batch, 1, 1), me.dtype)
    if kernel:
        # The upper triangle is the lower one of the transpose, which is the conjugate
        kernel(batch, n, a.itemsize, lambda part, work: (
            *matrix(a[part], not lower), not lower, *matrix(v[part]), compute_v,
            w[part].data.ptr, info[part].data.ptr, work, n, n))
    elif leaf := dividing(me, n, compute_v):
        _by_division(me, steps[0], leaf, a, v, w, info, compute_v, lower)
    else:
        _by_ql(me, *steps, a, v, w, info, compute_v, lower)
    return w, v, info


def by_jacobi(me, n, vectors):
    """The kernel that diagonalizes members of order n, or None where it does not or, for values
    alone, where the row says that QL is faster."""
    kernel = jacobi("syevd_block", me, n)
    return kernel if vectors or not kernel or not noted("syevd_block", me, n, "vectors") else None


def tridiagonal(me, n):
    """The kernels that make members of order n tridiagonal, take these to their eigenvalues, and
    turn vectors; None for each that there is not."""
    if past(me, n):
        return None, None, None
    reduce = (blocks("sytrd_rows", me, n) or blocks("sytrd_block", me, n)
              or blocks("sytrd_cluster", me, n))
    return reduce, blocks("steqr_lane", me, n), blocks("lasr_rows", me, n)


def dividing(me, n, vectors):
    """stedc_leaf, where tridiagonal matrices of order n are divided, or None."""
    leaf = blocks("stedc_leaf", me, n)
    return (leaf if leaf and blocks("stedc_merge", me, n)
            and (vectors or noted("stedc_leaf", me, n, "values")) else None)


class Room:
    """A workspace of the size that its parts come to, each of which is given an address in it."""

    def __init__(self, **sizes):
        self.at, self.nbytes = {}, 0
        for name, nbytes in sizes.items():
            self.at[name] = self.nbytes
            self.nbytes += -(-nbytes // 128) * 128

    def addresses(self, base, members):
        """Where each part begins, for all members one after the other."""
        return {name: base + members * at for name, at in self.at.items()}


def reflectors(me, n, reduce):
    """How many bytes behind the beginning of `factors` they lie, and numbers from one column to the
    next: where the matrix was, unless that was on chip."""
    return (me.dtype.itemsize, n) if "CLUSTER" in reduce.values else (0, n - 1)


def ql_limits(n, ql, vectors):
    """Passes, and the rotations and sweeps of one for which there is room."""
    passes = ql.values["PARTS"] if vectors else 1
    return (passes, 4 * n * n // passes + 16 * n, 4 * n) if vectors else (passes, 0, 30 * n)


def room_of_ql(me, n, reduce, ql, vectors):
    """What a member of order n has of workspace."""
    (_, lead), (_, turns, sweeps) = reflectors(me, n, reduce), ql_limits(n, ql, vectors)
    size, real = me.dtype.itemsize, me.real.itemsize
    return Room(factors=lead * lead * size * (vectors or lead == n), tau=n * size, d=n * real,
                e=n * real, most=real, order=4 * n, states=2 * 16, turns=turns * 2 * real,
                sweeps=4 * sweeps * vectors)


def forms(me, n, rotate):
    """Whether lasr_rows makes Q of the reflectors."""
    return n <= rotate.values["ROWS"] and forms_q(me.letter, rotate.values)


def _by_ql(me, reduce, ql, rotate, a, v, w, info, vectors, lower):
    """QL is done in passes, each followed by its rotations, for which there is room for a part of
    what QL may take; a random matrix has none left for the last."""
    batch, n, _ = a.shape
    real, lanes, formed = me.real.itemsize, ql.values["LANES"], forms(me, n, rotate)
    behind, lead = reflectors(me, n, reduce)
    passes, turns, sweeps = ql_limits(n, ql, vectors)
    slabs = -(-n // rotate.values["ROWS"])
    for part, base in in_parts(batch, (room := room_of_ql(me, n, reduce, ql, vectors)).nbytes):
        members = part.stop - part.start
        at = room.addresses(base, members)
        factors = at["factors"] + behind
        _reduce(me, reduce, a[part], lower, vectors, factors, lead, at)
        states = [at["states"], at["states"] + 16 * members]
        for k in range(passes):
            before, after = states[::-1] if k % 2 == 0 else states
            first, last = k == 0, k == passes - 1
            ql(-(-members // lanes), 2 * n * lanes * real, at["d"], at["e"], at["most"],
               at["turns"], turns, at["sweeps"], sweeps, before, after, vectors, first, last,
               w[part].data.ptr, at["order"], info[part].data.ptr, n, members)
            if not vectors:
                continue
            if first and not formed:
                _gpu_qr.form_q_at(me, (factors, 1, lead, lead * lead), at["tau"], n,
                                  v[part, 1:, 1:])
            rotate(members * slabs, rotation_bytes(me.letter, n, rotate.values), *matrix(v[part]),
                   factors, lead, lead * lead, at["tau"], formed, at["turns"], turns,
                   at["sweeps"], sweeps, after, at["order"], at["most"], first, last, n, slabs)


def leaves_of(n):
    """How many parts a tridiagonal matrix is cut in."""
    leaves = 2
    while leaves * LEAF < n:
        leaves *= 2
    return leaves


def room_of_division(me, n, reduce, **more):
    """What a member of order n has of workspace, beside three matrices of vectors: `more`."""
    size, real, (_, lead) = me.dtype.itemsize, me.real.itemsize, reflectors(me, n, reduce)
    return Room(factors=lead * lead * size, tau=n * size, d=n * real, e=n * real, most=real,
                values=n * real, **more)


def merging(me, n, count):
    """stedc_merge where it makes `count` parts."""
    warps = blocks("stedc_merge", me, n).values["WARPS"]
    return blocks("stedc_merge", me, n, ("WARPS", max(1, warps // count)))


def put_by(me, n, count, device):
    """The product of two parts' vectors."""
    return tiled(BY_DTYPE[me.real].letter, -(-n // count), device)


def _by_division(me, reduce, leaf, a, v, w, info, vectors, lower):
    """The tridiagonal matrices are cut in two until parts have LEAF rows at most; the vectors of
    parts are put together by twos, by products (of the whole only if they are wanted), and
    multiplied by Q."""
    batch, n, _ = a.shape
    leaves, room = leaves_of(n), room_of_division(me, n, reduce)
    behind, lead = reflectors(me, n, reduce)
    for part in parts(batch, room.nbytes + 3 * n * n * me.real.itemsize):
        members = part.stop - part.start
        memory = cupy.cuda.alloc(members * room.nbytes)
        z, put_together, u = (cupy.ndarray((members, n, n), me.real) for _ in range(3))
        at = room.addresses(memory.ptr, members)
        factors = at["factors"] + behind
        _reduce(me, reduce, a[part], lower, vectors, factors, lead, at)
        info[part] = 0
        numbers = at["d"], at["e"], at["most"], at["values"]
        leaf(-(-members * leaves // leaf.values["WARPS"]), leaf_bytes(me.letter, leaf.values),
             *numbers, z.data.ptr, info[part].data.ptr, n, leaves, members)
        count = leaves
        while count > 1:
            count //= 2
            if count == 1 and vectors and not me.is_complex:
                put_together = v[part]
            _put_together(me, at, z, u, put_together, w[part], info[part], vectors, count)
            z, put_together = put_together, z
        if not vectors:
            continue
        if me.is_complex:
            v[part] = z
        _gpu_qr.multiply_at(me, (factors, 1, lead, lead * lead), at["tau"], n, n - 1,
                            v[part, 1:])


def _put_together(me, at, z, u, out, w, info, vectors, count):
    """Two parts each of `count` become one: their eigenvalues, and vectors Z U, to `out`; of the
    whole only if `vectors` are wanted."""
    members, n, _ = z.shape
    merging(me, n, count)(members * count, merge_bytes(me.letter, -(-n // count)), at["values"],
                          at["e"], at["most"], z.data.ptr, u.data.ptr,
                          0 if count > 1 else w.data.ptr, info.data.ptr, n, count)
    if count == 1 and not vectors:
        return
    put, ends = put_by(me, n, count, current_device()), [
        i * n // (2 * count) for i in range(2 * count + 1)]
    for i in range(2 * count):
        first, end = ends[i:i + 2]
        low, high = ends[i - i % 2], ends[i - i % 2 + 2]
        o = operand(out[:, first:end, low:high])
        if first == end:
            continue
        put.launch(end - first, high - low, end - first, ALL, 0,
                   operand(z[:, first:end, first:end]), operand(u[:, first:end, low:high]), o, o,
                   1, 0, members)


def _reduce(me, reduce, a, lower, vectors, factors, lead, at):
    """The tridiagonal matrices, and the reflectors, `lead` from one column to the next."""
    batch, n, _ = a.shape
    if "CLUSTER" in reduce.values:
        reduce = clustered(me, n, batch)
    v = reduce.values
    # The upper triangle is the lower one of the transpose, which is the conjugate
    numbers = (*matrix(a, not lower), not lower, factors, lead, lead * lead, at["tau"],
               vectors, at["d"], at["e"], at["most"])
    if "N" in v:  # sytrd_rows
        reduce(-(-batch // (32 * v["WARPS"] * v["EACH"] // v["N"])), 0, *numbers, n, batch)
    elif "CLUSTER" not in v:
        reduce(batch, sytrd_bytes(me.letter, n, v), *numbers, n)
    else:
        reduce(batch * v["CLUSTER"], sytrd_cluster_bytes(me.letter, n, v), *numbers,
               at["factors"], lead * lead, n)


def clustered(me, n, batch):
    """sytrd_cluster with as many blocks to a member as find room with those of all at once, for the
    bits are the same. GPUs have them together by at least eight."""
    room = multiprocessors(current_device()) // 8 * 8
    most = blocks("sytrd_cluster", me, n).values["CLUSTER"]
    while most > 1 and batch * most > room:
        most //= 2
    return blocks("sytrd_cluster", me, n, ("CLUSTER", most))


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
