"""Fused kernels for the layers, on CuPy arrays: what an elementwise library would read and write
several times goes through memory once.

`fused(x)` of _arrays.py gives a layer this module where its arrays are CuPy's. Arrays that lie by
rows, from a multiple of 16 bytes on, are worked on where they lie; of others a copy is made first,
which trace() counts. Nothing synchronises.
"""

import threading
from functools import lru_cache
from struct import Struct, pack, unpack
from typing import NamedTuple

import cupy
import numpy as np

from .. import _trace
from .._kernel import TensorMap, current_device, ffi, gpu, kernel_of, multiprocessors
from .._spaces import (
    attention_bytes,
    attention_wgmma_bytes,
    chunk_bytes,
    convolution_bytes,
    convolution_wgmma_bytes,
    unsteps_cluster_bytes,
)
from .._tuned import capitals, looked_up
from .._tuned import row as tuned_row
from .._types import TYPES
from ..batched._gpu import blocks
from ._arrays import REALS, fused, product

FUNCTIONS = ("relu", "tanh", "sigmoid", "elu", "gelu", "gelu_tanh", "softplus", "swish")
_SINGLY = (("SINGLY", 1),)  # rows that are not whole packs of 16 bytes (kernels/rows.cuh)
_BETWEEN_WARPS = 2 * 32 * 8  # bytes in which a cluster's warps find each other's numbers
_SINGLE = np.dtype(np.float32)
OF_Y = ("tanh", "sigmoid")  # whose derivatives are written by y


@lru_cache(64)
def _bits(x):
    """A real parameter of a kernel: a double in 64 bits."""
    return unpack("q", pack("d", x))[0]


def _by_rows(x):
    """x itself where a kernel can read it by packs, else a copy."""
    if x.flags.c_contiguous and x.data.ptr % 16 == 0:
        return x
    _trace.note(copied=x.nbytes)
    return x.copy(order="C")


def _new(*shape, like):
    return cupy.ndarray(shape, like.dtype)


def _sums(*shape, like):
    """A new array of what is summed of such numbers, in single precision at least."""
    return cupy.ndarray(shape, like.dtype if like.dtype.itemsize > 4 else _SINGLE)


def _kernel(name, like, n=4):
    """The Blocks for rows of n, or None past the kernel's last row."""
    packed = n * like.itemsize % 16 == 0
    return blocks(name, REALS[like.dtype], n, *(() if packed else _SINGLY))


def _on_rows(name, x, *numbers):
    """Launch a kernel of rows.cuh with a team to every row of x."""
    n = x.shape[-1]
    m, kernel = x.size // n, _kernel(name, x, n)
    teams, cluster = kernel.threads // kernel.values["TEAM"], kernel.values.get("CLUSTER", 1)
    kernel(-(-m // teams) * cluster, _BETWEEN_WARPS if cluster > 1 else 0, *numbers, m, n)


def _on_chunks(name, lines, x, *numbers):
    """Launch a kernel of chunks.cuh on so many operands of rows as x has, as many blocks as find
    room; False, and nothing is done, where the rows' other kernel is faster."""
    n = x.shape[-1]
    kernel = blocks(name, REALS[x.dtype], n)
    if kernel is None:
        return False
    m, values = x.size // n, kernel.values
    places = values["BLOCKS"] * multiprocessors(current_device()) // values["CLUSTER"]
    kernel(min(m, places) * values["CLUSTER"],
           chunk_bytes(kernel.kernel.letter, lines, values), *numbers, m, n)
    return True


def _on_elements(name, count, like, *numbers):
    """Launch a kernel of elements.cuh over `count` numbers."""
    kernel = _kernel(name, like)
    packs = kernel.threads * kernel.values["PACKS"] * 16 // like.itemsize
    kernel(-(-count // packs), 0, *numbers, count)


# -- rows


def norm(x, gain, bias, eps):
    """(y, x, about) of layer norm along the last axis, of RMS norm where bias is None; None where
    rows are too long for the gradient's kernel."""
    if _kernel("norm_rows_backward", x, x.shape[-1]) is None:
        return None
    x, gain, bias = _by_rows(x), _by_rows(gain), bias if bias is None else _by_rows(bias)
    y, about = _new(*x.shape, like=x), _sums(x.size // x.shape[-1], 2, like=x)
    _on_rows("norm_rows", x, x.data.ptr, gain.data.ptr, 0 if bias is None else bias.data.ptr,
             y.data.ptr, about.data.ptr, _bits(eps))
    return y, x, about


def norm_backward(dy, x, about, gain, centred, plus=None):
    """(dx, dgain, dbias) of `norm`, to dx `plus` added."""
    dy, gain, n = _by_rows(dy), _by_rows(gain), x.shape[-1]
    plus = None if plus is None else _by_rows(plus)
    m, kernel = x.size // n, _kernel("norm_rows_backward", x, n)
    teams = kernel.threads // kernel.values["TEAM"]
    count = min(-(-m // teams), kernel.values["BLOCKS"] * multiprocessors(current_device()))
    dx, parts = _new(*x.shape, like=x), _sums(count * teams, 2 * n, like=x)
    kernel(count, 0, x.data.ptr, dy.data.ptr, gain.data.ptr, about.data.ptr,
           0 if plus is None else plus.data.ptr, dx.data.ptr, parts.data.ptr, centred, m, n)
    sums = column_sums(parts, x)
    return dx, sums[:n], sums[n:]


def column_sums(a, like=None):
    """a.sum(0) of rows, rounded once to the type of `like` (a's unless given): in strips that all
    multiprocessors share, and then of these."""
    a = _by_rows(a)
    (m, n), like = a.shape, a if like is None else like
    across = -(-n // 32)

    def sums(a, strips, to):
        types = ("OF_SUMS", int(a.dtype != like.dtype)), ("ROUNDED", int(to.dtype == like.dtype))
        kernel = blocks("column_sums", REALS[like.dtype], n, *types)
        kernel(across * strips, 0, a.data.ptr, to.data.ptr, -(-len(a) // strips), len(a), n)
        return to

    threads = blocks("column_sums", REALS[like.dtype], n).threads
    strips = max(1, min(4 * multiprocessors(current_device()) // across, m // threads))
    if strips > 1:
        a = sums(a, strips, _sums(strips, n, like=like))
    return sums(a, 1, _new(n, like=like))


def embedding_sums(x, dy, n):
    """The sum of the lines of dy at which x is k, for every k below n."""
    x, dy = cupy.ascontiguousarray(x.reshape(-1), np.int32), _by_rows(dy)
    width = dy.shape[-1]
    kernel = _kernel("embedding_sums", dy)
    blocks_of = n * -(-width // (8 * kernel.threads))
    strips = max(1, min(8 * multiprocessors(current_device()) // blocks_of,
                        x.size // (8 * kernel.threads)))
    sums = _sums(strips, n * width, like=dy)
    kernel(blocks_of * strips, 0, x.data.ptr, dy.data.ptr, sums.data.ptr, -(-x.size // strips),
           x.size, n, width)
    return column_sums(sums, dy).reshape(n, width)


def softmax(x, log=False):
    """Softmax along the last axis, or its logarithm."""
    x = _by_rows(x)
    y = _new(*x.shape, like=x)
    numbers = x.data.ptr, y.data.ptr, log
    if not _on_chunks("softmax_chunks", 1, x, *numbers):
        _on_rows("softmax_rows", x, *numbers)
    return y


def softmax_backward(dy, y, log=False):
    """dx of `softmax`."""
    dy, dx = _by_rows(dy), _new(*y.shape, like=y)
    numbers = y.data.ptr, dy.data.ptr, dx.data.ptr, log
    if not _on_chunks("softmax_chunks_backward", 2, y, *numbers):
        _on_rows("softmax_rows_backward", y, *numbers)
    return dx


def cross_entropy(y, labels, smoothing, ignore, scale):
    """(loss, `scale` times its gradient in y): both come of one pass over the scores y."""
    y, m = _by_rows(y), labels.size
    labels = cupy.ascontiguousarray(labels, np.int64)
    dy, loss = _new(*y.shape, like=y), _sums(like=y)
    room = cupy.cuda.alloc((m + 2) * loss.itemsize)  # the rows' losses; two numbers of all labels
    losses, counts = room.ptr, 0
    mean, of_labels = _kernel("cross_entropy_mean", loss), (labels.data.ptr, ignore or 0)
    if ignore is not None:
        counts = losses + m * loss.itemsize
        mean(1, 0, 0, *of_labels, _bits(scale), counts, 0, m)
    numbers = (y.data.ptr, labels.data.ptr, counts, _bits(scale / max(m, 1)), _bits(smoothing),
               ignore or 0, losses, dy.data.ptr)
    if not _on_chunks("cross_entropy_chunks", 1, y, *numbers):
        _on_rows("cross_entropy_rows", y, *numbers)
    mean(1, 0, losses, *of_labels, 0, counts, loss.data.ptr, m)
    return loss, dy


# -- convolution (kernels/convolution.cuh)

_MOST = 2**31 - 1  # of what places within an operand are counted in


class Words(NamedTuple):
    """Numbers of single precision as pairs of halves, and where their exponent is
    (kernels/pair_words.cu)."""

    of: cupy.ndarray
    exponent: cupy.ndarray


class Boxes(NamedTuple):
    """Images of single precision, or filters, as pairs of halves with channels last, (n, height,
    width, 2 room); where their exponent is; how many channels there are; sums of each in strips, if
    asked for (kernels/channel_pairs.cu); whether filters are turned round."""

    pairs: cupy.ndarray
    exponent: cupy.ndarray
    channels: int
    sums: cupy.ndarray | None
    turned: bool = False

    @property
    def room(self):
        return self.pairs.shape[3] // 2

    def describe(self, tensor, box):
        """Boxes of 64 channels of (images, rows, columns), the high or the low parts."""
        tensor.describe(TensorMap.HALF, self.pairs.data.ptr, self.pairs.shape[::-1],
                        self.pairs.strides[2::-1], (64, *box[::-1]))


def convolves(*operands):
    """True if the kernels take arrays of this type and size."""
    return operands[0].dtype.char in "fd" and all(
        abs(s) // x.itemsize * n <= _MOST for x in operands for s, n in zip(x.strides, x.shape))


def in_pairs(w, x, stride):
    """(w, x) where a convolution of x by w (groups, rows, channels, ...) is by pairs: both as
    `Boxes`, or x as `Words`, where its numbers are to be multiplied often enough."""
    groups, rows, channels, *_ = w.shape
    if x.dtype.char != "f":
        return w, x
    few, elements = min(rows, channels), w[0, 0, 0].size
    often, pairs = _least_products(few, current_device())
    if groups == max(stride) == 1 and rows * channels * elements >= often * (rows + channels):
        return _boxes((w[0], x))
    return w, _words(x) if few * elements >= pairs else x


@looked_up
def _least_products(few, device):
    """Of a number, for which images of so few channels or filters are faster as Boxes; as Words."""
    boxes, words = (tuned_row(name, "s", few, gpu(device))
                    for name in ("convolve_wgmma", "convolve"))
    return boxes.get("often", 0) if boxes else _MOST, words.get("pairs", _MOST)


def as_operand(dy, x, with_sums):
    """dy as what `in_pairs` made of the other operand of a product."""
    if isinstance(x, Boxes):
        return _boxes((dy,), with_sums)[0]
    return _words(dy) if isinstance(x, Words) else dy


def turned(w, part):
    """Of the weights (or their `Boxes`, of stride 1) those of a data gradient: elements `part`
    turned round, filters and channels exchanged."""
    if isinstance(w, Boxes):
        return w._replace(turned=True)
    return w.swapaxes(1, 2)[(..., *part)][(..., *(slice(None, None, -1),) * len(part))]


def convolve(w, x, y, bias, stride, step, origin):
    """y[n, g, m, i] := bias[g, m] + sum over c, j of w[g, m, c, j] x[n, g, c, i stride + j step +
    origin], zeros around x. Arrays of any strides; w (groups, m, c, j, j'), x (or its `Words`) and
    y (n, channels, height, width); or w and x `Boxes`."""
    if isinstance(x, Boxes):
        return _convolve_boxes(w, x, y, bias, step, origin)
    groups, rows, channels, *kernel = w.shape
    inner = w[0, 0].size
    w, x = _alike(cupy.ascontiguousarray(w), x)
    (n, _, *windows), w_of, x_of, y_of = y.shape, *map(_strides, (w.of, x.of, y))
    of_k = _index((channels, *kernel), x_of[1:], step, w_of[2:])
    of_s = _index((n, *windows), (x_of[0], *x_of[2:]), stride, (y_of[0], *y_of[2:]))
    bias = None if bias is None else _by_rows(bias)
    _convolution("convolve", w, w_of[1::-1], inner % 4 == 0, x, channels,
                 (y.data.ptr, y_of[1], rows * y_of[1], 0, 0 if bias is None else bias.data.ptr),
                 rows, groups, inner, origin, of_k, of_s)


def convolve_weights(dy, x, shape, stride, step, origin, with_bias):
    """(dw, db) of `convolve` with w of this shape, db None unless asked for; dy and x arrays, or
    both `Words`, or `Boxes`."""
    if isinstance(x, Boxes):
        return _convolve_weights_boxes(dy, x, shape, step, origin, with_bias)
    groups, rows, channels, *kernel = shape
    dy, x = _alike(dy, x)
    (n, _, *windows), dy_of, x_of = dy.of.shape, *map(_strides, (dy.of, x.of))
    of_k = _index((n, *windows), (x_of[0], *x_of[2:]), stride, (dy_of[0], *dy_of[2:]))
    inner, plane = channels * kernel[0] * kernel[1], windows[0] * windows[1]
    of_s = _index((channels, *kernel), x_of[1:], step, (kernel[0] * kernel[1], kernel[1], 1))
    values = _blocks_of("convolve_weights", x, rows, False).values
    tiles = groups * -(-rows // values["BM"]) * -(-inner // values["BN"])
    terms, size = n * plane, groups * rows * inner
    splits = max(1, min(values["BLOCKS"] * multiprocessors(current_device()) // tiles,
                        terms // (4 * values["BK"])))
    split = -(-terms // (splits * values["BK"])) * values["BK"]
    parts = _new(-(-terms // split), size + groups * rows * with_bias, like=x.of)
    fours = plane % 4 == dy_of[0] % 4 == 0 and dy_of[2:] == [windows[1], 1]
    _convolution("convolve_weights", dy, (dy_of[1], rows * dy_of[1]), fours, x, channels,
                 (parts.data.ptr, inner, rows * inner, parts.shape[1],
                  parts.data.ptr + size * parts.itemsize if with_bias else 0),
                 rows, groups, split, origin, of_k, of_s)
    sums = parts[0] if len(parts) == 1 else column_sums(parts)
    return sums[:size].reshape(shape), sums[size:] if with_bias else None


def _words(x):
    """The Words of x, which lie as x does."""
    x, back = _in_order(x)
    words, exponent = _new(*x.shape, like=x), cupy.ndarray(1, np.int32)
    kernel, first = (blocks("pair_words", TYPES["s"], 4, ("FIRST_PASS", i)) for i in (0, 1))
    count = -(-x.size // (kernel.threads * kernel.values["PACKS"] * 4))
    parts = cupy.ndarray(count, np.uint32)
    for one in (first, kernel):
        one(count, 0, x.data.ptr, parts.data.ptr, count, words.data.ptr, exponent.data.ptr, x.size)
    return Words(words.transpose(back) if back else words, exponent)


def _alike(*operands):
    """Both operands as Words, these without exponents unless one has one."""
    if any(isinstance(x, Words) for x in operands):
        return [x if isinstance(x, Words) else _words(x) for x in operands]
    return [Words(x, None) for x in operands]


def _blocks_of(name, x, rows, fours):
    pairs = x.exponent is not None
    return blocks(name, REALS[x.of.dtype], rows, ("PAIRS", int(pairs)), ("FOURS", int(fours)))


def _convolution(name, a, a_of, fours, x, channels, c, rows, groups, split, origin, of_k, of_s):
    """Launch a kernel with blocks for all tiles of C, splits of k and groups."""
    _, channel, *strides = _strides(x.of)
    *c, more = c
    fours = (fours and all(s % 4 == 0 for s in a_of) and a.of.data.ptr % 16 == 0
             and x.exponent is not None)
    kernel = _blocks_of(name, x, rows, fours)
    values = kernel.values
    blocks_of_c = -(-rows // values["BM"]) * -(-of_s[0] // values["BN"])
    kernel(groups * blocks_of_c * -(-of_k[0] // split),
           convolution_bytes(kernel.kernel.letter, values, name == "convolve_weights"),
           a.of.data.ptr, *a_of, x.of.data.ptr, channels * channel, *x.of.shape[2:], *c, more, rows,
           split, *(0 if i.exponent is None else i.exponent.data.ptr for i in (a, x)),
           sum(o * s for o, s in zip(origin, strides)), *origin, *of_k, *of_s)


def _index(counts, strides, steps, others):
    """What a number stands for (kernels/convolution.cuh): three indices, of which the last two step
    through rows and columns of an image."""
    first, *inner = counts
    return (first * inner[0] * inner[1], inner[0] * inner[1], inner[1], strides[0],
            *(a * b for a, b in zip(strides[1:], steps)), *steps, *others)


def _strides(x):
    return [s // x.itemsize for s in x.strides]


# -- convolution of stride 1 by boxes (kernels/convolution_boxes.cuh)


def _boxes(arrays, with_sums=False):
    """The Boxes of one or two arrays (n, channels, height, width), of any strides."""
    kernel, first = (blocks("channel_pairs", TYPES["s"], 4, ("FIRST_PASS", i)) for i in (0, 1))
    at_once = kernel.values["BLOCKS"] * multiprocessors(current_device())
    made, counts, numbers = [], [], []
    for x in arrays:
        (n, channels, height, width), strides = x.shape, _strides(x)
        chunks, pixels = -(-channels // 64), n * height * width
        strips = max(1, min(-(-pixels // 64), at_once // chunks))
        by_fours = (strides[3] == 1 and strides[2] == width and height * width % 4 == 0
                    and not any(s % 4 for s in (*strides[:2], x.data.ptr // 4)))
        pairs = cupy.ndarray((n, height, width, 128 * chunks), np.float16)
        sums = cupy.ndarray((strips, 64 * chunks), np.float32) if with_sums else None
        made.append(Boxes(pairs, cupy.ndarray(1, np.int32), channels, sums))
        counts.append(strips * chunks)
        numbers.append([x.data.ptr, *strides, by_fours, channels, height, width, pixels, 0,
                        counts[-1], pairs.data.ptr, 64 * chunks, made[-1].exponent.data.ptr,
                        sums.data.ptr if with_sums else 0])
    parts = cupy.ndarray(sum(counts), np.uint32)
    numbers[0][10], numbers[-1][10] = parts.data.ptr, parts.data.ptr + 4 * sum(counts[:-1])
    for one in (first, kernel):
        one(sum(counts), 0, counts[0], *numbers[0], *numbers[-1])
    return made


def _convolve_boxes(w, x, y, bias, step, origin):
    """`convolve` of Boxes, of stride 1 and one group."""
    (n, rows, height, width), device = y.shape, current_device()
    values, launch = _wgmma_convolution("convolve_wgmma", rows, device, A_ACROSS=int(w.turned))
    beside = 2 // values["ROWS"]
    row_tiles = -(-rows // (64 * values["ROWS"]))
    box, count = _box(n, height, width, values["BN"], row_tiles, beside, multiprocessors(device))
    bias = None if bias is None else _by_rows(bias)
    w.describe(_local.maps[0], (64, 1, 1) if w.turned else (64 * values["ROWS"], 1, 1))
    x.describe(_local.maps[1], box)
    launch(row_tiles * -(-count // beside), w.room, x.room, *w.pairs.shape[1:3], *step, *origin,
           y.data.ptr, *_strides(y), 0 if bias is None else bias.data.ptr, rows, n, height, width,
           *box, w.exponent.data.ptr, x.exponent.data.ptr)


def _convolve_weights_boxes(dy, x, shape, step, origin, with_bias):
    """`convolve_weights` of Boxes, of stride 1 and one group."""
    _, rows, channels, *kernel = shape
    (n, height, width, _), device = dy.pairs.shape, current_device()
    values, launch = _wgmma_convolution("convolve_wgmma_weights", rows, device)
    box, count = _box_of_64(n, height, width)
    elements, columns = kernel[0] * kernel[1], 2 // values["ROWS"] * values["BN"] // 64
    tiles = -(-rows // (64 * values["ROWS"])) * -(-elements * x.room // 64 // columns)
    splits = _splits(tiles, count, multiprocessors(device))
    parts = cupy.ndarray((splits, elements, rows * channels), np.float32)
    for one, tensor in zip((dy, x), _local.maps):
        one.describe(tensor, box)
    launch(tiles * splits, dy.room, x.room, *kernel, *step, *origin, parts.data.ptr,
           parts[0].size, rows, channels, n, height, width, *box, splits, dy.exponent.data.ptr,
           x.exponent.data.ptr)
    dw = cupy.ndarray(shape, np.float32)
    kernel = blocks("split_sums", TYPES["s"], 4)
    kernel(-(-dw.size // kernel.threads), 0, parts.data.ptr, dw.data.ptr, *parts.shape)
    return dw, column_sums(dy.sums)[:rows] if with_bias else None


@looked_up
def _wgmma_convolution(name, n, device, **chosen):
    """(constants, what launches the kernel with them for so many tiles, and numbers)."""
    values = capitals(tuned_row(name, "s", n, gpu(device)))
    kernel, shared = kernel_of(name, "s", **values, **chosen), convolution_wgmma_bytes(values)

    def launch(tiles, *numbers):
        _PACK[len(numbers)](_local.cells, 0, *numbers)
        kernel.launch(min(tiles, multiprocessors(device)), 1, 384, 1, _local.parameters[2], shared)
    return values, launch


@lru_cache(256)
def _box(n, height, width, most, row_tiles, beside, places):
    """((images, rows, columns) of a box of at most so many pixels, how many boxes there are): the
    fewest turns of so many multiprocessors, and then the longest runs."""
    found = []
    for cols in {-(-width // i) for i in range(-(-width // most), width + 1)}:
        for rows in {-(-height // i) for i in range(1, height + 1)}:
            if images := min(most // (cols * rows), n):
                count = -(-width // cols) * -(-height // rows) * -(-n // images)
                turns = -(-row_tiles * -(-count // beside) // places)
                found.append((turns, -cols, count, (images, rows, cols)))
    *_, count, box = min(found)
    return box, count


@lru_cache(256)
def _box_of_64(n, height, width):
    """((images, rows, columns), all powers of two, of a box of 64 pixels, how many boxes)"""
    found = []
    for cols in (64, 32, 16, 8, 4, 2, 1):
        for rows in (2**i for i in range(7) if 2**i * cols <= 64):
            images = 64 // (cols * rows)
            count = -(-width // cols) * -(-height // rows) * -(-n // images)
            found.append((count, -cols, (images, rows, cols)))
    count, _, box = min(found)
    return box, count


@lru_cache(256)
def _splits(tiles, boxes_of, places):
    """Of so many boxes, so that turns of so many multiprocessors are short: each of the tiles costs
    its boxes and as much as three more."""
    def cost(splits):
        return -(-tiles * splits // places) * (-(-boxes_of // splits) + 3), splits

    splits = min(cost(s) for s in range(1, min(boxes_of, 128) + 1))[1]
    return -(-boxes_of // -(-boxes_of // splits))  # none without boxes


# -- recurrence

_CELLS = {4: 0, 3: 1, 1: 2}  # by how many gates they have
_LSTM, _GRU, _RNN = 0, 1, 2
_ROWS_OF_CLUSTER = 8  # kernels/recurrent_unsteps_cluster.cu


def _at(x, row=0):
    """Where an array begins, or that row of the batch; 0 for None."""
    return 0 if x is None else x.data.ptr + (row and row * x.shape[-1] * x.itemsize)


def _together(name, cell, width):
    """How many rows of a batch a kernel's blocks can have on the GPU at once, and the kernel."""
    kernel = blocks(name, TYPES["s"], width, ("CELL", cell))
    if kernel is None:
        return 0, None
    groups = -(-width // kernel.values["UNITS"])
    return multiprocessors(current_device()) // groups * kernel.values["ROWS"], kernel


def recurrence(z, U, b, c, state, clip, backwards):
    """(h, what goes with it) of all steps of a cell (kernels/cells.cuh), (time, n, width), in one
    launch (or several, a part of the rows each): an LSTM's c, a GRU's s. z (time, n, gates) is x W,
    the gates when it is done; c is a GRU's other bias, `state` where it starts, or None for 0. None
    where the kernel has no row for the width, or no room."""
    (times, batch), width, cell = z.shape[:2], len(U), _CELLS[U.shape[1] // len(U)]
    if width % 4 or z.dtype.char != "f" or not _together("recurrent_unsteps", cell, width)[0]:
        return None
    together, kernel = _together("recurrent_steps", cell, width)
    if not together:
        return None
    groups = -(-width // kernel.values["UNITS"])
    y, beside = _new(times, batch, width, like=z), None
    if cell != _RNN:
        beside = _new(times, batch, width, like=z)
    words = cupy.ndarray(y.shape, np.uint32)
    words.fill(2**32 - 1)
    U, b, carried, s, lift = _by_rows(U), _by_rows(b), None, None, None
    if state:
        first, carried = product(state[0], U), _by_rows(state[-1])
        if cell == _GRU:
            s, first = _by_rows(first[:, 2 * width:]), first[:, :2 * width]
            lift = 15 - cupy.frexp(cupy.maximum(abs(carried).max(), 1))[1].astype(np.int32)
        z[-1 if backwards else 0][:, :first.shape[1]] += first
    for row in range(0, batch, together):
        rows = min(together, batch - row)
        kernel(groups * -(-rows // kernel.values["ROWS"]), 0, _at(z, row), _at(U), U.shape[1], 1,
               _at(b), _at(c), _at(carried, row), _at(s, row), _at(lift), _at(beside, row),
               _at(y, row), _at(words, row), _bits(float("inf") if clip is None else clip),
               backwards, times, batch, rows, width, together=True)
    return y, beside


def recurrence_backward(dy, gates, y, beside, state, U, dstate, clip, backwards, truncate):
    """(dz, dz through U, dstate, db, dc) of `recurrence`: of all steps; at its start, of what it
    left and of dy (time, n, width) and the gradient `dstate` in its last state; in the biases.
    `state`: where it started; None of either for 0. No gradient goes from a step to the one before
    where a piece of `truncate` begins."""
    (times, batch, width), cell = y.shape, _CELLS[U.shape[1] // len(U)]
    dz = of_x = _new(*gates.shape, like=gates)
    if cell == _GRU:
        of_x = _new(*gates.shape, like=gates)
    dy, U = _by_rows(dy), _by_rows(U)
    start = _by_rows(state[-1]) if state else None
    dh, carried = [*map(_by_rows, dstate or ()), None, None][:2]
    beside = y if beside is None else beside
    states = y if cell == _GRU else beside
    carried_before = _new(batch, width, like=y)
    near = blocks("recurrent_unsteps_cluster", TYPES["s"], width, ("CELL", cell))
    numbers = _bits(float("inf") if clip is None else clip), backwards, truncate or 0, times, batch
    if near:
        clusters, before = -(-batch // _ROWS_OF_CLUSTER), _new(batch, width, like=y)
        sums = _new(clusters, (gates.shape[-1] // width + (cell == _GRU)) * width, like=y)
        near(clusters * near.values["CLUSTER"], unsteps_cluster_bytes(near.values),
             *map(_at, (gates, U, beside, states, start, dy, dh, carried, dz, of_x, before,
                        carried_before, sums)), *numbers, width)
        sums = column_sums(sums)
        db, dc = sums[:gates.shape[-1]], sums[gates.shape[-1]:]
    else:
        together, kernel = _together("recurrent_unsteps", cell, width)
        groups = -(-width // kernel.values["UNITS"])
        dz.view(np.uint32).fill(2**32 - 1)
        for row in range(0, batch, together):
            rows = min(together, batch - row)
            kernel(groups * -(-rows // kernel.values["ROWS"]), 0, _at(gates, row), _at(U),
                   *(_at(x, row) for x in (beside, states, start, dy, dh, carried, dz, of_x,
                                           carried_before)), *numbers, rows, width, together=True)
        before = product(dz[-1 if backwards else 0], U.T)
        if cell == _GRU:
            before += carried_before
        db = column_sums(of_x.reshape(-1, gates.shape[-1]))
        dc = column_sums(dz[..., 2 * width:].reshape(-1, width)) if cell == _GRU else None
    return of_x, dz, (before, carried_before)[:1 + (cell == _LSTM)], db, dc


# -- attention

_SCALED = 64  # lines of single precision that are scaled together (kernels/attention_pairs.cu)


def attention(q, k, v, mask, causal, scale, asked):
    """(y, what `attention_backward` takes), by one walk along the keys, of Q (..., m, d), K and V
    (..., n, d), and a mask of bool or None. None where products serve: for lines that are not packs
    of 16 bytes, or past the kernels' last row; and, unless `asked`, where they are faster."""
    letter, d = REALS[q.dtype].letter, q.shape[-1]
    row = _attention_row(letter, d, current_device())
    if (row is None or d * q.itemsize % 16 or v.shape[-1] != d or not k.size
            or not (asked or asked is None and "vendor" not in row)):
        return None
    shape, given = q.shape, [_lines(x) for x in (q, k, v)]
    (batch, heads, m, _), n = given[0].shape, k.shape[-2]
    looks = 0, 0, 0, 0, 0
    if mask is not None:
        mask = _members(cupy.broadcast_to(mask, (*shape[:-1], n)))
        looks = mask.data.ptr, *mask.strides
    y = _new_lines(given[0].shape, *_order(given[0].strides), q.dtype)
    L = cupy.ndarray((batch, heads, m), _SINGLE)
    lines, scales, at = given, [0, 0, 0, 0], None
    if letter == "s":
        parts = [batch * heads * -(-rows // _SCALED) for rows in (m, m, n, n)]  # of Q, dY, K, V
        at = cupy.ndarray(sum(parts), np.int32)
        scales = [at.data.ptr + 4 * sum(parts[:i]) for i in range(4)]
        lines = [_pairs(x, scales[i]) for x, i in zip(given, (0, 2, 3))]
    numbers = *looks, heads, m, n, d, _bits(scale), causal
    if not _by_wgmma("attention_wgmma", letter, lines, (0,), (*_places(y), L.data.ptr, *numbers)):
        _on_members("attention_forward", letter, d, batch * heads, m,
                    (*_places(*lines, y), L.data.ptr, scales[0], *numbers))
    kept = letter, shape, lines, [x.strides for x in given], y, L, mask, at, scales, numbers
    return y.reshape(shape), kept


def attention_backward(dy, kept, out=None):
    """(dQ, dK, dV) of `attention`; with `out` in these three, whose lines begin at multiples of 16
    bytes."""
    letter, shape, (q, k, v), strides, y, L, _, _, scales, numbers = kept
    (batch, heads, m, d), n = y.shape, k.shape[2]
    dy, D = _lines(dy), cupy.ndarray(L.shape, np.float32)
    sums = blocks("attention_sums", TYPES[letter], d)
    sums(-(-8 * D.size // sums.threads), 0, *_places(dy, y), D.data.ptr, heads, m, D.size, d)
    grads = [_members(x) for x in out] if out else [
        _new_lines((batch, heads, rows, d), *_order(of), y.dtype)
        for rows, of in zip((m, n, n), strides)]
    if letter == "s":
        dy = _pairs(dy, scales[1])
    lines, given, of_rows = (q, k, v, dy), _places(q, k, v, dy), (L.data.ptr, D.data.ptr)
    for side, count, own, to in (("queries", m, (0, 3), grads[:1]), ("keys", n, (1, 2), grads[1:])):
        if not _by_wgmma(f"attention_wgmma_{side}", letter, lines, own,
                         (*_places(*to), *of_rows, *numbers)):
            _on_members(f"attention_{side}", letter, d, batch * heads, count,
                        (*given, *_places(*to), *of_rows, scales[0], *numbers))
    return [x.reshape(*shape[:-2], *x.shape[2:]) for x in grads]


@looked_up
def _attention_row(letter, d, device):
    """The row that serves heads of this width, or None where one of the kernels has none."""
    rows = [tuned_row(f"attention_{kernel}", letter, d, gpu(device)) for kernel in
            ("forward", "queries", "keys")] if letter != "d" else [None]
    return rows[0] if all(rows) else None


class _Local(threading.local):
    """Each thread's parameters of kernels by wgmma: what up to four operands are, and numbers."""

    def __init__(self):
        cells = ffi.new("int64_t[]", 24)
        self.maps, self.cells = [TensorMap(4) for _ in range(4)], ffi.buffer(cells)
        self.parameters = {
            count: ffi.new("void *[]", [*(x.place for x in self.maps[:count]),
                                        *(cells + i for i in range(24))]) for count in (2, 3, 4)}


_local = _Local()
_PACK = [Struct(f"{n}q").pack_into for n in range(25)]
_KIND = {"h": TensorMap.HALF, "b": TensorMap.BFLOAT16}


@looked_up
def _attention_by_wgmma(name, letter, d, others, device):
    """(kernel, its constants, shared memory) where it is known to be faster, or None; `others`: how
    many lines there are on the other side, or a power of two above."""
    row = letter in _KIND and tuned_row(name, letter, d, gpu(device), others)
    if not row or "vendor" in row:
        return None
    values = capitals(row)
    return kernel_of(name, letter, **values), values, attention_wgmma_bytes(name, values)


def _by_wgmma(name, letter, lines, own, numbers):
    """Launch a kernel of attention_boxes.cuh where it is known to be faster and `lines` can be
    copied in boxes; a block has ROWS of those that are its `own`."""
    (batch, heads, count, d), device = lines[own[0]].shape, current_device()
    others = next(x.shape[2] for i, x in enumerate(lines) if i not in own)
    found = _attention_by_wgmma(name, letter, d, 1 << (others - 1).bit_length(), device)
    if not found or min([min(x.strides) for x in lines]) <= 0:
        return False
    kernel, values, shared = found
    rows = 64 * values["GROUPS"]
    for i, (x, tensor) in enumerate(zip(lines, _local.maps)):
        tensor.describe(_KIND[letter], x.data.ptr, (d, x.shape[2], heads, batch), x.strides[2::-1],
                        (64, rows if i in own else values["LINES"], 1, 1))
    members, pieces = batch * heads, -(-count // rows)
    launched = members * pieces
    if name == "attention_wgmma":
        launched, *turns = _turns(members, pieces, numbers[-1],
                                  values["BLOCKS"] * multiprocessors(device))
        numbers += members, *turns
    _PACK[len(numbers)](_local.cells, 0, *numbers)
    kernel.launch(launched, 1, 128 * (values["GROUPS"] + 1), 1,
                  _local.parameters[len(lines)], shared)
    return True


def _turns(members, pieces, causal, places):
    """(blocks, how many members go in pairs of pieces, rounds of the blocks that these take) of
    attention_wgmma.cu: all rounds but about the last two, in which pieces by themselves make up for
    what some blocks have had less."""
    pairs = -(-pieces // 2)
    paired = max(members * pairs // places - 1, 0) * places // pairs if causal else 0
    blocks = min(places, paired * pairs + (members - paired) * pieces)
    return blocks, paired, -(-paired * pairs // blocks)


def _on_members(name, letter, d, members, lines, numbers):
    """Launch a kernel of attention.cuh whose blocks have ROWS of the lines of a member."""
    kernel = blocks(name, TYPES[letter], d)
    rows = 16 * kernel.values["TILES"] * kernel.values["WARPS"]
    kernel(members * -(-lines // rows), attention_bytes(name, letter, kernel.values), *numbers)


def _pairs(x, scales):
    """Lines of pairs of half precision, and at the address `scales` the exponents."""
    (batch, heads, n, d), kernel = x.shape, blocks("attention_pairs", TYPES["s"], x.shape[3])
    y = cupy.ndarray((batch, heads, n, 2 * kernel.values["WIDTH"]), np.float16)
    kernel(batch * heads * -(-n // _SCALED), 0, *_places(x), y.data.ptr, scales, heads, n, d)
    return y


def _members(x):
    """x with two axes before the last two."""
    if x.ndim == 4:
        return x
    return x.reshape(*(1,) * (4 - x.ndim), *x.shape) if x.ndim < 4 else (
        x.reshape(-1, *x.shape[-3:]))


def _lines(x):
    """(batch, heads, lines, width) whose lines kernels can read by packs: x itself, or a copy."""
    x = _members(x)
    *strides, last = x.strides
    if last == x.itemsize and all(s % 16 == 0 for s in (x.data.ptr, *strides)):
        return x
    _trace.note(copied=x.nbytes)
    return x.copy(order="C")


@lru_cache(256)
def _order(strides):
    """The axes of lines in the order that they have in memory, and what puts them back."""
    order = *sorted(range(3), key=lambda i: -abs(strides[i])), 3
    return order, tuple(map(order.index, range(4)))


def _new_lines(shape, order, back, dtype):
    return cupy.ndarray([shape[i] for i in order], dtype).transpose(back)


def _places(*lines):
    """Addresses and strides of lines, as kernels take them."""
    return [n for x in lines
            for n in (x.data.ptr, *(s // x.itemsize for s in x.strides[:3]))]


# -- elements


def activation(name, x, factor):
    """f(x) of the activation of this name, in x's order of axes."""
    x, back = _in_order(x)
    y = _new(*x.shape, like=x)
    _on_elements("activation", x.size, x, FUNCTIONS.index(name), x.data.ptr, 0, y.data.ptr,
                 _bits(factor))
    return y.transpose(back) if back else y


def activation_backward(name, dy, x, y, factor):
    """f'(x) dy."""
    at, back = _in_order(y if name in OF_Y else x)
    dy = _by_rows(dy.transpose(np.argsort(back)) if back else dy)
    dx = _new(*at.shape, like=at)
    _on_elements("activation", at.size, at, FUNCTIONS.index(name), at.data.ptr, dy.data.ptr,
                 dx.data.ptr, _bits(factor))
    return dx.transpose(back) if back else dx


def _in_order(x):
    """(x with its axes in the order they have in memory, what puts them back, or None)."""
    if x.flags.c_contiguous:
        return _by_rows(x), None
    axes = sorted(range(x.ndim), key=lambda i: -x.strides[i])
    return _by_rows(x.transpose(axes)), [int(i) for i in np.argsort(axes)]


def add(x, y):
    """x + y of equal shapes."""
    x, y = _by_rows(x), _by_rows(y)
    z = _new(*x.shape, like=x)
    _on_elements("add", x.size, x, x.data.ptr, y.data.ptr, z.data.ptr)
    return z


def dropout(x, words, limit, scale):
    """x m, as dropout.py says; the mask follows from the two words."""
    x = _by_rows(x)
    y = _new(*x.shape, like=x)
    _on_elements("dropout", x.size, x, x.data.ptr, y.data.ptr, *map(int, words), limit,
                 _bits(scale))
    return y


def adam(moving, betas, *numbers):
    """A step of Adam of all (parameter, m, v) in place, values rounded from their masters, with the
    kernel's further numbers: one launch for all of a type. Answers those that do not lie by rows on
    this GPU, with which nothing is done."""
    left, lines = [], {}
    for p, m, v in moving:
        w, value = p.master, p.value
        at = [x.data.ptr for x in (w, value, m, v) if x.flags.c_contiguous]
        if len(at) < 4 or (at[0] | at[1] | at[2] | at[3]) % 16 or not fused(w) or (
                (p.grad.dtype, p.grad.shape) != (value.dtype, value.shape)):
            left.append((p, m, v))
        else:
            lines.setdefault(p.grad.dtype, []).append(
                (w.size, _by_rows(p.grad), at[0], 0 if value is w else at[1], at[2], at[3]))
    numbers = betas[0], 1 - betas[0], betas[1], 1 - betas[1], *numbers
    for parameters in lines.values():
        kernel = _kernel("adam_step", parameters[0][1])
        packs = kernel.threads * kernel.values["PACKS"] * 16 // parameters[0][1].itemsize
        table, begin = [], 0
        for n, grad, w, value, m, v in parameters:
            table.append((w, value, grad.data.ptr, m, v, n, begin))
            begin += -(-n // packs)
        at = cupy.asarray(np.array(table, np.int64))
        kernel(begin, 0, at.data.ptr, len(table), *map(_bits, numbers))
    return left
