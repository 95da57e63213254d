"""What the batched routines share on the GPU: operands as kernels take them, results, launches of
the kernels of lanes.cuh; and stacks by columns, as NVIDIA's libraries want them, whose copies
trace() counts. Nothing synchronises.
"""

from functools import cache
from math import inf

import cupy
import numpy as np

from .. import _trace
from .._kernel import Kernel, current_device, gpu, pack
from .._spaces import MOST
from .._tuned import capitals, looked_up, most, row, rows
from .._types import BY_DTYPE
from ._block import dealt, line_room, small_square_bytes, upper_bytes

INT = np.dtype(np.int32)
ANYWHERE = 256  # the order up to which blocks of all GPUs have room
GENERAL, LOWER, UPPER = range(3)  # what of A counts (kernels/lascl_batched.cu)
LOST = 2**20  # the exponent of a member that is not finite


class Teams:
    """A kernel of lanes.cuh with one set of constants; called with the batch, and the parameters
    before it."""

    def __init__(self, kernel, letter, values):
        self.kernel = Kernel(kernel, letter, **values)
        self.shared = upper_bytes(letter, values) if kernel in ("potrf_small", "posv_small") else 0
        self.threads = 32 * values["WARPS"]
        self.members = values["WARPS"] * (32 // (values["LR"] * values["LC"]))  # to a block

    def __call__(self, batch, *numbers):
        parameters = pack(*numbers, batch)
        self.kernel.launch(-(-batch // self.members), 1, self.threads, 1, parameters, self.shared)


@looked_up
def _kernel_on(kernel, letter, n, device, plain, singly, *more):
    found = row(kernel, letter, n, gpu(device), plain=plain)
    return found and teams(kernel, letter, **dict(more), **{
        k: v for k, v in capitals(found).items() if not (singly and k == "ONE_LINE")})


@cache
def teams(kernel, letter, **values):
    """One object for all orders that are served by the same constants."""
    return Teams(kernel, letter, values)


def kernel(name, me, n, *more, plain=False, singly=False):
    """The Teams that serve order n, or None where the row says that others do; `plain`: not by a
    row that takes members as lines; `singly`: by the constants of such a row, which say in what
    order sums are, but each member by itself; `more`: constants beside the tuned ones."""
    return _kernel_on(name, me.letter, n, current_device(), plain, singly, *more)


class Blocks:
    """A kernel whose blocks have a member each, or a part of one, with one set of constants; called
    with the blocks, the bytes of dynamic shared memory, and the parameters."""

    def __init__(self, kernel, letter, values):
        self.kernel = Kernel(kernel, letter, **values)
        self.threads, self.values = 32 * values["WARPS"], values

    def __call__(self, blocks, shared, *numbers, together=False):
        self.kernel.launch(blocks, 1, self.threads, 1, pack(*numbers), shared, together)


@cache
def _with(kernel, letter, values):
    """One object for all orders that are served by the same constants."""
    return Blocks(kernel, letter, dict(values))


@looked_up
def _blocks_on(kernel, letter, n, device, *more):
    found = row(kernel, letter, n, gpu(device))
    return found and _with(kernel, letter, (*capitals(found).items(), *more))


def blocks(kernel, me, n, *more):
    """The Blocks that serve order n, or None past the kernel's last row; `more`: constants beside
    the tuned ones, (name, value)."""
    return _blocks_on(kernel, me.letter, n, current_device(), *more)


@looked_up
def _by_columns_on(kernel, letter, n, device):
    """[(up to how many columns, the Blocks or None), ...], the last for any."""
    model = gpu(device)
    limits = sorted({r.get("lines", inf) for r, _ in rows(kernel, letter, model)} | {inf})
    found = [(lines, row(kernel, letter, n, model, lines)) for lines in limits]
    return [(lines, r and _with(kernel, letter, tuple(capitals(r).items()))) for lines, r in found]


def for_columns(kernel, me, n, columns):
    """The Blocks that serve order n and so many columns, or members where the bits of a result are
    the same by every row, for few of which there may be rows of their own (`lines`)."""
    return next(block for lines, block in _by_columns_on(kernel, me.letter, n, current_device())
                if columns <= lines)


def past(me, n):
    """Whether order n is more than blocks of the current GPU have room for."""
    return n > ANYWHERE and n > most(me.letter, gpu(current_device()))


@looked_up
def _noted_on(kernel, letter, n, key, device):
    return row(kernel, letter, n, gpu(device)).get(key)


def noted(name, me, n, key):
    """What the row that serves order n says beside the constants, or None."""
    return _noted_on(name, me.letter, n, key, current_device())


def solving(name, me, n, sides):
    """The Blocks that serve order n and so many right-hand sides, or None."""
    block = blocks(name, me, n)
    return block if block and sides <= block.values["UPTO"] else None


def solve_by_lines(block, dtype, members, n, sides, *numbers):
    """Launch a kernel of kernels/solve_lines.cuh, a warp to each right-hand side, for members of
    at most order n and so many `sides`; `numbers`: what it is told before that."""
    warps, room = block.values["WARPS"], line_room(n, block.values)
    block(-(-members * sides // warps), warps * room * dtype.itemsize, *numbers, sides, members,
          room)


def launch_dealt(me, block, members, n, *numbers):
    """Launch a kernel of kernels/dealt_columns.cuh for members of order n, as many to a block as
    have room there; `numbers`: what it is told before that."""
    room = small_square_bytes(me.letter, block.values)
    multiple = noted(block.kernel.name, me, n, "multiple") or 1
    lanes = dealt(block.threads, -(-n // block.values["C"]), multiple, room,
                  gpu(current_device()).shared)
    of_block = block.threads // lanes
    block(-(-members // of_block), of_block * room, *numbers, lanes, members)


def matrix(a, transposed=False):
    """Address and strides (rows, columns, members), in elements, of a stack of matrices."""
    size = a.itemsize
    next_, row, col = a.strides
    if transposed:
        row, col = col, row
    return a.data.ptr, row // size, col // size, next_ // size


def columns(b):
    """`matrix` of right-hand sides, (batch, n) or (batch, n, nrhs)."""
    if b.ndim == 3:
        return matrix(b)
    next_, row = b.strides
    return b.data.ptr, row // b.itemsize, 0, next_ // b.itemsize


def scale(a, x, kept, find=True, target=0, always=True, conjugated=False, part=GENERAL):
    """X := A 2^e for every member; -e is found so that X's largest number is about 2^target, or was
    kept by such a call (kernels/lascl_batched.cu)."""
    batch, m, n = x.shape
    letter = BY_DTYPE[x.dtype].letter
    kernel = _blocks_on("lascl_batched", letter, min(max(m, n), MOST), current_device())
    parts = parts_of(kernel, m, n, find)
    kernel(batch * parts, 0, *matrix(a), conjugated, part, *matrix(x), kept.data.ptr, find, target,
           always, m, n, parts)


def parts_of(block, m, n, find):
    """How many blocks of kernels/lascl_batched.cu have an (m, n) member: one where an exponent is
    found, else as many as have so many `numbers` to a thread."""
    numbers = None if find else _noted_on("lascl_batched", block.kernel.letter,
                                          min(max(m, n), MOST), "numbers", current_device())
    return max(1, -(-m * n // (numbers * block.threads))) if numbers else 1


def nrhs(b):
    return b.shape[2] if b.ndim == 3 else 1


def like(a, overwrite):
    """Where the result goes: `a` itself, or a new array whose members lie as those of `a` do."""
    if overwrite:
        return a
    if a.ndim == 3 and a.strides[1] < a.strides[2] and a.shape[2] > 1:
        batch, m, n = a.shape
        return cupy.ndarray((batch, n, m), a.dtype).transpose(0, 2, 1)
    return cupy.ndarray(a.shape, a.dtype)


def pivots_and_infos(batch, k):
    """Room for (batch, k) pivots and (batch,) infos: one allocation serves both."""
    memory = cupy.cuda.alloc(4 * batch * (k + 1))
    return (cupy.ndarray((batch, k), INT, memory),
            cupy.ndarray((batch,), INT, memory + 4 * batch * k))


def infos(batch, zero=False):
    return cupy.zeros(batch, INT) if zero else cupy.ndarray((batch,), INT)


def keeping(info, *more):
    """`info`; where a graph captures the call, so that it keeps memory which kernels use again
    whenever the graph is launched."""
    if all(x is None for x in more) or not cupy.cuda.get_current_stream().is_capturing():
        return info
    memory = cupy.cuda.UnownedMemory(info.data.ptr, info.nbytes, (info, *more))
    return cupy.ndarray(info.shape, INT, cupy.cuda.MemoryPointer(memory, 0))


# -- stacks by rows that begin with lines


def in_lines(a):
    """Whether members lie by rows, each of which begins with a line of 128 bytes."""
    return a.strides[2] == a.itemsize and not any(x % 128 for x in (a.data.ptr, *a.strides[:2]))


def room_in_lines(a):
    """Room for a stack of the shape of `a` that is in lines."""
    batch, m, n = a.shape
    line = 128 // a.itemsize
    return cupy.ndarray((batch, m, -(-n // line) * line), a.dtype)[:, :, :n]


# -- stacks by columns


def by_columns(a, overwrite=True):
    """A stack whose members lie by columns, one after the other: `a` itself if it lies so and may
    be overwritten, else a copy."""
    flipped = a.transpose(0, 2, 1)
    if overwrite and flipped.flags.c_contiguous:
        return a
    _trace.note(copied=a.nbytes)
    return flipped.copy(order="C").transpose(0, 2, 1)


def finish(a, work, overwrite):
    """The result `work`, by columns, in the memory order of `a`, or in `a` itself."""
    if overwrite or a.strides[1] > a.strides[2]:
        if overwrite and work is a:
            return a
        out = a if overwrite else cupy.ndarray(a.shape, a.dtype)
        out[...] = work
        return out
    return work


def pointers(a):
    """The addresses of the members of a stack, on the device: to be held until they are used."""
    return cupy.arange(len(a), dtype=np.uint64) * np.uint64(a.strides[0]) + np.uint64(a.data.ptr)


def stacked(b):
    return b if b.ndim == 3 else b[:, :, None]


def unsolved(b, x, info, overwrite_b):
    """x, and b again where info is not zero."""
    kept = cupy.where(info.reshape((-1,) + (1,) * (b.ndim - 1)) == 0, x, b)
    if not overwrite_b:
        return kept
    b[...] = kept
    return b


