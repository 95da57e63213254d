"""A factorization by blocks of columns, from left to right, each applied to what is right of it.

Look-ahead: a block needs nothing of the products before it but what they do to its own columns. So
it is brought up to date and factored in a stream of its own, which goes first where the GPU is
full, while the caller's stream applies the block before it to the columns behind:

    factoring    block 0 | 0 to 1, block 1  | 1 to 2, block 2  | ...
    applying             | 0 to 2, 3, ...   | 1 to 3, 4, ...   | ...

The two wait for each other by events, and the host for neither.
"""

import threading

import cupy

from .. import _cuda
from .._kernel import current_device


class ByBlocks:
    """A matrix that is being factored. A subclass has its `n` columns, of which `order` are
    factored, `block` at a time, and two or more `sets`, used in turn, of what a block leaves for
    the others: factor(j, width, its) makes it, of the `width` columns at j, and take_off(j, width,
    its, first, last) applies it to columns to the right."""

    def blocks(self):
        """(place, width, its set) of all blocks."""
        return [(j, min(self.block, self.order - j), self.sets[k % len(self.sets)])
                for k, j in enumerate(range(0, self.order, self.block))]

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

    def factor_ahead(self):
        main, ahead = cupy.cuda.get_current_stream(), stream(current_device())
        self.reserve(self.n)
        with _cuda.beside(ahead):
            self.reserve(self.block)
        ahead.wait_event(mark(main))
        try:
            self.go_ahead(main, ahead, self.blocks())
        finally:  # nobody gets the memory of this call before its work is done
            main.wait_event(mark(ahead))

    def go_ahead(self, main, ahead, blocks):
        applied = []
        for k, (j, width, its) in enumerate(blocks):
            with _cuda.beside(ahead):
                if k:
                    if k > 1:
                        ahead.wait_event(applied[k - 2])
                    self.take_off(*blocks[k - 1], j, j + width)
                self.factor(j, width, its)
                factored = mark(ahead)
            main.wait_event(factored)
            behind = j + width + (blocks[k + 1][1] if k + 1 < len(blocks) else 0)
            self.take_off(j, width, its, behind, self.n)
            applied.append(mark(main))
            self.finish(j, width, its)


def mark(stream):
    """What is in a stream now."""
    return stream.record(cupy.cuda.Event(disable_timing=True))


_local = threading.local()


def stream(device):
    """This thread's stream for factoring ahead on a device; it goes first."""
    streams = _local.__dict__.setdefault("streams", {})
    if device not in streams:
        streams[device] = cupy.cuda.Stream(non_blocking=True, priority=-5)
    return streams[device]
