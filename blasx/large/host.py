"""One large matrix in the host's memory, factored by the GPU.

Columns come while those before them are being factored, and join when they are there: all blocks
before are taken off them at once, in a stream of their own. What is finished goes back while the
rest is computed: of an LU its rows as far as blocks are factored, for interchanges reach no row
above, of the columns that have come; of a Cholesky columns.

Where the GPU has not room for all columns it holds a window of them, and from left to right those
of each window have all blocks before it taken off, which visit in turn, and are then factored:
left-looking, each number written once. Rows of L to the left of an interchange are moved at the
end, by the CPU. Right-hand sides of LU are columns beside A, which become L^-1 P B as U's rows do.

Results are the same to the bit from run to run, with the same window.
"""

from collections import deque
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

import cupy
import numpy as np

from .. import _cuda, _trace
from .._kernel import current_device
from .._lapack import INT
from .._progress import Progress
from .._routine import missing
from . import cholesky, lu, triangular
from ._blocks import FIRST, SECOND, THIRD, mark, stream
from ._bytes import up
from ._pinned import copies, plan

LINES = 32  # numbers between columns are a multiple of it


def getrf(me, a, lu, mode, memory):
    """Factor the host's matrix `a` into `lu`, which may be `a`; pivots from 0, and info."""
    if streams(me, a, mode):
        return LU(me, a, lu, a[:, :0], a[:, :0], memory).run()
    found, piv, info = me.implementation(me, *sent(me, memory, a), 1, mode=mode)
    np.copyto(lu, found.get(order="A"))
    return piv.get(), int(info)


def gesv(me, a, b, lu, x, memory):
    """As getrf, and x := A^-1 b unless info; x and lu may be b and a."""
    if streams(me, a, "auto"):
        return LU(me, a, lu, b, x, memory).run()
    found, piv, solution, info = me.implementation(me, *sent(me, memory, a, b), 1, 1)
    np.copyto(lu, found.get(order="A"))
    np.copyto(x, solution.get(order="A"))
    return piv.get(), int(info)


def potrf(me, c, lower, clean, mode, memory):
    """Factor a triangle of the host's matrix in place, and clear the other one; info."""
    if mode != "vendor":
        return Cholesky(me, c, lower, c[:, :0], memory, clean).run()
    found, info = me.implementation(me, *sent(me, memory, c), lower, clean, 1, mode=mode)
    np.copyto(c, found.get(order="A"))
    return int(info)


def posv(me, c, x, lower, memory):
    """As potrf, and x := A^-1 x unless info."""
    return Cholesky(me, c, lower, x, memory).run()


def streams(me, a, mode):
    """True where columns come one after the other: there are kernels of ours for the panels."""
    return mode != "vendor" and lu.plan(me, *a.shape)


def sent(me, memory, *operands):
    """On the GPU, whole."""
    need, there = sum(x.nbytes for x in operands), memory or free()
    if need > there:
        raise short(me, need, there)
    with allocating(me, need):
        return [cupy.asarray(x, order="F") for x in operands]


def free():
    """Bytes that this process may have on the GPU, but for what libraries take for themselves."""
    there = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
    return there * 15 // 16


def short(me, need, there):
    return MemoryError(missing(me.name, need, there))


@contextmanager
def allocating(me, need):
    """Have what fails in a with block say how much was missing."""
    try:
        yield
    except MemoryError:
        raise short(me, need, free()) from None


def window(me, column, total, block, fixed, memory):
    """How many columns of so many bytes are on the GPU at a time: all, or whole blocks, and two
    blocks beside them."""
    there = memory or free()
    if fixed + total * column <= there:
        return total
    some = (there - fixed) // column - 2 * block
    if some < block:
        raise short(me, fixed + 3 * block * column, there)
    return some - some % block


class Streamed:
    """A Factoring of which columns first ... last are in a window on the GPU, others with the
    host. A subclass says where:

    pieces(first, last) -> (matrix of the host, its address on the GPU, leading dimension)
        of columns as they come into the window, or join it.
    guest(block, memory, back) -> the same
        of a block before the window, what taking it off asks for, or substituting back.
    """

    def enter(self, columns):
        self.senders, self.receivers = copies(self.order, current_device())
        self.first, self.last, self.whole = 0, columns, columns == self.n
        self.coming, self.going, self.guests, self.begun = [], [], (), []
        found, self.progress = plan(self.order, current_device()), Progress(patience=2)
        self.pace, self.every, self.apart, self.rows = (
            found.get(x, 1) for x in ("pace", "every", "apart", "rows"))
        _trace.note(device=f"gpu:{current_device()}")

    def run(self):
        """Factor, and what follows; what run returns is `result`, with the GPU at rest."""
        try:
            if self.whole:
                cupy.cuda.get_current_stream().synchronize()  # the memory is nobody else's
                self.coming = [self.bring(j, min(j + self.block, self.n), None)
                               for j in range(0, self.n, self.block)]
                self.as_they_come(self.blocks())
                self.leave()
            else:
                self.by_windows()
            for i, future in enumerate(self.going, 1):
                future.result()
                if self.whole:
                    self.progress(i, len(self.going), self.me.name)
            return self.result()
        finally:
            at_rest(self.begun)
            cupy.cuda.get_current_stream().synchronize()
            _trace.note(synced=1)

    def by_windows(self):
        blocks, columns = self.blocks(), self.last
        before = {first: [b for b in blocks if b[0] < first]
                  for first in range(0, self.n, columns)}
        todo, finished = sum(map(len, before.values())) + 1, 0
        for first in before:
            self.first, self.last = first, min(first + columns, self.n)
            done(self.going)  # the columns before have left
            done(self.bring(self.first, self.last, mark(cupy.cuda.get_current_stream())))
            for block in self.visits(before[first]):
                self.take_off(*block, self.first, self.last)
                finished += 1
                self.progress(finished, todo, self.me.name)
            if own := [b for b in blocks if first <= b[0] < self.last]:
                self.go_ahead(own, self.last)
            self.leave()
        self.progress(todo, todo, self.me.name)

    def send(self, x, address, ld, column, after):
        """Begin to copy to the GPU, after an event."""
        futures = self.senders.begin(x, address, ld, column, after)
        self.begun += futures
        return futures

    def bring(self, first, last, after):
        return [f for x, address, ld in self.pieces(first, last)
                for f in self.send(x, address, ld, first, after)]

    def come(self, first, last):
        """The current stream waits until columns first ... last are there, and the host until they
        are on their way."""
        for k in range(first // self.block, -(-last // self.block)):
            self.senders.join(self.coming[k])

    def reach(self, k):
        """Up to which column all have come and have the k-th block taken off in its turn: four
        blocks on, at least. The turn that brings them is the k-th."""
        if (k + 2) * self.block >= self.order:
            return self.last
        reached = (max(self.pace * (k // self.every), k) + 4) * self.block
        return reached if reached < self.order else self.last

    def near(self, k):
        """Up to which of these the stream that the next blocks wait for takes the k-th block off:
        those that came some turns before, and what the block after the next two is."""
        for i in range(max(k - self.apart, -1), k):
            if (reached := self.reach(i)) >= min((k + 3) * self.block, self.last):
                break
        return reached

    def as_they_come(self, blocks):
        """Factor all blocks, each in its turn applied to columns that have come. New ones have all
        blocks so far taken off in a stream that goes last; a few turns on they join those that the
        next blocks wait for. So the host waits for columns when what does not ask for them has been
        submitted, and the GPU for no more of them than a block needs."""
        main, device = cupy.cuda.get_current_stream(), current_device()
        streams = [stream(device, priority) for priority in (FIRST, SECOND, THIRD)]
        begun = mark(main)
        for each in streams:
            each.wait_event(begun)
        try:
            self._as_they_come(blocks, *streams)
        finally:
            for each in streams:
                main.wait_event(mark(each))

    def _as_they_come(self, blocks, ahead, near, far):
        ends = [j + width for j, width, _ in blocks]
        applied, caught = [], []

        def factor(k):
            j, width, its = blocks[k]
            with _cuda.beside(ahead):
                if k < 2:
                    self.come(j, ends[k])
                else:
                    ahead.wait_event(applied[k - 2])
                if k:
                    self.take_off(*blocks[k - 1], j, ends[k])
                return self.factor(j, width, its) or mark(ahead)

        joined = upto = self.reach(-1)
        factored = factor(0)
        for k, (j, width, its) in enumerate(blocks):
            before, upto = upto, self.near(k)
            with _cuda.beside(near, 2):
                if not k:
                    self.come(ends[:2][-1], joined)
                near.wait_event(factored)
                self.finish(j, width, its)
                if before < upto:
                    near.wait_event(next(event for end, event in caught if upto <= end))
                self.take_off(j, width, its, ends[:k + 2][-1], upto)
                applied.append(mark(near))
            taken, reached = factored, self.reach(k)
            if k + 1 < len(blocks):
                factored = factor(k + 1)
            with _cuda.beside(far, 3):
                far.wait_event(taken)
                if upto < joined:
                    self.take_off(j, width, its, upto, joined)
                caught = [(joined, mark(far))]
                self.settle(j, width, its, joined, applied[k])
                if joined < reached:
                    self.come(joined, reached)
                    self.catch_up(blocks[:k + 1], joined, reached)
                    caught.append((reached, mark(far)))
                joined = reached

    def settle(self, j, width, its, joined, applied):
        """The block at j is taken off all columns before `joined`, of some after an event."""

    def catch_up(self, blocks, first, last):
        """Columns first ... last have come, and have some blocks taken off."""
        for block in blocks:
            self.take_off(*block, first, last)

    def reserve_ahead(self):
        if not self.whole:
            super().reserve_ahead()
            return
        for number, priority, columns in ((1, FIRST, self.block), (2, SECOND, self.n),
                                          (3, THIRD, self.n)):
            with _cuda.beside(stream(current_device(), priority), number):
                self.reserve(columns)

    def give(self, x, address, ld, column):
        """Begin to send back what the current stream has finished."""
        after = mark(cupy.cuda.get_current_stream())
        futures = self.receivers.begin(x, address, ld, column, after)
        self.begun += futures
        self.going += futures

    def visits(self, blocks, back=False):
        """The blocks, each on the GPU while it has its turn, when the next is on its way."""
        absent = [b for b in blocks if b[0] < self.first]
        if absent:
            done(self.going)
        asked, on_their_way = iter(enumerate(absent)), deque()

        def ask():
            for k, block in asked:
                memory = self.guests[k % 2]
                after = mark(cupy.cuda.get_current_stream())
                futures = self.send(*self.guest(block, memory, back), block[0], after)
                on_their_way.append((block[0], memory, futures))
                return

        ask()
        for block in blocks:
            if block[0] < self.first:
                ask()
                *self.visitor, futures = on_their_way.popleft()
                done(futures)
            yield block

    def holder(self, j):
        """The first column of what has column j on the GPU, and its memory."""
        return (self.first, self.a) if j >= self.first else self.visitor


def done(futures):
    """Wait for what has begun, and raise what went wrong."""
    while futures:
        futures.pop().result()


def at_rest(futures):
    """Have nothing of it go on, after an error."""
    for future in futures:
        future.cancel()
    for future in futures:
        with suppress(Exception, CancelledError):
            future.result()


class LU(Streamed, lu.Factoring):
    """[A B] on its way to L, U and A^-1 B."""

    def __init__(self, me, a, to, b, x, memory):
        m, n, found = *a.shape, lu.plan(me, *a.shape)
        order, total, high = min(m, n), n + b.shape[1], up(m, LINES)
        block = min(found.get("even", found.get("block", order)), order)
        part = min(found.get("part", block), block)
        narrower = [min(found[x], part) for x in ("panel", "strip") if x in found] or [part]
        self.each, size, count = [block, part, *narrower], me.dtype.itemsize, -(-order // block)
        tops = count * -(-block // part) * up(part, 32) + sum(up(x, 32) for x in narrower)
        fixed = 4 * (order + 1 + part) + tops * (32 * size + 8)
        if part < block:
            fixed += 4 * count * m
        if me.letter == "s":  # of products by pairs, in all streams (lu.Factoring.reserve)
            fixed += (3 * m + 2 * total + block) * (4 * up(block, 8) + 16 + 4 * -(-block // 64))
        columns = window(me, high * size, total, block, fixed, memory)
        guests = 0 if columns == total else 2
        with allocating(me, fixed + (columns + guests * block) * high * size):
            held = cupy.empty((high, columns), me.dtype, order="F")
            super().__init__(me, held[:m], block, None, total, count)
            self.order, self.ld, self.turns = order, high, found.get("turns")
            self.enter(columns)
            self.guests = [cupy.empty((high, block), me.dtype, order="F")[:m]
                           for _ in range(guests)]
            self.reserve_ahead()
        self.of, self.to, self.b, self.x, self.sent = a, to, b, x, 0
        self.own = n  # columns of A
        if self.still is None:
            self.still = cupy.arange(block, dtype="i4")

    def widths(self, j):
        return self.each

    def reserve(self, columns):
        super().reserve(min(columns, self.last - self.first))

    def part(self, first, last):
        begin, held = self.holder(first)
        return held[:, first - begin:last - begin]

    def at(self, i, j):
        begin, held = self.holder(j)
        return held.data.ptr + (i + (j - begin) * self.ld) * self.size

    def pieces(self, first, last):
        middle = min(max(first, self.own), last)
        for x, j, end in ((self.of, first, middle), (self.b, middle, last)):
            begin = self.own if x is self.b else 0
            if j < end:
                yield x[:, j - begin:end - begin], self.at(0, j), self.ld

    def guest(self, block, memory, back):
        j, width, _ = block
        rows = slice(0, j + width) if back else slice(j, self.m)
        return self.to[rows, j:j + width], memory.data.ptr + rows.start * self.size, self.ld

    def finish(self, j, width, top):
        if not self.whole:
            self.give(self.to[:, j:j + width], self.at(0, j), self.ld, j)

    def settle(self, j, width, top, joined, applied):
        cupy.cuda.get_current_stream().wait_event(applied)
        super().finish(j, width, top)
        # rows of this block are solved for the next one's columns in its turn
        end = j if j + width < self.order else self.m
        some = self.rows * self.block
        if end - self.sent >= some or self.m - end < some:
            self.give_rows(self.sent, end, 0, joined)
            self.sent = end

    def catch_up(self, blocks, first, last):
        """Rows of L are where the last interchange has them: so are those of these columns, first
        of all. What is above the rows that have been sent goes, too."""
        for block in blocks:
            self.interchange(*block, first, last)
        for block in blocks:
            self.subtract(*block, first, last, False)
        self.give_rows(0, self.sent, first, last)

    def give_rows(self, begin, end, first, last):
        last = min(last, self.own)
        if begin < end and first < last:
            self.give(self.to[begin:end, first:last], self.at(begin, first), self.ld, first)

    def leave(self):
        """What a window has beside blocks: columns of a wide A, solutions."""
        first, last = max(self.first, self.order), min(self.last, self.own)
        if first < last and not self.whole:
            self.give(self.to[:, first:last], self.at(0, first), self.ld, first)
        first = max(self.first, self.own)
        if first < self.last:
            self.substitute(first, self.last)

    def substitute(self, first, last):
        if self.whole and triangular.serves(self.me, self.m, last - first):
            with _trace.step("solve", first):
                triangular.solve(self.me, self.part(0, self.m), self.part(first, last), 0, 0, 0)
        else:
            self.substitute_by_blocks(first, last)
        cupy.cuda.get_current_stream().synchronize()
        if not int(self.info):
            self.give(self.x[:, first - self.own:last - self.own], self.at(0, first), self.ld,
                      first)

    def substitute_by_blocks(self, first, last):
        for j, width, _ in self.visits(self.blocks()[::-1], back=True):
            with _trace.step("solve", first):
                _cuda.blas(self.me.L + "trsm", _cuda.LEFT, _cuda.UPPER, 0, _cuda.NON_UNIT, width,
                           last - first, self.one, self.at(j, j), self.ld, self.at(j, first),
                           self.ld)
            if j:
                with _trace.step("update", first):
                    _cuda.blas(self.me.L + "gemm", 0, 0, j, last - first, width, self.minus,
                               self.at(0, j), self.ld, self.at(j, first), self.ld, self.one,
                               self.at(0, first), self.ld)

    def result(self):
        cupy.cuda.get_current_stream().synchronize()
        piv = self.piv.get()
        if not self.whole:
            pivots = (piv + 1).astype(INT)
            done([self.receivers.pool.submit(self.interchanged, j, width, pivots)
                  for j, width, _ in self.blocks()[:-1]])
        return piv, int(self.info)

    def interchanged(self, j, width, pivots):
        """The rows of a block's columns as later blocks have them."""
        x = self.to[:, j:j + width]
        self.me.fortran("laswp", width, x, x.strides[1] // self.size, j + width + 1, self.order,
                        pivots, 1)


class Cholesky(Streamed, cholesky.Factoring):
    """A triangle on its way to L or U, by columns of L, which U has as rows; then x."""

    def __init__(self, me, c, lower, x, memory, clean=0):
        n, size = len(c), me.dtype.itemsize
        block = min(plan(n, current_device())["BLOCK"], n)
        nrhs, high = x.shape[1], up(n, LINES)
        while block > LINES and (3 * block * (high + block) + high * nrhs) * size > (
                memory or free()):
            block //= 2
        # beside the window: x, and what factoring a block asks for
        fixed = high * nrhs * size + 3 * block * block * size
        columns = window(me, high * size, n, block, fixed, memory)
        guests = 0 if columns == n else 2
        cholesky.Factoring.__init__(self, me, c, lower, block)
        with allocating(me, fixed + (columns + guests * block) * high * size):
            self.a = self.room(high, columns)
            self.y = cupy.empty((high, nrhs), me.dtype, order="F")
            self.enter(columns)
            self.guests = [self.room(high, block) for _ in range(guests)]
            self.reserve_ahead()
        self.x, self.infos, self.clean = x, [], clean

    def reserve(self, columns):
        if columns == self.block:  # in the stream that factors them
            cupy.cuda.alloc(3 * columns**2 * self.me.dtype.itemsize)

    def room(self, high, columns):
        """So many columns of L, or rows of U."""
        shape = (high, columns) if self.lower else (columns, high)
        return cupy.empty(shape, self.me.dtype, order="F")

    def place(self, j):
        begin, held = self.holder(j)
        ld = len(held)
        return held.data.ptr - begin * self.me.dtype.itemsize * (ld if self.lower else 1), ld

    def columns(self, j, width, i):
        """Columns of L from row i on, where the host has them."""
        return self.c[i:, j:j + width] if self.lower else self.c[j:j + width, i:]

    def pieces(self, first, last):
        for j in range(first, last, self.block):
            yield self.columns(j, min(self.block, last - j), j), *self.at(j, j)

    def guest(self, block, memory, back):
        j, width, _ = block
        i, ld, size = j if back else self.first, len(memory), self.me.dtype.itemsize
        return (self.columns(j, width, i),
                memory.data.ptr + i * size * (1 if self.lower else ld), ld)

    def factor_block(self, j, width):
        from ..cholesky import _potrf_gpu
        begin = j - self.first
        i, k = (j, begin) if self.lower else (begin, j)
        block = self.a[i:i + width, k:k + width]
        self.infos.append((j, _potrf_gpu(self.me, block, self.lower, "auto", self.clean)))

    def finish(self, j, width, its):
        self.give(self.columns(j, width, j), *self.at(j, j), j)
        if self.clean:
            clearing = self.receivers.pool.submit(self.cleaned, j, width)
            self.begun.append(clearing)
            self.going.append(clearing)

    def leave(self):
        """The last window solves: L Y = B, L^H X = Y."""
        n, nrhs = self.x.shape
        if not nrhs or self.last < n:
            return
        y, ld, size = self.y.data.ptr, len(self.y), self.me.dtype.itemsize
        done(self.send(self.x, y, ld, n, None))
        if self.whole and triangular.serves(self.me, n, nrhs):
            with _trace.step("solve", 0):
                for trans in (0, 2) if self.lower else (2, 0):
                    triangular.solve(self.me, self.a[:n, :n], self.y[:n], self.lower, trans, 0)
        else:
            self.solve_by_blocks(nrhs, y, ld, size)
        if not self.failed():
            self.give(self.x, y, ld, n)

    def solve_by_blocks(self, nrhs, y, ld, size):
        ops = (0, self.turn) if self.lower else (self.turn, 0)
        for op, blocks in zip(ops, (self.blocks(), self.blocks()[::-1])):
            back = op == ops[1]
            for j, width, _ in self.visits(blocks, back=True):
                below, mine, rest = self.n - j - width, y + j * size, y + (j + width) * size
                with _trace.step("solve", j):
                    if not back:
                        self.solve(j, width, op, nrhs, mine, ld, False)
                    if below:
                        (m, to), (k, of) = (((width, mine), (below, rest)) if back else
                                            ((below, rest), (width, mine)))
                        _cuda.blas(self.me.L + "gemm", op, 0, m, nrhs, k, self.minus,
                                   *self.at(j + width, j), of, ld, self.one, to, ld)
                    if back:
                        self.solve(j, width, op, nrhs, mine, ld, False)

    def failed(self):
        cupy.cuda.get_current_stream().synchronize()
        return next((j + int(info) for j, info in self.infos if int(info)), 0)

    def result(self):
        return self.failed()

    def cleaned(self, j, width):
        """Zeros in the other triangle beside a block on the diagonal."""
        self.c[slice(j) if self.lower else slice(j + width, None), j:j + width] = 0


def gemm(me, alpha, a, b, beta, c, to, trans_a, trans_b, precision, memory):
    """`to` := alpha op(A) op(B) + beta C of matrices of the host; `to` may be C.

    A tile of A stays while columns of B and C come, two sets of them in turn, and go."""
    from ..blas3 import _gemm_gpu
    (m, n), k, size = to.shape, a.shape[0] if trans_a else a.shape[1], me.dtype.itemsize
    there, order, device = memory or free(), max(m, n, k), current_device()
    room = there // (size * (2 if me.letter in "sc" else 1))  # twice for products by pairs
    high, deep = m, k
    while high * deep > room // 2 and high * deep > 1:
        high, deep = (-(-high // 2), deep) if high >= deep else (high, -(-deep // 2))
    wide = min(n, plan(order, device)["BLOCK"], (room - high * deep) // (2 * (high + deep)))
    if wide < 1:
        raise short(me, size * (high * deep + 2 * (high + deep)), there)
    with allocating(me, size * (high * deep + 2 * wide * (high + deep))):
        left = cupy.empty(high * deep, me.dtype)
        right = [cupy.empty(deep * wide, me.dtype) for _ in range(2)]
        sums = [cupy.empty(high * wide, me.dtype) for _ in range(2)]
    (senders, receivers), main = copies(order, device), cupy.cuda.get_current_stream()
    going, begun, progress = [[], []], [], Progress(patience=2)
    _trace.note(device=f"gpu:{device}")

    def shaped(flat, m, n):
        return flat[:m * n].reshape(n, m).T

    def send(x, flat, column):
        here = shaped(flat, *x.shape)
        futures = senders.begin(x, here.data.ptr, len(x), column, mark(main))
        begun.extend(futures)
        return here, futures

    def columns(i, p, j, slot):
        """What columns j ... ask for, on its way."""
        rows, ks, js = slice(i, i + high), slice(p, p + deep), slice(j, j + wide)
        done(going[slot])
        x, futures = send(b[js, ks] if trans_b else b[ks, js], right[slot], j)
        z, scale = shaped(sums[slot], *to[rows, js].shape), beta if p == 0 else 1
        if scale:
            futures = futures + send((to if p else c)[rows, js], sums[slot], j)[1]
        return x, z, scale, futures, to[rows, js], j

    tiles = [(i, p) for p in range(0, k, deep) for i in range(0, m, high)]
    strips, finished = range(0, n, wide), 0
    try:
        for i, p in tiles:
            for slot in (0, 1):
                done(going[slot])  # C of the tile before
            tile, futures = send(a[p:p + deep, i:i + high] if trans_a else
                                 a[i:i + high, p:p + deep], left, i)
            coming = columns(i, p, 0, 0)
            done(futures)
            for slot, j in enumerate(strips):
                x, z, scale, futures, goal, column = coming
                if j + wide < n:
                    coming = columns(i, p, j + wide, (slot + 1) % 2)
                done(futures)
                with _trace.step("update", column):
                    _gemm_gpu(me, alpha, tile, x, scale, z, trans_a, trans_b, precision)
                going[slot % 2] += receivers.begin(goal, z.data.ptr, len(z), column, mark(main))
                begun.extend(going[slot % 2])
                finished += 1
                progress(finished, len(tiles) * len(strips), me.name)
        done(going[0] + going[1])
    finally:
        at_rest(begun)
        main.synchronize()
        _trace.note(synced=1)
