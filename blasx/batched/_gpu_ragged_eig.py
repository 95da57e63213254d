"""Eigenproblems of members of different sizes on the GPU (_gpu_ragged.py), by the steps of
_gpu_eig.py, to the same bits. A member has a workspace for what they leave for each other. The
parts of a divided matrix that are put together are members of launches of their own: as many
launches as for equal members, or fewer."""

from functools import cache, partial

import cupy
import numpy as np

from .._kernel import current_device
from .._ragged import Ragged
from .._routine import Typed
from .._spaces import MOST
from .._tuned import looked_up
from .._types import BY_DTYPE
from . import _gpu_eig
from ._block import (
    leaf_bytes,
    merge_bytes,
    panel_bytes,
    rotation_bytes,
    sytrd_bytes,
    sytrd_cluster_bytes,
)
from ._gpu import blocks
from ._gpu_eig import (
    Room,
    by_jacobi,
    clustered,
    dividing,
    forms,
    leaves_of,
    merging,
    put_by,
    ql_limits,
    reflectors,
    room_of_division,
    room_of_ql,
    tridiagonal,
)
from ._gpu_qr import dealt_q, forming_q
from ._gpu_ragged import (
    Call,
    Part,
    extents,
    like,
    lines,
    outputs,
    product,
    ragged,
    scaling,
)
from ._gpu_ragged_qr import multiplications, multiplying, strips, triangles


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    n, vectors, device = extents(a)[:, 0], bool(compute_v), current_device()
    w = Ragged.empty_like(cupy.empty(0, me.real), n)
    v = (outputs(a, overwrite_a) if vectors
         else Ragged(cupy.zeros(len(n), me.dtype), np.ones((len(n), 2), np.int64)))
    call = Call(me, n > 0, lambda n: _steps(me, n, vectors, device), n)
    if call.classes:
        Eigen(call, n[call.order], vectors, call.matrices(a, not lower), not lower,
              lines(v)[call.order], call.vectors(w)).serve()
    call.run()

    def larger(a):
        values, found, infos = _gpu_eig.syevd(me, a, compute_v, lower, 1)
        return (values, found, infos) if vectors else (values, infos)

    call.larger(larger, (a,), (w, v) if vectors else (w,))
    return like(a, w), like(a, v), call.info()


@looked_up
def _steps(me, n, vectors, device):
    """The kernels for members of order n, one after the other."""
    if small := by_jacobi(me, n, vectors):
        return small,
    reduce, ql, rotate = kernels = tridiagonal(me, n)
    if not all(kernels):
        return None
    steps = [reduce]
    if leaf := dividing(me, n, vectors):
        count = leaves_of(n)
        steps.append((leaf, count))
        while count > 1:
            count //= 2
            steps.append((merging(me, n, count), count))
            if count > 1 or vectors:
                steps.append((put_by(me, n, count, device), count))
        if vectors:
            steps += [(block, "by Q") for block in multiplying(me, n - 1, n)]
            if me.is_complex:
                steps.insert(1, (blocks("lascl_batched", _real(me), n), "zeros"))
        return tuple(steps)
    passes, formed = ql_limits(n, ql, vectors)[0], forms(me, n, rotate)
    for k in range(passes):
        steps.append((ql, k, k == passes - 1))
        if vectors:
            if k == 0 and not formed:
                steps += [(block, "Q") for block in forming_q(me, n - 1)]
            steps.append((rotate, k, k == passes - 1, formed))
    return tuple(steps)


@cache
def _real(me):
    return Typed(me.name, BY_DTYPE[me.real].letter)


# What stands about a member beside where the parts of its workspace begin
SIZES = "nbytes", "behind", "lead", "turns", "sweeps", "leaves"
PARTS = ("columns", "factors", "tau", "d", "e", "most", "values", "z", "put", "u", "order",
         "states", "turns", "sweeps")


class Members:
    """For every order what a member has, a row of numbers; found when it is asked for."""

    def __init__(self, me, vectors):
        self.me, self.vectors = me, vectors
        self.known = np.zeros(MOST + 1, bool)
        self.sizes = np.zeros((len(SIZES), MOST + 1), np.int64)
        self.places = np.zeros((len(PARTS), MOST + 1), np.int64)

    def of(self, order):
        """{name: of every member}: sizes, and places in the workspace."""
        for n in np.unique(order[~self.known[order]]).tolist():
            self._find(n)
        return (dict(zip(SIZES, self.sizes[:, order])), dict(zip(PARTS, self.places[:, order])))

    def _find(self, n):
        me, vectors, found = self.me, self.vectors, {}
        if small := by_jacobi(me, n, vectors):
            room = Room(columns=small.nbytes(n, me.dtype.itemsize))
        else:
            reduce, ql, _ = tridiagonal(me, n)
            found["behind"], found["lead"] = reflectors(me, n, reduce)
            if dividing(me, n, vectors):
                found["leaves"] = leaves_of(n)
                square = n * n * me.real.itemsize
                room = room_of_division(me, n, reduce, z=square, put=square, u=square)
            else:
                _, found["turns"], found["sweeps"] = ql_limits(n, ql, vectors)
                room = room_of_ql(me, n, reduce, ql, vectors)
        self.sizes[:, n] = [(found | {"nbytes": room.nbytes}).get(name, 0) for name in SIZES]
        self.places[:, n] = [room.at.get(name, 0) for name in PARTS]
        self.known[n] = True


@looked_up
def _members(me, vectors, device):
    return Members(me, vectors)


class Pieces:
    """Pieces of the first members, so many of each, as members of a launch of their own."""

    def __init__(self, counts):
        self.ends = np.concatenate([[0], np.cumsum(counts)])
        self.member = np.repeat(np.arange(len(counts)), counts)  # whose a piece is
        self.number = np.arange(len(self.member)) - self.ends[self.member]  # of that member

    def of(self, part):
        """The pieces of the members of a class."""
        return Part(int(self.ends[part.first]), int(self.ends[part.last]), part.table)

    def launching(self, launch):
        return lambda block, part: launch(block, self.of(part))


class Eigen:
    """What the kernels of a call are told; everything in the order of the classes."""

    def __init__(self, call, order, vectors, of_a, conj_a, lines_of_v, w):
        self.call, self.me, self.order, self.vectors = call, call.me, order, vectors
        self.a, self.conj_a, self.lines_of_v, self.w = of_a, conj_a, lines_of_v, w
        self.n, self.v = call.place(order), call.place(lines_of_v)
        self.sizes, self.at = _members(call.me, vectors, current_device()).of(order)
        self.base = call.room(self.sizes["nbytes"])

    def place(self, name, reach, more=0):
        """A column with the addresses of a part of the workspace of the first members."""
        return self.call.place(self.addresses(name, reach) + more)

    def addresses(self, name, reach):
        return self.base[:reach] + self.at[name][:reach]

    def serve(self):
        """Register the kernels."""
        for names, register in ((("syevd_block",), self.small),
                                (("sytrd_rows", "sytrd_block", "sytrd_cluster"), self.reduction),
                                (("steqr_lane",), self.ql), (("stedc_leaf",), self.division)):
            if reach := self.call.reach(*names):
                register(reach)

    def small(self, reach):
        n, work = self.n, self.place("columns", reach)

        def launch(block, part):
            most = part.most(n)
            block.launch(part.members, most, *part(
                self.a, self.conj_a, self.v, self.vectors, self.w, self.call.infos, work, n, most))

        self.call.serve("syevd_block", launch)

    def reduction(self, reach):
        call, me, n = self.call, self.me, self.n
        behind, lead = (self.sizes[name][:reach] for name in ("behind", "lead"))
        factors = self.addresses("factors", reach) + behind
        self.lines_of_factors = np.stack([factors, np.ones_like(lead), lead], 1)
        self.f = call.place(factors), call.place(lead), 0
        self.tau, self.d, self.e, self.most = (self.place(name, reach)
                                               for name in ("tau", "d", "e", "most"))
        work = self.place("factors", reach)
        of = self.a, self.conj_a, *self.f, self.tau, self.vectors, self.d, self.e, self.most

        def rows(block, part):
            v = block.values
            block(-(-part.members // (32 * v["WARPS"] * v["EACH"] // v["N"])), 0, *part(*of, n),
                  part.members)

        def whole(block, part):
            block(part.members, sytrd_bytes(me.letter, part.most(n), block.values), *part(*of, n))

        def cluster(block, part):
            block = ragged(clustered(me, part.most(n), part.members))
            block(part.members * block.values["CLUSTER"],
                  sytrd_cluster_bytes(me.letter, part.most(n), block.values),
                  *part(*of, work, 0, n))

        for name, launch in ("rows", rows), ("block", whole), ("cluster", cluster):
            call.serve("sytrd_" + name, launch)

    def ql(self, reach):
        call, me, n = self.call, self.me, self.n
        turns, sweeps = ((self.place(name, reach), call.place(self.sizes[name][:reach]))
                         for name in ("turns", "sweeps"))
        places = self.place("order", reach)
        states = self.place("states", reach), self.place("states", reach, 16)

        def rotations(block, part, k, last):
            v, most = block.values, part.most(n)
            block(-(-part.members // v["LANES"]), 2 * most * v["LANES"] * me.real.itemsize,
                  *part(self.d, self.e, self.most, *turns, *sweeps, states[1 - k % 2],
                        states[k % 2], self.vectors, k == 0, last, self.w, places, call.infos, n),
                  part.members)

        def rotate(block, part, k, last, formed):
            most = part.most(n)
            slabs = -(-most // block.values["ROWS"])
            block(part.members * slabs, rotation_bytes(me.letter, most, block.values),
                  *part(self.v, *self.f, self.tau, formed, *turns, *sweeps, states[k % 2], places,
                        self.most, k == 0, last, n), slabs)

        for k, last in call.ways("steqr_lane"):
            call.serve(("steqr_lane", k, last), partial(rotations, k=k, last=last))
        for k, last, formed in call.ways("lasr_rows"):
            call.serve(("lasr_rows", k, last, formed),
                       partial(rotate, k=k, last=last, formed=formed))
        if self.vectors:
            self.form_q(reach)

    def form_q(self, reach):
        """Q without its first row and column."""
        call, me, less = self.call, self.me, self.call.place(self.order[:reach] - 1)
        of = (call.place(self.lines_of_factors[:reach]), self.tau, 0,
              call.place(self.inner_v(np.arange(reach), 1)))
        sizes = less, less, less
        ts = triangles(call, self.order[:reach] - 1, "Q")

        def whole(block, part):
            block(part.members, panel_bytes(me.letter, block.values, part.most(less)),
                  *part(*of, *sizes))

        def small(block, part):
            columns = part.most(less)
            teams, shared, dealing = dealt_q(block, me, columns, columns, columns)
            block(-(-part.members // teams), shared, *part(*of, *sizes), *dealing, part.members)

        call.serve(("orgqr_block", "Q"), whole)
        call.serve(("orgqr_small", "Q"), small)
        for name, launch in zip(("larft_panels", "orgqr_strips"), strips(me, of, ts, *sizes)):
            call.serve((name, "Q"), launch)

    def inner_v(self, members, column):
        """The lines of V without its first row, from a column on."""
        found = self.lines_of_v[members]
        found[:, 0] += (found[:, 1] + column * found[:, 2]) * self.me.dtype.itemsize
        return found

    def division(self, reach):
        call, me, n = self.call, self.me, self.n
        z, put, u = (self.addresses(name, reach) for name in ("z", "put", "u"))
        of_z, of_u, values = call.place(z), call.place(u), self.place("values", reach)
        leaves = self.sizes["leaves"][:reach]

        def leaf(block, part, leaves):
            block(-(-part.members * leaves // block.values["WARPS"]),
                  leaf_bytes(me.letter, block.values),
                  *part(self.d, self.e, self.most, values, of_z, call.infos, n), leaves,
                  part.members)

        def merge(block, part, count, halves):
            block(part.members * count, merge_bytes(me.letter, -(-part.most(n) // count)),
                  *part(values, self.e, self.most, halves, of_u, 0 if count > 1 else self.w,
                        call.infos, n), count)

        for count, in call.ways("stedc_leaf"):
            call.serve(("stedc_leaf", count), partial(leaf, leaves=count))
        for (count,), reach in call.ways("stedc_merge").items():
            # Vectors go to and fro between z and put
            back = np.log2(np.maximum(leaves[:reach] // (2 * count), 1)) % 2 == 1
            source, target = (np.where(back, *x) for x in ((put[:reach], z[:reach]),
                                                           (z[:reach], put[:reach])))
            call.serve(("stedc_merge", count), partial(merge, count=count,
                                                       halves=call.place(source)))
            if count > 1 or self.vectors:
                halves = np.where(leaves[:reach] > count, 2 * count, 0)
                self.put_together(Pieces(halves), count, source, target, u)
        if self.vectors:
            self.multiply_by_q(len(leaves))
            if me.is_complex:
                self.clear_imaginary(len(leaves))

    def put_together(self, halves, count, z, target, u):
        """Products of halves with their rows of U: to the real part of V where these are all."""
        call, of, i = self.call, halves.member, halves.number
        n, pair, bytes_ = self.order[of], i - i % 2, self.me.real.itemsize
        first, end, low, high = (k * n // (2 * count) for k in (i, i + 1, pair, pair + 2))

        def block_of(at, row, column):
            return np.stack([at[of] + (row * n + column) * bytes_, n, np.ones_like(n)], 1)

        if count > 1:
            out = block_of(target, first, low)
        else:
            out = self.real_v(of)
            out[:, 0] += (first * out[:, 1] + low * out[:, 2]) * bytes_
        out = call.place(out)
        rows, width = call.place(end - first), call.place(high - low)
        launch = halves.launching(product(rows, width, rows, 0, (
            call.place(block_of(z, first, first)), 0, call.place(block_of(u, first, low)), 0, out,
            out), 1, 0))
        for name in "gemm_split", "gemm_block":
            call.serve((name, count), launch)

    def real_v(self, members):
        """The lines of V's real part, in real numbers."""
        return self.lines_of_v[members] * (1, *2 * (1 + self.me.is_complex,))

    def multiply_by_q(self, reach):
        """V's columns, but for the first row."""
        call, less = self.call, self.order[:reach] - 1
        rows = call.place(less)
        launches = multiplications(self.me, (
            call.place(self.lines_of_factors[:reach]), self.place("tau", reach), 0,
            call.place(self.inner_v(np.arange(reach), 0))), triangles(call, less, "by Q"), rows,
            call.place(self.order[:reach]), rows, 0, 0)
        for name, launch in launches.items():
            call.serve((name, "by Q"), launch)

    def clear_imaginary(self, reach):
        call, imaginary = self.call, self.real_v(np.arange(reach))
        imaginary[:, 0] += self.me.real.itemsize
        zero = cupy.zeros(1, self.me.real)
        call.kept.append(zero)
        nothing = call.place(np.tile(np.array([[zero.data.ptr, 0, 0]]), (reach, 1)))
        call.serve(("lascl_batched", "zeros"), scaling(  # infos: as yet 0
            nothing, call.place(imaginary), call.infos, self.n, self.n))
