"""A factorization by blocks of columns, from left to right, each applied to what is right of it.

Look-ahead: a block needs nothing of the products before it but what they do to its own columns. So
it is brought up to date and factored in a stream of its own, which goes first where the GPU is
full, while the caller's stream applies the block before it to the columns behind:

    factoring    block 0 | 0 to 1, block 1  | 1 to 2, block 2  | ...
    applying             | 0 to 2, 3, ...   | 1 to 3, 4, ...   | ...

Of a wide block only some columns need be up to date to begin with. The block before may have taken
these along (`beyond`), from its first part on, so that nothing comes between its last and the
next one's first; what is right of them is then the first that the caller's stream applies to. The
two wait for each other by events, and the host for neither.
"""

import threading

import cupy

from .. import _cuda
from .._kernel import current_device, gpu, kernel_of
from .._tuned import capitals, looked_up, row


class ByBlocks:
    """A matrix that is being factored. A subclass has its `n` columns, of which `order` are
    factored, `block` at a time, and two or more `sets`, used in turn, of what a block leaves for
    the others: factor(j, width, its) makes it, of the `width` columns at j, and returns the event
    after which it is there, where that is not in the current stream, and take_off(j, width, its,
    first, last) applies it to columns to the right."""

    def blocks(self):
        """(place, width, its set) of all blocks."""
        return [(j, min(self.block, self.order - j), self.sets[k % len(self.sets)])
                for k, j in enumerate(range(0, self.order, self.block))]

    between = None  # a stream between the two, if there is one
    late = None  # what columns that a block takes off its own, or the next one's, wait for

    def beyond(self, j, width):
        """Up to which column the block at j is taken off while it is factored: of the next block
        as many as that begins with, or none, and then that waits until it is up to date."""
        return j + width

    def finish(self, j, width, its):
        """What else a block does, for which nobody waits: nothing."""

    def reserve(self, columns):
        """Have the pool hold, for the current stream, what products with so many columns ask for
        on their way: the matrix is whole when there is not enough."""

    def factor_in_turn(self):
        self.reserve(self.n)
        for j, width, its in self.blocks():
            self.factor(j, width, its)
            self.take_off(j, width, its, j + width, self.n)
            self.finish(j, width, its)

    def reserve_ahead(self):
        self.reserve(self.n)
        with _cuda.beside(stream(current_device())):
            self.reserve(self.block)

    def factor_ahead(self):
        self.reserve_ahead()
        self.go_ahead(self.blocks(), self.n)

    def go_ahead(self, blocks, last):
        """Factor some blocks, from whose columns those before are taken off; of other columns,
        those before `last`."""
        main, ahead = cupy.cuda.get_current_stream(), stream(current_device())
        ahead.wait_event(mark(main))
        try:
            self._go_ahead(main, ahead, blocks, [j + width for j, width, _ in blocks], last)
        finally:  # nobody gets the memory of this call before its work is done
            main.wait_event(mark(ahead))
            if self.between:
                main.wait_event(mark(self.between))

    def _go_ahead(self, main, ahead, blocks, ends, last):
        applied, factored = [], None
        along, begun = [self.beyond(j, width) for j, width, _ in blocks], ends[:1]
        for k, (end, some) in enumerate(zip(ends[1:], along)):  # of a block, before it begins
            begun.append(some if some > ends[k] else end)
        for k, (j, width, its) in enumerate(blocks):
            with _cuda.beside(ahead):
                whole = begun[k] == ends[k]
                if k > 2 - whole:  # `its` of three sets are free, and what is taken off is there
                    ahead.wait_event(applied[k - 3 + whole])
                if k and whole:
                    ahead.wait_event(factored)
                    self.take_off(*blocks[k - 1], j, j + width)
                factored = self.factor(j, width, its) or mark(ahead)
            main.wait_event(factored)
            first = ends[k]
            if k + 1 < len(blocks):
                first = along[k + 1]
                if begun[k + 1] < first:
                    self.take_off(j, width, its, begun[k + 1], first)
                    self.late = mark(main)
            self.take_off(j, width, its, first, last)
            applied.append(mark(main))
            self.finish(j, width, its)


@looked_up
def serving(name, letter, n, device):
    """The kernel of the row for n, or None."""
    found = row(name, letter, n, gpu(device))
    return found and kernel_of(name, letter, **capitals(found))


def mark(stream):
    """What is in a stream now."""
    return stream.record(cupy.cuda.Event(disable_timing=True))


_local = threading.local()


FIRST, SECOND, THIRD = -5, -3, -1  # CUDA's priorities


def stream(device, priority=FIRST):
    """This thread's stream for factoring ahead on a device, which goes first, or the SECOND, or
    the THIRD."""
    streams, key = _local.__dict__.setdefault("streams", {}), (device, priority)
    if key not in streams:
        streams[key] = cupy.cuda.Stream(non_blocking=True, priority=priority)
    return streams[key]
